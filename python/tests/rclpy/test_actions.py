"""Actions, and nodes with a lifecycle."""

import os
import threading
import time

import pytest
import rclpy
from action_msgs.msg import GoalStatus
from action_msgs.srv import CancelGoal
from example_interfaces.action import Fibonacci
from rclpy.action import ActionClient, ActionServer, CancelResponse, GoalResponse
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.executors import MultiThreadedExecutor

PATIENCE = 30
IS_REAL = bool(os.environ.get("TSUJI_REAL_RCLPY"))


def execute(goal_handle):
    feedback, sequence = Fibonacci.Feedback(), [0, 1]
    for _ in range(1, goal_handle.request.order):
        sequence.append(sequence[-1] + sequence[-2])
        feedback.sequence = sequence
        goal_handle.publish_feedback(feedback)
    goal_handle.succeed()
    result = Fibonacci.Result()
    result.sequence = sequence
    return result


@pytest.fixture
def client(node):
    client = ActionClient(node, Fibonacci, "fibonacci")
    yield client
    client.destroy()


def test_a_goal_is_reached(client, other, result_of, spin_until):
    server = ActionServer(other, Fibonacci, "fibonacci", execute)
    assert client.wait_for_server(timeout_sec=PATIENCE)
    heard = []
    handle = result_of(client.send_goal_async(Fibonacci.Goal(order=5), feedback_callback=heard.append))
    assert handle.accepted and len(bytes(handle.goal_id.uuid)) == 16
    answer = result_of(handle.get_result_async())
    assert answer.status == GoalStatus.STATUS_SUCCEEDED and list(answer.result.sequence) == [0, 1, 1, 2, 3, 5]
    # The real one forgets feedback that comes after the result.
    spin_until(lambda: len(heard) == 4 or IS_REAL)
    assert [len(it.feedback.sequence) for it in heard] == [3, 4, 5, 6][: len(heard)] and heard[0].goal_id == handle.goal_id
    server.destroy()


def test_a_goal_is_rejected(client, other, result_of):
    def decide(goal_request):
        return GoalResponse.REJECT if goal_request.order < 0 else GoalResponse.ACCEPT

    server = ActionServer(other, Fibonacci, "fibonacci", execute, goal_callback=decide)
    assert client.wait_for_server(timeout_sec=PATIENCE)
    assert not result_of(client.send_goal_async(Fibonacci.Goal(order=-1))).accepted
    assert result_of(client.send_goal_async(Fibonacci.Goal(order=1))).accepted
    server.destroy()


def test_a_goal_is_canceled(node, other, spun):
    executor = MultiThreadedExecutor(num_threads=4)
    executor.add_node(node)
    executor.add_node(other)
    begun = threading.Event()

    def wait_for_cancel(goal_handle):
        begun.set()
        while not goal_handle.is_cancel_requested:
            time.sleep(0.001)
        goal_handle.canceled()
        return Fibonacci.Result(sequence=[7])

    group = ReentrantCallbackGroup()
    server = ActionServer(
        other, Fibonacci, "fibonacci", wait_for_cancel, callback_group=group, cancel_callback=lambda _: CancelResponse.ACCEPT
    )
    client = ActionClient(node, Fibonacci, "fibonacci", callback_group=group)
    spun(executor)
    assert client.wait_for_server(timeout_sec=PATIENCE)

    def wait(future):
        done = threading.Event()
        future.add_done_callback(lambda _: done.set())
        assert done.wait(PATIENCE)
        return future.result()

    handle = wait(client.send_goal_async(Fibonacci.Goal(order=3)))
    assert begun.wait(PATIENCE)
    answer = wait(handle.cancel_goal_async())
    assert answer.return_code == CancelGoal.Response.ERROR_NONE and len(answer.goals_canceling) == 1
    result = wait(handle.get_result_async())
    assert result.status == GoalStatus.STATUS_CANCELED and list(result.result.sequence) == [7]
    executor.shutdown()
    server.destroy()
    client.destroy()


