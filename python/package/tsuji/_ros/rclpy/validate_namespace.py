from rclpy.validate import validate_namespace

__all__ = ["validate_namespace"]
