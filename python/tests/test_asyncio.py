"""What event loops have to do with it: tasks that share one, several of them, and those that end."""

import asyncio
import gc
import os
import resource
import threading
import weakref

import pytest

import tsuji
from tsuji.interfaces.std_msgs.msg import UInt64

PATIENCE = 30


@pytest.fixture
def joined(make_node, topic):
    node = make_node()
    qos = tsuji.QoS(history="keep_all")
    publisher, subscription = node.publisher(topic, UInt64, qos), node.subscribe(topic, UInt64, qos)
    publisher.wait_for_subscriptions(timeout=PATIENCE)
    return publisher, subscription


def test_other_tasks_run_while_messages_are_there(joined):
    publisher, subscription = joined
    for number in range(1000):
        publisher.publish(data=number)

    async def main():
        seen = []

        async def watch(heard):
            while len(heard) < 1000:
                seen.append(len(heard))
                await asyncio.sleep(0)

        heard = []
        watching = asyncio.create_task(watch(heard))
        async for message in subscription:
            heard.append(message.data)
            if len(heard) == 1000:
                break
        await watching
        assert heard == list(range(1000))
        assert 10 < len(seen)

    asyncio.run(asyncio.wait_for(main(), PATIENCE))


def test_a_task_that_is_cancelled_loses_nothing(joined):
    publisher, subscription = joined

    async def main():
        async def listen(heard):
            async for message in subscription:
                heard.append(message.data)

        heard, said = [], 0
        while said < 2000:
            listening = asyncio.create_task(listen(heard))
            for _ in range(100):
                publisher.publish(data=said)
                said += 1
            # The task is cancelled before it began, while it takes, and while it waits.
            for _ in range(said // 100 % 4):
                await asyncio.sleep(0)
            listening.cancel()
            with pytest.raises(asyncio.CancelledError):
                await listening
        while (message := subscription.take()) is not None:
            heard.append(message.data)
        assert heard == list(range(2000))

    asyncio.run(asyncio.wait_for(main(), PATIENCE))


def test_loops_of_several_threads_share_a_subscription(joined):
    publisher, subscription = joined
    heard = []

    def listen():
        async def main():
            async for message in subscription:
                if message.data == 0:
                    return
                heard.append(message.data)

        asyncio.run(asyncio.wait_for(main(), PATIENCE))

    threads = [threading.Thread(target=listen) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(1, 501):
        publisher.publish(data=number)
    for _ in threads:
        publisher.publish(data=0)
    for thread in threads:
        thread.join(PATIENCE)
    assert sorted(heard) == list(range(1, 501))


def test_loops_that_ended_leave_no_descriptors(joined):
    _, subscription = joined

    async def main():
        with pytest.raises(TimeoutError):
            await subscription.recv_async(timeout=0.001)

    asyncio.run(main())
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        asyncio.run(main())
    gc.collect()
    # That of the last loop stays until the next.
    assert len(os.listdir("/proc/self/fd")) <= before + 1


def test_a_loop_that_ended_while_a_task_waited(joined):
    publisher, subscription = joined
    loop = asyncio.new_event_loop()
    waiting = loop.create_task(subscription.recv_async())
    loop.run_until_complete(asyncio.sleep(0.01))
    loop.stop()
    loop.run_forever()
    publisher.publish(data=7)
    # Nobody runs the loop: the message is there for whoever takes it.
    assert asyncio.run(subscription.recv_async(timeout=PATIENCE)).data == 7
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        loop.run_until_complete(waiting)
    loop.close()
    publisher.publish(data=8)
    assert subscription.recv(timeout=PATIENCE).data == 8


def test_no_descriptor_is_left_for_a_loop(joined):
    publisher, subscription = joined
    loop = asyncio.new_event_loop()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
        with pytest.raises(OSError, match="to wake an event loop by"):
            loop.run_until_complete(subscription.recv_async(timeout=PATIENCE))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    publisher.publish(data=1)
    assert loop.run_until_complete(subscription.recv_async(timeout=PATIENCE)).data == 1
    loop.close()


def test_other_tasks_run_between_calls_of_recv_async(joined):
    publisher, subscription = joined
    for number in range(500):
        publisher.publish(data=number)

    async def main():
        seen = []

        async def watch():
            while True:
                seen.append(0)
                await asyncio.sleep(0)

        watching = asyncio.create_task(watch())
        for number in range(500):
            assert (await subscription.recv_async()).data == number
        watching.cancel()
        assert 5 < len(seen)

    asyncio.run(asyncio.wait_for(main(), PATIENCE))


def test_loops_with_a_task_that_waits_are_collected(joined):
    _, subscription = joined

    class Held:
        pass

    seen = []

    async def wait():
        held = Held()
        seen.append(weakref.ref(held))
        await subscription.recv_async()

    for _ in range(5):
        loop = asyncio.new_event_loop()
        # Nobody is told of a task that is gone before it has ended.
        loop.set_exception_handler(lambda loop, context: None)
        task = loop.create_task(wait())
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
        del loop, task
    gc.collect()
    assert len(seen) == 5 and not any(it() for it in seen)