@pytest.mark.parametrize("ends", ["aborts", "raises", "forgets"])
def test_a_goal_is_aborted(client, other, result_of, ends, capfd):
    def give_up(goal_handle):
        if ends == "raises":
            raise RuntimeError("no way")
        if ends == "aborts":
            goal_handle.abort()
        return Fibonacci.Result()

    server = ActionServer(other, Fibonacci, "fibonacci", give_up)
    assert client.wait_for_server(timeout_sec=PATIENCE)
    handle = result_of(client.send_goal_async(Fibonacci.Goal(order=1)))
    assert result_of(handle.get_result_async()).status == GoalStatus.STATUS_ABORTED
    assert ("no way" in "".join(capfd.readouterr())) == (ends == "raises")
    server.destroy()


def test_a_goal_is_executed_later(client, other, result_of):
    kept = []
    server = ActionServer(other, Fibonacci, "fibonacci", execute, handle_accepted_callback=kept.append)
    assert client.wait_for_server(timeout_sec=PATIENCE)
    handle = result_of(client.send_goal_async(Fibonacci.Goal(order=2)))
    result = handle.get_result_async()
    assert not result.done() and len(kept) == 1
    kept[0].execute()
    assert list(result_of(result).result.sequence) == [0, 1, 1]
    server.destroy()


def test_a_coroutine_executes(client, other, executor, result_of):
    wait_for = rclpy.Future()

    async def wait(goal_handle):
        order = await wait_for
        goal_handle.succeed()
        return Fibonacci.Result(sequence=[order])

    server = ActionServer(other, Fibonacci, "fibonacci", wait)
    assert client.wait_for_server(timeout_sec=PATIENCE)
    handle = result_of(client.send_goal_async(Fibonacci.Goal(order=2)))
    result = handle.get_result_async()
    wait_for.set_result(9)
    assert list(result_of(result).result.sequence) == [9]
    server.destroy()


def test_no_server(client):
    assert not client.wait_for_server(timeout_sec=0.05) and not client.server_is_ready()
    with pytest.raises(TypeError):
        client.send_goal_async(Fibonacci.Result())


def test_lifecycle(node, other, context, result_of, executor):
    from lifecycle_msgs.msg import State, Transition
    from lifecycle_msgs.srv import ChangeState, GetAvailableTransitions, GetState
    from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn
    from std_msgs.msg import String

    class Managed(LifecycleNode):
        def on_configure(self, state):
            self.publisher = self.create_lifecycle_publisher(String, "life", 10)
            return TransitionCallbackReturn.SUCCESS

        def on_cleanup(self, state):
            raise RuntimeError("cannot")

    managed = Managed("managed")
    executor.add_node(managed)
    change, get = node.create_client(ChangeState, "managed/change_state"), node.create_client(GetState, "managed/get_state")
    assert change.wait_for_service(timeout_sec=PATIENCE) and get.wait_for_service(timeout_sec=PATIENCE)

    def go(number):
        return result_of(change.call_async(ChangeState.Request(transition=Transition(id=number)))).success

    def state():
        return result_of(get.call_async(GetState.Request())).current_state.id

    assert state() == State.PRIMARY_STATE_UNCONFIGURED
    if not IS_REAL:
        # There whoever spins the node gets an exception.
        assert not go(Transition.TRANSITION_ACTIVATE)
    assert go(Transition.TRANSITION_CONFIGURE) and state() == State.PRIMARY_STATE_INACTIVE
    assert not managed.publisher.is_activated
    assert go(Transition.TRANSITION_ACTIVATE) and state() == State.PRIMARY_STATE_ACTIVE and managed.publisher.is_activated
    managed.publisher.publish(String())
    available = node.create_client(GetAvailableTransitions, "managed/get_available_transitions")
    assert available.wait_for_service(timeout_sec=PATIENCE)
    names = [it.transition.label for it in result_of(available.call_async(GetAvailableTransitions.Request())).available_transitions]
    assert sorted(names) == ["deactivate", "shutdown"]
    assert managed.trigger_deactivate() is TransitionCallbackReturn.SUCCESS
    assert managed.trigger_cleanup() is TransitionCallbackReturn.ERROR and state() == State.PRIMARY_STATE_UNCONFIGURED
    assert go(Transition.TRANSITION_UNCONFIGURED_SHUTDOWN) and state() == State.PRIMARY_STATE_FINALIZED
    executor.remove_node(managed)
    managed.destroy_node()
