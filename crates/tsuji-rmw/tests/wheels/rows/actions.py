"""Actions: a goal is sent here and pursued there.

rclpy's client of actions is not to be used beside the thread that spins it: that meets one without its lock (Kilted), or takes
an answer before it is waited for. So it is made and asked in that thread.
"""

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
    """Pursues Fibonacci goals, and ends them by `ending`: one to be cancelled then, one to succeed when its feedback has come."""
    may_end = side.kept['may_end'] = threading.Event()
    if ending == 'abort':
        may_end.set()

    def decide(goal):
        return GoalResponse.REJECT if goal.order < 0 else GoalResponse.ACCEPT

    def cancel(_):
        may_end.set()
        return CancelResponse.ACCEPT

    def pursue(handle):
        # That the client sees the server does not say that the server sees who waits for its feedback.
        until(lambda: node.count_subscribers('fibonacci/_action/feedback'), 'somebody waits for feedback')
        sequence = [0, 1]
        for _ in range(1, handle.request.order):
            sequence.append(sequence[-1] + sequence[-2])
            handle.publish_feedback(Fibonacci.Feedback(sequence=sequence))
        may_end.wait(DEADLINE)
        if ending == 'canceled':
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


def let_end(side):
    side.kept['may_end'].set()


def stop(side):
    side.kept['executor'].shutdown()
    side.kept['thread'].join()
    side.kept['server'].destroy()
    side.kept['node'].destroy_node()


def pursued(scene, ending, order=6):
    """Sends a goal, and returns its handle and the feedback, which grows."""
    scene.there(serve, ending)
    client = scene.here.call(ActionClient, scene.here.node, Fibonacci, 'fibonacci')
    ready(client)
    feedback = []
    sent = scene.here.call(
        client.send_goal_async, Fibonacci.Goal(order=order), lambda it: feedback.append(list(it.feedback.sequence)))
    return client, result_of(sent, 'whether the goal is accepted'), feedback


@row('succeeded, with feedback')
def _(scene):
    client, handle, feedback = pursued(scene, 'succeed')
    expect(handle.accepted, True, 'whether the goal is accepted')
    # For feedback that is taken with the result, or after it, nobody is called.
    until(lambda: feedback, 'feedback')
    scene.there(let_end)
    result = result_of(scene.here.call(handle.get_result_async), 'the result')
    expect((result.status, list(result.result.sequence)), (GoalStatus.STATUS_SUCCEEDED, [0, 1, 1, 2, 3, 5, 8]), 'the result')
    expect([it for it in feedback if it != [0, 1, 1, 2, 3, 5, 8][:len(it)]], [], 'feedback that is not of the sequence')
    scene.there(stop)
    client.destroy()


@row('aborted')
def _(scene):
    client, handle, _ = pursued(scene, 'abort')
    expect(result_of(scene.here.call(handle.get_result_async), 'the result').status, GoalStatus.STATUS_ABORTED, 'the status')
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
    answer = result_of(scene.here.call(handle.cancel_goal_async), 'the answer to the request to cancel')
    expect(len(answer.goals_canceling), 1, 'goals that are being cancelled')
    expect(result_of(scene.here.call(handle.get_result_async), 'the result').status, GoalStatus.STATUS_CANCELED, 'the status')
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
    client = scene.here.call(ActionClient, scene.here.node, NestedMessage, 'nested')
    ready(client)
    goals = [NestedMessage.Goal() for _ in range(5)]
    for number, goal in enumerate(goals):
        goal.nested_field.int32_value = number
    handles = [result_of(it, 'a goal is accepted') for it in [scene.here.call(client.send_goal_async, it) for it in goals]]
    results = [result_of(scene.here.call(it.get_result_async), 'a result') for it in handles]
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
