"""Stubs: mypy is content with what is right, and finds what is wrong."""

import os
import pathlib
import re
import subprocess
import sys
import textwrap

import pytest

import tsuji
import tsuji.stubs

pytest.importorskip("mypy")

RIGHT = """
import asyncio
import numpy
from numpy.typing import NDArray
import tsuji
from tsuji.interfaces.example_interfaces.action import Fibonacci
from tsuji.interfaces.sensor_msgs.msg import Image, PointCloud2, PointField
from tsuji.interfaces.std_srvs.srv import SetBool

def brightness(picture: Image) -> float:
    data: NDArray[numpy.uint8] = picture.data
    picture.data = b"abc"
    picture.header.stamp.sec += 1
    return float(data.mean())

def answer(request: SetBool.Request) -> SetBool.Response:
    return SetBool.Response(success=request.data, message="done")

def execute(goal: tsuji.ServerGoal[Fibonacci.Goal, Fibonacci.Result, Fibonacci.Feedback]) -> Fibonacci.Result:
    goal.publish_feedback(Fibonacci.Feedback(sequence=[0, 1]))
    return Fibonacci.Result(sequence=range(goal.request.order))

async def main() -> None:
    async with tsuji.Node("typed") as node:
        publisher = node.publisher("image", Image, tsuji.QoS.SENSOR_DATA)
        publisher.publish(Image(height=2, data=[1, 2]))
        node.subscribe("image", Image, callback=brightness)
        node.service("set", SetBool, answer)
        node.action_server("count", Fibonacci, execute)
        response = await node.client("set", SetBool).call_async(SetBool.Request(data=True))
        print(response.message.upper())
        async for picture in node.subscribe("image", Image):
            print(brightness(picture))
    cloud = PointCloud2(fields=[PointField(name="x", datatype=PointField.FLOAT32)])
    print(cloud.fields[0].offset + 1)

asyncio.run(main())
"""

WRONG = {
    'Image(height="two")': "arg-type",
    "Image(colour=1)": "call-arg",
    "Image().width.upper()": "attr-defined",
    'node.publisher("t", Image).publish(SetBool.Request())': "call-overload",
    'node.client("s", SetBool).call(SetBool.Response())': "arg-type",
    'node.service("s", SetBool, lambda request: 3)': "arg-type|misc|return-value",
}


def mypy(folder, program):
    (folder / "program.py").write_text(textwrap.dedent(program))
    home = pathlib.Path(tsuji.__file__).parent.parent
    environment = dict(os.environ)
    if home.name != "site-packages":
        environment["MYPYPATH"] = str(home)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", folder / "cache", folder / "program.py"]
    run = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder)
    return run.returncode, run.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("typed")


def test_what_is_right(folder):
    assert mypy(folder, RIGHT) == (0, "Success: no issues found in 1 source file\n")


@pytest.mark.parametrize("document", ["README.md", "python/README.md", "docs/tutorial/python.md"])
def test_programs_in_documents(folder, document):
    text = (pathlib.Path(__file__).resolve().parents[2] / document).read_text()
    programs = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert programs
    # They stand alone, or go on in a node of the reader's.
    head = "import tsuji\nfrom tsuji.interfaces.sensor_msgs.msg import Image\nnode = tsuji.Node('n')\n"
    for program in programs:
        if "async " in program:
            program = "async def main() -> None:\n" + textwrap.indent(program, "    ")
        code, said = mypy(folder, head + program)
        assert code == 0, said + program


def test_each_name_is_there():
    text = (pathlib.Path(tsuji.__file__).parent / "__init__.pyi").read_text()
    names = re.findall(r"^(?:class|def) ([A-Z_a-z]+)", text, re.MULTILINE)
    missing = [it for it in names if it != "Info" and not hasattr(tsuji, it)]
    assert missing == [] and {"Node", "ServerGoal", "open"} <= set(names)


def test_what_is_right_runs(folder):
    program = RIGHT.replace("asyncio.run(main())", "print('ran')")
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("ran\n", "")


def test_what_is_wrong(folder):
    head = "import tsuji\nfrom tsuji.interfaces.sensor_msgs.msg import Image\nfrom tsuji.interfaces.std_srvs.srv import SetBool\nnode = tsuji.Node('n')\n"
    code, said = mypy(folder, head + "\n".join(WRONG))
    lines = said.splitlines()
    assert code == 1
    for number, (line, kinds) in enumerate(WRONG.items(), 5):
        of_line = [it for it in lines if f":{number}: error:" in it]
        assert of_line and any(f"[{kind}]" in it for it in of_line for kind in kinds.split("|")), (line, said)


def test_stubs_of_ones_own(tmp_path, capsys):
    (tmp_path / "src" / "scales_msgs" / "srv").mkdir(parents=True)
    (tmp_path / "src" / "scales_msgs" / "srv" / "Weigh.srv").write_text("string thing\n---\nfloat64 kilograms\n")
    arguments = ["--interfaces", str(tmp_path / "src"), "--out", str(tmp_path / "out"), "scales_msgs"]
    assert tsuji.stubs.main(arguments) == 0
    assert capsys.readouterr().out == f"Wrote the stubs of 1 types to {tmp_path / 'out'}\n"
    text = (tmp_path / "out" / "scales_msgs" / "srv.pyi").read_text()
    assert "class Weigh(_tsuji.Service" in text and "def __init__(self, *, kilograms: float = ...) -> None: ..." in text
    assert tsuji.stubs.main(["--out", str(tmp_path / "out"), "none_msgs"]) == 1
    assert "no package none_msgs" in capsys.readouterr().err
