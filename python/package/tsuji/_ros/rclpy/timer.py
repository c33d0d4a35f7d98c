"""Timers, and sleeping at a rate."""

import inspect
import math

from rclpy.entity import Entity, work_of
from rclpy.exceptions import ROSInterruptException


class TimerInfo:
    """When a callback of a timer was due, and when it is made."""

    def __init__(self, *, expected_call_time, actual_call_time):
        self.expected_call_time, self.actual_call_time = expected_call_time, actual_call_time


class Timer(Entity):
    """Calls back again and again. Made by `Node.create_timer`."""

    def __init__(self, node, callback, callback_group, timer_period_ns, clock, autostart=True):
        super().__init__(node, callback_group)
        if timer_period_ns < 0:
            raise ValueError(f"timer period: {timer_period_ns} ns; allowed: 0 or more")
        self._period, self._clock = int(timer_period_ns), clock
        self._is_canceled = not autostart
        self._last = clock._now_ns()
        self._next = self._last + self._period
        self.callback = callback
        try:
            inspect.signature(callback).bind()
            self._wants_info = False
        except TypeError:
            self._wants_info = True
        except ValueError:
            self._wants_info = False

    def _seconds_left(self):
        """Until it is due; None of one that is canceled."""
        if self._is_canceled:
            return None
        now = self._clock._now_ns()
        if now < self._last:
            # Time has gone back.
            self._next = now + self._period
            self._last = now
        left = (self._next - now) / 1e9
        # Simulated time comes by messages, which end the wait.
        return left if left <= 0 or not self._clock._is_simulated else math.inf

    def _waitable(self):
        return None

    def _take(self):
        if not self.is_ready():
            return None
        now, due = self._clock._now_ns(), self._next
        self._last = now
        # What was missed is not made up for.
        missed = (now - due) // self._period if self._period else 0
        self._next = due + (missed + 1) * self._period
        if not self._wants_info:
            return work_of(self.callback)
        from rclpy.time import Time

        def at(nanoseconds):
            return Time(nanoseconds=nanoseconds, clock_type=self._clock.clock_type)

        return work_of(self.callback, TimerInfo(expected_call_time=at(due), actual_call_time=at(now)))

    @property
    def clock(self):
        return self._clock

    @property
    def handle(self):
        return self

    @property
    def timer_period_ns(self):
        return self._period

    @timer_period_ns.setter
    def timer_period_ns(self, value):
        self._period = int(value)
        self._next = self._last + self._period
        self._wake()

    def is_ready(self):
        return not self._is_canceled and self._next <= self._clock._now_ns()

    def is_canceled(self):
        return self._is_canceled

    def cancel(self):
        self._is_canceled = True

    def reset(self):
        """Begins its period anew, now."""
        self._last = self._clock._now_ns()
        self._next = self._last + self._period
        self._is_canceled = False
        self._wake()

    def time_since_last_call(self):
        return self._clock._now_ns() - self._last

    def time_until_next_call(self):
        """Nanoseconds; None of one that is canceled."""
        return None if self._is_canceled else self._next - self._clock._now_ns()

    def _wake(self):
        if self.node.executor is not None:
            self.node.executor.wake()

    def destroy(self):
        self.node.destroy_timer(self)


class Rate:
    """Sleeps so that a loop runs at a rate. Made by `Node.create_rate`."""

    def __init__(self, node, clock, period_ns):
        self._node, self._clock, self._period = node, clock, period_ns
        self._next = clock._now_ns() + period_ns
        self._is_destroyed = False

    def sleep(self):
        """Sleeps until the period is over. Raises `ROSInterruptException` where the context ends."""
        from rclpy.time import Time

        now = self._clock._now_ns()
        if now < self._next - self._period:
            # Time has gone back.
            self._next = now + self._period
        if self._is_destroyed or not self._node.context.ok():
            raise ROSInterruptException()
        until = Time(nanoseconds=self._next, clock_type=self._clock.clock_type)
        if not self._clock.sleep_until(until, self._node.context) and not self._node.context.ok():
            raise ROSInterruptException()
        now = self._clock._now_ns()
        self._next = max(self._next + self._period, now)

    def destroy(self):
        self._is_destroyed = True


__all__ = ["Rate", "Timer", "TimerInfo"]
