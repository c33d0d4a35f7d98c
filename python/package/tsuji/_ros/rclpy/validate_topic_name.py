from rclpy.validate import validate_topic_name

__all__ = ["validate_topic_name"]
