"""The parameters of another node."""

import time

from rclpy.parameter import Parameter, parameter_dict_from_yaml_file
from rclpy.qos import qos_profile_parameter_events, qos_profile_services_default


class AsyncParameterClient:
    """Asks another node for its parameters, and sets them. Answers are futures."""

    def __init__(self, node, remote_node_name, qos_profile=qos_profile_services_default, callback_group=None):
        from rcl_interfaces import srv

        self.node, self.remote_node_name = node, remote_node_name

        def client(name, type_):
            return node.create_client(type_, f"{remote_node_name}/{name}", qos_profile=qos_profile, callback_group=callback_group)

        self._types = srv
        self._describe_parameters_client = client("describe_parameters", srv.DescribeParameters)
        self._get_parameters_client = client("get_parameters", srv.GetParameters)
        self._get_parameter_types_client = client("get_parameter_types", srv.GetParameterTypes)
        self._list_parameters_client = client("list_parameters", srv.ListParameters)
        self._set_parameters_client = client("set_parameters", srv.SetParameters)
        self._set_parameters_atomically_client = client("set_parameters_atomically", srv.SetParametersAtomically)

    def _clients(self):
        return (
            self._describe_parameters_client,
            self._get_parameters_client,
            self._get_parameter_types_client,
            self._list_parameters_client,
            self._set_parameters_client,
            self._set_parameters_atomically_client,
        )

    def services_are_ready(self):
        return all(it.service_is_ready() for it in self._clients())

    def wait_for_services(self, timeout_sec=None):
        """Waits until the node answers. Returns whether it does."""
        until = None if timeout_sec is None else time.monotonic() + timeout_sec
        for client in self._clients():
            left = None if until is None else max(0.0, until - time.monotonic())
            if not client.wait_for_service(left):
                return False
        return True

    @staticmethod
    def _asked(client, request, callback):
        future = client.call_async(request)
        if callback is not None:
            future.add_done_callback(callback)
        return future

    def list_parameters(self, prefixes=None, depth=None, callback=None):
        request = self._types.ListParameters.Request()
        if prefixes:
            request.prefixes = prefixes
        if depth:
            request.depth = depth
        return self._asked(self._list_parameters_client, request, callback)

    def get_parameters(self, names, callback=None):
        return self._asked(self._get_parameters_client, self._types.GetParameters.Request(names=names), callback)

    def set_parameters(self, parameters, callback=None):
        request = self._types.SetParameters.Request(parameters=_to_messages(parameters))
        return self._asked(self._set_parameters_client, request, callback)

    def describe_parameters(self, names, callback=None):
        return self._asked(self._describe_parameters_client, self._types.DescribeParameters.Request(names=names), callback)

    def get_parameter_types(self, names, callback=None):
        return self._asked(self._get_parameter_types_client, self._types.GetParameterTypes.Request(names=names), callback)

    def set_parameters_atomically(self, parameters, callback=None):
        request = self._types.SetParametersAtomically.Request(parameters=_to_messages(parameters))
        return self._asked(self._set_parameters_atomically_client, request, callback)

    def delete_parameters(self, names, callback=None):
        return self.set_parameters([Parameter(it, Parameter.Type.NOT_SET) for it in names], callback)

    def load_parameter_file(self, parameter_file, use_wildcard=False, callback=None):
        return self.set_parameters(self._of_file(parameter_file, use_wildcard), callback)

    def load_parameter_file_atomically(self, parameter_file, use_wildcard=False, callback=None):
        return self.set_parameters_atomically(self._of_file(parameter_file, use_wildcard), callback)

    def _of_file(self, parameter_file, use_wildcard):
        return list(parameter_dict_from_yaml_file(parameter_file, use_wildcard, target_nodes=[self.remote_node_name]).values())

    def on_parameter_event(self, callback, qos_profile=qos_profile_parameter_events, *, callback_group=None):
        from rcl_interfaces.msg import ParameterEvent

        return self.node.create_subscription(ParameterEvent, "/parameter_events", callback, qos_profile, callback_group=callback_group)


def _to_messages(parameters):
    return [it.to_parameter_msg() if isinstance(it, Parameter) else it for it in parameters]
