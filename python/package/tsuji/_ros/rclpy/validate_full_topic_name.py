from rclpy.validate import validate_full_topic_name

__all__ = ["validate_full_topic_name"]
