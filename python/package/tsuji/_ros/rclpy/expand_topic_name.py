"""From a name as a program gives it to the full one."""

from rclpy.validate import validate_namespace, validate_node_name, validate_topic_name


def expand_topic_name(topic_name, node_name, node_namespace):
    """The full name of a topic or service, before it is remapped."""
    validate_topic_name(topic_name)
    validate_node_name(node_name)
    validate_namespace(node_namespace)
    return _expanded(topic_name, node_name, node_namespace)


def _expanded(name, node_name, namespace):
    base = namespace.rstrip("/")
    name = name.replace("{node}", node_name).replace("{ns}", base).replace("{namespace}", base)
    if name.startswith("~"):
        name = f"{base}/{node_name}{name[1:]}"
    return name if name.startswith("/") else f"{base}/{name}"
