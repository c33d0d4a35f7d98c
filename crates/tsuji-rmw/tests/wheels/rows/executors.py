"""Executors: each of rclpy's runs all that a node has."""

import functools
import threading
import time

import rclpy
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.clock import ClockType
from rclpy.executors import MultiThreadedExecutor, SingleThreadedExecutor
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile
from rclpy.task import Future
from rosgraph_msgs.msg import Clock
from std_msgs.msg import String
from std_srvs.srv import SetBool

from scene import DEADLINE, Side, expect, ready, result_of, row, until

KINDS = {'single-threaded': SingleThreadedExecutor, 'multi-threaded': lambda: MultiThreadedExecutor(4)}
try:
    from rclpy.experimental import EventsExecutor
except ImportError:
    pass  # not in this distribution
else:
    KINDS['events'] = EventsExecutor

MANY = QoSProfile(depth=100)


def each(text, but=None):
    """A row for each kind of executor but one, which has not what the row needs."""

    def enter(check):
        for name, kind in KINDS.items():
            if name != but:
                row(f'{name}: {text}', processes=1)(functools.partial(check, kind=kind))
        return check

    return enter


def answer(request, response):
    response.success = request.data
    return response


def spin(node, kind, done, what):
    """Spins a node until `done`, and ends it. Not all executors may be spoken to by other threads while they spin."""
    executor, future = kind(), Future()
    executor.add_node(node)
    node.create_timer(0.002, lambda: done() and not future.done() and future.set_result(None))
    executor.spin_until_future_complete(future, timeout_sec=DEADLINE)
    executor.shutdown()
    node.destroy_node()
    expect(future.done(), True, f'within {DEADLINE:g} s, {what()}')


@each('timers, messages and replies')
def _(scene, kind):
    node, ticks, heard, replies = rclpy.create_node('whole', namespace=scene.namespace), [], [], []
    publisher = node.create_publisher(String, 'chatter', MANY)
    node.create_subscription(String, 'chatter', lambda it: heard.append(it.data), MANY)
    node.create_service(SetBool, 'service', answer)
    client = ready(node.create_client(SetBool, 'service'))
    until(lambda: publisher.get_subscription_count() == 1, 'the subscription is matched')

    def tick():
        if len(ticks) < 50:
            publisher.publish(String(data=str(len(ticks))))
            client.call_async(SetBool.Request(data=True)).add_done_callback(lambda it: replies.append(it.result().success))
        ticks.append(True)

    node.create_timer(0.005, tick)
    spin(node, kind, lambda: len(heard) >= 50 and len(replies) >= 50,
         lambda: f'{len(ticks)} ticks, {len(heard)} messages, {len(replies)} replies')
    expect(heard, [str(it) for it in range(50)], 'the messages')
    expect(replies, [True] * 50, 'the replies')


@each('guard conditions', but='events')
def _(scene, kind):
    side, triggered = Side(scene.namespace, 'guarded', kind()), []
    guard = side.node.create_guard_condition(lambda: triggered.append(True))
    for number in range(50):
        guard.trigger()
        until(lambda: len(triggered) > number, 'the guard condition is seen')
    side.close()


@each('what is made while it spins', but='events')
def _(scene, kind):
    side = Side(scene.namespace, 'growing', kind())
    node = side.node
    for number in range(20):
        heard = []
        publisher = node.create_publisher(String, f'chatter_{number}', MANY)
        subscription = node.create_subscription(String, f'chatter_{number}', heard.append, MANY)
        until(lambda: publisher.get_subscription_count() == 1, 'the subscription is matched')
        publisher.publish(String(data='heard'))
        until(lambda: heard, 'the message')
        ticked = threading.Event()
        timer = node.create_timer(0.001, ticked.set)
        until(ticked.is_set, 'the timer ticks')
        node.destroy_timer(timer)
        node.destroy_subscription(subscription)
        node.destroy_publisher(publisher)
    side.close()


@each('a thousand messages in order')
def _(scene, kind):
    node, heard = rclpy.create_node('fast', namespace=scene.namespace), []
    quality = QoSProfile(depth=1000)
    publisher = node.create_publisher(String, 'chatter', quality)
    # Callbacks of one group never run beside each other.
    node.create_subscription(String, 'chatter', lambda it: heard.append(int(it.data)), quality)
    until(lambda: publisher.get_subscription_count() == 1, 'the subscription is matched')
    for number in range(1000):
        publisher.publish(String(data=str(number)))
    spin(node, kind, lambda: len(heard) >= 1000, lambda: f'{len(heard)} messages')
    expect(heard, list(range(1000)), 'the messages')


@each('coroutines that await replies')
def _(scene, kind):
    node = rclpy.create_node('awaiting', namespace=scene.namespace)
    group, done = ReentrantCallbackGroup(), []
    node.create_service(SetBool, 'service', answer, callback_group=group)
    client = ready(node.create_client(SetBool, 'service', callback_group=group))

    async def ask():
        done.append((await client.call_async(SetBool.Request(data=True))).success)

    node.create_timer(0.005, ask, callback_group=group)
    spin(node, kind, lambda: len(done) >= 5, lambda: f'{len(done)} replies')
    expect(set(done), {True}, 'the replies')


