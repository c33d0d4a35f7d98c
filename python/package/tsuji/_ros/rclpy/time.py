"""Points in time."""

from rclpy.clock_type import ClockType
from rclpy.duration import Duration

CONVERSION_CONSTANT = 10**9


class Time:
    """A point in time by a kind of clock, in whole nanoseconds."""

    __slots__ = ("_nanoseconds", "_clock_type")

    def __init__(self, *, seconds=0, nanoseconds=0, clock_type=ClockType.SYSTEM_TIME):
        if not isinstance(clock_type, ClockType):
            raise TypeError("Clock type must be a ClockType enum")
        if seconds < 0:
            raise ValueError("Seconds value must not be negative")
        if nanoseconds < 0:
            raise ValueError("Nanoseconds value must not be negative")
        total = int(seconds * 10**9) + int(nanoseconds)
        if 2**63 <= total:
            raise OverflowError("Total nanoseconds value is too large to store in C time point.")
        self._nanoseconds, self._clock_type = total, clock_type

    @property
    def nanoseconds(self):
        return self._nanoseconds

    @property
    def clock_type(self):
        return self._clock_type

    def seconds_nanoseconds(self):
        return divmod(self._nanoseconds, 10**9)

    def __repr__(self):
        return f"Time(nanoseconds={self._nanoseconds}, clock_type={self._clock_type.name})"

    def __add__(self, other):
        if not isinstance(other, Duration):
            return NotImplemented
        try:
            return Time(nanoseconds=self._nanoseconds + other.nanoseconds, clock_type=self._clock_type)
        except OverflowError as error:
            raise OverflowError("Addition leads to overflow in C storage.") from error

    __radd__ = __add__

    def __sub__(self, other):
        if isinstance(other, Time):
            if self._clock_type != other._clock_type:
                raise TypeError("Can't subtract times with different clock types")
            return Duration(nanoseconds=self._nanoseconds - other._nanoseconds)
        if isinstance(other, Duration):
            try:
                return Time(nanoseconds=self._nanoseconds - other.nanoseconds, clock_type=self._clock_type)
            except ValueError as error:
                raise ValueError("Subtraction leads to negative time") from error
        return NotImplemented

    def _other(self, other):
        if self._clock_type != other._clock_type:
            raise TypeError("Can't compare times with different clock types")
        return other._nanoseconds

    def __eq__(self, other):
        return self._nanoseconds == self._other(other) if isinstance(other, Time) else NotImplemented

    def __hash__(self):
        return hash((self._nanoseconds, self._clock_type))

    def __lt__(self, other):
        return self._nanoseconds < self._other(other) if isinstance(other, Time) else NotImplemented

    def __le__(self, other):
        return self._nanoseconds <= self._other(other) if isinstance(other, Time) else NotImplemented

    def __gt__(self, other):
        return self._nanoseconds > self._other(other) if isinstance(other, Time) else NotImplemented

    def __ge__(self, other):
        return self._nanoseconds >= self._other(other) if isinstance(other, Time) else NotImplemented

    def to_msg(self):
        from builtin_interfaces.msg import Time as Message

        seconds, nanoseconds = self.seconds_nanoseconds()
        return Message(sec=seconds, nanosec=nanoseconds)

    @classmethod
    def from_msg(cls, msg, clock_type=ClockType.ROS_TIME):
        return cls(seconds=msg.sec, nanoseconds=msg.nanosec, clock_type=clock_type)
