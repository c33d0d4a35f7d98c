"""A node of ROS 1, on rospy. It says what happens in lines, holds until a line is said to it where it says so, and ends when
its input does.

    peer.py talk TOPIC COUNT       publishes "hello 1" and on, once it goes on
    peer.py cut TOPIC COUNT        the same, then ends its connections and publishes as many again
    peer.py named NAME TOPIC COUNT as talk, by this name
    peer.py latch TOPIC TEXT       publishes one latched text
    peer.py listen TOPIC           says "heard TEXT" of each
    peer.py stamped TOPIC COUNT    publishes headers, each of the number of its stamp
    peer.py headers TOPIC          says "header SEQ STAMP FRAME" of each
    peer.py pictures TOPIC COUNT   publishes pictures of 1024 x 768, once it goes on
    peer.py look TOPIC             says "picture WIDTH HEIGHT ENCODING LENGTH SUM" of each
    peer.py serve SERVICE          serves std_srvs/SetBool; false fails, and says so
    peer.py call SERVICE COUNT     calls it, and says "answer SUCCESS MESSAGE" of each
    peer.py ask SERVICE COUNT      the same by one connection, and says "asked COUNT" at the end
    peer.py log                    says "log LEVEL NODE TEXT" of each line of /rosout, and logs "from ROS 1" again and again
    peer.py name NAME              is there under that name
    peer.py unknown TOPIC          publishes a type that only ROS 1 has
    peer.py graph TOPIC            says "publishers NAMES" of a topic again and again
"""

import os
import sys
import threading
import time

import rospy
from sensor_msgs.msg import Image
from std_msgs.msg import Header, String
from std_srvs.srv import SetBool, SetBoolResponse


def say(*words):
    print(*words, flush=True)


def hold():
    say("matched")
    if not sys.stdin.readline():
        os._exit(0)


def until_matched(publisher):
    while publisher.get_num_connections() == 0:
        time.sleep(0.005)


def picture(number):
    image = Image(height=768, width=1024, encoding="bgr8", step=3072)
    image.header.frame_id = "camera"
    image.header.stamp = rospy.Time(number, 0)
    image.data = bytes([number % 251]) * (3072 * 768)
    return image


def talk(topic, count):
    publisher = rospy.Publisher(topic, String, queue_size=1000)
    say("ready")
    until_matched(publisher)
    hold()
    for number in range(1, int(count) + 1):
        publisher.publish("hello %d" % number)
    say("sent")


def cut(topic, count):
    publisher = rospy.Publisher(topic, String, queue_size=1000)
    say("ready")
    until_matched(publisher)
    hold()
    for number in range(1, int(count) + 1):
        publisher.publish("hello %d" % number)
    hold()
    for connection in list(publisher.impl.connections):
        connection.close()
        publisher.impl.remove_connection(connection)
    until_matched(publisher)
    hold()
    for number in range(int(count) + 1, 2 * int(count) + 1):
        publisher.publish("hello %d" % number)
    return publisher


def named(_, topic, count):
    # Another one than before in all that it has, so that nothing is told apart by order.
    extra = rospy.Publisher("/a%d" % os.getpid(), String, queue_size=1)
    talk(topic, count)
    return extra


def latch(topic, text):
    publisher = rospy.Publisher(topic, String, queue_size=1, latch=True)
    publisher.publish(text)
    say("ready")
    return publisher


def listen(topic):
    subscriber = rospy.Subscriber(topic, String, lambda it: say("heard", it.data))
    say("ready")
    return subscriber


def stamped(topic, count):
    publisher = rospy.Publisher(topic, Header, queue_size=1000)
    say("ready")
    until_matched(publisher)
    hold()
    for number in range(1, int(count) + 1):
        publisher.publish(Header(stamp=rospy.Time(number, 5), frame_id="map"))
    say("sent")


def headers(topic):
    heard = lambda it: say("header", it.seq, it.stamp.to_nsec(), it.frame_id)
    subscriber = rospy.Subscriber(topic, Header, heard)
    say("ready")
    return subscriber


def pictures(topic, count):
    publisher = rospy.Publisher(topic, Image, queue_size=int(count))
    say("ready")
    until_matched(publisher)
    hold()
    for number in range(1, int(count) + 1):
        publisher.publish(picture(number))
    say("sent")


def look(topic):
    def seen(it):
        say("picture", it.width, it.height, it.encoding, len(it.data), it.data[0], it.data[-1])

    subscriber = rospy.Subscriber(topic, Image, seen, buff_size=1 << 24)
    say("ready")
    return subscriber


def serve(name):
    def answer(request):
        if not request.data:
            raise rospy.ServiceException("it is off")
        return SetBoolResponse(True, "it is on")

    service = rospy.Service(name, SetBool, answer)
    say("ready")
    return service


def call(name, count):
    say("ready")
    rospy.wait_for_service(name)
    for persistent in (False, True):
        client = rospy.ServiceProxy(name, SetBool, persistent=persistent)
        for number in range(int(count)):
            answer = client(number % 2 == 0)
            say("answer", answer.success, answer.message)
    say("done")


def ask(name, count):
    say("ready")
    rospy.wait_for_service(name)
    client = rospy.ServiceProxy(name, SetBool, persistent=True)
    for number in range(int(count)):
        answer = client(number % 2 == 0)
        assert answer.success == (number % 2 == 0), answer
    say("asked", count)


def log():
    from rosgraph_msgs.msg import Log

    subscriber = rospy.Subscriber("/rosout", Log, lambda it: say("log", it.level, it.name, it.msg))
    say("ready")
    ticks = rospy.Timer(rospy.Duration(0.05), lambda _: rospy.logwarn("from ROS 1"))
    return subscriber, ticks


def name(_):
    say("ready")


def unknown(topic):
    from rosgraph_msgs.msg import TopicStatistics

    publisher = rospy.Publisher(topic, TopicStatistics, queue_size=1, latch=True)
    publisher.publish(TopicStatistics())
    say("ready")
    return publisher


def graph(topic):
    import rosgraph

    master = rosgraph.Master("/watcher")
    say("ready")

    def watch():
        before = None
        while True:
            published, subscribed, services = master.getSystemState()
            now = [sorted(by) for it, by in published if it == topic]
            if now != before:
                before = now
                say("publishers", *(now[0] if now else []))
            time.sleep(0.02)

    threading.Thread(target=watch, daemon=True).start()


def main():
    role, *arguments = sys.argv[1:]
    is_named = role in ("name", "named")
    node = arguments[0] if is_named else "peer_" + role
    rospy.init_node(node, anonymous=not is_named, disable_signals=True)
    kept = globals()[role](*arguments)
    # Whoever started it has gone, or says that it is enough.
    while sys.stdin.readline():
        pass
    rospy.signal_shutdown("enough")
    del kept


main()
