"""What happens to a whole interpreter: its end while nodes live, Ctrl-C, forks."""

import signal
import subprocess
import sys
import textwrap
import time

import pytest
import tsuji
from tsuji.interfaces.sensor_msgs.msg import Image
from tsuji.interfaces.std_msgs.msg import String

HEAD = """
import os, signal, sys, threading, time
import tsuji
from tsuji.interfaces.std_msgs.msg import String
node = tsuji.Node("n", interop="none", runtime_dir=sys.argv[1])
"""


PATIENCE = 30


def wait_until(is_so):
    until = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.005)


def run(folder, body, words=(), **arguments):
    program = HEAD + textwrap.dedent(body)
    return subprocess.Popen(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program, folder, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **arguments,
    )


def ended(process):
    said = process.communicate(timeout=60)
    return process.returncode, *said


@pytest.mark.parametrize(
    "body",
    [
        "",
        "node.subscribe('t', String, callback=print)",
        "subscription = node.subscribe('t', String)\nsubscription.on_new_message(print)",
        "threading.Thread(target=node.spin, daemon=True).start()\ntime.sleep(0.05)",
        """
        subscription = node.subscribe('t', String)
        threading.Thread(target=lambda: [None for _ in subscription], daemon=True).start()
        publisher = node.publisher('t', String)
        publisher.wait_for_subscriptions(1)
        for _ in range(100):
            publisher.publish(data='x')
        """,
        """
        from tsuji.interfaces.example_interfaces.action import Fibonacci
        def execute(goal):
            while True:
                time.sleep(0.001)
        node.action_server('c', Fibonacci, execute)
        threading.Thread(target=node.spin, daemon=True).start()
        node.action_client('c', Fibonacci).send_goal(Fibonacci.Goal(order=3), timeout=30)
        """,
        """
        node.service('s', 'std_srvs/srv/Trigger', lambda request: time.sleep(100))
        from tsuji.interfaces.std_srvs.srv import Trigger
        pending = node.client('s', Trigger).send(Trigger.Request())
        pending.poll(lambda: print('woken'))
        class Slow:
            def __del__(self):
                time.sleep(0.3)
        slow = Slow()
        """,
    ],
)
def test_an_interpreter_ends_while_nodes_live(folder, body):
    code, out, err = ended(run(folder, textwrap.dedent(body) + "\nprint('end')"))
    assert (code, err) == (0, "") and out.endswith("end\n")


def test_a_goal_that_comes_while_the_interpreter_ends(folder):
    body = """
    import atexit
    from tsuji.interfaces.example_interfaces.action import Fibonacci
    node.action_server('count', Fibonacci, lambda goal: Fibonacci.Result())
    client = node.action_client('count', Fibonacci)
    threading.Thread(target=node.spin, daemon=True).start()
    client.wait_for_server(timeout=30)
    # It runs before tsuji's.
    @atexit.register
    def ask():
        print(client.send_goal(Fibonacci.Goal(), timeout=30).result(timeout=30)[0])
    """
    # CPython 3.12 starts no thread any more then; others do until later.
    status = "aborted" if sys.version_info[:2] == (3, 12) else "succeeded"
    assert ended(run(folder, body)) == (0, f"{status}\n", "")


@pytest.mark.parametrize(
    "wait", ["node.spin()", "node.subscribe('t', String).recv()", "node.client('s', 'std_srvs/srv/Trigger').wait_for_service()"]
)
def test_ctrl_c_ends_a_wait(folder, wait):
    process = run(folder, f"try:\n    print('waits', flush=True)\n    {wait}\nexcept KeyboardInterrupt:\n    print('interrupted')")
    assert process.stdout.readline() == "waits\n"
    process.send_signal(signal.SIGINT)
    assert ended(process) == (0, "interrupted\n", "")


def test_a_forked_child_is_told(folder):
    body = """
    publisher = node.publisher('t', String)
    child = os.fork()
    if child == 0:
        try:
            publisher.publish(data='x')
        except tsuji.ClosedError as error:
            print('closed', flush=True)
        # All that it has is dropped as everything is.
        sys.exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    publisher.publish(data='x')
    """
    assert ended(run(folder, body)) == (0, "closed\n0\n", "")


