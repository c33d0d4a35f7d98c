"""Clocks: the system's, a steady one, and ROS time, which may be simulated."""

import threading
import time
from enum import IntEnum

from rclpy.clock_type import ClockType
from rclpy.duration import Duration
from rclpy.exceptions import NotInitializedException
from rclpy.time import Time
from rclpy.utilities import get_default_context


class ClockChange(IntEnum):
    ROS_TIME_NO_CHANGE = 1
    ROS_TIME_ACTIVATED = 2
    ROS_TIME_DEACTIVATED = 3
    SYSTEM_TIME_NO_CHANGE = 4


class JumpThreshold:
    """From which change of time on one wants to hear of it."""

    def __init__(self, *, min_forward, min_backward, on_clock_change=True):
        if min_forward is not None and min_forward.nanoseconds <= 0:
            raise ValueError("min_forward must be a positive non-zero duration")
        if min_backward is not None and min_backward.nanoseconds >= 0:
            raise ValueError("min_backward must be a negative non-zero duration")
        if min_forward is None and min_backward is None and not on_clock_change:
            raise ValueError("At least one jump threshold must be given")
        self.min_forward, self.min_backward, self.on_clock_change = min_forward, min_backward, on_clock_change


class TimeJump:
    """A change of time."""

    def __init__(self, clock_change, delta):
        self._clock_change, self._delta = clock_change, delta

    @property
    def clock_change(self):
        return self._clock_change

    @property
    def delta(self):
        return self._delta


class JumpHandle:
    """Callbacks for changes of time, until it is unregistered."""

    def __init__(self, *, clock, threshold, pre_callback, post_callback):
        if pre_callback is None and post_callback is None:
            raise ValueError("One of pre_callback or post_callback must be callable")
        if pre_callback is not None and not callable(pre_callback):
            raise ValueError("pre_callback must be callable if given")
        if post_callback is not None and not callable(post_callback):
            raise ValueError("post_callback must be callable if given")
        self._clock, self._threshold = clock, threshold
        self._pre_callback, self._post_callback = pre_callback, post_callback
        clock._handles.append(self)

    def unregister(self):
        if self._clock is not None:
            self._clock._handles.remove(self)
            self._clock = None

    def _wants(self, change, delta_ns):
        limit = self._threshold
        if change in (ClockChange.ROS_TIME_ACTIVATED, ClockChange.ROS_TIME_DEACTIVATED):
            return limit.on_clock_change
        forward = limit.min_forward is not None and limit.min_forward.nanoseconds <= delta_ns
        return forward or (limit.min_backward is not None and delta_ns <= limit.min_backward.nanoseconds)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.unregister()


class Clock:
    """A clock of a kind."""

    def __new__(cls, *, clock_type=ClockType.SYSTEM_TIME):
        if not isinstance(clock_type, ClockType):
            raise TypeError("Clock type must be a ClockType enum")
        self = super().__new__(ROSClock if clock_type is ClockType.ROS_TIME else cls)
        self._clock_type = clock_type
        self._handles = []
        self._changed = threading.Condition()
        self._simulated_ns = 0
        self._is_simulated = False
        return self

    @property
    def clock_type(self):
        return self._clock_type

    def __repr__(self):
        return f"Clock(clock_type={self.clock_type.name})"

    def _now_ns(self):
        if self._clock_type is ClockType.STEADY_TIME:
            return time.monotonic_ns()
        return self._simulated_ns if self._is_simulated else time.time_ns()

    def now(self):
        return Time(nanoseconds=self._now_ns(), clock_type=self._clock_type)

    def create_jump_callback(self, threshold, *, pre_callback=None, post_callback=None):
        """Calls back before and after time jumps by `threshold` or more."""
        return JumpHandle(clock=self, threshold=threshold, pre_callback=pre_callback, post_callback=post_callback)

    def sleep_until(self, until, context=None):
        """Sleeps until this time. Returns False where the context ended first, or time came to be simulated or not."""
        if until.clock_type != self._clock_type:
            raise ValueError("until's clock type does not match this clock's type")
        context = get_default_context() if context is None else context
        if not context.ok():
            raise NotInitializedException()
        context._clocks.add(self)
        was_simulated = self._is_simulated
        with self._changed:
            while context.ok() and self._is_simulated == was_simulated:
                left = (until.nanoseconds - self._now_ns()) / 1e9
                if left <= 0:
                    return True
                # In steps, so that Ctrl-C is heard; simulated time wakes whoever waits.
                self._changed.wait(min(left, 0.1) if not was_simulated else 0.1)
        return False

    def sleep_for(self, rel_time, context=None):
        """Sleeps for this time. Returns as `sleep_until` does."""
        return self.sleep_until(self.now() + rel_time, context)

    def wake(self):
        """Lets those who sleep by this clock look again."""
        with self._changed:
            self._changed.notify_all()


class ROSClock(Clock):
    """ROS time: that of the system, or simulated."""

    def __new__(cls, **_):
        self = super().__new__(cls, clock_type=ClockType.SYSTEM_TIME)
        self._clock_type = ClockType.ROS_TIME
        return self

    @property
    def ros_time_is_active(self):
        return self._is_simulated

    def _set_ros_time_is_active(self, enabled):
        if enabled != self._is_simulated:
            change = ClockChange.ROS_TIME_ACTIVATED if enabled else ClockChange.ROS_TIME_DEACTIVATED
            now = time.time_ns()
            self._jump(change, self._simulated_ns - now if enabled else now - self._simulated_ns, simulated=enabled)

    def set_ros_time_override(self, time):
        """Sets the simulated time."""
        if not isinstance(time, Time):
            raise TypeError("Time must be specified as rclpy.time.Time. Received type: {0}".format(type(time)))
        delta = time.nanoseconds - self._simulated_ns
        if self._is_simulated:
            self._jump(ClockChange.ROS_TIME_NO_CHANGE, delta, at_ns=time.nanoseconds)
        else:
            self._simulated_ns = time.nanoseconds

    def _jump(self, change, delta_ns, at_ns=None, simulated=None):
        wanted = [it for it in list(self._handles) if it._wants(change, delta_ns)]
        for handle in wanted:
            if handle._pre_callback is not None:
                handle._pre_callback()
        with self._changed:
            if at_ns is not None:
                self._simulated_ns = at_ns
            if simulated is not None:
                self._is_simulated = simulated
            self._changed.notify_all()
        jump = TimeJump(change, Duration(nanoseconds=delta_ns))
        for handle in wanted:
            if handle._post_callback is not None:
                handle._post_callback(jump)
