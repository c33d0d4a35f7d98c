"""A node of rclpy on rmw_fastrtps_cpp: `serve` or `echo` until its input ends, or `ask` a node of tsuji and say what it answers."""

import sys
import threading
import time

import rclpy
from rcl_interfaces.srv import GetParameters, ListParameters
from rclpy.action import ActionClient, ActionServer
from std_msgs.msg import String
from std_srvs.srv import SetBool
from test_msgs.action import Fibonacci

PATIENCE = 30


def say(*words):
    print(*words, flush=True)


def serve(node):
    def answer(request, response):
        response.success = request.data
        response.message = "y" * (200_000 if request.data else 3)
        return response

    def pursue(goal):
        feedback = Fibonacci.Feedback()
        feedback.sequence = [0, 1]
        for at in range(1, goal.request.order):
            feedback.sequence.append(feedback.sequence[at] + feedback.sequence[at - 1])
            goal.publish_feedback(feedback)
        goal.succeed()
        return Fibonacci.Result(sequence=feedback.sequence)

    kept = [node.create_service(SetBool, "theirs", answer)]
    kept.append(ActionServer(node, Fibonacci, "fib_theirs", pursue))
    node.declare_parameter("speed", 3)
    spin_until_told(node)


def echo(node):
    publisher = node.create_publisher(String, "theirs", 10)

    def answer(message):
        while publisher.get_subscription_count() == 0:
            time.sleep(0.01)
        publisher.publish(message)

    kept = node.create_subscription(String, "ours", answer, 10)
    spin_until_told(node)
    node.destroy_subscription(kept)


def spin_until_told(node):
    say("ready")
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    while not ended.is_set():
        rclpy.spin_once(node, timeout_sec=0.1)


def done(node, future):
    rclpy.spin_until_future_complete(node, future, timeout_sec=PATIENCE)
    return future.result()


def call(node, kind, name, request):
    client = node.create_client(kind, name)
    if not client.wait_for_service(timeout_sec=PATIENCE):
        return say("no server of", name)
    # At once: the first request after that has its reply.
    return done(node, client.call_async(request))


def ask(node):
    say("ready")
    client = node.create_client(SetBool, "ours")
    say("service", client.wait_for_service(timeout_sec=PATIENCE))
    for number in range(20):
        reply = done(node, client.call_async(SetBool.Request(data=number % 2 == 1)))
        say("reply", number, reply and (reply.success, len(reply.message)))
    listed = call(node, ListParameters, "/ours/list_parameters", ListParameters.Request())
    say("parameters", *sorted(listed.result.names))
    got = call(node, GetParameters, "/ours/get_parameters", GetParameters.Request(names=["height"]))
    say("height", got.values[0].double_value)
    action = ActionClient(node, Fibonacci, "fib_ours")
    say("action", action.wait_for_server(timeout_sec=PATIENCE))
    said = []
    sent = action.send_goal_async(Fibonacci.Goal(order=5), lambda it: said.append(list(it.feedback.sequence)))
    goal = done(node, sent)
    result = done(node, goal.get_result_async())
    say("result", result.status, list(result.result.sequence))
    say("feedback", bool(said) and said[-1])


rclpy.init()
node = rclpy.create_node("peer")
{"serve": serve, "echo": echo, "ask": ask}[sys.argv[1]](node)
# Else its shared memory stays behind.
node.destroy_node()
rclpy.shutdown()
