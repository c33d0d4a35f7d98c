"""What rclpy has under `rclpy.impl`."""
