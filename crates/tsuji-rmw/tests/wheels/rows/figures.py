"""Figures: how long messages and calls take between two processes on one middleware, in microseconds."""

import array
import statistics
import time

from rclpy.qos import QoSProfile
from std_msgs.msg import String, UInt8MultiArray
from std_srvs.srv import Trigger

from scene import ready, result_of, row, until

PICTURE_BYTES = 1024 * 768 * 3
DEPTH = QoSProfile(depth=10)


def paced(rate, count):
    """Numbers, so many a second."""
    due = time.monotonic()
    for number in range(count):
        due += 1 / rate
        time.sleep(max(0, due - time.monotonic()))
        yield number


def spread(times):
    """Median and 99th percentile of nanoseconds, in microseconds."""
    times = sorted(times)
    return {'median': statistics.median(times) / 1000, 'p99': times[int(len(times) * 0.99)] / 1000, 'count': len(times)}


def listen(side, kind):
    """Takes the age of each message when it is called for it."""
    ages = side.kept['ages'] = []

    def hear_picture(message):
        now = time.monotonic_ns()
        ages.append(now - int.from_bytes(bytes(message.data[:8]), 'little'))

    def hear_text(message):
        now = time.monotonic_ns()
        ages.append(now - int(message.data))

    if kind == 'picture':
        side.kept['subscription'] = side.node.create_subscription(UInt8MultiArray, 'figures', hear_picture, DEPTH)
    else:
        side.kept['subscription'] = side.node.create_subscription(String, 'figures', hear_text, DEPTH)


def count(side):
    return len(side.kept['ages'])


def ages_after(side, begin):
    return spread(side.kept['ages'][begin:])


def publish(scene, kind, rate, number, make):
    """The ages of so many messages at a rate, after some that are not counted."""
    publisher = scene.here.node.create_publisher(kind, 'figures', DEPTH)
    scene.there(listen, 'picture' if kind is UInt8MultiArray else 'text')
    until(lambda: publisher.get_subscription_count() == 1, 'the subscription is matched')
    until(lambda: (publisher.publish(make()), scene.there(count))[1] >= 3, 'the first messages')
    begin = scene.there(count)
    for _ in paced(rate, number):
        publisher.publish(make())
    return scene.there(ages_after, begin)


@row('2.36 MB at 30 Hz')
def _(scene):
    message = UInt8MultiArray(data=array.array('B', bytes(PICTURE_BYTES)))

    def make():
        message.data[:8] = array.array('B', time.monotonic_ns().to_bytes(8, 'little'))
        return message

    return publish(scene, UInt8MultiArray, 30, 120, make)


@row('String at 100 Hz')
def _(scene):
    return publish(scene, String, 100, 300, lambda: String(data=str(time.monotonic_ns())))


def serve(side):
    side.kept['service'] = side.node.create_service(Trigger, 'service', lambda _, response: response)


def served(side):
    until(lambda: side.node.count_services('service') == 1, 'the server')


@row('service found after')
def _(scene):
    scene.there(serve)
    began = time.monotonic_ns()
    ready(scene.here.node.create_client(Trigger, 'service'))
    return spread([time.monotonic_ns() - began])


@row('service call')
def _(scene):
    scene.there(serve)
    client, times = ready(scene.here.node.create_client(Trigger, 'service')), []
    for _ in paced(100, 200):
        began = time.monotonic_ns()
        future = client.call_async(Trigger.Request())
        ended = []
        future.add_done_callback(lambda _: ended.append(time.monotonic_ns()))
        result_of(future, 'a reply')
        until(lambda: ended, 'the reply is told')
        times.append(ended[0] - began)
    return spread(times)
