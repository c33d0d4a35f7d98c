"""The old name of `rclpy.event_handler`."""

from rclpy.event_handler import *  # noqa: F403
