"""Services and clients."""

import pytest
import rclpy
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup, ReentrantCallbackGroup
from rclpy.executors import MultiThreadedExecutor
from std_srvs.srv import SetBool

PATIENCE = 30


def switch(request, response):
    response.success = not request.data
    return response


def test_a_call(node, other, result_of):
    service = other.create_service(SetBool, "switch", switch)
    client = node.create_client(SetBool, "switch")
    assert client.wait_for_service(timeout_sec=PATIENCE) and client.service_is_ready()
    assert result_of(client.call_async(SetBool.Request(data=False))).success
    futures = [client.call_async(SetBool.Request(data=it % 2 == 0)) for it in range(5)]
    assert [result_of(it).success for it in futures] == [False, True, False, True, False]
    other.destroy_service(service)


def test_nobody_serves(node):
    client = node.create_client(SetBool, "nothing")
    assert not client.wait_for_service(timeout_sec=0.05)
    assert not client.service_is_ready()
    with pytest.raises(TypeError):
        client.call_async(SetBool.Response())


def test_a_server_that_is_a_coroutine(node, other, result_of):
    async def answer(request, response):
        response.message = f"is {request.data}"
        return response

    other.create_service(SetBool, "say", answer)
    client = node.create_client(SetBool, "say")
    assert client.wait_for_service(timeout_sec=PATIENCE)
    assert result_of(client.call_async(SetBool.Request(data=True))).message == "is True"


def test_a_call_in_a_callback_that_awaits(node, other, executor, result_of):
    other.create_service(SetBool, "switch", switch)
    # A group is busy until its coroutine ends.
    client = node.create_client(SetBool, "switch", callback_group=ReentrantCallbackGroup())
    assert client.wait_for_service(timeout_sec=PATIENCE)
    done = rclpy.Future()

    async def ask():
        timer.cancel()
        response = await client.call_async(SetBool.Request())
        done.set_result(response.success)

    timer = node.create_timer(0.001, ask)
    assert result_of(done) is True


def test_a_call_that_blocks_in_a_callback_with_threads(node, other):
    executor = MultiThreadedExecutor(num_threads=2)
    executor.add_node(node)
    executor.add_node(other)
    other.create_service(SetBool, "switch", switch)
    client = node.create_client(SetBool, "switch", callback_group=MutuallyExclusiveCallbackGroup())
    assert client.wait_for_service(timeout_sec=PATIENCE)
    done = rclpy.Future()

    def ask():
        timer.cancel()
        done.set_result(client.call(SetBool.Request()).success)

    timer = node.create_timer(0.001, ask, callback_group=ReentrantCallbackGroup())
    executor.spin_until_future_complete(done, timeout_sec=PATIENCE)
    assert done.result() is True
    executor.shutdown()


def test_a_call_from_another_thread(node, other, executor, spun):
    other.create_service(SetBool, "switch", switch)
    client = node.create_client(SetBool, "switch")
    assert client.wait_for_service(timeout_sec=PATIENCE)
    spun(executor)
    assert [client.call(SetBool.Request(data=it % 2 == 0)).success for it in range(20)] == [False, True] * 10
