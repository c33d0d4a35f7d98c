"""Nodes: parameters, time, logs, the graph."""

import pytest
import rclpy
from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor, ParameterType, SetParametersResult
from rclpy.clock import Clock, ClockType, JumpThreshold
from rclpy.duration import Duration
from rclpy.exceptions import (
    InvalidNodeNameException,
    InvalidParameterTypeException,
    InvalidParameterValueException,
    ParameterAlreadyDeclaredException,
    ParameterImmutableException,
    ParameterNotDeclaredException,
)
from rclpy.parameter import Parameter
from rclpy.parameter_client import AsyncParameterClient
from rclpy.time import Time
from std_msgs.msg import String

PATIENCE = 30


def test_names(context):
    node = rclpy.create_node("name", namespace="space")
    assert (node.get_name(), node.get_namespace(), node.get_fully_qualified_name()) == ("name", "/space", "/space/name")
    assert node.resolve_topic_name("a") == "/space/a" and node.resolve_topic_name("~/a") == "/space/name/a"
    node.destroy_node()
    with pytest.raises(InvalidNodeNameException):
        rclpy.create_node("no good name")


def test_arguments(context):
    node = rclpy.create_node("name", cli_args=["--ros-args", "-r", "__node:=other", "-r", "chatter:=news", "-p", "speed:=2.5"])
    assert node.get_name() == "other"
    assert node.create_publisher(String, "chatter", 1).topic_name == "/news"
    assert node.declare_parameter("speed", 1.0).value == 2.5
    node.destroy_node()


def test_parameters(node):
    assert node.declare_parameter("speed", 1.0).value == 1.0
    assert node.declare_parameters("wheel", [("count", 4), ("names", ["a", "b"])])[1].value == ["a", "b"]
    assert node.get_parameter("wheel.count").value == 4 and node.has_parameter("speed")
    assert node.get_parameter("speed").get_parameter_value().double_value == 1.0
    with pytest.raises(ParameterAlreadyDeclaredException):
        node.declare_parameter("speed", 2.0)
    with pytest.raises(ParameterNotDeclaredException):
        node.get_parameter("nothing")
    with pytest.raises(ParameterNotDeclaredException):
        node.set_parameters([Parameter("nothing", value=1)])
    assert node.get_parameter_or("nothing", Parameter("nothing", value=7)).value == 7
    assert node.set_parameters([Parameter("speed", value=2.0)])[0].successful and node.get_parameter("speed").value == 2.0
    refused = node.set_parameters([Parameter("speed", value="fast")])[0]
    assert not refused.successful and "Wrong parameter type" in refused.reason
    assert sorted(node.get_parameters_by_prefix("wheel")) == ["count", "names"]
    assert node.get_parameter("wheel.names").type_ is Parameter.Type.STRING_ARRAY
    node.undeclare_parameter("wheel.count")
    assert not node.has_parameter("wheel.count")


def test_descriptors(node):
    of_speed = ParameterDescriptor(description="how fast", floating_point_range=[FloatingPointRange(from_value=0.0, to_value=2.0)])
    node.declare_parameter("speed", 1.0, of_speed)
    assert not node.set_parameters([Parameter("speed", value=3.0)])[0].successful
    node.declare_parameter("even", 2, ParameterDescriptor(integer_range=[IntegerRange(from_value=0, to_value=10, step=2)]))
    assert not node.set_parameters([Parameter("even", value=3)])[0].successful
    assert node.set_parameters([Parameter("even", value=4)])[0].successful
    node.declare_parameter("fixed", 1, ParameterDescriptor(read_only=True))
    assert not node.set_parameters([Parameter("fixed", value=2)])[0].successful
    with pytest.raises(ParameterImmutableException):
        node.undeclare_parameter("fixed")
    node.declare_parameter("any", 1, ParameterDescriptor(dynamic_typing=True))
    assert node.set_parameters([Parameter("any", value="text")])[0].successful
    assert node.describe_parameter("speed").description == "how fast"
    assert node.describe_parameter("speed").type == ParameterType.PARAMETER_DOUBLE
    with pytest.raises(InvalidParameterValueException):
        node.declare_parameter("wrong", 11, ParameterDescriptor(integer_range=[IntegerRange(from_value=0, to_value=10, step=2)]))


