"""Executors, timers, futures and the end."""

import threading
import time

import pytest
import rclpy
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup, ReentrantCallbackGroup
from rclpy.executors import ExternalShutdownException, MultiThreadedExecutor, SingleThreadedExecutor
from rclpy.task import Future
from std_msgs.msg import String

PATIENCE = 30


def test_timers(node, spin_until):
    calls = []
    timer = node.create_timer(0.01, lambda: calls.append(time.monotonic()))
    spin_until(lambda: len(calls) == 5)
    timer.cancel()
    assert timer.is_canceled() and timer.timer_period_ns == 10_000_000
    assert 0.03 < calls[-1] - calls[0]
    before = len(calls)
    timer.reset()
    spin_until(lambda: before < len(calls))
    assert node.destroy_timer(timer) and not node.destroy_timer(timer)


def test_spin_once_ends_when_its_time_is_over(node, executor):
    begin = time.monotonic()
    executor.spin_once(timeout_sec=0.1)
    assert 0.09 < time.monotonic() - begin < 5


def test_guard_conditions(node, executor, spin_until):
    calls = []
    guard = node.create_guard_condition(lambda: calls.append(1))
    guard.trigger()
    spin_until(lambda: calls)
    assert node.destroy_guard_condition(guard)


def test_tasks(node, executor):
    async def inner():
        return 20

    async def outer(more):
        return await executor.create_task(inner) + more

    task = executor.create_task(outer, 22)
    executor.spin_until_future_complete(task, timeout_sec=PATIENCE)
    assert task.result() == 42
    assert executor.create_task(lambda: 1).done() is False


def test_an_executor_of_a_programs_own(node, other):
    from concurrent.futures import ThreadPoolExecutor

    from rclpy.executors import Executor, TimeoutException

    class Own(Executor):
        def __init__(self):
            super().__init__()
            self.pool = ThreadPoolExecutor(2)
            self.seen = []

        def can_execute(self, entity):
            return super().can_execute(entity) and entity is not refused

        def spin_once(self, timeout_sec=None):
            try:
                handler, entity, of = self.wait_for_ready_callbacks(timeout_sec=timeout_sec)
            except TimeoutException:
                return
            self.seen.append((entity, of))
            self.pool.submit(handler)

    executor, calls = Own(), []
    timer, refused = node.create_timer(0.005, lambda: calls.append(1)), node.create_timer(0.005, lambda: calls.append("refused"))
    executor.add_node(node)
    until = time.monotonic() + PATIENCE
    while len(calls) < 5 and time.monotonic() < until:
        executor.spin_once(timeout_sec=0.05)
    assert 5 <= len(calls) and set(calls) == {1} and (timer, node) in executor.seen
    executor.shutdown()
    executor.pool.shutdown()


def test_asyncio_awaits_futures(node, executor):
    import asyncio

    async def main():
        future = Future()
        asyncio.get_running_loop().call_later(0.02, future.set_result, 7)
        return await future

    assert asyncio.run(main()) == 7


def test_futures():
    future, heard = Future(), []
    future.add_done_callback(lambda it: heard.append(it.result()))
    assert not future.done() and future.result() is None
    future.set_result(3)
    assert future.done() and heard == [3]
    future.add_done_callback(lambda it: heard.append(4))
    assert heard == [3, 4]
    failed = Future()
    failed.set_exception(ValueError("no"))
    with pytest.raises(ValueError):
        failed.result()
    given_up = Future()
    given_up.cancel()
    assert given_up.cancelled()


@pytest.mark.parametrize("group, most", [(MutuallyExclusiveCallbackGroup, 1), (ReentrantCallbackGroup, 2)])
def test_groups(node, other, group, most):
    executor = MultiThreadedExecutor(num_threads=4)
    executor.add_node(node)
    group, lock, running, seen, done = group(), threading.Lock(), [0], [], Future()

    def work():
        with lock:
            running[0] += 1
            seen.append(running[0])
        time.sleep(0.01)
        with lock:
            running[0] -= 1
            if 20 <= len(seen) and not done.done():
                done.set_result(None)

    timers = [node.create_timer(0.001, work, callback_group=group) for _ in range(2)]
    executor.spin_until_future_complete(done, timeout_sec=PATIENCE)
    for timer in timers:
        timer.cancel()
    executor.shutdown()
    assert max(seen) == 1 if most == 1 else 2 <= max(seen)


def test_the_end_ends_a_spin(node, executor):
    ended = []

    def spin():
        try:
            executor.spin()
        except ExternalShutdownException:
            ended.append("told")
        ended.append("ended")

    thread = threading.Thread(target=spin)
    thread.start()
    rclpy.shutdown()
    thread.join(PATIENCE)
    assert ended[-1] == "ended" and not rclpy.ok()


def test_nodes_come_and_go_while_an_executor_spins(node, executor, spun):
    spun(executor)
    for number in range(5):
        late = rclpy.create_node(f"late{number}")
        heard = threading.Event()
        late.create_subscription(String, f"late{number}", lambda _: heard.set(), 1)
        executor.add_node(late)
        publisher = node.create_publisher(String, f"late{number}", 1)
        until = time.monotonic() + PATIENCE
        while not heard.wait(0.05):
            assert time.monotonic() < until
            publisher.publish(String())
        executor.remove_node(late)
        late.destroy_node()


def test_an_executor_that_a_callback_shuts_down(node):
    executor, heard = SingleThreadedExecutor(), []
    executor.add_node(node)

    def end():
        timer.cancel()
        heard.append(executor.shutdown(timeout_sec=0))

    timer = node.create_timer(0.001, end)
    until = time.monotonic() + PATIENCE
    while not heard and time.monotonic() < until:
        executor.spin_once(timeout_sec=0.05)
    assert heard


def test_the_context(context):
    called = []
    rclpy.get_default_context().on_shutdown(lambda: called.append(1))
    assert rclpy.ok()
    rclpy.shutdown()
    assert not rclpy.ok() and called == [1]
    with pytest.raises(Exception, match="."):
        rclpy.create_node("late")
    rclpy.init(args=[])
    assert rclpy.ok()


def test_a_second_context(context):
    other = rclpy.Context()
    rclpy.init(context=other, args=[])
    node = rclpy.create_node("second", context=other)
    executor = SingleThreadedExecutor(context=other)
    assert executor.add_node(node) and not executor.add_node(node)
    assert executor.get_nodes() == [node] and node.executor is executor
    executor.shutdown()
    node.destroy_node()
    rclpy.shutdown(context=other)
    assert rclpy.ok() and not other.ok()
