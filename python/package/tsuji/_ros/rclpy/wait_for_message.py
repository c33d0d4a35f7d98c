"""Waiting for one message."""

from rclpy.qos import QoSProfile


def wait_for_message(msg_type, node, topic, *, qos_profile=1, time_to_wait=-1):
    """Waits for the next message of a topic, for so many seconds; for ever with -1. Returns whether one came, and the message."""
    qos = qos_profile if isinstance(qos_profile, QoSProfile) else QoSProfile(depth=qos_profile)
    subscription = node.create_subscription(msg_type, topic, lambda _: None, qos)
    # Nobody else is to take it.
    node._hide(subscription)
    messages = []

    def wait(seconds):
        try:
            messages.append(subscription._raw.recv(seconds))
        except TimeoutError:
            return False
        return True

    try:
        if node.context._in_steps(None if time_to_wait is False or time_to_wait < 0 else time_to_wait, wait):
            return True, messages[0]
        return False, None
    finally:
        node.destroy_subscription(subscription)
