"""Messages as bytes, and back."""

from rclpy.type_support import check_for_type_support


def serialize_message(message):
    """The message in CDR."""
    check_for_type_support(type(message))
    return message.to_bytes()


def deserialize_message(serialized_message, message_type):
    """A message of this class from CDR."""
    return message_type.from_bytes(bytes(serialized_message))
