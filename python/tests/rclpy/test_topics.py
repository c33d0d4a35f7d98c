"""Topics, their callbacks and their events."""

import array
import os

import pytest
import rclpy
from geometry_msgs.msg import PoseWithCovariance, Twist
from rclpy.duration import Duration
from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy, qos_profile_sensor_data
from sensor_msgs.msg import Image, JointState, LaserScan
from std_msgs.msg import Bool, String, UInt8MultiArray


def test_messages_come(node, other, spin_until):
    heard = []
    other.create_subscription(String, "chatter", heard.append, 10)
    publisher = node.create_publisher(String, "chatter", 10)
    spin_until(lambda: publisher.get_subscription_count() == 1)
    for number in range(3):
        publisher.publish(String(data=f"{number}"))
    spin_until(lambda: len(heard) == 3)
    assert [it.data for it in heard] == ["0", "1", "2"]
    assert publisher.topic_name == "/chatter"
    with pytest.raises(TypeError):
        publisher.publish(Bool())


def test_a_callback_may_ask_for_the_info(node, other, spin_until):
    heard = []
    other.create_subscription(String, "chatter", lambda message, info: heard.append((message.data, info)), 10)
    publisher = node.create_publisher(String, "chatter", 10)
    spin_until(lambda: publisher.get_subscription_count() == 1)
    publisher.publish(String(data="x"))
    spin_until(lambda: heard)
    data, info = heard[0]
    assert data == "x" and 0 < info["source_timestamp"] <= info["received_timestamp"]


def test_coroutines_are_callbacks(node, other, spin_until):
    heard, waits_for = [], rclpy.Future()

    async def callback(message):
        heard.append("begun")
        heard.append(await waits_for)

    other.create_subscription(String, "chatter", callback, 10)
    publisher = node.create_publisher(String, "chatter", 10)
    spin_until(lambda: publisher.get_subscription_count() == 1)
    publisher.publish(String())
    spin_until(lambda: heard)
    waits_for.set_result("ended")
    spin_until(lambda: len(heard) == 2)
    assert heard == ["begun", "ended"]


def test_what_a_callback_raises_comes_out_of_the_spin(node, other, executor, spin_until):
    def callback(message):
        raise ValueError("no")

    other.create_subscription(String, "chatter", callback, 10)
    publisher = node.create_publisher(String, "chatter", 10)
    spin_until(lambda: publisher.get_subscription_count() == 1)
    publisher.publish(String())
    with pytest.raises(ValueError, match="no"):
        spin_until(lambda: False)


def test_latched(node, other, spin_until):
    qos = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    publisher = node.create_publisher(String, "map", qos)
    publisher.publish(String(data="one"))
    publisher.publish(String(data="two"))
    heard = []
    other.create_subscription(String, "map", heard.append, qos)
    spin_until(lambda: heard)
    assert [it.data for it in heard] == ["two"]


def test_serialized_messages(node, other, spin_until):
    from rclpy.serialization import deserialize_message, serialize_message

    heard = []
    other.create_subscription(String, "chatter", heard.append, 10, raw=True)
    publisher = node.create_publisher(String, "chatter", 10)
    spin_until(lambda: publisher.get_subscription_count() == 1)
    publisher.publish(serialize_message(String(data="bytes")))
    spin_until(lambda: heard)
    assert isinstance(heard[0], bytes) and deserialize_message(heard[0], String).data == "bytes"


def test_fields_are_what_rclpy_has():
    scan = LaserScan(ranges=[1.0, 2.0])
    assert isinstance(scan.ranges, array.array) and scan.ranges.typecode == "f"
    scan.ranges.append(3.0)
    assert len(scan.ranges) == 3 and (not LaserScan().ranges)
    assert isinstance(Image(data=b"abc").data, array.array) and bytes(Image(data=b"abc").data) == b"abc"
    joints = JointState(name=["a", "b"], position=[0.5, 1.5])
    joints.position.extend([2.5])
    assert joints.name == ["a", "b"] and list(joints.position) == [0.5, 1.5, 2.5]
    pose = PoseWithCovariance()
    pose.covariance[0] = 0.25
    assert pose.covariance[0] == 0.25 and len(pose.covariance) == 36
    twist = Twist()
    twist.linear.x = 1.0
    assert twist == Twist(linear=twist.linear) and twist != Twist()
    assert Twist.get_fields_and_field_types() == {"linear": "geometry_msgs/Vector3", "angular": "geometry_msgs/Vector3"}
    assert Image.get_fields_and_field_types()["data"] == "sequence<uint8>"
    assert PoseWithCovariance.get_fields_and_field_types()["covariance"] == "double[36]"


