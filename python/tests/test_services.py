"""Services, by threads and by asyncio."""

import asyncio
import threading

import pytest

import tsuji
from tsuji.interfaces.example_interfaces.srv import AddTwoInts
from tsuji.interfaces.std_srvs.srv import SetBool

PATIENCE = 30


@pytest.fixture
def adder(make_node):
    node = make_node("adder")
    node.service("add", AddTwoInts, lambda request: AddTwoInts.Response(sum=request.a + request.b))
    thread = threading.Thread(target=node.spin)
    thread.start()
    client = make_node("asker").client("add", AddTwoInts)
    client.wait_for_service(timeout=PATIENCE)
    yield client
    node.shutdown()
    thread.join()


def test_calls(adder):
    for number in range(100):
        assert adder.call(AddTwoInts.Request(a=number, b=1), timeout=PATIENCE).sum == number + 1
    assert adder.servers == 1 and adder.name == "/add"
    with pytest.raises(TypeError, match="allowed: a example_interfaces/srv/AddTwoInts_Request"):
        adder.call(AddTwoInts.Response())


def test_calls_by_asyncio(adder):
    async def main():
        calls = [adder.call_async(AddTwoInts.Request(a=it, b=it), timeout=PATIENCE) for it in range(50)]
        assert [it.sum for it in await asyncio.gather(*calls)] == [2 * it for it in range(50)]

    asyncio.run(main())


def test_nobody_answers(make_node):
    node = make_node()
    client = node.client("nobody", SetBool)
    with pytest.raises(tsuji.NoServerError, match="/nobody: no server is ready within 0.02 s"):
        client.wait_for_service(timeout=0.02)
    # It is there, and is not spun.
    node.service("nobody", SetBool, lambda request: SetBool.Response())
    client.wait_for_service(timeout=PATIENCE)
    with pytest.raises(TimeoutError, match="call /nobody: no reply"):
        client.call(SetBool.Request(), timeout=0.05)

    async def main():
        with pytest.raises(TimeoutError):
            await client.call_async(SetBool.Request(), timeout=0.05)

    asyncio.run(main())
    with pytest.raises(TypeError, match="allowed: a service, or its name"):
        node.client("x", SetBool.Request)


def test_calls_that_are_given_up_are_not_open(make_node):
    node = make_node()

    def fail(request):
        raise KeyError("no answer")

    def spin():
        while node.is_ok:
            try:
                node.spin()
            except KeyError:
                pass

    node.service("fails", SetBool, fail)
    thread = threading.Thread(target=spin)
    thread.start()
    client = make_node("asker").client("fails", SetBool)
    client.wait_for_service(timeout=PATIENCE)

    async def main():
        # More than may be open at once.
        for _ in range(1200):
            with pytest.raises(TimeoutError):
                await client.call_async(SetBool.Request(), timeout=0.0005)

    asyncio.run(main())
    node.shutdown()
    thread.join()


def test_an_answer_of_another_type_ends_the_spin(make_node):
    node = make_node()
    node.service("wrong", SetBool, lambda request: request)
    client = make_node("asker").client("wrong", SetBool)
    client.wait_for_service(timeout=PATIENCE)
    pending = client.send(SetBool.Request())
    with pytest.raises(TypeError, match="allowed: a std_srvs/srv/SetBool_Response"):
        node.spin(timeout=PATIENCE)
    assert pending.poll(lambda: None) is None
    with pytest.raises(LookupError):
        node.client("none", "no_srvs/srv/None")
    assert tsuji.load_service("std_srvs/srv/SetBool") == (SetBool.Request, SetBool.Response)


def test_waits_end_with_the_node_that_another_outlives(make_node):
    answer = threading.Event()
    serving, asking = make_node("serving"), make_node("asking")
    serving.service("slow", SetBool, lambda request: answer.wait(PATIENCE) and SetBool.Response())
    thread = threading.Thread(target=serving.spin)
    thread.start()
    client, nobody = asking.client("slow", SetBool), asking.client("nobody", SetBool)
    publisher, subscription = asking.publisher("empty", SetBool.Request), asking.subscribe("empty_too", SetBool.Request)
    client.wait_for_service(timeout=PATIENCE)
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
        await asyncio.gather(awaits(lambda: client.call_async(SetBool.Request())), awaits(lambda: nobody.call_async(SetBool.Request())))

    waits = [
        lambda: client.call(SetBool.Request()),
        nobody.wait_for_service,
        publisher.wait_for_subscriptions,
        subscription.wait_for_publishers,
        subscription.recv,
    ]
    threads = [threading.Thread(target=expect, args=[it]) for it in waits]
    threads.append(threading.Thread(target=lambda: asyncio.run(all_awaits())))
    for it in threads:
        it.start()
    asking.shutdown()
    for it in threads:
        it.join(PATIENCE)
    assert len(raised) == len(waits) + 2 and serving.is_ok
    answer.set()
    serving.shutdown()
    thread.join()
