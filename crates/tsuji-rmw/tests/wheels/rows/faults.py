"""Bad input and faults: a process that is killed or interrupted, what is not there, what is out of reach."""

import os
import resource
import select
import signal
import subprocess
import threading

import rclpy
from rclpy.executors import ExternalShutdownException, MultiThreadedExecutor
from std_msgs.msg import String
from std_srvs.srv import SetBool

from rows.qos import profile, qos
from scene import DEADLINE, environment_there, expect, middlewares, ready, result_of, row, until
from scene import program as scene_program

# Fast DDS believes for 20 s in a participant that says nothing more, and tells others to do so too.
LEAVES_SECONDS = 60


def live(side):
    """A publisher, a subscription and a server."""
    side.kept['publisher'] = side.node.create_publisher(String, 'out', 10)
    side.kept['subscription'] = side.node.create_subscription(String, 'in', print, 10)
    side.kept['service'] = side.node.create_service(SetBool, 'service', print)


def see_alive(scene, name):
    """Another process with its node and endpoints, once all of it is in the graph here."""
    other, node = scene.other(name), scene.here.node
    other(live)
    publisher = node.create_publisher(String, 'in', 10)
    until(lambda: f'{scene.namespace}/{name}' in node.get_fully_qualified_node_names(), 'the node')
    until(lambda: publisher.get_subscription_count() == 1 and node.count_publishers('out') == 1, 'its endpoints')
    return other, publisher


def until_gone(scene, name, publisher):
    node = scene.here.node
    seconds = DEADLINE if set(middlewares()) == {'rmw_tsuji'} else LEAVES_SECONDS
    until(lambda: f'{scene.namespace}/{name}' not in node.get_fully_qualified_node_names(), 'the node has left', seconds)
    until(lambda: publisher.get_subscription_count() == 0 and node.count_publishers('out') == 0, 'its endpoints have left', seconds)


@row('a killed process leaves the graph')
def _(scene):
    other, publisher = see_alive(scene, 'killed')
    other.kill()
    until_gone(scene, 'killed', publisher)


@row('a process that ends leaves the graph')
def _(scene):
    other, publisher = see_alive(scene, 'ended')
    other.end()
    until_gone(scene, 'ended', publisher)


@row('a server that is killed in a call', alone=True)
def _(scene):
    dying, node = scene.other('dying'), scene.here.node
    dying(never_answer)
    client = ready(node.create_client(SetBool, 'service'))
    future = client.call_async(SetBool.Request(data=True))
    dying(asked)
    dying.kill()
    until(lambda: not client.service_is_ready(), 'the server has left')
    expect(future.done(), False, 'whether there is a reply')
    scene.there(serve)
    expect(result_of(ready(client).call_async(SetBool.Request(data=True)), 'a reply').success, True, 'the reply of another server')


def never_answer(side):
    side.kept['asked'] = threading.Event()

    def answer(request, response):
        side.kept['asked'].set()
        threading.Event().wait()

    side.kept['service'] = side.node.create_service(SetBool, 'service', answer)


def asked(side):
    until(side.kept['asked'].is_set, 'the request')


def serve(side):

    def answer(request, response):
        response.success = request.data
        return response

    side.kept['service'] = side.node.create_service(SetBool, 'service', answer)


@row('a subscription that is killed does not stop a publisher', alone=True)
def _(scene):
    words = qos(history='KEEP_ALL', depth=1)
    publisher = scene.here.node.create_publisher(String, 'chatter', profile(words))
    dying = scene.other('dying')
    dying(stuck, words)
    until(lambda: publisher.get_subscription_count() == 1, 'the subscription is matched')
    dying.kill()
    heard = []
    scene.here.node.create_subscription(String, 'chatter', lambda it: heard.append(it.data), profile(words))
    node = scene.here.node
    until(lambda: publisher.get_subscription_count() == 1 == node.count_subscribers('chatter'), 'the other has left')
    for number in range(100):
        publisher.publish(String(data=str(number)))
        until(lambda: len(heard) > number, 'the message')


def stuck(side, words):
    """Takes nothing off."""
    side.kept['subscription'] = side.node.create_subscription(
        String, 'chatter', lambda _: threading.Event().wait(), profile(words))


def program(name, environment=None):
    """Starts a function of this file as a program of its own, on this side's middleware."""
    return scene_program(__name__, name, environment)


def node_at_work():
    """A node with a timer, a subscription, a server and a client."""
    rclpy.init()
    node = rclpy.create_node('worker', namespace=f'/worker_{os.getpid()}')
    publisher = node.create_publisher(String, 'chatter', 10)
    node.create_subscription(String, 'chatter', lambda _: None, 10)
    serve(type('Side', (), {'node': node, 'kept': {}}))
    node.create_client(SetBool, 'service')
    node.create_timer(0.1, lambda: publisher.publish(String(data='at work')))
    # Said from beside, so that a signal does not come upon the saying of it.
    threading.Timer(0.25, print, ['at work'], {'flush': True}).start()
    return node


def spin():
    """As tutorials have it."""
    node = node_at_work()
    try:
        rclpy.spin(node)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    finally:
        node.destroy_node()
        rclpy.try_shutdown()


def spin_plainly():
    """Without a thought for Ctrl-C."""
    rclpy.spin(node_at_work())


def spin_in_threads():
    node, executor = node_at_work(), MultiThreadedExecutor(4)
    executor.add_node(node)
    try:
        executor.spin()
    except (KeyboardInterrupt, ExternalShutdownException):
        pass