def test_a_node_of_a_robot(folder):
    body = """
    robot = sys.argv[2]
    node.shutdown()
    with tsuji.Node("talker", interop="none", runtime_dir=sys.argv[1], robot=robot) as talker:
        assert talker.robot == robot and talker.fully_qualified_name == "/talker"
        publisher = talker.publisher("chatter", String)
        publisher.wait_for_subscriptions(1, timeout=30)
        publisher.publish(data="from " + robot)
        publisher.wait_for_acknowledgements(timeout=30)
    try:
        tsuji.Node("talker", interop="none", runtime_dir=sys.argv[1], robot="r-2")
    except ValueError as error:
        print(error)
    """
    with tsuji.Node("station", interop="none", runtime_dir=folder) as node:
        assert node.robot is None
        heard = {name: node.subscribe(f"/{name}/chatter", String) for name in ("r1", "r2")}
        talkers = [run(folder, body, words=[name]) for name in heard]
        for name, subscription in heard.items():
            assert subscription.recv(timeout=PATIENCE).data == f"from {name}"
        for talker in talkers:
            status, out, err = ended(talker)
            assert (status, err) == (0, "") and "r-2" in out and "no name of a robot" in out


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing(tmp_path, folder, method):
    program = textwrap.dedent("""
        import multiprocessing, sys
        import tsuji
        from tsuji.interfaces.std_msgs.msg import String

        def talk(folder):
            with tsuji.Node("child", interop="none", runtime_dir=folder) as node:
                publisher = node.publisher("t", String)
                publisher.wait_for_subscriptions(1, timeout=30)
                publisher.publish(data="from the child")
                publisher.wait_for_acknowledgements(timeout=30)

        if __name__ == "__main__":
            method, folder = sys.argv[1:]
            context = multiprocessing.get_context(method)
            node = tsuji.Node("parent", interop="none", runtime_dir=folder)
            subscription = node.subscribe("t", String)
            child = context.Process(target=talk, args=(folder,))
            child.start()
            print(subscription.recv(timeout=30).data)
            child.join()
            print(child.exitcode)
        """)
    path = tmp_path / "program.py"
    path.write_text(program)
    run = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", path, method, folder], capture_output=True, text=True, timeout=120
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "from the child\n0\n", "")


def test_without_numpy(folder):
    body = """
    sys.modules["numpy"] = None
    from tsuji.interfaces.sensor_msgs.msg import Image, LaserScan
    message = Image(data=b"abc")
    print(type(message.data).__name__, message.data[1], message.data.format, Image.from_bytes(message.to_bytes()) == message)
    scan = LaserScan(ranges=[0.5, 2])
    print(scan.ranges.tolist(), repr(scan).count("ranges=[0.5, 2.0]"))
    publisher, subscription = node.publisher("t", Image), node.subscribe("t", Image)
    publisher.wait_for_subscriptions()
    with publisher.loan(data=3) as loan:
        loan.data[:] = b"xyz"
    print(bytes(subscription.recv().data), subscription.take())
    """
    said = "memoryview 98 B True\n[0.5, 2.0] 1\nb'xyz' None\n"
    assert ended(run(folder, body)) == (0, said, "")


def test_a_publisher_killed_with_half_a_loan(folder, make_node):
    subscription = make_node("survivor").subscribe("pictures", Image)
    body = """
    from tsuji.interfaces.sensor_msgs.msg import Image
    publisher = node.publisher('pictures', Image)
    publisher.wait_for_subscriptions(1)
    for number in range(1, 6):
        with publisher.loan(height=number, width=1000, encoding='rgb8') as picture:
            picture.data[:] = number
    publisher.wait_for_acknowledgements()
    with publisher.loan(height=9, width=1000, encoding='rgb8') as picture:
        picture.data[:1500] = 9
        print('half', flush=True)
        time.sleep(100)
    """
    for _ in range(3):
        process = run(folder, body)
        assert process.stdout.readline() == "half\n"
        pictures = [subscription.recv(timeout=PATIENCE) for _ in range(4)]
        arrays = [picture.data for picture in pictures]
        process.kill()
        process.communicate()
        wait_until(lambda: subscription.matched == 0)
        # What it sent whole comes, and what it had sent stays; the half does not come.
        pictures.append(subscription.recv(timeout=PATIENCE))
        arrays.append(pictures[-1].data)
        assert subscription.take() is None
        assert [picture.height for picture in pictures] == [1, 2, 3, 4, 5]
        assert all(len(array) == number * 3000 and (array == number).all() for number, array in enumerate(arrays, 1))
        assert subscription.counters["lost"] == subscription.counters["invalid"] == 0


def test_a_subscription_killed_with_arrays_in_its_hands(folder, make_node):
    publisher = make_node("survivor").publisher("pictures", Image)
    body = """
    from tsuji.interfaces.sensor_msgs.msg import Image
    subscription = node.subscribe('pictures', Image)
    held = [subscription.recv().data for _ in range(5)]
    print([int(it[-1]) for it in held], flush=True)
    time.sleep(100)
    """
    for _ in range(3):
        process = run(folder, body)
        publisher.wait_for_subscriptions(1, timeout=PATIENCE)
        for at in range(5):
            publisher.publish(height=1, width=100_000, data=bytes([at]) * 100_000)
        assert process.stdout.readline() == "[0, 1, 2, 3, 4]\n"
        process.kill()
        process.communicate()
        wait_until(lambda: publisher.matched == 0)
    assert publisher.counters["published"] == 15
    assert publisher.counters["failed"] == publisher.counters["dropped"] == 0