def test_parameters_of_a_type_alone(context):
    node = rclpy.create_node("name", cli_args=["--ros-args", "-p", "given:=3", "-p", "wrong:=text"])
    assert node.declare_parameter("given", Parameter.Type.INTEGER).value == 3
    with pytest.raises(InvalidParameterTypeException):
        node.declare_parameter("wrong", Parameter.Type.INTEGER)
    node.destroy_node()


def test_callbacks_of_parameters(node):
    heard = []

    def check(parameters):
        heard.append([it.name for it in parameters])
        return SetParametersResult(successful=all(it.value != 13 for it in parameters), reason="unlucky")

    node.declare_parameter("number", 1)
    node.add_on_set_parameters_callback(check)
    node.add_post_set_parameters_callback(lambda parameters: heard.append("set"))
    assert node.set_parameters([Parameter("number", value=2)])[0].successful
    refused = node.set_parameters([Parameter("number", value=13)])[0]
    assert (refused.successful, refused.reason) == (False, "unlucky") and node.get_parameter("number").value == 2
    assert heard == [["number"], "set", ["number"]]
    node.remove_on_set_parameters_callback(check)
    assert node.set_parameters([Parameter("number", value=13)])[0].successful


def test_undeclared_and_overridden_parameters(context):
    node = rclpy.create_node(
        "name",
        allow_undeclared_parameters=True,
        automatically_declare_parameters_from_overrides=True,
        parameter_overrides=[Parameter("given", value=5)],
    )
    assert node.get_parameter("given").value == 5
    assert node.get_parameter("unknown").type_ is Parameter.Type.NOT_SET
    assert node.set_parameters([Parameter("new", value=1)])[0].successful and node.get_parameter("new").value == 1
    node.destroy_node()


def test_parameters_of_another_node(node, other, result_of):
    other.declare_parameter("speed", 1.0)
    client = AsyncParameterClient(node, "other")
    assert client.wait_for_services(timeout_sec=PATIENCE)
    assert result_of(client.get_parameters(["speed"])).values[0].double_value == 1.0
    results = result_of(client.set_parameters([Parameter("speed", value=3.0)])).results
    assert results[0].successful and other.get_parameter("speed").value == 3.0
    assert "speed" in result_of(client.list_parameters()).result.names
    assert result_of(client.get_parameter_types(["speed"])).types[0] == ParameterType.PARAMETER_DOUBLE
    assert not result_of(client.set_parameters([Parameter("speed", value="x")])).results[0].successful
    assert result_of(client.describe_parameters(["speed"])).descriptors[0].name == "speed"


def test_time():
    early, late = Time(seconds=1, nanoseconds=5), Time(seconds=2)
    assert late - early == Duration(nanoseconds=999_999_995) and early + Duration(seconds=1) == Time(seconds=2, nanoseconds=5)
    assert early < late and early.seconds_nanoseconds() == (1, 5)
    assert Time.from_msg(early.to_msg(), clock_type=ClockType.SYSTEM_TIME) == early
    assert Duration.from_msg(Duration(seconds=-1.5).to_msg()) == Duration(seconds=-1.5)
    with pytest.raises(TypeError):
        early < Time(seconds=1, clock_type=ClockType.STEADY_TIME)
    with pytest.raises(ValueError):
        Time(seconds=-1)


def test_clocks(node):
    assert node.get_clock().clock_type == ClockType.ROS_TIME
    steady = Clock(clock_type=ClockType.STEADY_TIME)
    begin = steady.now()
    assert steady.sleep_for(Duration(seconds=0.02)) and Duration(seconds=0.02) <= steady.now() - begin
    assert abs(node.get_clock().now().nanoseconds - Clock().now().nanoseconds) < 10**9


