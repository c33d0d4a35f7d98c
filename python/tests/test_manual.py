"""The programs of the documents run as they stand there, each with what it expects at the other end. docs/programs.md has the list."""

import os
import pathlib
import re
import subprocess
import sys
import textwrap
import threading
import time

import numpy
import pytest

import tsuji
from tsuji.interfaces.example_interfaces.action import Fibonacci
from tsuji.interfaces.example_interfaces.srv import AddTwoInts
from tsuji.interfaces.geometry_msgs.msg import Twist
from tsuji.interfaces.sensor_msgs.msg import Image, LaserScan, Temperature

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATIENCE = 60
PICTURE = Image(height=2, width=3, encoding="rgb8", step=9, data=[7] * 18)


def block(document, begins, language="python"):
    """The program of a document that begins so; the second of several by ` (2)`."""
    first, _, number = begins.partition(" (")
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / document).read_text(), re.DOTALL | re.MULTILINE)
    found = [it for it in blocks if it.split("\n", 1)[0] == first]
    return found[int(number[0]) - 1 if number else 0]


# Each with the name of its test, which knows what is at the other end.
PROGRAMS = [
    ("README.md", "import tsuji", "viewer"),
    ("python/README.md", "import tsuji", "viewer"),
    ("docs/tutorial/python.md", "import tsuji (2)", "viewer"),
    ("docs/tutorial/python.md", "import tsuji", "driver"),
    ("python/README.md", 'with tsuji.Node("camera") as node:', "camera"),
    ("python/README.md", 'async with tsuji.Node("viewer") as node:', "asyncio"),
    ("python/README.md", "from tsuji.interfaces.sensor_msgs.msg import LaserScan, Temperature", "quality"),
    ("python/README.md", "from tsuji.interfaces.example_interfaces.srv import AddTwoInts", "service"),
    ("python/README.md", "from tsuji.interfaces.example_interfaces.action import Fibonacci", "action"),
    ("python/README.md", "from tsuji.interfaces.std_msgs.msg import String", "recording"),
    ("python/README.md", "import matplotlib.pyplot as plt", "pictures"),
    ("python/README.md", 'tsuji.add_interface_folder("ros_ws/src")  # packages with msg, srv and action folders', "interfaces"),
]


class Program:
    """A program in a process of its own, which ends with the test."""

    def __init__(self, text, folder, directory):
        # Some go on in a node of the reader's.
        head = "import tsuji\nfrom tsuji.interfaces.sensor_msgs.msg import Image\n"
        if re.search(r"^(goal = )?node\.|= node\.", text, re.MULTILINE) and "as node" not in text:
            head += "node = tsuji.Node('reader')\n"
        environment = {**os.environ, "TSUJI_INTEROP": "none", "TSUJI_RUNTIME_DIR": folder, "MPLBACKEND": "Agg", "PYTHONUNBUFFERED": "1"}
        environment["MPLCONFIGDIR"] = str(directory)
        command = [sys.executable, "-c", head + text]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, cwd=directory)

    def line(self):
        return self.process.stdout.readline()

    def end(self):
        said, _ = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == 0, said
        return said

    def stop(self):
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def run(folder, tmp_path):
    started = []

    def start(text):
        started.append(Program(text, folder, tmp_path))
        return started[-1]

    yield start
    for it in started:
        it.stop()


class Again(threading.Thread):
    """Does something again and again until the end of a `with`."""

    def __init__(self, what):
        super().__init__()
        self.what, self.is_over = what, threading.Event()

    def run(self):
        while not self.is_over.wait(0.02):
            self.what()

    def __enter__(self):
        self.start()

    def __exit__(self, *_):
        self.is_over.set()
        self.join()


def publishing(node):
    publisher = node.publisher("/camera/image", Image)
    return Again(lambda: publisher.publish(PICTURE))


def viewer(text, run, make_node, tmp_path):
    program = run(text)
    with publishing(make_node("camera")):
        assert program.line() == "3 2 7.0\n"


def driver(text, run, make_node, tmp_path):
    came = make_node("wheels").subscribe("/cmd_vel", Twist)
    program = run(text)
    assert next(came).linear.x == 0.5
    program.end()


def camera(text, run, make_node, tmp_path):
    came = make_node("viewer").subscribe("/camera/image", Image)
    program = run(text)
    assert next(came).data.tolist() == [128] * (480 * 640 * 3)
    program.end()


def asyncio(text, run, make_node, tmp_path):
    text = text.replace("        ...", "        print(picture.width)")
    program = run("import asyncio\nasync def main():\n" + textwrap.indent(text, "    ") + "\nasyncio.run(main())\n")
    with publishing(make_node("camera")):
        assert program.line() == "3\n"


