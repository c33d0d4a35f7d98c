"""Nodes with a lifecycle: unconfigured, inactive, active, finalized."""

import threading
import traceback
from typing import NamedTuple

from rclpy.lifecycle import transitions as of
from rclpy.lifecycle.managed_entity import ManagedEntity
from rclpy.lifecycle.publisher import LifecyclePublisher
from rclpy.lifecycle.transitions import TransitionCallbackReturn
from rclpy.node import Node


class LifecycleState(NamedTuple):
    """A state's name and number."""

    label: str
    state_id: int


class LifecycleNodeMixin(ManagedEntity):
    """What a node with a lifecycle has beside a node."""

    def __init__(self, *, enable_communication_interface=True, callback_group=None):
        self._state_id = of.UNCONFIGURED
        self._managed_entities = set()
        self._changing = threading.RLock()
        self._events = None
        if not enable_communication_interface:
            return
        from lifecycle_msgs import msg, srv

        self._events = Node.create_publisher(self, msg.TransitionEvent, "~/transition_event", 10)
        for name, type_, callback in (
            ("change_state", srv.ChangeState, self._on_change_state),
            ("get_state", srv.GetState, self._on_get_state),
            ("get_available_states", srv.GetAvailableStates, self._on_get_available_states),
            ("get_available_transitions", srv.GetAvailableTransitions, self._on_get_available_transitions),
            ("get_transition_graph", srv.GetAvailableTransitions, self._on_get_transition_graph),
        ):
            self.create_service(type_, f"~/{name}", callback, callback_group=callback_group)

    @property
    def current_state(self):
        return LifecycleState(of.STATES[self._state_id], self._state_id)

    def trigger_configure(self):
        return self._trigger("configure")

    def trigger_cleanup(self):
        return self._trigger("cleanup")

    def trigger_shutdown(self):
        return self._trigger("shutdown")

    def trigger_activate(self):
        return self._trigger("activate")

    def trigger_deactivate(self):
        return self._trigger("deactivate")

    def add_managed_entity(self, entity):
        """Takes this one through the states too."""
        if not isinstance(entity, ManagedEntity):
            raise TypeError("Expected a rclpy.lifecycle.ManagedEntity instance.")
        self._managed_entities.add(entity)

    def create_lifecycle_publisher(self, *args, **kwargs):
        """A publisher that publishes while the node is active."""
        publisher = Node.create_publisher(self, *args, publisher_class=LifecyclePublisher, **kwargs)
        self._managed_entities.add(publisher)
        return publisher

    def destroy_lifecycle_publisher(self, publisher):
        self._managed_entities.discard(publisher)
        return Node.destroy_publisher(self, publisher)

    def _all(self, name, state):
        for entity in list(self._managed_entities):
            answer = getattr(entity, name)(state)
            if not isinstance(answer, TransitionCallbackReturn):
                raise TypeError(f"{name}() return value of class {type(entity).__name__} should be `TransitionCallbackReturn`.")
            if answer is not TransitionCallbackReturn.SUCCESS:
                return answer
        return TransitionCallbackReturn.SUCCESS

    def on_configure(self, state):
        return self._all("on_configure", state)

    def on_cleanup(self, state):
        return self._all("on_cleanup", state)

    def on_shutdown(self, state):
        return self._all("on_shutdown", state)

    def on_activate(self, state):
        return self._all("on_activate", state)

    def on_deactivate(self, state):
        return self._all("on_deactivate", state)

    def on_error(self, state):
        return self._all("on_error", state)

    def _trigger(self, name):
        for transition in of.TRANSITIONS:
            if transition[0] == self._state_id and transition[2] == name:
                return self._change(transition)
        raise RuntimeError(f"transition {name} is not allowed in the state {of.STATES[self._state_id]}")

    def _change(self, transition):
        with self._changing:
            start, number, name, through, callback, goal = transition
            before = self.current_state
            self._go(number, name, through)
            answer = self._called(callback, before)
            back = of.FINALIZED if through == of.SHUTTING_DOWN else start
            ends = (goal, back, of.ERROR_PROCESSING)
            self._outcome(through, answer, ends)
            if self._state_id == of.ERROR_PROCESSING:
                handled = self._called("on_error", self.current_state)
                self._outcome(of.ERROR_PROCESSING, handled, (of.UNCONFIGURED, of.FINALIZED, of.FINALIZED))
            return answer

    def _called(self, callback, state):
        try:
            answer = getattr(self, callback)(state)
        except Exception:
            traceback.print_exc()
            return TransitionCallbackReturn.ERROR
        return answer if isinstance(answer, TransitionCallbackReturn) else TransitionCallbackReturn.ERROR

    def _outcome(self, through, answer, ends):
        at = list(TransitionCallbackReturn).index(answer)
        self._go(of.OUTCOMES[through] + at, of.OUTCOME_NAMES[at], ends[at])

    def _go(self, number, name, state):
        before, self._state_id = self._state_id, state
        if self._events is not None:
            from lifecycle_msgs.msg import TransitionEvent

            event = TransitionEvent(timestamp=self.get_clock().now().nanoseconds, transition=_transition(number, name))
            event.start_state, event.goal_state = _state(before), _state(state)
            self._events.publish(event)

    def _on_change_state(self, request, response):
        wanted = request.transition
        for transition in of.TRANSITIONS:
            is_it = transition[1] == wanted.id if not wanted.label else transition[2] == wanted.label
            if transition[0] == self._state_id and is_it:
                response.success = self._change(transition) is TransitionCallbackReturn.SUCCESS
                return response
        self.get_logger().error(f"No transition matching {wanted.label or wanted.id} found for current state {of.STATES[self._state_id]}")
        response.success = False
        return response

    def _on_get_state(self, request, response):
        response.current_state = _state(self._state_id)
        return response

    def _on_get_available_states(self, request, response):
        response.available_states = [_state(it) for it in of.STATES]
        return response

    def _on_get_available_transitions(self, request, response):
        response.available_transitions = [_described(it) for it in of.graph() if it[0] == self._state_id]
        return response

    def _on_get_transition_graph(self, request, response):
        response.available_transitions = [_described(it) for it in of.graph()]
        return response


def _state(number):
    from lifecycle_msgs.msg import State

    return State(id=number, label=of.STATES[number])


def _transition(number, name):
    from lifecycle_msgs.msg import Transition

    return Transition(id=number, label=name)


def _described(edge):
    from lifecycle_msgs.msg import TransitionDescription

    start, number, name, goal = edge
    return TransitionDescription(transition=_transition(number, name), start_state=_state(start), goal_state=_state(goal))


class LifecycleNode(LifecycleNodeMixin, Node):
    """A node with a lifecycle. Its callbacks `on_configure` and so on may be overridden."""

    def __init__(self, node_name, *, enable_communication_interface=True, **kwargs):
        Node.__init__(self, node_name, **kwargs)
        LifecycleNodeMixin.__init__(self, enable_communication_interface=enable_communication_interface)

    def destroy_node(self):
        self._managed_entities.clear()
        Node.destroy_node(self)
