"""Which names ROS allows. The words of what is wrong are those of rmw and rcl."""

import re

from rclpy import exceptions

_NAME_MAX = 255


def _raise(kind, name, why, at):
    raise kind(name, why, at)


def validate_node_name(node_name):
    kind = exceptions.InvalidNodeNameException
    if not node_name:
        _raise(kind, node_name, "node name must not be empty", 0)
    wrong = re.search(r"[^A-Za-z0-9_]", node_name)
    if wrong:
        _raise(kind, node_name, "node name must not contain characters other than alphanumerics or '_'", wrong.start())
    if node_name[0].isdigit():
        _raise(kind, node_name, "node name must not start with a number", 0)
    if _NAME_MAX < len(node_name):
        _raise(kind, node_name, f"node name length should not exceed '{_NAME_MAX}'", _NAME_MAX)
    return True


def validate_namespace(namespace):
    kind = exceptions.InvalidNamespaceException
    if not namespace.startswith("/"):
        _raise(kind, namespace, "namespace must be absolute, it must lead with a '/'", 0)
    if namespace == "/":
        return True
    if namespace.endswith("/"):
        _raise(kind, namespace, "namespace must not end with a '/', unless only a '/'", len(namespace) - 1)
    wrong = re.search(r"[^A-Za-z0-9_/]", namespace)
    if wrong:
        _raise(kind, namespace, "namespace must not contain characters other than alphanumerics, '_', or '/'", wrong.start())
    wrong = re.search(r"//", namespace)
    if wrong:
        _raise(kind, namespace, "namespace must not contain repeated '/'", wrong.start() + 1)
    wrong = re.search(r"/[0-9]", namespace)
    if wrong:
        _raise(kind, namespace, "namespace must not have a token that starts with a number", wrong.start() + 1)
    return True


def validate_topic_name(name, *, is_service=False):
    """Of a name as programs give it, which may be relative or begin with `~`."""
    kind = exceptions.InvalidServiceNameException if is_service else exceptions.InvalidTopicNameException
    what = "service name" if is_service else "topic name"
    if not name:
        _raise(kind, name, f"{what} must not be empty string", 0)
    if name[-1] == "/":
        _raise(kind, name, f"{what} must not end with a forward slash", len(name) - 1)
    if "~" in name[1:]:
        _raise(kind, name, f"tilde (~) in {what} must be only at the beginning", name.index("~", 1))
    if name[0] == "~" and name != "~" and name[1] != "/":
        _raise(kind, name, f"tilde (~) in {what} must be followed by a forward slash", 1)
    wrong = re.search(r"[^A-Za-z0-9_/~{}]", name)
    if wrong:
        _raise(kind, name, f"{what} must not contain characters other than alphanumerics, '_', '~', '{{', or '}}'", wrong.start())
    wrong = re.search(r"//", name)
    if wrong:
        _raise(kind, name, f"{what} must not contain repeated '/'", wrong.start() + 1)
    wrong = re.search(r"(^|/)[0-9]", name)
    if wrong:
        _raise(kind, name, f"{what} token must not start with a number", wrong.end() - 1)
    return True


def validate_full_topic_name(name, *, is_service=False):
    """Of an absolute name."""
    if not name.startswith("/"):
        kind = exceptions.InvalidServiceNameException if is_service else exceptions.InvalidTopicNameException
        _raise(kind, name, f"{'service' if is_service else 'topic'} name must be absolute, it must lead with a '/'", 0)
    return validate_topic_name(name, is_service=is_service)


def validate_parameter_name(name):
    if not name:
        raise exceptions.InvalidParameterException(name)
    return True
