"""Servers of services."""

from rclpy.client import _refuse_introspection
from rclpy.entity import Entity, work_of


class Service(Entity):
    """Answers requests. Made by `Node.create_service`."""

    def __init__(self, node, raw, srv_type, srv_name, callback, callback_group, qos_profile):
        super().__init__(node, callback_group)
        self._raw, self.srv_type, self.srv_name = raw, srv_type, srv_name
        self.callback, self.qos_profile = callback, qos_profile

    def _take(self):
        taken = self._raw.take()
        if taken is None:
            return None
        request, to_respond = taken

        def respond(response):
            if not isinstance(response, self.srv_type.Response):
                raise TypeError(
                    f"Expected {self.srv_type.Response}, got {type(response)}: what the callback of {self.service_name} returned"
                )
            to_respond.respond(response)

        return work_of(self.callback, request, self.srv_type.Response(), then=respond)

    @property
    def service_name(self):
        return self._raw.name

    @property
    def logger_name(self):
        return self.node.get_logger().name

    @property
    def handle(self):
        return self._raw

    def configure_introspection(self, clock, service_event_qos_profile, introspection_state):
        _refuse_introspection(introspection_state)

    def destroy(self):
        self.node.destroy_service(self)
