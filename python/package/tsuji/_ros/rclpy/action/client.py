"""Clients of actions."""

import threading
import uuid
from collections import deque

import tsuji
from rclpy.entity import DestroyedHandle, GuardedEntity, work_of
from rclpy.task import Future

_STATUS = {"unknown": 0, "accepted": 1, "executing": 2, "canceling": 3, "succeeded": 4, "canceled": 5, "aborted": 6}
# Of action_msgs/srv/CancelGoal.
_RETURN_CODE = {"canceling": 0, "rejected": 1, "unknown goal": 2, "ended": 3}


def uuid_of(text):
    """The message UUID of a goal's identifier."""
    from unique_identifier_msgs.msg import UUID

    return UUID(uuid=list(uuid.UUID(text).bytes))


class _Message:
    """A message of an action as rclpy hands it out: with these fields."""

    def __init__(self, **fields):
        vars(self).update(fields)

    def __eq__(self, other):
        return vars(self) == vars(other) if isinstance(other, type(self)) else NotImplemented

    __hash__ = None

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


class FeedbackMessage(_Message):
    """`goal_id` and `feedback`."""


class GetResultResponse(_Message):
    """`status` and `result`."""


class ClientGoalHandle:
    """A goal that was sent, and whether the server has accepted it."""

    def __init__(self, action_client, goal, feedback_callback):
        self._action_client, self._goal, self._feedback_callback = action_client, goal, feedback_callback
        self._goal_id = None if goal is None else uuid_of(goal.id)
        self._stamp = action_client.node.get_clock().now().to_msg()

    @property
    def goal_id(self):
        return self._goal_id

    @property
    def stamp(self):
        """When the goal was accepted, by this end's clock."""
        return self._stamp

    @property
    def accepted(self):
        return self._goal is not None

    @property
    def status(self):
        return 0 if self._goal is None else _STATUS[self._goal.status]

    def __eq__(self, other):
        return self._goal_id == other._goal_id if isinstance(other, ClientGoalHandle) else NotImplemented

    __hash__ = None

    def __repr__(self):
        return f"ClientGoalHandle <id={None if self._goal is None else self._goal.id}, accepted={self.accepted}, status={self.status}>"

    def cancel_goal(self):
        """Asks that the goal be canceled, and waits for the answer, while another thread spins the node."""
        return _waited(self.cancel_goal_async())

    def cancel_goal_async(self):
        """Asks that the goal be canceled. Returns a future of the answer."""
        return self._action_client._cancel(self)

    def get_result(self):
        """Waits for the result, while another thread spins the node."""
        return _waited(self.get_result_async())

    def get_result_async(self):
        """A future of how the goal has ended, and with which result."""
        return self._action_client._result_of(self)


def _waited(future):
    event = threading.Event()
    future._set_executor(None)
    future.add_done_callback(lambda _: event.set())
    event.wait()
    return future.result()


