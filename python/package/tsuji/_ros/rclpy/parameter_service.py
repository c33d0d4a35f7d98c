"""Lets others ask for the parameters of a node, and set them."""

from rclpy.parameter import Parameter
from rclpy.qos import qos_profile_parameters


class ParameterService:
    """The six services of a node's parameters."""

    def __init__(self, node):
        from rcl_interfaces import srv

        self._node = node
        for name, type_, callback in (
            ("describe_parameters", srv.DescribeParameters, self._describe),
            ("get_parameters", srv.GetParameters, self._get),
            ("get_parameter_types", srv.GetParameterTypes, self._get_types),
            ("list_parameters", srv.ListParameters, self._list),
            ("set_parameters", srv.SetParameters, self._set),
            ("set_parameters_atomically", srv.SetParametersAtomically, self._set_atomically),
        ):
            node.create_service(type_, f"~/{name}", callback, qos_profile=qos_profile_parameters)

    def _known(self, names):
        # All or nothing is what rcl answers.
        return all(self._node.has_parameter(it) for it in names) or self._node._allow_undeclared_parameters

    def _describe(self, request, response):
        if self._known(request.names):
            response.descriptors = self._node.describe_parameters(list(request.names))
        return response

    def _get(self, request, response):
        if self._known(request.names):
            empty = Parameter("", Parameter.Type.NOT_SET)
            response.values = [self._node._parameters.get(it, empty).get_parameter_value() for it in request.names]
        return response

    def _get_types(self, request, response):
        if self._known(request.names):
            response.types = [it.value for it in self._node.get_parameter_types(list(request.names))]
        return response

    def _list(self, request, response):
        response.result = self._node.list_parameters(list(request.prefixes), request.depth)
        return response

    def _set(self, request, response):
        response.results = [self._set_all([it]) for it in request.parameters]
        return response

    def _set_atomically(self, request, response):
        response.result = self._set_all(request.parameters)
        return response

    def _set_all(self, parameters):
        from rcl_interfaces.msg import SetParametersResult

        try:
            return self._node.set_parameters_atomically([Parameter.from_parameter_msg(it) for it in parameters])
        except Exception as error:
            return SetParametersResult(successful=False, reason=str(error))
