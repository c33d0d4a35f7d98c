from rclpy.validate import validate_node_name

__all__ = ["validate_node_name"]
