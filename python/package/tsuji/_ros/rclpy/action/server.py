"""Servers of actions."""

import inspect
import threading
import traceback
from enum import Enum

from rclpy.action.client import _STATUS, _check_profiles, uuid_of
from rclpy.entity import DestroyedHandle, Entity


class GoalResponse(Enum):
    """What a server answers to a goal."""

    REJECT = 1
    ACCEPT = 2


class CancelResponse(Enum):
    """What a server answers to whoever wants a goal canceled."""

    REJECT = 1
    ACCEPT = 2


class ServerGoalHandle:
    """A goal of a server."""

    def __init__(self, action_server, goal_id, request):
        self._action_server, self._text_id, self._request = action_server, goal_id, request
        self._goal_id = uuid_of(goal_id)
        self._goal, self._ends_as = None, None

    @property
    def request(self):
        return self._request

    @property
    def goal_id(self):
        return self._goal_id

    @property
    def is_active(self):
        return self._ends_as is None

    @property
    def is_cancel_requested(self):
        return self._goal is not None and self._goal.is_active and self._goal.is_cancel_requested

    @property
    def status(self):
        if self._ends_as is not None:
            return _STATUS[self._ends_as]
        return _STATUS["canceling" if self.is_cancel_requested else "executing"]

    def execute(self, execute_callback=None):
        """Lets the executor run the callback of the server, or this one."""
        if execute_callback is not None and not callable(execute_callback):
            raise TypeError("Failed to execute goal: execute callback is not callable")
        self._action_server.notify_execute(self, execute_callback)

    def publish_feedback(self, feedback):
        if not isinstance(feedback, self._action_server._action_type.Feedback):
            raise TypeError(f"Expected {self._action_server._action_type.Feedback}, got {type(feedback)}")
        self._goal.publish_feedback(feedback)

    def succeed(self):
        """The goal is reached. Its result is what the callback returns."""
        self._end("succeeded")

    def abort(self):
        """The goal is given up."""
        self._end("aborted")

    def canceled(self):
        """The goal is given up as was asked."""
        if not self.is_cancel_requested:
            raise RuntimeError("goal_handle attempted invalid transition from state EXECUTING with event CANCELED")
        self._end("canceled")

    def _end(self, how):
        if self._ends_as is not None:
            raise RuntimeError(f"goal_handle attempted invalid transition from state {self._ends_as.upper()}")
        self._ends_as = how

    def destroy(self):
        self._action_server._handles.pop(self._text_id, None)

    def __eq__(self, other):
        return self._text_id == other._text_id if isinstance(other, ServerGoalHandle) else NotImplemented

    __hash__ = None

    def __repr__(self):
        return f"<rclpy goal {self._text_id} of {self._action_server._action_name}>"


def default_handle_accepted_callback(goal_handle):
    """Executes the goal at once."""
    goal_handle.execute()


def default_goal_callback(goal_request):
    """Accepts every goal."""
    return GoalResponse.ACCEPT


def default_cancel_callback(cancel_request):
    """Refuses to cancel."""
    return CancelResponse.REJECT


