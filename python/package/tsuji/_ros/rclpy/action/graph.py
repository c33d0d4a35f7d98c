"""The actions in the graph."""

_FEEDBACK = "/_action/feedback"
_OF_FEEDBACK = "_FeedbackMessage"


def _actions(names_and_types):
    found = []
    for name, types in names_and_types:
        if name.endswith(_FEEDBACK):
            found.append((name.removesuffix(_FEEDBACK), [it.removesuffix(_OF_FEEDBACK) for it in types]))
    return found


def get_action_client_names_and_types_by_node(node, remote_node_name, remote_node_namespace):
    return _actions(node.get_subscriber_names_and_types_by_node(remote_node_name, remote_node_namespace))


def get_action_server_names_and_types_by_node(node, remote_node_name, remote_node_namespace):
    return _actions(node.get_publisher_names_and_types_by_node(remote_node_name, remote_node_namespace))


def get_action_names_and_types(node):
    return _actions(node.get_topic_names_and_types())