class ActionClient(GuardedEntity):
    """Sends goals to the server of an action."""

    def __init__(self, node, action_type, action_name, *, callback_group=None, **profiles):
        _check_profiles(profiles)
        super().__init__(node, callback_group or node.default_callback_group)
        self._action_type, self._action_name = action_type, action_name
        self._client = node._raw.action_client(action_name, action_type)
        # What is waited for: everything of the goals triggers it.
        self._raw = node._raw.guard_condition()
        self._lock = threading.RLock()
        # Each asks once more, and answers whether it is over.
        self._polled = []
        # What was found to be called, in its order.
        self._due = deque()
        node.add_waitable(self)

    def _future(self):
        return Future(executor=self.node.executor)

    def _poll(self, ask):
        with self._lock:
            self._polled.append(ask)
        self._raw.trigger()

    def _take(self):
        with self._lock:
            asked, self._polled = self._polled, []
            left = []
            for ask in asked:
                done, work = ask()
                self._due.extend(work)
                if not done:
                    left.append(ask)
            self._polled = left + self._polled
            if not self._due:
                return None
            work = self._due.popleft()
        if self._due:
            # One by one: what one raises is not to lose the others.
            self._raw.trigger()
        return work

    def send_goal(self, goal, feedback_callback=None, goal_uuid=None):
        """Sends a goal and waits for its result, while another thread spins the node."""
        handle = _waited(self.send_goal_async(goal, feedback_callback, goal_uuid))
        return handle.get_result() if handle.accepted else None

    def send_goal_async(self, goal, feedback_callback=None, goal_uuid=None):
        """Sends a goal. Returns a future of its handle."""
        if not isinstance(goal, self._action_type.Goal):
            raise TypeError(f"Expected {self._action_type.Goal}, got {type(goal)}")
        if goal_uuid is not None:
            raise NotImplementedError("goal_uuid: tsuji names goals itself")
        future = self._future()
        try:
            pending = self._client.start_goal(goal)
        except tsuji.NoServerError as error:
            future.set_exception(error)
            return future

        def made(answer):
            handle = ClientGoalHandle(self, answer[0], feedback_callback)
            if handle.accepted and feedback_callback is not None:
                self._poll(lambda: self._poll_feedback(handle))
            return handle

        return self._set_later(future, pending.poll, made)

    def _set_later(self, future, poll, made):
        """Sets the future to what `made` makes of the answer, when `poll` has one, or to what it raises. Returns the future."""

        def ask():
            try:
                answer = poll(self._raw)
            except Exception as error:
                return True, [lambda error=error: future.set_exception(error)]
            if answer is None:
                return False, ()
            result = made(answer)
            return True, [lambda: future.set_result(result)]

        self._poll(ask)
        return future

    def _poll_feedback(self, handle):
        """Feedback, in its order; it ends with the goal."""
        work = []
        while True:
            try:
                feedback = handle._goal.poll_feedback(self._raw)
            except Exception:
                # Whoever asks for the result is told why.
                feedback = (None,)
            if feedback is None:
                return False, work
            if feedback[0] is None:
                return True, work
            message = FeedbackMessage(goal_id=handle.goal_id, feedback=feedback[0])
            work.append(work_of(handle._feedback_callback, message))

    def _result_of(self, handle):
        future = self._future()
        if handle._goal is None:
            future.set_exception(RuntimeError("the goal was rejected, and has no result"))
            return future

        def made(answer):
            status, result = answer
            return GetResultResponse(status=_STATUS[status], result=result)

        return self._set_later(future, handle._goal.poll_result, made)

    def _cancel(self, handle):
        from action_msgs.msg import GoalInfo
        from action_msgs.srv import CancelGoal

        def made(outcome):
            response = CancelGoal.Response(return_code=_RETURN_CODE[outcome])
            if outcome == "canceling":
                response.goals_canceling = [GoalInfo(goal_id=handle.goal_id)]
            return response

        return self._set_later(self._future(), handle._goal.start_cancel().poll, made)

    def server_is_ready(self):
        return self._client.is_ready

    def wait_for_server(self, timeout_sec=None):
        """Waits until there is a server. Returns whether there is one."""

        def wait(seconds):
            try:
                self._client.wait_for_server(seconds)
            except (tsuji.NoServerError, TimeoutError):
                return False
            return True

        return self.node.context._in_steps(timeout_sec, wait)

    def destroy(self):
        if self in self.node._others:
            self.node.remove_waitable(self)
        self._client = self._raw = DestroyedHandle(self)


_PROFILES = {
    "goal_service_qos_profile",
    "result_service_qos_profile",
    "cancel_service_qos_profile",
    "feedback_sub_qos_profile",
    "status_sub_qos_profile",
    "feedback_pub_qos_profile",
    "status_pub_qos_profile",
}


def _check_profiles(profiles):
    """Refuses what is no profile. Those of actions are tsuji's."""
    for name in profiles:
        if name not in _PROFILES:
            raise TypeError(f"unexpected keyword argument {name!r}")
