"""Waitables of a program's own, which stand on rcl's wait sets."""


class NumberOfEntities:
    def __init__(self, *_, **__):
        raise NotImplementedError("rclpy.waitable: tsuji has no wait sets of rcl")


class Waitable:
    """Raises: what it would be made of is not there."""

    def __init__(self, *_, **__):
        raise NotImplementedError("rclpy.waitable.Waitable: tsuji has no wait sets of rcl")
