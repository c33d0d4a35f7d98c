"""What goes wrong, and what is always ready, does not keep the rest from running."""

import threading
import time

import pytest
import rclpy
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.executors import MultiThreadedExecutor, SingleThreadedExecutor
from rclpy.parameter import Parameter
from std_msgs.msg import String
from std_srvs.srv import SetBool

PATIENCE = 30


def test_a_busy_timer_starves_nobody(node, executor, spin_until):
    heard, ticks = [], []
    node.create_subscription(String, "chatter", heard.append, 10)
    publisher = node.create_publisher(String, "chatter", 10)
    spin_until(lambda: publisher.get_subscription_count() == 1)
    # Its callback takes longer than its period.
    node.create_timer(0.001, lambda: (publisher.publish(String()), time.sleep(0.002)))
    node.create_timer(0.001, lambda: ticks.append(1))
    spin_until(lambda: 10 <= len(heard) and 10 <= len(ticks))


def test_a_coroutine_that_yields_starves_nobody(node, executor, spin_until):
    class Turn:
        def __await__(self):
            yield

    turns, ticks = [], []

    async def go_on():
        while len(ticks) < 5:
            turns.append(1)
            await Turn()

    executor.create_task(go_on)
    node.create_timer(0.001, lambda: ticks.append(1))
    spin_until(lambda: 5 <= len(ticks))
    assert turns


def test_nodes_that_are_spun_by_turns(node, other):
    ran = []
    for number, of in enumerate((node, other, node)):
        of.create_guard_condition(lambda number=number: ran.append(number)).trigger()
    until = time.monotonic() + PATIENCE
    while len(ran) < 3 and time.monotonic() < until:
        rclpy.spin_once(node, timeout_sec=0.01)
        rclpy.spin_once(other, timeout_sec=0.01)
    assert sorted(ran) == [0, 1, 2]


def test_ctrl_c_in_a_callback_leaves_its_group_free(node, executor, spin_until):
    calls = []

    def interrupt():
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt

    node.create_timer(0.001, interrupt)
    with pytest.raises(KeyboardInterrupt):
        spin_until(lambda: False)
    spin_until(lambda: 3 <= len(calls))


def test_messages_wait_in_their_depth_and_not_in_threads(node):
    executor = MultiThreadedExecutor(num_threads=2)
    executor.add_node(node)
    heard, may_end = [], threading.Event()

    def wait(message):
        may_end.wait(PATIENCE)
        heard.append(int(message.data))

    node.create_subscription(String, "chatter", wait, 1, callback_group=ReentrantCallbackGroup())
    publisher = node.create_publisher(String, "chatter", 1)
    until = time.monotonic() + PATIENCE
    while publisher.get_subscription_count() == 0 and time.monotonic() < until:
        executor.spin_once(timeout_sec=0.01)
    for number in range(100):
        publisher.publish(String(data=f"{number}"))
        executor.spin_once(timeout_sec=0)
    may_end.set()
    # Of two threads the one with the last message may be done before the other.
    while 99 not in heard and time.monotonic() < until:
        executor.spin_once(timeout_sec=0.05)
    executor.shutdown()
    # The newest, and not all that came while two were busy.
    assert 99 in heard and len(heard) < 10


def test_an_executor_with_threads_is_shut_down_by_a_callback(node):
    executor, heard = MultiThreadedExecutor(num_threads=2), []
    executor.add_node(node)

    def end():
        timer.cancel()
        heard.append(executor.shutdown(timeout_sec=0))

    timer = node.create_timer(0.001, end)
    until = time.monotonic() + PATIENCE
    while not heard and time.monotonic() < until:
        executor.spin_once(timeout_sec=0.05)
    assert len(heard) == 1


def test_executors_that_are_shut_down_while_another_thread_spins(node):
    for _ in range(50):
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        thread = threading.Thread(target=executor.spin)
        thread.start()
        executor.shutdown(timeout_sec=PATIENCE)
        thread.join(PATIENCE)
        assert not thread.is_alive()


def test_a_call_that_nobody_answers(node, other, executor, spun):
    other.create_service(SetBool, "slow", lambda request, response: (time.sleep(0.2), response)[1])
    client = node.create_client(SetBool, "slow")
    assert client.wait_for_service(timeout_sec=PATIENCE)
    spun(executor)
    assert client.call(SetBool.Request(), timeout_sec=0.01) is None
    future = client.call_async(SetBool.Request())
    future.cancel()
    assert client.call(SetBool.Request()).success is False
    assert future.cancelled() and future.result() is None


