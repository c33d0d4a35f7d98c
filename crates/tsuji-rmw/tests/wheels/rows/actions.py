"""Actions: a goal is sent here and pursued there."""

import threading

import rclpy
from action_msgs.msg import GoalStatus
from rclpy.action import ActionClient, ActionServer, CancelResponse, GoalResponse
from rclpy.action import get_action_names_and_types
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.executors import MultiThreadedExecutor
from test_msgs.action import Fibonacci, NestedMessage

from scene import DEADLINE, expect, ready, result_of, row, until


def serve(side, ending):
    """Pursues Fibonacci goals: to the end, or by `ending` until cancelled or to be aborted."""
    cancelled = side.kept['cancelled'] = threading.Event()

    def decide(goal):
        return GoalResponse.REJECT if goal.order < 0 else GoalResponse.ACCEPT

    def cancel(_):
        cancelled.set()
        return CancelResponse.ACCEPT

    def pursue(handle):
        sequence = [0, 1]
        for _ in range(1, handle.request.order):
            sequence.append(sequence[-1] + sequence[-2])
            handle.publish_feedback(Fibonacci.Feedback(sequence=sequence))
        if ending == 'canceled':
            cancelled.wait(DEADLINE)
            until(lambda: handle.is_cancel_requested, 'the goal is to be cancelled')
        getattr(handle, ending)()
        return Fibonacci.Result(sequence=sequence)

    # What pursues a goal blocks, and a request to cancel it has to come through.
    node = side.kept['node'] = rclpy.create_node('serving', namespace=side.node.get_namespace())
    side.kept['server'] = ActionServer(
        node, Fibonacci, 'fibonacci', pursue, goal_callback=decide, cancel_callback=cancel,
        callback_group=ReentrantCallbackGroup())
    executor = side.kept['executor'] = MultiThreadedExecutor(4)
    executor.add_node(node)
    thread = side.kept['thread'] = threading.Thread(target=executor.spin)
    thread.start()


def stop(side):
    side.kept['executor'].shutdown()
    side.kept['thread'].join()
    side.kept['server'].destroy()
    side.kept['node'].destroy_node()


def pursued(scene, ending, order=6):
    """Sends a goal, and returns its handle and the feedback, which grows."""
    scene.there(serve, ending)
    client = ActionClient(scene.here.node, Fibonacci, 'fibonacci')
    ready(client)
    feedback = []
    sent = client.send_goal_async(
        Fibonacci.Goal(order=order), feedback_callback=lambda it: feedback.append(list(it.feedback.sequence)))
    return client, result_of(sent, 'whether the goal is accepted'), feedback


@row('succeeded, with feedback')
def _(scene):
    client, handle, feedback = pursued(scene, 'succeed')
    expect(handle.accepted, True, 'whether the goal is accepted')
    result = result_of(handle.get_result_async(), 'the result')
    expect((result.status, list(result.result.sequence)), (GoalStatus.STATUS_SUCCEEDED, [0, 1, 1, 2, 3, 5, 8]), 'the result')
    # What comes after the result nobody is called for.
    until(lambda: feedback, 'feedback')
    expect([it for it in feedback if it != [0, 1, 1, 2, 3, 5, 8][:len(it)]], [], 'feedback that is not of the sequence')
    scene.there(stop)
    client.destroy()


@row('aborted')
def _(scene):
    client, handle, _ = pursued(scene, 'abort')
    expect(result_of(handle.get_result_async(), 'the result').status, GoalStatus.STATUS_ABORTED, 'the status')
    scene.there(stop)
    client.destroy()


@row('rejected')
def _(scene):
    client, handle, _ = pursued(scene, 'succeed', order=-1)
    expect(handle.accepted, False, 'whether the goal is accepted')
    scene.there(stop)
    client.destroy()


@row('cancelled')
def _(scene):
    client, handle, _ = pursued(scene, 'canceled')
    answer = result_of(handle.cancel_goal_async(), 'the answer to the request to cancel')
    expect(len(answer.goals_canceling), 1, 'goals that are being cancelled')
    expect(result_of(handle.get_result_async(), 'the result').status, GoalStatus.STATUS_CANCELED, 'the status')
    scene.there(stop)
    client.destroy()


def serve_nested(side):

    def pursue(handle):
        handle.succeed()
        result = NestedMessage.Result()
        result.nested_field.int32_value = handle.request.nested_field.int32_value
        return result

    side.kept['server'] = ActionServer(side.node, NestedMessage, 'nested', pursue)


def stop_nested(side):
    side.kept['server'].destroy()


@row('several goals of nested messages')
def _(scene):
    scene.there(serve_nested)
    client = ActionClient(scene.here.node, NestedMessage, 'nested')
    ready(client)
    goals = [NestedMessage.Goal() for _ in range(5)]
    for number, goal in enumerate(goals):
        goal.nested_field.int32_value = number
    handles = [result_of(it, 'a goal is accepted') for it in [client.send_goal_async(it) for it in goals]]
    results = [result_of(it.get_result_async(), 'a result') for it in handles]
    expect([it.result.nested_field.int32_value for it in results], list(range(5)), 'the results')
    scene.there(stop_nested)
    client.destroy()


@row('in the graph')
def _(scene):
    scene.there(serve_nested)
    name = f'{scene.namespace}/nested'
    until(lambda: (name, ['test_msgs/action/NestedMessage']) in get_action_names_and_types(scene.here.node),
          'the action is in the graph')
    scene.there(stop_nested)
    until(lambda: name not in dict(get_action_names_and_types(scene.here.node)), 'the action has left the graph')