def quality(text, run, make_node, tmp_path):
    program = run(text + "\nprint(next(hot).temperature)\n")
    node = make_node("sensors")
    scans, heat = node.publisher("/scan", LaserScan), node.publisher("/heat", Temperature)

    def publish():
        scans.publish(LaserScan())
        for it in (20.0, 40.0):
            heat.publish(Temperature(temperature=it))

    with Again(publish):
        # What does not pass the filter does not come.
        assert program.line() == "40.0\n"


def service(text, run, make_node, tmp_path):
    run(text)
    client = make_node("asking").client("add", AddTwoInts)
    client.wait_for_service(timeout=PATIENCE)
    assert client.call(AddTwoInts.Request(a=40, b=2)).sum == 42


def action(text, run, make_node, tmp_path):
    node = make_node("other")

    def execute(goal):
        goal.publish_feedback(Fibonacci.Feedback(sequence=[0, 1]))
        time.sleep(0.1)
        return Fibonacci.Result(sequence=list(range(goal.request.order)))

    node.action_server("fibonacci", Fibonacci, execute)
    node.declare_parameter("name", "nobody")
    spinning = threading.Thread(target=node.spin)
    spinning.start()
    program = run(text + "\nprint(result.sequence.tolist(), speed)\n")
    assert program.end().splitlines()[-1] == "[0, 1, 2, 3, 4] 1.0"
    assert node.parameter("name") == "robot"
    node.shutdown()
    spinning.join()


def recorded(tmp_path):
    with tsuji.RecordingWriter(str(tmp_path / "run.mcap")) as writer:
        for at in range(3):
            writer.write("/camera/image", PICTURE, time=1_700_000_000.5 + at)


def recording(text, run, make_node, tmp_path):
    recorded(tmp_path)
    assert run(text).end().splitlines()[0] == "1700000000.5 7.0"
    assert [it.message.data for it in tsuji.open(str(tmp_path / "new.mcap")).messages("/chatter")] == ["hello"]


def pictures(text, run, make_node, tmp_path):
    recorded(tmp_path)
    run(text).end()
    assert sorted(it.name for it in tmp_path.glob("*.png")) == ["000000.png", "000001.png", "000002.png"]


def interfaces(text, run, make_node, tmp_path):
    messages = tmp_path / "ros_ws" / "src" / "my_msgs" / "msg"
    messages.mkdir(parents=True)
    (messages / "Charge.msg").write_text("float64 volts\n")
    program = run(text + "\nprint(Reading(value=2.0).value, tsuji.load('my_msgs/msg/Charge')(volts=3.0).volts)\n")
    assert program.end() == "2.0 3.0\n"


@pytest.mark.parametrize("document, begins, name", PROGRAMS)
def test_runs(document, begins, name, run, make_node, tmp_path):
    globals()[name](block(document, begins), run, make_node, tmp_path)


def session(document, begins):
    """What is typed in a session, and the lines that are shown."""
    lines = block(document, begins, "pycon").splitlines()
    return [it[4:] for it in lines if it.startswith(">>> ")], [it for it in lines if not it.startswith(">>> ")]


def test_an_error_is_as_it_is_shown():
    (typed,), (shown,) = session("python/README.md", ">>> Image(data=[1, 256])")
    with pytest.raises(OverflowError) as raised:
        eval(typed, {"Image": Image})
    assert f"OverflowError: {raised.value}" == shown


def test_a_table(monkeypatch, tmp_path):
    pandas = pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    with tsuji.RecordingWriter("run.mcap") as writer:
        writer.write("/temperature", Temperature(temperature=20.0), time=1_700_000_000.5)
    scope = {"tsuji": tsuji}
    exec("\n".join(session("python/README.md", ">>> import pandas")[0]), scope)
    assert isinstance(scope["table"], pandas.DataFrame) and scope["table"]["temperature"].tolist() == [20.0]
    assert numpy.isclose(scope["table"]["time"][0], 1_700_000_000.5)


def test_all_that_are_listed_are_run():
    rows = re.findall(r"\]\((\S+)\) \| `(.*)` \| test `python/tests/test_manual.py` \|", (ROOT / "docs/programs.md").read_text())
    listed = {(os.path.relpath(ROOT / "docs" / page, ROOT), begins) for page, begins in rows}
    sessions = {("python/README.md", ">>> Image(data=[1, 256])"), ("python/README.md", ">>> import pandas")}
    assert listed == {(document, begins) for document, begins, _ in PROGRAMS} | sessions
