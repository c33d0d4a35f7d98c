"""A client with roslibpy: publishes, subscribes, serves, calls, and asks rosapi. Says a line for each."""

import sys
import threading

import roslibpy

WATCHDOG_S = 60

ros = roslibpy.Ros(host='127.0.0.1', port=int(sys.argv[1]))
ros.run(timeout=WATCHDOG_S)

heard = []
all_heard = threading.Event()


def hear(message):
    heard.append(message['data'])
    if len(heard) == 50:
        all_heard.set()


topic = roslibpy.Topic(ros, '/chatter', 'std_msgs/String')
topic.subscribe(hear)
for number in range(50):
    topic.publish(roslibpy.Message({'data': f'hello {number}'}))
assert all_heard.wait(WATCHDOG_S), len(heard)
print('heard', heard[0], heard[-1])

# What is latched comes to each client, whenever it comes.
latched = roslibpy.Topic(ros, '/map', 'std_msgs/String', latch=True, queue_size=1)
latched.publish(roslibpy.Message({'data': 'one'}))
for number in range(3):
    client = roslibpy.Ros(host='127.0.0.1', port=int(sys.argv[1]))
    client.run(timeout=WATCHDOG_S)
    has_come = threading.Event()
    roslibpy.Topic(client, '/map', 'std_msgs/String').subscribe(lambda _: has_come.set())
    assert has_come.wait(WATCHDOG_S), f'client {number} has not got what is latched'
print('latched')


def add(request, response):
    response['sum'] = request['a'] + request['b']
    return True


service = roslibpy.Service(ros, '/add', 'example_interfaces/AddTwoInts')
service.advertise(add)
caller = roslibpy.Service(ros, '/add', 'example_interfaces/AddTwoInts')
request = roslibpy.ServiceRequest({'a': 2, 'b': 40})
while True:
    try:
        print('sum', caller.call(request, timeout=WATCHDOG_S)['sum'])
        break
    except Exception as error:  # roslibpy raises nothing narrower.
        # Who asks too early is told that nobody serves, and asks again.
        assert 'does not exist' in str(error), error
print('topics', '/chatter' in ros.get_topics())
print('type', ros.get_topic_type('/chatter'))
print('time', ros.get_time().secs > 0)
ros.terminate()