@each('spin_once, and its time-out')
def _(scene, kind):
    node, executor, ticks = rclpy.create_node('once', namespace=scene.namespace), kind(), []
    executor.add_node(node)

    def settle():
        """What its own parts have waiting is done first."""
        ends = time.monotonic() + 0.3
        while time.monotonic() < ends:
            executor.spin_once(timeout_sec=0.01)

    settle()
    began = time.monotonic()
    executor.spin_once(timeout_sec=0.1)
    expect(time.monotonic() - began >= 0.099, True, 'whether it waits')

    def ends_before(seconds):
        later = node.create_timer(seconds, lambda: ticks.append(True))
        settle()
        executor.spin_once(timeout_sec=0.1)
        has_ended = not ticks
        node.destroy_timer(later)
        ticks.clear()
        return has_ended

    # On a busy machine it may come late once, and not again and again.
    expect(any(ends_before(3) for _ in range(5)), True, 'whether it ends before what comes much later')
    timer = node.create_timer(0.05, lambda: ticks.append(True))
    until(lambda: executor.spin_once(timeout_sec=1) or ticks, 'the timer ticks')
    timer.cancel()
    executor.shutdown()
    node.destroy_node()


@each('spin_until_future_complete')
def _(scene, kind):
    side = Side(scene.namespace, 'server')
    side.node.create_service(SetBool, 'service', answer)
    node, executor = rclpy.create_node('client', namespace=scene.namespace), kind()
    executor.add_node(node)
    client = ready(node.create_client(SetBool, 'service'))
    for _ in range(20):
        future = client.call_async(SetBool.Request(data=True))
        executor.spin_until_future_complete(future, timeout_sec=20)
        expect(future.done() and future.result().success, True, 'the reply')
    executor.shutdown()
    node.destroy_node()
    side.close()


@row('multi-threaded: callbacks beside each other', processes=1)
def _(scene):
    side = Side(scene.namespace, 'beside', MultiThreadedExecutor(4))
    barrier, met = threading.Barrier(3, timeout=20), []

    def meet():
        barrier.wait()
        met.append(True)

    group = ReentrantCallbackGroup()
    timers = [side.node.create_timer(0.01, meet, callback_group=group) for _ in range(3)]
    until(lambda: len(met) >= 3, 'three callbacks at once')
    for timer in timers:
        timer.cancel()
    barrier.abort()
    side.close()


@row('a timer, cancelled and reset', processes=1)
def _(scene):
    ticks = []
    timer = scene.here.node.create_timer(0.02, lambda: ticks.append(time.monotonic()))
    until(lambda: len(ticks) >= 11, 'the timer ticks')
    expect(ticks[10] - ticks[0] > 0.18, True, 'whether it keeps its period')
    timer.cancel()
    expect(timer.is_canceled(), True, 'whether it is cancelled')
    timer.reset()
    count = len(ticks)
    until(lambda: len(ticks) > count, 'it ticks again')
    timer.cancel()


@row('a timer on simulated time')
def _(scene):
    node, ticks = scene.here.node, []
    node.set_parameters([Parameter('use_sim_time', value=True)])
    node.create_timer(1.0, lambda: ticks.append(node.get_clock().now().nanoseconds))
    # It is told by best effort, and lost until both ends have met.
    until(lambda: scene.there(tell_time, 100) or node.get_clock().now().nanoseconds >= 100_000_000_000, 'the clock is heard')
    expect(node.get_clock().clock_type, ClockType.ROS_TIME, 'the clock')
    count = len(ticks)
    for second in range(101, 111):
        scene.there(tell_time, second)
        until(lambda: node.get_clock().now().nanoseconds == second * 1_000_000_000, 'the new time')
        until(lambda: len(ticks) > count, 'a tick a second')
        count = len(ticks)


def tell_time(side, seconds):
    """Publishes the time to whoever runs by it, from `/clock`'s first listener on."""
    if 'clock' not in side.kept:
        side.kept['clock'] = side.node.create_publisher(Clock, '/clock', MANY)
        until(lambda: side.kept['clock'].get_subscription_count() == 1, 'the subscription to the clock is matched')
        until(lambda: side.node.count_subscribers('/clock') == 1, 'the subscription to the clock')
    message = Clock()
    message.clock.sec = seconds
    side.kept['clock'].publish(message)


@row('many of everything in one node', processes=1)
def _(scene):
    side = Side(scene.namespace, 'many')
    node, heard = side.node, set()
    publishers = []
    for number in range(150):
        node.create_subscription(String, f'chatter_{number}', lambda it: heard.add(it.data), MANY)
        publishers.append(node.create_publisher(String, f'chatter_{number}', MANY))
    clients = []
    for number in range(30):
        node.create_service(SetBool, f'service_{number}', answer)
        clients.append(node.create_client(SetBool, f'service_{number}'))
    for number, publisher in enumerate(publishers):
        until(lambda: publisher.get_subscription_count() == 1, 'the subscription is matched')
        publisher.publish(String(data=str(number)))
    for client in clients:
        expect(result_of(ready(client).call_async(SetBool.Request(data=True)), 'a reply').success, True, 'the reply')
    until(lambda: len(heard) == 150, f'all messages; heard were {len(heard)}')
    side.close()
