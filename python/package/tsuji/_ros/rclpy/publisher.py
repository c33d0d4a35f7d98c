"""Publishers."""

from rclpy.duration import Duration


class Publisher:
    """Publishes messages of a type on a topic. Made by `Node.create_publisher`."""

    def __init__(self, node, raw, msg_type, topic, qos_profile, event_callbacks, events, callback_group):
        self.node, self._raw, self.msg_type, self.topic, self.qos_profile = node, raw, msg_type, topic, qos_profile
        self.event_handlers = event_callbacks._handlers(self, events, callback_group)

    def publish(self, msg):
        """Publishes a message, or bytes in CDR."""
        if isinstance(msg, (bytes, bytearray)):
            self._raw.publish_bytes(bytes(msg))
        elif isinstance(msg, self.msg_type):
            self._raw.publish(msg)
        else:
            raise TypeError(f"Expected {self.msg_type}, got {type(msg)}")

    def get_subscription_count(self):
        return self._raw.matched

    @property
    def topic_name(self):
        return self._raw.topic

    @property
    def logger_name(self):
        return self.node.get_logger().name

    @property
    def handle(self):
        return self._raw

    def assert_liveliness(self):
        self._raw.assert_liveliness()

    def wait_for_all_acked(self, timeout=Duration(seconds=-1)):
        """Waits until all subscriptions have what was published. Returns False where the time is over."""
        try:
            self._raw.wait_for_acknowledgements(None if timeout.nanoseconds < 0 else timeout.nanoseconds / 1e9)
        except TimeoutError:
            return False
        return True

    def destroy(self):
        self.node.destroy_publisher(self)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.destroy()