def test_simulated_time(node, other, spin_until):
    from rosgraph_msgs.msg import Clock as ClockMessage

    node.set_parameters([Parameter("use_sim_time", value=True)])
    assert node.get_clock().ros_time_is_active
    publisher = other.create_publisher(ClockMessage, "/clock", 1)
    jumps, calls = [], []
    threshold = JumpThreshold(min_forward=Duration(seconds=1), min_backward=None, on_clock_change=False)
    handle = node.get_clock().create_jump_callback(threshold, post_callback=lambda jump: jumps.append(jump.delta.nanoseconds))
    node.create_timer(10.0, lambda: calls.append(node.get_clock().now().nanoseconds))
    spin_until(lambda: publisher.get_subscription_count() == 1)
    for seconds in (100, 111):
        publisher.publish(ClockMessage(clock=Time(seconds=seconds).to_msg()))
        spin_until(lambda: node.get_clock().now().nanoseconds == seconds * 10**9)
    spin_until(lambda: calls and calls[-1] == 111 * 10**9)
    assert jumps[-1] == 11 * 10**9
    handle.unregister()


def test_rate(node, executor, spun):
    spun(executor)
    rate = node.create_rate(100)
    begin = node.get_clock().now()
    for _ in range(5):
        rate.sleep()
    assert Duration(seconds=0.03) <= node.get_clock().now() - begin


def test_logs(node, other, executor, spin_until, capfd):
    from rcl_interfaces.msg import Log

    heard = []
    other.create_subscription(Log, "/rosout", heard.append, 10)
    logger = node.get_logger()
    spin_until(lambda: 0 < node.count_subscribers("/rosout"))
    for number in range(600):
        # Who listens may not have met it yet.
        logger.info(f"line {number}")
        executor.spin_once(timeout_sec=0.05)
        if heard:
            break
    assert heard and heard[0].name == "node" and heard[0].level == 20
    for _ in range(3):
        logger.warning("once alone", once=True)
        logger.error("skipped first", skip_first=True)
    assert logger.get_child("wheels").name == "node.wheels"
    logger.debug("not heard")
    logger.set_level(rclpy.logging.LoggingSeverity.DEBUG)
    assert logger.is_enabled_for(10) and logger.get_effective_level() == rclpy.logging.LoggingSeverity.DEBUG
    logger.debug("heard")
    logger.set_level(rclpy.logging.LoggingSeverity.INFO)
    said = "".join(capfd.readouterr())
    assert said.count("once alone") == 1 and said.count("skipped first") == 2 and "not heard" not in said and said.count("]: heard") == 1
    assert "[WARN] [" in said and "[node]: once alone" in said


def test_the_graph(node, other, spin_until):
    publisher = node.create_publisher(String, "chatter", 10)
    other.create_subscription(String, "chatter", lambda _: None, 10)
    spin_until(lambda: node.count_subscribers("chatter") == 1)
    assert node.count_publishers("/chatter") == 1
    assert ("/chatter", ["std_msgs/msg/String"]) in node.get_topic_names_and_types()
    assert {"node", "other"} <= set(node.get_node_names()) and ("other", "/") in node.get_node_names_and_namespaces()
    found = node.get_publishers_info_by_topic("/chatter")[0]
    assert (found.node_name, found.node_namespace, found.topic_type) == ("node", "/", "std_msgs/msg/String")
    assert found.qos_profile.depth in (10, 0) and len(found.endpoint_gid) == 16
    assert ("/chatter", ["std_msgs/msg/String"]) in node.get_publisher_names_and_types_by_node("node", "/")
    assert ("/node/get_parameters", ["rcl_interfaces/srv/GetParameters"]) in other.get_service_names_and_types()
    assert node.destroy_publisher(publisher)
    spin_until(lambda: node.count_publishers("/chatter") == 0)
