"""Filters of messages, fed without a node."""

import random
from types import SimpleNamespace

import pytest
from builtin_interfaces.msg import Time as TimeMessage
from message_filters import ApproximateTimeSynchronizer, Cache, SimpleFilter, Subscriber, TimeSynchronizer
from rclpy.time import Time
from sensor_msgs.msg import Temperature
from std_msgs.msg import String


def reading(seconds, value=0.0):
    message = Temperature(temperature=float(value))
    message.header.stamp = Time(nanoseconds=round(seconds * 1e9)).to_msg()
    return message


def seconds_of(messages):
    return tuple(it.header.stamp.sec + it.header.stamp.nanosec / 1e9 for it in messages)


def synchronized(make, inputs, *arguments, **more):
    """Filters to feed, and the list that what comes out of them together goes to."""
    filters = [SimpleFilter() for _ in range(inputs)]
    came = []
    synchronizer = make(filters, *arguments, **more)
    synchronizer.registerCallback(lambda *messages: came.append(messages))
    return filters, came, synchronizer


def test_callbacks_get_the_message_and_their_own_arguments():
    source, came = SimpleFilter(), []
    source.registerCallback(lambda *got: came.append(got))
    connection = source.registerCallback(lambda *got: came.append(got), "a", "b")
    source.signalMessage(1)
    source.signalMessage(2, 3)
    assert came == [(1,), (1, "a", "b"), (2, 3), (2, 3, "a", "b")]
    source.unregisterCallback(connection)
    source.unregisterCallback(connection)
    assert source.registerCallback(lambda *got: came.append(got), "c") not in (0, connection)
    came.clear()
    source.signalMessage(4)
    assert came == [(4,), (4, "c")]


def test_a_callback_may_end_itself():
    source, came = SimpleFilter(), []

    def once(message):
        came.append(message)
        source.unregisterCallback(connection)

    connection = source.registerCallback(once)
    source.registerCallback(came.append)
    source.signalMessage(1)
    source.signalMessage(2)
    assert came == [1, 1, 2]


class Node:
    """Notes what is asked of it."""

    def create_subscription(self, *arguments, **more):
        self.asked = (arguments, more)
        return SimpleNamespace(topic_name="/here")


def test_subscriber():
    node, came = Node(), []
    subscriber = Subscriber(node, String, "here")
    (of_type, topic, callback, qos), more = node.asked
    assert (of_type, topic, qos, more) == (String, "here", 10, {})
    subscriber.registerCallback(came.append)
    callback("message")
    assert came == ["message"] and subscriber.getTopic() == "here" and subscriber.topic_name == "/here"
    with pytest.raises(AttributeError, match="nothing"):
        _ = subscriber.nothing

    Subscriber(node, String, "here", qos_profile=5, callback_group="group")
    assert node.asked[0][3] == 5 and node.asked[1] == {"callback_group": "group"}


def test_cache_is_sorted_and_drops_the_oldest():
    source, came = SimpleFilter(), []
    cache = Cache(source, 3)
    cache.registerCallback(came.append)
    assert cache.getLast() is cache.getLatestTime() is cache.getOldestTime() is cache.getElemBeforeTime(Time(seconds=9)) is None
    for seconds in (2, 1, 4, 3):
        source.signalMessage(reading(seconds))
    assert seconds_of(came) == (2, 1, 4, 3)
    assert seconds_of(cache.cache_msgs) == (2, 3, 4)
    assert seconds_of([cache.getLast()]) == (4,)
    assert cache.getLatestTime().nanoseconds == cache.getLastestTime().nanoseconds == 4_000_000_000
    assert cache.getOldestTime().nanoseconds == 2_000_000_000