def test_what_was_appended_is_published_and_what_came_can_be_changed(node, other, spin_until):
    heard = []
    other.create_subscription(LaserScan, "scan", heard.append, 10)
    other.create_subscription(UInt8MultiArray, "bytes", heard.append, 10)
    publisher, bytes_publisher = node.create_publisher(LaserScan, "scan", 10), node.create_publisher(UInt8MultiArray, "bytes", 10)
    spin_until(lambda: publisher.get_subscription_count() and bytes_publisher.get_subscription_count())
    scan = LaserScan()
    scan.ranges.append(4.0)
    publisher.publish(scan)
    spin_until(lambda: heard)
    heard[0].ranges.append(5.0)
    heard[0].header.frame_id = "laser"
    publisher.publish(heard[0])
    spin_until(lambda: len(heard) == 2)
    assert list(heard[1].ranges) == [4.0, 5.0] and heard[1].header.frame_id == "laser"
    bytes_publisher.publish(UInt8MultiArray(data=[1, 2, 3]))
    spin_until(lambda: len(heard) == 3)
    assert heard[2].data.tolist() == [1, 2, 3]


def test_what_a_program_does_with_its_own_lists_and_arrays():
    import numpy

    names = ["a"]
    joints = JointState(name=names)
    names.append("b")
    assert joints.name == ["a", "b"]
    numbers = numpy.array([1, 2], dtype="f4")
    scan = LaserScan()
    scan.ranges = numbers
    numbers[:] = 9
    scan.ranges.append(3)
    assert list(scan.ranges) == [1, 2, 3]


def test_events(node, other, spin_until):
    events = []
    reliable = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE, deadline=Duration(nanoseconds=20_000_000))
    of_subscription = SubscriptionEventCallbacks(
        matched=lambda info: events.append(("matched", info.current_count)),
        deadline=lambda info: events.append(("deadline", info.total_count_change)),
        incompatible_qos=lambda info: events.append(("incompatible", int(info.last_policy_kind))),
    )
    other.create_subscription(String, "chatter", lambda _: None, reliable, event_callbacks=of_subscription)
    node.create_publisher(String, "chatter", qos_profile_sensor_data)
    spin_until(lambda: any(it[0] == "incompatible" for it in events))
    publisher = node.create_publisher(String, "chatter", reliable)
    spin_until(lambda: ("matched", 1) in events)
    publisher.publish(String())
    spin_until(lambda: any(it[0] == "deadline" for it in events))
    node.destroy_publisher(publisher)
    spin_until(lambda: ("matched", 0) in events)


def test_events_of_publishers(node, other, spin_until):
    events = []
    callbacks = PublisherEventCallbacks(matched=lambda info: events.append((info.total_count, info.current_count)))
    node.create_publisher(String, "chatter", 10, event_callbacks=callbacks)
    subscription = other.create_subscription(String, "chatter", lambda _: None, 10)
    spin_until(lambda: events)
    other.destroy_subscription(subscription)
    spin_until(lambda: len(events) == 2)
    assert events == [(1, 1), (1, 0)]


def test_profiles():
    with pytest.raises(Exception, match="History and/or depth"):
        QoSProfile(reliability=ReliabilityPolicy.RELIABLE)
    with pytest.raises(Exception, match="KEEP_LAST"):
        QoSProfile(history=HistoryPolicy.KEEP_LAST)
    assert QoSProfile(history=HistoryPolicy.KEEP_ALL).depth == 10
    assert QoSProfile(depth=3) == QoSProfile(depth=3) != QoSProfile(depth=4)
    assert qos_profile_sensor_data.reliability == ReliabilityPolicy.BEST_EFFORT and qos_profile_sensor_data.depth == 5


def test_wrong_names_and_types(node):
    from rclpy.exceptions import InvalidTopicNameException

    with pytest.raises(InvalidTopicNameException):
        node.create_publisher(String, "not valid", 10)
    with pytest.raises(TypeError):
        node.create_publisher(String, "chatter", "many")
    with pytest.raises(ValueError):
        node.create_publisher(String, "chatter", -1)
    with pytest.raises(AttributeError):
        node.create_publisher(int, "chatter", 10)


def test_wait_for_message(node, other):
    import threading

    from rclpy.wait_for_message import wait_for_message

    assert wait_for_message(String, node, "chatter", time_to_wait=0.05) == (False, None)
    publisher = other.create_publisher(String, "chatter", QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL))
    publisher.publish(String(data="kept"))
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    came, message = wait_for_message(String, node, "chatter", qos_profile=latched, time_to_wait=30)
    assert came and message.data == "kept" and threading.active_count() >= 1


@pytest.mark.skipif(bool(os.environ.get("TSUJI_REAL_RCLPY")), reason="rclpy has it since Lyrical")
def test_content_filter(node, other, spin_until):
    from rclpy.subscription_content_filter_options import ContentFilterOptions

    heard = []
    options = ContentFilterOptions(filter_expression="data = %0", expression_parameters=["'b'"])
    other.create_subscription(String, "chatter", heard.append, 10, content_filter_options=options)
    publisher = node.create_publisher(String, "chatter", 10)
    spin_until(lambda: publisher.get_subscription_count() == 1)
    for data in "abcb":
        publisher.publish(String(data=data))
    spin_until(lambda: len(heard) == 2)
    assert [it.data for it in heard] == ["b", "b"]
