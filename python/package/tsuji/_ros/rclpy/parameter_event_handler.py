"""Callbacks for changes of parameters, of this node and of others."""

import threading

from rclpy.qos import qos_profile_parameter_events


class ParameterCallbackHandle:
    """A callback for one parameter of a node."""

    def __init__(self, parameter_name, node_name, callback):
        self.parameter_name, self.node_name, self.callback = parameter_name, node_name, callback


class ParameterEventCallbackHandle:
    """A callback for all events of parameters."""

    def __init__(self, callback):
        self.callback = callback


class ParameterEventHandler:
    """Listens to `/parameter_events`, and calls back for what is asked for."""

    def __init__(
        self,
        node,
        qos_profile=qos_profile_parameter_events,
        callback_group=None,
        event_callbacks=None,
        qos_overriding_options=None,
        raw=False,
    ):
        from rcl_interfaces.msg import ParameterEvent

        self.node, self.qos_profile = node, qos_profile
        self._lock = threading.RLock()
        self._of_parameters, self._of_events = [], []
        self.parameter_event_subscription = node.create_subscription(
            ParameterEvent,
            "/parameter_events",
            self._on_event,
            qos_profile,
            callback_group=callback_group,
            event_callbacks=event_callbacks,
            raw=raw,
        )

    def destroy(self):
        self.node.destroy_subscription(self.parameter_event_subscription)

    def _full(self, node_name):
        from rclpy.expand_topic_name import _expanded

        return _expanded(node_name, self.node.get_name(), self.node.get_namespace())

    def _on_event(self, event):
        with self._lock:
            of_parameters, of_events = list(self._of_parameters), list(self._of_events)
        for handle in of_parameters:
            parameter = self.get_parameter_from_event(event, handle.parameter_name, handle.node_name)
            if parameter is not None:
                handle.callback(parameter)
        for handle in of_events:
            handle.callback(event)

    @staticmethod
    def get_parameter_from_event(event, parameter_name, node_name):
        """The parameter of an event, as a message; None where it is not in it."""
        if event.node == node_name:
            for parameter in (*event.new_parameters, *event.changed_parameters):
                if parameter.name == parameter_name:
                    return parameter
        return None

    @staticmethod
    def get_parameters_from_event(event):
        """All parameters that an event sets, as messages."""
        return [*event.new_parameters, *event.changed_parameters]

    def add_parameter_callback(self, parameter_name, node_name, callback):
        handle = ParameterCallbackHandle(
            parameter_name, self._full(node_name) if node_name else self.node.get_fully_qualified_name(), callback
        )
        with self._lock:
            # The last is called first, as rclpy has it.
            self._of_parameters.insert(0, handle)
        return handle

    def remove_parameter_callback(self, handle):
        with self._lock:
            self._of_parameters.remove(handle)

    def add_parameter_event_callback(self, callback):
        handle = ParameterEventCallbackHandle(callback)
        with self._lock:
            self._of_events.insert(0, handle)
        return handle

    def remove_parameter_event_callback(self, handle):
        with self._lock:
            self._of_events.remove(handle)
