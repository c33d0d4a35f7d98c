"""Several threads use one thing at a time: nothing is lost, doubled or torn. Without the interpreter's lock they run at once."""

import collections
import copy
import pickle
import threading
import time

import numpy

import tsuji
from tsuji.interfaces.geometry_msgs.msg import PoseArray, Pose
from tsuji.interfaces.sensor_msgs.msg import Image
from tsuji.interfaces.std_msgs.msg import String, UInt8MultiArray

PATIENCE = 60
THREADS = 4
KEEP_ALL = tsuji.QoS(history="keep_all")


def at_once(*functions):
    """Runs these at once, each in a thread, and raises what one of them raised."""
    begin, raised = threading.Barrier(len(functions)), []

    def run(function):
        try:
            begin.wait(PATIENCE)
            function()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=[it], daemon=True) for it in functions]
    for it in threads:
        it.start()
    until = time.monotonic() + PATIENCE
    while any(it.is_alive() for it in threads) and not raised:
        assert time.monotonic() < until, "a thread hangs"
        time.sleep(0.005)
    if raised:
        raise raised[0]


def test_a_message_that_is_looked_into_for_the_first_time(make_node, topic):
    node = make_node()
    publisher, subscription = node.publisher(topic, Image, KEEP_ALL), node.subscribe(topic, Image, KEEP_ALL)
    publisher.wait_for_subscriptions(timeout=PATIENCE)
    data = numpy.arange(10_000, dtype=numpy.uint8)
    for number in range(50):
        publisher.publish(Image(height=number, encoding="mono8", data=data))
        came, seen = subscription.recv(timeout=PATIENCE), []

        def look(came=came, seen=seen):
            seen.append((came.height, came.encoding, came.header.frame_id, came.data, came.header))

        at_once(*[look] * THREADS)
        assert all(it[:3] == (number, "mono8", "") and (it[3] == data).all() for it in seen)
        # Each has the same header, of which a part can be set.
        assert all(it[4] is seen[0][4] for it in seen)


def test_a_message_that_all_set_and_read():
    message = UInt8MultiArray(data=bytes(8))
    choices = [bytes([number]) * length for number, length in enumerate((8, 3000, 0, 77))]
    is_over = threading.Event()

    def set_it(choice):
        def run():
            for _ in range(2000):
                message.data = choice
                message.layout.data_offset = len(choice)
            is_over.set()

        return run

    def read():
        while not is_over.is_set():
            for it in (message.data, pickle.loads(pickle.dumps(message)).data, copy.copy(message).data, UInt8MultiArray.from_bytes(message.to_bytes()).data):
                assert bytes(it) in choices

    at_once(*map(set_it, choices), read, read)


def test_a_list_that_grows_while_it_is_written():
    message, is_over = PoseArray(poses=[Pose()]), threading.Event()

    def change():
        for _ in range(300):
            for _ in range(20):
                message.poses.append(Pose())
            del message.poses[5:]
        is_over.set()

    def write():
        while not is_over.is_set():
            try:
                assert 1 <= len(PoseArray.from_bytes(message.to_bytes()).poses) <= 25
            except RuntimeError as error:
                assert "changed" in str(error)

    at_once(change, write, write)


def test_each_message_is_taken_once(make_node, topic):
    node, each = make_node(), 1000
    publisher, subscription = node.publisher(topic, String, KEEP_ALL), node.subscribe(topic, String, KEEP_ALL)
    publisher.wait_for_subscriptions(timeout=PATIENCE)
    taken = [[] for _ in range(THREADS)]

    def publish(number):
        def run():
            for count in range(each):
                publisher.publish(String(data=f"{number} {count}"))

        return run

    def take(mine):
        def run():
            for it in subscription:
                if it.data == "end":
                    return
                mine.append(it.data)

        return run

    def all_of_them():
        at_once(*map(publish, range(THREADS)))
        for _ in range(THREADS):
            publisher.publish(String(data="end"))

    at_once(all_of_them, *map(take, taken))
    assert collections.Counter(sum(taken, [])) == {f"{number} {count}": 1 for number in range(THREADS) for count in range(each)}
    for mine in taken:
        for number in range(THREADS):
            counts = [int(it.split()[1]) for it in mine if it.startswith(f"{number} ")]
            assert counts == sorted(counts)


def test_each_message_of_a_recording_is_read_once(tmp_path):
    with tsuji.RecordingWriter(tmp_path / "it.mcap", compression=None) as writer:
        for number in range(2000):
            writer.write("/chatter", String(data=str(number)), time_ns=number + 1)
    for mapped in (False, True):
        messages, read = iter(tsuji.open(tmp_path / "it.mcap", mapped=mapped)), [[] for _ in range(THREADS)]

        def run(mine, messages=messages):
            return lambda: mine.extend(int(it.message.data) for it in messages)

        at_once(*map(run, read))
        assert sorted(sum(read, [])) == list(range(2000)) and all(it == sorted(it) for it in read)


def test_loans_of_several_threads(make_node, topic):
    node, each = make_node(), 100
    publisher, subscription = node.publisher(topic, Image, KEEP_ALL), node.subscribe(topic, Image, KEEP_ALL)
    publisher.wait_for_subscriptions(timeout=PATIENCE)

    def lend(number):
        def run():
            for _ in range(each):
                with publisher.loan(height=100, width=200, encoding="mono8", is_bigendian=number) as picture:
                    picture.data[:] = number

        return run

    def receive():
        seen = collections.Counter()
        for _ in range(THREADS * each):
            picture = subscription.recv(timeout=PATIENCE)
            assert picture.data.size == 20_000 and (picture.data == picture.is_bigendian).all()
            seen[picture.is_bigendian] += 1
        assert seen == {number: each for number in range(THREADS)}

    at_once(receive, *map(lend, range(THREADS)))


def test_a_loan_is_published_once(make_node, topic):
    node = make_node()
    publisher, subscription = node.publisher(topic, Image, KEEP_ALL), node.subscribe(topic, Image, KEEP_ALL)
    publisher.wait_for_subscriptions(timeout=PATIENCE)
    for _ in range(100):
        loan, over = publisher.loan(height=10, width=10, encoding="mono8"), []
        loan.data[:] = 5

        def publish(loan=loan, over=over):
            try:
                loan.publish()
            except ValueError as error:
                over.append(str(error))

        def look(loan=loan, over=over):
            try:
                assert (loan.data == 5).all()
            except ValueError as error:
                over.append(str(error))

        at_once(publish, publish, look)
        assert 1 <= len(over) <= 2 and all("the loan is over" in it for it in over)
        assert (subscription.recv(timeout=PATIENCE).data == 5).all()
    assert subscription.take() is None


def test_nodes_and_what_they_have_come_and_go(make_node, topic):
    def run(number):
        def come_and_go():
            for count in range(15):
                node = make_node(f"node_{number}_{count}")
                publisher, subscription = node.publisher(topic, String), node.subscribe(topic, String)
                node.timer(10, lambda: None)
                publisher.publish(String(data="x"))
                node.topics()
                del publisher, subscription
                node.shutdown()

        return come_and_go

    at_once(*map(run, range(THREADS)))


def test_classes_that_all_load_are_one():
    for number in range(20):
        loaded = []
        at_once(*[lambda number=number, loaded=loaded: loaded.append(tsuji.load_text(f"threads_msgs/msg/T{number}", "int32 a\n"))] * THREADS)
        assert len(set(loaded)) == 1
