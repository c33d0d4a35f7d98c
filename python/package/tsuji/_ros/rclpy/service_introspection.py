"""What services may tell of their requests. tsuji.rclpy has none of it but `OFF`."""

from enum import IntEnum


class ServiceIntrospectionState(IntEnum):
    OFF = 0
    METADATA = 1
    CONTENTS = 2