def test_cache_is_asked_by_times():
    source = SimpleFilter()
    cache = Cache(source, 5)
    for seconds in range(5):
        source.signalMessage(reading(seconds))
    assert seconds_of(cache.getInterval(Time(seconds=2.5), Time(seconds=3.5))) == (3,)
    assert seconds_of(cache.getInterval(Time(seconds=2), TimeMessage(sec=3))) == (2, 3)
    assert seconds_of(cache.getInterval(Time(), Time(seconds=9))) == (0, 1, 2, 3, 4)
    assert cache.getInterval(Time(seconds=5), Time(seconds=9)) == []
    assert seconds_of([cache.getElemAfterTime(Time(seconds=2)), cache.getElemAfterTime(Time(seconds=2.5))]) == (2, 3)
    assert seconds_of([cache.getElemBeforeTime(Time(seconds=2)), cache.getElemBeforeTime(Time(seconds=2.5))]) == (2, 2)
    assert cache.getElemAfterTime(Time(seconds=4.5)) is None
    with pytest.raises(AssertionError):
        cache.getInterval(Time(seconds=2), Time(seconds=1))


def test_cache_takes_stamps_of_rclpy():
    source = SimpleFilter()
    cache = Cache(source)
    source.signalMessage(SimpleNamespace(header=SimpleNamespace(stamp=Time(seconds=7))))
    assert cache.getLatestTime() == Time(seconds=7)


def test_cache_of_messages_without_a_stamp():
    source, came = SimpleFilter(), []
    refuses, takes = Cache(source, 2), Cache(source, 2, allow_headerless=True)
    refuses.registerCallback(came.append)
    message = String(data="hello")
    source.signalMessage(message)
    assert refuses.getLast() is None and came == []
    assert takes.getLast() is message and takes.getLatestTime().nanoseconds > 0


def test_exact_stamps():
    (one, two), came, _ = synchronized(TimeSynchronizer, 2, 10)
    one.signalMessage(reading(1))
    two.signalMessage(reading(2))
    one.signalMessage(reading(1.5))
    assert came == []
    two.signalMessage(reading(1.5))
    two.signalMessage(reading(1))
    one.signalMessage(reading(2))
    assert [seconds_of(it) for it in came] == [(1.5, 1.5), (1, 1), (2, 2)]
    one.signalMessage(reading(2))
    assert len(came) == 3


@pytest.mark.parametrize("number", range(1, 10))
def test_exact_stamps_in_any_order(number):
    chance = random.Random(number)
    inputs, came, _ = synchronized(TimeSynchronizer, 3, number)
    for index in range(3):
        for seconds in chance.sample(range(number), number):
            inputs[index].signalMessage(reading(seconds, index))
    assert sorted(seconds_of(it) for it in came) == [(it, it, it) for it in range(number)]
    assert all([message.temperature for message in it] == [0, 1, 2] for it in came)


def test_full_queue_drops_the_oldest():
    (one, two), came, synchronizer = synchronized(TimeSynchronizer, 2, 2)
    for seconds in (1, 2, 3):
        one.signalMessage(reading(seconds))
    assert sorted(synchronizer.queues[0]) == [2_000_000_000, 3_000_000_000]
    for seconds in (1, 2, 3):
        two.signalMessage(reading(seconds))
    assert [seconds_of(it) for it in came] == [(2, 2), (3, 3)]
    # That of 1 s is what did not find another.
    assert [list(it) for it in synchronizer.queues] == [[], [1_000_000_000]]


def test_what_a_callback_raises_is_raised_and_the_next_come():
    (one, two), came, synchronizer = synchronized(TimeSynchronizer, 2, 2)

    def fail(*_):
        raise ValueError("callback")

    connection = synchronizer.registerCallback(fail)
    one.signalMessage(reading(1))
    with pytest.raises(ValueError, match="callback"):
        two.signalMessage(reading(1))
    synchronizer.unregisterCallback(connection)
    one.signalMessage(reading(2))
    two.signalMessage(reading(2))
    assert [seconds_of(it) for it in came] == [(1, 1), (2, 2)]


def test_a_callback_may_feed_the_filter():
    (one, two), came, synchronizer = synchronized(TimeSynchronizer, 2, 5)

    def feed(first, _):
        if first.header.stamp.sec < 3:
            one.signalMessage(reading(first.header.stamp.sec + 1))
            two.signalMessage(reading(first.header.stamp.sec + 1))

    synchronizer.registerCallback(feed)
    one.signalMessage(reading(1))
    two.signalMessage(reading(1))
    assert [seconds_of(it) for it in came] == [(1, 1), (2, 2), (3, 3)]


