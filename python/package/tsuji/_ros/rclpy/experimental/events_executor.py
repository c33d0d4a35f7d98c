from rclpy.executors import SingleThreadedExecutor


class EventsExecutor(SingleThreadedExecutor):
    """The same as `SingleThreadedExecutor`, which waits for events here."""
