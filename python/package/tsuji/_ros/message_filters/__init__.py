"""Filters that messages pass through, and that bring messages of several topics together by their time stamps."""

import itertools
import threading
from bisect import bisect_left, bisect_right

from rclpy.clock import ROSClock
from rclpy.duration import Duration
from rclpy.logging import get_logger
from rclpy.time import Time

__all__ = ["ApproximateTimeSynchronizer", "Cache", "SimpleFilter", "Subscriber", "TimeSynchronizer"]


class SimpleFilter:
    """A filter: calls what is registered with its output."""

    def __init__(self):
        self.callbacks = {}
        self._connections = itertools.count()

    def registerCallback(self, cb, *args):
        """Calls `cb` with each output and then `args`. Returns a number for `unregisterCallback`."""
        connection = next(self._connections)
        self.callbacks[connection] = (cb, args)
        return connection

    def unregisterCallback(self, connection):
        """Ends what `registerCallback` began; ignored for a number that is not known."""
        self.callbacks.pop(connection, None)

    def signalMessage(self, *msg):
        """Outputs a message, or several that belong together."""
        for callback, args in list(self.callbacks.values()):
            callback(*msg, *args)


class Subscriber(SimpleFilter):
    """Outputs the messages of a topic. Takes what `Node.create_subscription` takes; what the subscription has, it has too."""

    def __init__(self, node, msg_type, topic, qos_profile=10, **kwargs):
        super().__init__()
        self.node = node
        self.topic = topic
        self.sub = node.create_subscription(msg_type, topic, self.callback, qos_profile, **kwargs)

    def callback(self, msg):
        self.signalMessage(msg)

    def getTopic(self):
        return self.topic

    def __getattr__(self, name):
        if name == "sub":
            raise AttributeError(name)
        return getattr(self.sub, name)


class Cache(SimpleFilter):
    """Keeps the newest messages, in the order of their stamps, and outputs each that comes.

    It keeps `cache_size` messages; beyond that the one with the oldest stamp is dropped. A message without a stamp gets the time at which
    it came if `allow_headerless` is set, and is dropped with a warning if not.
    """

    def __init__(self, f, cache_size=1, allow_headerless=False):
        super().__init__()
        self.cache_size = cache_size
        self.allow_headerless = allow_headerless
        self.cache_msgs = []
        self.cache_times = []
        self._lock = threading.Lock()
        self.connectInput(f)

    def connectInput(self, f):
        self.incoming_connection = f.registerCallback(self.add)

    def add(self, msg):
        stamp = _stamp(msg)
        if stamp is None:
            if not self.allow_headerless:
                _warn_of_headerless("message_filters_cache")
                return
            stamp = ROSClock().now()
        elif not hasattr(stamp, "nanoseconds"):
            stamp = Time.from_msg(stamp)
        with self._lock:
            at = bisect_right(self.cache_times, stamp.nanoseconds, key=_nanoseconds)
            self.cache_times.insert(at, stamp)
            self.cache_msgs.insert(at, msg)
            if len(self.cache_msgs) > self.cache_size:
                del self.cache_msgs[0], self.cache_times[0]
        self.signalMessage(msg)

    def getInterval(self, from_stamp, to_stamp):
        """The messages from one time to another, both included."""
        begin, end = _nanoseconds(from_stamp), _nanoseconds(to_stamp)
        assert begin <= end, "the interval ends before it begins"
        with self._lock:
            first = bisect_left(self.cache_times, begin, key=_nanoseconds)
            return self.cache_msgs[first : bisect_right(self.cache_times, end, key=_nanoseconds)]

    def getElemAfterTime(self, stamp):
        """The oldest message of this time or later, or None."""
        with self._lock:
            at = bisect_left(self.cache_times, _nanoseconds(stamp), key=_nanoseconds)
            return self.cache_msgs[at] if at < len(self.cache_msgs) else None

    def getElemBeforeTime(self, stamp):
        """The newest message of this time or earlier, or None."""
        with self._lock:
            at = bisect_right(self.cache_times, _nanoseconds(stamp), key=_nanoseconds)
            return self.cache_msgs[at - 1] if at else None

    def getLatestTime(self):
        """The newest stamp, or None."""
        with self._lock:
            return self.cache_times[-1] if self.cache_times else None

    # Its name in ROS 2 Jazzy.
    getLastestTime = getLatestTime

    def getOldestTime(self):
        """The oldest stamp, or None."""
        with self._lock:
            return self.cache_times[0] if self.cache_times else None

    def getLast(self):
        """The message with the newest stamp, or None."""
        with self._lock:
            return self.cache_msgs[-1] if self.cache_msgs else None


