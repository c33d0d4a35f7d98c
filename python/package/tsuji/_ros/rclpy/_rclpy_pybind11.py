"""What programs import from rclpy's extension: errors that they catch."""

from rclpy.exceptions import InvalidHandle, RCLError

__all__ = ["InvalidHandle", "RCLError"]
