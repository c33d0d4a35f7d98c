"""What is a type of messages."""

from rclpy.exceptions import NoTypeSupportImportedException


def check_for_type_support(msg_or_srv_type):
    """Raises `AttributeError` where it is none."""
    if not isinstance(msg_or_srv_type, type) or not any(hasattr(msg_or_srv_type, it) for it in ("_plan", "_service", "_action")):
        raise AttributeError(
            f"{msg_or_srv_type} is no type of messages, services or actions; a message's class was expected, not an object of it"
        )


def check_is_valid_msg_type(msg_type):
    check_for_type_support(msg_type)


def check_is_valid_srv_type(srv_type):
    check_for_type_support(srv_type)


__all__ = ["NoTypeSupportImportedException", "check_for_type_support", "check_is_valid_msg_type", "check_is_valid_srv_type"]
