"""Actions, between two nodes."""

import asyncio
import threading
import time

import pytest

import tsuji
from tsuji.interfaces.example_interfaces.action import Fibonacci

PATIENCE = 30


def execute(goal):
    order = goal.request.order
    if order < 0:
        while not goal.is_cancel_requested:
            time.sleep(0.001)
        return goal.canceled(Fibonacci.Result(sequence=[-1]))
    if order == 13:
        raise RuntimeError("an unlucky goal")
    sequence = [0, 1]
    for _ in range(1, order):
        sequence.append(sequence[-1] + sequence[-2])
        goal.publish_feedback(Fibonacci.Feedback(sequence=sequence))
    return Fibonacci.Result(sequence=sequence)


@pytest.fixture
def client(make_node):
    node = make_node("counting")
    server, raised = node.action_server("count", Fibonacci, execute), []

    def spin():
        while node.is_ok:
            try:
                node.spin()
            except Exception as error:
                raised.append(error)

    thread = threading.Thread(target=spin)
    thread.start()
    client = make_node("asking").action_client("count", Fibonacci)
    client.wait_for_server(timeout=PATIENCE)
    client_and_more = client, server, raised
    yield client_and_more
    node.shutdown()
    thread.join()


def test_a_goal_is_reached(client):
    client, server, raised = client
    goal = client.send_goal(Fibonacci.Goal(order=5), timeout=PATIENCE)
    heard = [it.sequence.tolist() for it in goal]
    assert heard == [[0, 1, 1], [0, 1, 1, 2], [0, 1, 1, 2, 3], [0, 1, 1, 2, 3, 5]]
    status, result = goal.result(timeout=PATIENCE)
    assert (status, result.sequence.tolist()) == ("succeeded", [0, 1, 1, 2, 3, 5])
    assert goal.status == "succeeded" and server.goals() == [(goal.id, "succeeded")] and raised == []


def test_a_goal_is_given_up(client):
    client, _, _ = client
    goal = client.send_goal(Fibonacci.Goal(order=-1), timeout=PATIENCE)
    with pytest.raises(TimeoutError, match="no feedback"):
        goal.feedback(timeout=0.02)
    with pytest.raises(TimeoutError, match="no result"):
        goal.result(timeout=0.02)
    assert goal.cancel(timeout=PATIENCE) == "canceling"
    status, result = goal.result(timeout=PATIENCE)
    assert (status, result.sequence.tolist()) == ("canceled", [-1])
    assert goal.cancel(timeout=PATIENCE) == "ended"


def test_a_goal_whose_execution_raises_is_aborted(client):
    client, _, raised = client
    goal = client.send_goal(Fibonacci.Goal(order=13), timeout=PATIENCE)
    status, result = goal.result(timeout=PATIENCE)
    assert (status, result.sequence.tolist()) == ("aborted", [])
    until = time.monotonic() + PATIENCE
    while not raised and time.monotonic() < until:
        time.sleep(0.001)
    assert [str(it) for it in raised] == ["an unlucky goal"]


def test_a_goal_for_which_there_is_no_thread_is_aborted(client, monkeypatch):
    client, _, raised = client

    def start(thread):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        goal = client.send_goal(Fibonacci.Goal(order=3), timeout=PATIENCE)
        assert goal.result(timeout=PATIENCE)[0] == "aborted"
    until = time.monotonic() + PATIENCE
    while not raised and time.monotonic() < until:
        time.sleep(0.001)
    assert [str(it) for it in raised] == ["can't start new thread"]
    assert client.send_goal(Fibonacci.Goal(order=3), timeout=PATIENCE).result(timeout=PATIENCE)[0] == "succeeded"


def test_goals_by_asyncio(client, make_node):
    client, _, _ = client

    async def ask():
        goal = await client.send_goal_async(Fibonacci.Goal(order=4), timeout=PATIENCE)
        heard = [it.sequence.tolist() async for it in goal]
        status, result = await goal.result_async(timeout=PATIENCE)
        assert heard == [[0, 1, 1], [0, 1, 1, 2], [0, 1, 1, 2, 3]]
        assert (status, result.sequence.tolist()) == ("succeeded", [0, 1, 1, 2, 3])
        endless = await client.send_goal_async(Fibonacci.Goal(order=-1), timeout=PATIENCE)
        with pytest.raises(TimeoutError):
            await endless.result_async(timeout=0.02)
        assert await endless.cancel_async(timeout=PATIENCE) == "canceling"
        assert (await endless.result_async(timeout=PATIENCE))[0] == "canceled"
        several = [client.send_goal_async(Fibonacci.Goal(order=it), timeout=PATIENCE) for it in range(2, 6)]
        several = await asyncio.gather(*(it.result_async() for it in await asyncio.gather(*several)))
        assert [result.sequence[-1] for _, result in several] == [1, 2, 3, 5]
        with pytest.raises(TimeoutError):
            await make_node("other").action_client("nobody", Fibonacci).send_goal_async(Fibonacci.Goal(), timeout=0.02)

    asyncio.run(ask())


def test_goals_side_by_side(client):
    client, _, _ = client
    goals = [client.send_goal(Fibonacci.Goal(order=it), timeout=PATIENCE) for it in range(2, 10)]
    results = [it.result(timeout=PATIENCE)[1].sequence.tolist() for it in goals]
    assert [it[-1] for it in results] == [1, 2, 3, 5, 8, 13, 21, 34]


def test_what_is_wrong_is_told(client, make_node):
    client, _, _ = client
    with pytest.raises(TypeError, match="allowed: a example_interfaces/action/Fibonacci_Goal"):
        client.send_goal(Fibonacci.Result())
    with pytest.raises(tsuji.NoServerError):
        make_node("other").action_client("nobody", Fibonacci).wait_for_server(timeout=0.02)
    with pytest.raises(LookupError):
        make_node("third").action_client("none", "no/action/None")


def test_waits_end_with_the_node_that_another_outlives(client, make_node):
    asking = make_node("leaving")
    client = asking.action_client("count", Fibonacci)
    goal = client.send_goal(Fibonacci.Goal(order=-1), timeout=PATIENCE)
    nobody = asking.action_client("nobody", Fibonacci)
    raised = []

    def expect(wait):
        with pytest.raises(tsuji.ClosedError):
            wait()
        raised.append(wait)

    async def awaits(wait):
        with pytest.raises(tsuji.ClosedError):
            await wait()
        raised.append(wait)

    async def all_awaits():
        await asyncio.gather(awaits(goal.result_async), awaits(lambda: nobody.send_goal_async(Fibonacci.Goal())))

    waits = [goal.feedback, goal.result, nobody.wait_for_server]
    threads = [threading.Thread(target=expect, args=[it]) for it in waits]
    threads.append(threading.Thread(target=lambda: asyncio.run(all_awaits())))
    for it in threads:
        it.start()
    asking.shutdown()
    for it in threads:
        it.join(PATIENCE)
    assert len(raised) == len(waits) + 2
    goal.cancel()