class ActionServer(Entity):
    """Executes goals."""

    def __init__(
        self,
        node,
        action_type,
        action_name,
        execute_callback,
        *,
        callback_group=None,
        goal_callback=default_goal_callback,
        handle_accepted_callback=default_handle_accepted_callback,
        cancel_callback=default_cancel_callback,
        result_timeout=10,
        **profiles,
    ):
        _check_profiles(profiles)
        super().__init__(node, callback_group or node.default_callback_group)
        self._action_type, self._action_name = action_type, action_name
        self.register_execute_callback(execute_callback)
        self.register_goal_callback(goal_callback)
        self.register_handle_accepted_callback(handle_accepted_callback)
        self.register_cancel_callback(cancel_callback)
        self._handles = {}
        self._is_taking = threading.Lock()
        self._raw = node._raw.polled_action_server(action_name, action_type, self._decide_goal, self._decide_cancel, float(result_timeout))
        node.add_waitable(self)

    def _decide_goal(self, goal_id, request):
        answer = _now(self._goal_callback, request)
        if not isinstance(answer, GoalResponse):
            self.node.get_logger().warning("Goal request callback did not return a GoalResponse type. Rejecting goal.")
            return False
        if answer is GoalResponse.ACCEPT:
            self._handles[goal_id] = ServerGoalHandle(self, goal_id, request)
        return answer is GoalResponse.ACCEPT

    def _decide_cancel(self, goal_id):
        handle = self._handles.get(goal_id)
        if handle is None:
            return False
        answer = _now(self._cancel_callback, handle)
        if not isinstance(answer, CancelResponse):
            self.node.get_logger().warning("Cancel request callback did not return a CancelResponse type. Ignoring cancel request.")
            return False
        return answer is CancelResponse.ACCEPT

    def _can_execute(self):
        # While a thread takes, it takes all that comes.
        return not self._is_taking.locked()

    def _take(self):
        if not self._is_taking.acquire(blocking=False):
            return None

        def take():
            accepted = []
            raw = self._raw
            try:
                while (goal := raw.take()) is not None:
                    handle = self._handles.get(goal.id)
                    # One whose server was destroyed meanwhile is aborted as it is dropped.
                    if handle is not None:
                        handle._goal = goal
                        accepted.append(handle)
            finally:
                self._is_taking.release()
                self.node._wake_executor()
            for handle in accepted:
                self._handle_accepted_callback(handle)

        return take

    def notify_execute(self, goal_handle, execute_callback):
        """Lets the executor of the node run the callback."""
        callback = self._execute_callback if execute_callback is None else execute_callback
        executor = self.node.executor
        if executor is None:
            raise RuntimeError("execute: the node of the server has no executor")
        executor.create_task(self._execute, goal_handle, callback)

    async def _execute(self, goal_handle, callback):
        result = None
        try:
            result = callback(goal_handle)
            if inspect.isawaitable(result):
                result = await result
        except Exception as error:
            self.node.get_logger().error(f"Error raised in execute callback: {error}")
            traceback.print_exc()
            result = None
        result = self._action_type.Result() if result is None else result
        if goal_handle.is_active:
            self.node.get_logger().warning(f"Goal state not set, assuming aborted. Goal ID: {goal_handle._text_id}")
            goal_handle._ends_as = "aborted"
        goal, how = goal_handle._goal, goal_handle._ends_as
        self._handles.pop(goal_handle._text_id, None)
        {"succeeded": goal.succeed, "aborted": goal.abort, "canceled": goal.canceled}[how](result)

    @property
    def action_type(self):
        return self._action_type

    def register_execute_callback(self, execute_callback):
        self._execute_callback = _callable(execute_callback, "execute")

    def register_goal_callback(self, goal_callback):
        self._goal_callback = default_goal_callback if goal_callback is None else _callable(goal_callback, "goal")

    def register_handle_accepted_callback(self, handle_accepted_callback):
        given = handle_accepted_callback
        self._handle_accepted_callback = default_handle_accepted_callback if given is None else _callable(given, "handle accepted")

    def register_cancel_callback(self, cancel_callback):
        self._cancel_callback = default_cancel_callback if cancel_callback is None else _callable(cancel_callback, "cancel")

    def destroy(self):
        if self in self.node._others:
            self.node.remove_waitable(self)
        for handle in list(self._handles.values()):
            handle.destroy()
        self._raw = DestroyedHandle(self)


def _callable(callback, what):
    if not callable(callback):
        raise TypeError(f"Failed to register {what} callback: not callable")
    return callback


def _now(callback, argument):
    """The answer of a callback, which the client waits for; of a coroutine function what it comes to without waiting."""
    answer = callback(argument)
    if not inspect.iscoroutine(answer):
        return answer
    try:
        answer.send(None)
    except StopIteration as end:
        return end.value
    answer.close()
    raise NotImplementedError("goal and cancel callbacks that wait: tsuji.rclpy does not have them")
