"""Whole programs, as `python -m tsuji.rclpy` runs them."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import textwrap

import pytest

if os.environ.get("TSUJI_REAL_RCLPY"):
    pytest.skip("of tsuji's rclpy alone", allow_module_level=True)

TALKER = """
import sys
import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from std_msgs.msg import String


class Talker(Node):
    def __init__(self):
        super().__init__("talker")
        self.publisher = self.create_publisher(String, "chatter", 10)
        self.create_subscription(String, "chatter", self.listen, 10)
        self.create_timer(0.01, self.talk)

    def talk(self):
        self.publisher.publish(String(data="hello"))

    def listen(self, message):
        print(self.get_name(), self.publisher.topic_name, message.data, *rclpy.utilities.remove_ros_args(sys.argv)[1:], flush=True)


def main(args=None):
    try:
        with rclpy.init(args=args):
            rclpy.spin(Talker())
        print("ended")
    except KeyboardInterrupt:
        print("interrupted")
    except ExternalShutdownException:
        print("ended")


if __name__ == "__main__":
    main()
"""


def start(folder, *words):
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "tsuji.rclpy", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=folder)


def ended(process):
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


@pytest.mark.parametrize("number, says", [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "ended")])
def test_a_file(tmp_path, number, says):
    (tmp_path / "talker.py").write_text(TALKER)
    process = start(tmp_path, "talker.py", "word", "--ros-args", "-r", "chatter:=news", "-r", "__node:=other")
    assert process.stdout.readline() == "other /news hello word\n"
    process.send_signal(number)
    code, out, err = ended(process)
    assert (code, out.splitlines()[-1], err) == (0, says, "")


def test_the_readme(tmp_path):
    """The command of python/README.md, on a program of a reader."""
    page = pathlib.Path(__file__).resolve().parents[2] / "README.md"
    command, = re.findall(r"^```sh\n(python -m tsuji\.rclpy .*)\n```$", page.read_text(), re.MULTILINE)
    (tmp_path / "talker.py").write_text(TALKER)
    python, _, _, *words = command.split()
    process = start(tmp_path, *words)
    assert python == "python" and process.stdout.readline() == "talker /chatter hello\n"
    process.send_signal(signal.SIGINT)
    assert ended(process)[0] == 0


def test_a_module_with_messages_of_its_own(tmp_path):
    messages = tmp_path / "interfaces" / "my_msgs"
    (messages / "msg").mkdir(parents=True)
    (messages / "msg" / "Reading.msg").write_text("float64 value\nuint8[] raw\n")
    (messages / "package.xml").write_text("<package><name>my_msgs</name></package>")
    package = tmp_path / "my_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "program.py").write_text(
        "from my_msgs.msg import Reading\nfrom my_msgs.msg._reading import Reading as Same\nprint(Reading(value=1.5, raw=[1]), Same is Reading)\n"
    )
    process = start(tmp_path, "--interfaces", tmp_path / "interfaces", "-m", "my_package.program")
    assert ended(process) == (0, "my_msgs.msg.Reading(value=1.5, raw=[1]) True\n", "")


def test_what_is_not_there_is_told(tmp_path):
    code, out, err = ended(start(tmp_path, "nothing.py"))
    assert (code, out) == (2, "") and err.endswith("error: nothing.py: no such file\n")
    for name in ("nothing", "nothing.there"):
        code, out, err = ended(start(tmp_path, "-m", name))
        assert (code, out) == (2, "") and err.endswith(f"error: {name}: no such module\n")
    code, out, err = ended(start(tmp_path))
    assert (code, out) == (2, "") and err.endswith("error: the following arguments are required: PROGRAM\n")
    code, out, err = ended(start(tmp_path, "--interfaces", "nothing", "talker.py"))
    assert (code, out) == (2, "") and "nothing" in err.splitlines()[-1]
    (tmp_path / "program.py").write_text("from std_msgs.msg import Nothing\n")
    code, out, err = ended(start(tmp_path, "program.py"))
    assert code == 1 and "ImportError: cannot import name 'Nothing' from 'std_msgs.msg'" in err
    (tmp_path / "program.py").write_text(
        "import rclpy\nfrom rclpy.waitable import Waitable\ntry:\n    Waitable(None)\nexcept NotImplementedError as error:\n    print(error)\n"
    )
    assert ended(start(tmp_path, "program.py")) == (0, "rclpy.waitable.Waitable: tsuji has no wait sets of rcl\n", "")


def test_a_program_that_does_not_clean_up(tmp_path):
    # Its node, its executor and a thread that spins are left to the end of the interpreter.
    body = """
    import threading
    import rclpy
    from std_msgs.msg import String

    rclpy.init()
    node = rclpy.create_node("left")
    heard = threading.Event()
    node.create_subscription(String, "chatter", lambda _: heard.set(), 1)
    publisher = node.create_publisher(String, "chatter", 1)
    node.create_timer(0.01, lambda: publisher.publish(String()))
    threading.Thread(target=rclpy.spin, args=(node,), daemon=True).start()
    print(heard.wait(30))
    """
    (tmp_path / "program.py").write_text(textwrap.dedent(body))
    assert ended(start(tmp_path, "program.py")) == (0, "True\n", "")


def test_a_server_that_is_killed_while_it_executes(tmp_path, node, executor, spin_until):
    import tsuji
    from example_interfaces.action import Fibonacci
    from rclpy.action import ActionClient

    body = """
    import time
    import rclpy
    from example_interfaces.action import Fibonacci
    from rclpy.action import ActionServer

    def execute(goal_handle):
        for number in range(3):
            goal_handle.publish_feedback(Fibonacci.Feedback(sequence=[number]))
        print("executing", flush=True)
        time.sleep(1000)

    rclpy.init()
    node = rclpy.create_node("server")
    server = ActionServer(node, Fibonacci, "fibonacci", execute)
    rclpy.spin(node)
    """
    (tmp_path / "program.py").write_text(textwrap.dedent(body))
    client = ActionClient(node, Fibonacci, "fibonacci")
    for _ in range(3):
        process, heard = start(tmp_path, "program.py"), []
        assert client.wait_for_server(timeout_sec=30)
        sent = client.send_goal_async(
            Fibonacci.Goal(), feedback_callback=lambda message, heard=heard: heard.append(message.feedback.sequence[0])
        )
        spin_until(sent.done)
        result = sent.result().get_result_async()
        assert process.stdout.readline() == "executing\n"
        process.kill()
        process.communicate()
        spin_until(result.done)
        assert isinstance(result.exception(), (tsuji.ServerLostError, tsuji.NoServerError))
        # What it had sent comes, once and in its order.
        spin_until(lambda heard=heard: len(heard) == 3)
        assert heard == [0, 1, 2]
        spin_until(lambda: not client.server_is_ready())
    client.destroy()


def test_a_program_that_raises_in_a_callback(tmp_path):
    body = """
    import rclpy

    def fail():
        raise ValueError("no")

    rclpy.init()
    node = rclpy.create_node("failing")
    node.create_timer(0.001, fail)
    rclpy.spin(node)
    """
    (tmp_path / "program.py").write_text(textwrap.dedent(body))
    code, out, err = ended(start(tmp_path, "program.py"))
    assert (code, out) == (1, "") and err.rstrip().endswith("ValueError: no")


def test_where_rclpy_is_imported_already(tmp_path):
    (tmp_path / "rclpy.py").write_text("")
    program = "import rclpy, tsuji.rclpy\ntry:\n    tsuji.rclpy.install()\nexcept ImportError as error:\n    print(error)\n"
    run = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (run.stdout, run.stderr) == ("rclpy is imported already; tsuji.rclpy.install() comes before that\n", "")
