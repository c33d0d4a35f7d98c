"""What rclpy has under `rclpy.experimental`."""

from rclpy.experimental.events_executor import EventsExecutor

__all__ = ["EventsExecutor"]