def test_parameters_keep_the_type_of_their_default(context):
    from rclpy.exceptions import InvalidParameterTypeException, ParameterUninitializedException

    node = rclpy.create_node("name", cli_args=["--ros-args", "-p", "rate:=5.0"])
    assert node.declare_parameter("text", Parameter.Type.STRING).value is None
    with pytest.raises(ParameterUninitializedException):
        node.get_parameter("text")
    with pytest.raises(InvalidParameterTypeException):
        node.declare_parameter("rate", 10)
    node.declare_parameter("other", 1)
    node.add_on_set_parameters_callback(lambda parameters: None)
    refused = node.set_parameters([Parameter("other", value=2)])[0]
    assert not refused.successful and refused.reason == "Callback returned an invalid type"
    node.destroy_node()


def test_a_nodes_own_rules_come_first():
    rclpy.init(args=["--ros-args", "-r", "a:=b", "-p", "number:=1"])
    node = rclpy.create_node("name", cli_args=["--ros-args", "-r", "a:=c", "-p", "number:=2"])
    assert node.create_publisher(String, "a", 1).topic_name == "/c" and node.declare_parameter("number", 0).value == 2
    node.destroy_node()
    rclpy.shutdown()


def test_what_has_ended_can_begin_anew(context):
    rclpy.shutdown()
    with pytest.raises(RuntimeError):
        rclpy.get_default_context().shutdown()
    rclpy.try_shutdown()
    rclpy.init(args=[])
    rclpy.get_default_context().try_shutdown()
    rclpy.try_shutdown()
    rclpy.init(args=[])
    assert rclpy.ok()


def test_the_errors_of_the_extension_can_be_caught():
    from rclpy._rclpy_pybind11 import InvalidHandle, RCLError

    context = rclpy.Context()
    rclpy.init(context=context, args=[])
    node = rclpy.create_node("late", context=context)
    publisher = node.create_publisher(String, "chatter", 1)
    node.destroy_publisher(publisher)
    with pytest.raises(InvalidHandle):
        publisher.publish(String())
    node.destroy_node()
    rclpy.shutdown(context=context)
    with pytest.raises(RCLError):
        context.shutdown()
    assert issubclass(RCLError, RuntimeError)


def test_a_feedback_callback_that_raises_loses_nothing(node, other, executor, spin_until):
    from example_interfaces.action import Fibonacci
    from rclpy.action import ActionClient, ActionServer

    def execute(goal_handle):
        for number in range(3):
            goal_handle.publish_feedback(Fibonacci.Feedback(sequence=[number]))
        goal_handle.succeed()
        return Fibonacci.Result(sequence=[7])

    server, client = ActionServer(other, Fibonacci, "fibonacci", execute), ActionClient(node, Fibonacci, "fibonacci")
    assert client.wait_for_server(timeout_sec=PATIENCE)
    heard, raised = [], []

    def listen(message):
        heard.append(message.feedback.sequence[0])
        raise ValueError("no")

    future = client.send_goal_async(Fibonacci.Goal(), feedback_callback=listen)
    results = []
    future.add_done_callback(lambda it: results.append(it.result().get_result_async()))
    until = time.monotonic() + PATIENCE
    while not (results and results[0].done() and len(raised) == len(heard)) and time.monotonic() < until:
        try:
            executor.spin_once(timeout_sec=0.05)
        except ValueError as error:
            raised.append(error)
    assert list(results[0].result().result.sequence) == [7] and heard == sorted(heard) and len(heard) == len(raised)
    server.destroy()
    client.destroy()


def test_to_sleep_leaves_nothing_behind(node):
    from rclpy.duration import Duration
    from rclpy.exceptions import NotInitializedException

    ended = []
    for _ in range(20):
        node.get_clock().sleep_for(Duration(nanoseconds=1000))
    begun = threading.Event()

    def sleep():
        begun.set()
        try:
            ended.append(node.get_clock().sleep_for(Duration(seconds=100)))
        except NotInitializedException:
            # It came too late to sleep.
            ended.append(False)

    thread = threading.Thread(target=sleep)
    thread.start()
    begun.wait(PATIENCE)
    rclpy.shutdown()
    thread.join(PATIENCE)
    assert ended == [False] and not thread.is_alive()
