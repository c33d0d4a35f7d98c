"""What the page that compares client libraries says of rclpy, run as it stands there."""

import os
import pathlib
import re
import threading

import numpy
import pytest
import rclpy
from example_interfaces.action import Fibonacci
from rclpy.action import ActionClient, ActionServer
from rclpy.node import Node
from sensor_msgs.msg import Image
from std_msgs.msg import String

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "comparison.md"
PATIENCE = 60
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)


def program(begins):
    found = [it for it in PROGRAMS if it.startswith(begins)]
    return found[0]


def run(begins, **scope):
    exec(program(begins), scope)
    return scope


def heard(executor, node, message_type, topic, act):
    """The first message that comes while `act` is done again and again."""
    came = []
    node.create_subscription(message_type, topic, came.append, 10)
    for _ in range(1000):
        act()
        executor.spin_once(timeout_sec=0.05)
        if came:
            return came[0]
    raise AssertionError("nothing came")


def test_the_talker(executor, other):
    scope = run("class Talker(Node):", Node=Node, String=String)
    talker = scope["Talker"]()
    executor.add_node(talker)
    assert heard(executor, other, String, "chatter", lambda: None).data.startswith("Hello World: ")
    talker.destroy_node()


def test_the_camera(executor, node, other):
    node.publisher = node.create_publisher(Image, "image", 10)
    frame = numpy.full((480, 640, 3), 7, numpy.uint8)
    picture = heard(executor, other, Image, "image", lambda: run("picture = Image(", Image=Image, self=node, frame=frame))
    assert bytes(picture.data) == frame.tobytes()


@pytest.mark.skipif(bool(os.environ.get("TSUJI_REAL_RCLPY")), reason="its wheels have no service of this type")
def test_the_service(executor, node, other):
    from example_interfaces.srv import AddTwoInts

    def add(request, response):
        response.sum = request.a + request.b
        return response

    node.add = add
    client = other.create_client(AddTwoInts, "add")
    # As the page has the node spun elsewhere.
    executor.remove_node(other)
    spinning = threading.Thread(target=executor.spin)
    spinning.start()
    future = None
    while future is None or not future.done():
        future = run("self.service = ", self=node, client=client, AddTwoInts=AddTwoInts, rclpy=rclpy, node=other)["future"]
    assert future.result().sum == 42
    executor.shutdown()
    spinning.join()


def test_the_action(executor, node, other):
    def pursue(goal):
        goal.succeed()
        return Fibonacci.Result(sequence=[0, 1])

    node.pursue = pursue
    run("self.server = ", self=node, ActionServer=ActionServer, Fibonacci=Fibonacci)
    client = ActionClient(other, Fibonacci, "fibonacci")
    spinning = threading.Thread(target=executor.spin)
    spinning.start()
    assert client.wait_for_server(timeout_sec=PATIENCE)
    assert list(client.send_goal(Fibonacci.Goal(order=1)).result.sequence) == [0, 1]
    executor.shutdown()
    spinning.join()


def test_the_parameter(node):
    assert run("speed = ", self=node)["speed"] == 1.0


def test_each_is_run():
    begins = ["class Talker(Node):", "picture = Image(", "self.service = ", "self.server = ", "speed = "]
    assert len(PROGRAMS) == len(begins) and all(program(it) for it in begins)
    assert "docs/comparison.md".endswith(PAGE.name)