def test_near_stamps():
    (one, two), came, _ = synchronized(ApproximateTimeSynchronizer, 2, 10, 0.1)
    one.signalMessage(reading(1))
    two.signalMessage(reading(1.25))
    assert came == []
    two.signalMessage(reading(1.0625))
    one.signalMessage(reading(1.1875))
    assert [seconds_of(it) for it in came] == [(1, 1.0625), (1.1875, 1.25)]


def test_slop_itself_is_too_far():
    (one, two), came, _ = synchronized(ApproximateTimeSynchronizer, 2, 10, 0.25)
    one.signalMessage(reading(1))
    two.signalMessage(reading(1.25))
    assert came == []
    two.signalMessage(reading(1.2499))
    assert [seconds_of(it) for it in came] == [(1, 1.2499)]


def test_the_nearest_is_taken_whatever_the_order():
    (one, two), came, _ = synchronized(ApproximateTimeSynchronizer, 2, 10, 0.5)
    for seconds in (1.4, 0.9, 1.2):
        one.signalMessage(reading(seconds))
    two.signalMessage(reading(1))
    assert [seconds_of(it) for it in came] == [(0.9, 1)]
    # An older one comes late, and finds what is left.
    two.signalMessage(reading(0.8))
    two.signalMessage(reading(1.35))
    assert [seconds_of(it) for it in came] == [(0.9, 1), (1.2, 0.8), (1.4, 1.35)]


def test_all_have_to_be_near_each_other():
    (one, two, three), came, _ = synchronized(ApproximateTimeSynchronizer, 3, 10, 0.2)
    one.signalMessage(reading(0.85))
    three.signalMessage(reading(1.15))
    # Each is near to this one, but they are not near to each other.
    two.signalMessage(reading(1))
    assert came == []
    three.signalMessage(reading(1.01))
    assert [seconds_of(it) for it in came] == [(0.85, 1, 1.01)]


@pytest.mark.parametrize("number", range(1, 10))
def test_near_stamps_in_any_order(number):
    chance = random.Random(number)
    (one, two), came, _ = synchronized(ApproximateTimeSynchronizer, 2, number, 0.1)
    for seconds in chance.sample(range(number), number):
        one.signalMessage(reading(seconds))
    for seconds in chance.sample(range(number), number):
        two.signalMessage(reading(seconds + 0.0625))
    assert sorted(seconds_of(it) for it in came) == [(it, it + 0.0625) for it in range(number)]


def test_full_queue_of_near_stamps():
    (one, two), came, synchronizer = synchronized(ApproximateTimeSynchronizer, 2, 2, 0.1)
    for seconds in (1, 2, 3, 0.5):
        one.signalMessage(reading(seconds))
    assert sorted(synchronizer.queues[0]) == [2_000_000_000, 3_000_000_000]
    for seconds in (1, 0.5, 3):
        two.signalMessage(reading(seconds))
    assert [seconds_of(it) for it in came] == [(3, 3)]


def test_one_that_is_dropped_at_once_goes_nowhere():
    (one, two), came, _ = synchronized(ApproximateTimeSynchronizer, 2, 1, 0.1)
    one.signalMessage(reading(1))
    two.signalMessage(reading(5))
    two.signalMessage(reading(1))
    assert came == []


def test_near_without_stamps():
    (one, two), came, _ = synchronized(ApproximateTimeSynchronizer, 2, 10, 10)
    one.signalMessage(String(data="a"))
    two.signalMessage(String(data="b"))
    assert came == []

    (one, two), came, _ = synchronized(ApproximateTimeSynchronizer, 2, 10, 3600, allow_headerless=True)
    one.signalMessage(String(data="a"))
    two.signalMessage(String(data="b"))
    assert [tuple(it.data for it in together) for together in came] == [("a", "b")]


def test_near_by_the_time_of_arrival():
    (one, two), came, _ = synchronized(ApproximateTimeSynchronizer, 2, 10, 3600, sync_arrival_time=True)
    one.signalMessage(reading(1))
    two.signalMessage(reading(1_000_000))
    one.signalMessage(String(data="without a stamp"))
    two.signalMessage(reading(5))
    assert len(came) == 2 and seconds_of(came[0]) == (1, 1_000_000)
