from rclpy.validate import validate_parameter_name

__all__ = ["validate_parameter_name"]
