"""Lengths of time."""


class Duration:
    """A length of time, of whole nanoseconds."""

    __slots__ = ("_nanoseconds",)

    def __init__(self, *, seconds=0, nanoseconds=0):
        total = int(seconds * 10**9) + int(nanoseconds)
        if not -(2**63) <= total < 2**63:
            raise OverflowError("Total nanoseconds value is too large to store in C duration.")
        self._nanoseconds = total

    @property
    def nanoseconds(self):
        return self._nanoseconds

    def __repr__(self):
        return f"Duration(nanoseconds={self._nanoseconds})"

    def __str__(self):
        if self == Infinite:
            return "Infinite"
        return f"{self._nanoseconds} nanoseconds"

    def __eq__(self, other):
        return self._nanoseconds == other._nanoseconds if isinstance(other, Duration) else NotImplemented

    def __hash__(self):
        return hash(self._nanoseconds)

    def __lt__(self, other):
        return self._nanoseconds < other._nanoseconds if isinstance(other, Duration) else NotImplemented

    def __le__(self, other):
        return self._nanoseconds <= other._nanoseconds if isinstance(other, Duration) else NotImplemented

    def __gt__(self, other):
        return self._nanoseconds > other._nanoseconds if isinstance(other, Duration) else NotImplemented

    def __ge__(self, other):
        return self._nanoseconds >= other._nanoseconds if isinstance(other, Duration) else NotImplemented

    def to_msg(self):
        from builtin_interfaces.msg import Duration as Message

        seconds, nanoseconds = divmod(self._nanoseconds, 10**9)
        return Message(sec=seconds, nanosec=nanoseconds)

    @classmethod
    def from_msg(cls, msg):
        return cls(seconds=msg.sec, nanoseconds=msg.nanosec)


Infinite = Duration(nanoseconds=2**63 - 1)