class TimeSynchronizer(SimpleFilter):
    """Outputs messages of several filters together, one of each, that have the same stamp.

    It keeps `queue_size` messages of each filter while they wait; beyond that the one with the oldest stamp is dropped. Callbacks run one
    at a time.
    """

    def __init__(self, fs, queue_size):
        super().__init__()
        self.queue_size = queue_size
        # A callback may feed a filter that ends here.
        self.lock = threading.RLock()
        self.connectInput(fs)

    def connectInput(self, fs):
        self.queues = [{} for _ in fs]
        self.input_connections = [f.registerCallback(self.add, queue, index) for index, (f, queue) in enumerate(zip(fs, self.queues))]

    def add(self, msg, my_queue, my_queue_index=None):
        with self.lock:
            self._keep(msg, my_queue, _nanoseconds(msg.header.stamp))
            common = set.intersection(*map(set, self.queues))
            for together in [[queue.pop(stamp) for queue in self.queues] for stamp in sorted(common)]:
                self.signalMessage(*together)

    def _keep(self, msg, queue, stamp):
        queue[stamp] = msg
        while len(queue) > self.queue_size:
            del queue[min(queue)]


class ApproximateTimeSynchronizer(TimeSynchronizer):
    """Outputs messages of several filters together, one of each, whose stamps are less than `slop` seconds apart.

    With `allow_headerless` a message without a stamp gets the time at which it came; without, it is dropped with a warning. With
    `sync_arrival_time` that time counts for every message.
    """

    def __init__(self, fs, queue_size, slop, allow_headerless=False, sync_arrival_time=False):
        self.slop = Duration(seconds=slop)
        self.allow_headerless = allow_headerless
        self.sync_arrival_time = sync_arrival_time
        super().__init__(fs, queue_size)

    def add(self, msg, my_queue, my_queue_index=None):
        stamp = None if self.sync_arrival_time else _stamp(msg)
        if stamp is None:
            if not self.allow_headerless and not self.sync_arrival_time:
                _warn_of_headerless("message_filters_approx")
                return
            stamp = ROSClock().now()
        stamp = _nanoseconds(stamp)
        with self.lock:
            self._keep(msg, my_queue, stamp)
            chosen = self._choose(stamp, my_queue_index)
            if chosen is not None:
                self.signalMessage(*[queue.pop(it) for queue, it in zip(self.queues, chosen)])

    def _choose(self, stamp, index):
        """The stamps of the messages that belong to the new one, one of each queue: the nearest in the first queue, and so on."""
        slop = self.slop.nanoseconds
        candidates = []
        for number, queue in enumerate(self.queues):
            # The new one may be dropped already: it may be the oldest.
            near = [stamp] * (stamp in queue) if number == index else [it for it in queue if abs(it - stamp) <= slop]
            if not near:
                return None
            candidates.append(sorted(near, key=lambda it: abs(it - stamp)))
        return next((chosen for chosen in itertools.product(*candidates) if max(chosen) - min(chosen) < slop), None)


def _stamp(message):
    return getattr(getattr(message, "header", None), "stamp", None)


def _nanoseconds(time):
    """Of a time of rclpy, or of one in a message."""
    return time.nanoseconds if hasattr(time, "nanoseconds") else time.sec * 1_000_000_000 + time.nanosec


def _warn_of_headerless(logger):
    get_logger(logger).warning("A message without header.stamp is dropped. To give it the time at which it came, set allow_headerless.")