def spin_by_events():
    from rclpy.experimental import EventsExecutor
    node, executor = node_at_work(), EventsExecutor()
    executor.add_node(node)
    try:
        # With no time-out its timers do not tick, on any middleware.
        while rclpy.ok():
            executor.spin_once(timeout_sec=1)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass


def wait_for_a_service():
    node = node_at_work()
    try:
        print('at work', flush=True)
        node.create_client(SetBool, 'nobody').wait_for_service()
    except (KeyboardInterrupt, ExternalShutdownException):
        pass


def check_signal(name, number, statuses, allowed):
    """A program ends with one of the statuses when the signal comes, and says no more than is allowed."""
    running = program(name)
    try:
        if not select.select([running.stdout], [], [], DEADLINE)[0]:
            raise AssertionError('it does not begin')
        expect(running.stdout.readline(), 'at work\n', 'its first line')
        running.send_signal(number)
        said = running.communicate(timeout=DEADLINE)[1]
    except subprocess.TimeoutExpired:
        raise AssertionError(f'it does not end within {DEADLINE:g} s') from None
    finally:
        running.kill()
    if running.returncode not in statuses:
        raise AssertionError(f'it ended with {running.returncode}; allowed: {statuses}; it said: {said[-500:]}')
    lines = [it for it in said.splitlines() if it.strip()]
    if lines and not any(lines[-1].startswith(it) for it in allowed):
        raise AssertionError(f'it said: {said[-500:]}')


for name, number, statuses, allowed in (
        ('spin', signal.SIGINT, [0], []),
        ('spin', signal.SIGTERM, [0], []),
        ('spin_plainly', signal.SIGINT, [1, -signal.SIGINT], ['KeyboardInterrupt', 'rclpy.executors.ExternalShutdownException']),
        ('spin_in_threads', signal.SIGINT, [0], []),
        ('spin_by_events', signal.SIGINT, [0], []),
        ('wait_for_a_service', signal.SIGINT, [0], [])):
    row(f'{signal.Signals(number).name} to {name.replace("_", " ")}', processes=1)(
        lambda _, it=(name, number, statuses, allowed): check_signal(*it))


def begin():
    rclpy.init()
    rclpy.create_node('begun')
    print('begun', flush=True)


def check_refused(environment, *words, statuses):
    """A program with that environment ends, and says why in words that name them."""
    running = program('begin', {**os.environ, **environment})
    out, said = running.communicate(timeout=DEADLINE)
    if running.returncode not in statuses or out:
        raise AssertionError(f'it ended with {running.returncode}, and said: {out} {said[-500:]}')
    for word in words:
        expect(word in said, True, f'whether {word} is in: {said[-500:]}')


@row('RMW_IMPLEMENTATION is not there', processes=1)
def _(scene):
    check_refused({'RMW_IMPLEMENTATION': 'rmw_nobody'}, 'rmw_nobody', 'rmw_tsuji', statuses=[102])


@row('RMW_IMPLEMENTATION says another', processes=1)
def _(scene):
    check_refused({'RMW_IMPLEMENTATION': 'rmw_fastrtps_cpp'}, 'rmw_fastrtps_cpp', 'rmw_tsuji', statuses=[102])


@row('a domain that cannot be', processes=1)
def _(scene):
    check_refused({'ROS_DOMAIN_ID': '300'}, '300', statuses=[1])


def run_out():
    """Makes publishers until there is nothing to make them of."""
    rclpy.init()
    resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
    node = rclpy.create_node('greedy')
    for number in range(200):
        node.create_publisher(String, f'chatter_{number}', 10)


@row('no descriptors left', processes=1)
def _(scene):
    running = program('run_out', dict(os.environ, RUST_BACKTRACE='0'))
    said = running.communicate(timeout=DEADLINE)[1]
    # What there is may do.
    if running.returncode != 0 and not any(it in said for it in ('descriptor', 'Too many open files')):
        raise AssertionError(f'it ended with {running.returncode}, and said: {said[-700:]}')


@row('names that are not allowed', processes=1)
def _(scene):
    node = scene.here.node
    for name in 'two words', '1st', 'a//b', 'ä', 'a' * 300:
        try:
            node.create_publisher(String, name, 10)
        except Exception as error:
            expect(bool(str(error)), True, 'the error says something')
        else:
            raise AssertionError(f'{name!r} was allowed')
    for name in 'two words', '1st', '':
        try:
            rclpy.create_node(name)
        except Exception as error:
            expect(bool(str(error)), True, 'the error says something')
        else:
            raise AssertionError(f'a node {name!r} was allowed')


@row('another side on rmw_fastrtps_cpp with the same names', processes=1)
def _(scene):
    # Publishers of one topic on both middlewares in processes of one machine, heard as two.
    environment = dict(environment_there(), RMW_IMPLEMENTATION='rmw_fastrtps_cpp')
    environment.pop('LD_PRELOAD', None)
    heard = set()
    scene.here.node.create_subscription(String, '/both', lambda it: heard.add(it.data), 10)
    theirs, ours = program('publish_name', environment), program('publish_name')
    try:
        until(lambda: heard == {'rmw_fastrtps_cpp', 'rmw_tsuji'}, f'messages of both; heard were {heard}')
    finally:
        for it in theirs, ours:
            it.kill()
            it.communicate()


def publish_name():
    """Publishes the name of its middleware, until it is killed."""
    rclpy.init()
    node = rclpy.create_node('both')
    publisher = node.create_publisher(String, '/both', 10)
    node.create_timer(0.05, lambda: publisher.publish(String(data=rclpy.get_rmw_implementation_identifier())))
    rclpy.spin(node)
