"""Parameters of a node, and those of another."""

import threading
import time

import pytest

PATIENCE = 30


def test_each_type(make_node):
    node = make_node()
    for name, value in {
        "bool": True,
        "int": -5,
        "float": 1.5,
        "str": "a text",
        "bytes": b"\0\1",
        "bools": [True, False],
        "ints": [1, 2],
        "floats": [1.5, 2.0],
        "strs": ["a", ""],
    }.items():
        assert node.declare_parameter(name, value) == value
        assert node.parameter(name) == value and type(node.parameter(name)) is type(value)
    assert node.declare_parameter("unset", dynamic_typing=True) is None and node.parameter("unset") is None


def test_what_is_allowed(make_node):
    node = make_node()
    node.declare_parameter("speed", 1.0, range=(0.0, 2.0), description="metres a second")
    node.set_parameter("speed", 1.5)
    for value, text in ((3.0, "range"), ("fast", "type")):
        with pytest.raises(ValueError, match=text):
            node.set_parameter("speed", value)
    assert node.parameter("speed") == 1.5
    node.declare_parameter("fixed", 1, read_only=True)
    with pytest.raises(ValueError):
        node.set_parameter("fixed", 2)
    node.declare_parameter("free", 1, dynamic_typing=True)
    node.set_parameter("free", "now a text")
    for wrong, error in (
        (lambda: node.parameter("none"), LookupError),
        (lambda: node.set_parameter("none", 1), ValueError),
        (lambda: node.declare_parameter("speed", 2.0), ValueError),
        (lambda: node.declare_parameter("odd", object()), TypeError),
        (lambda: node.declare_parameter("mixed", [1, "a"]), TypeError),
        (lambda: node.declare_parameter("text", "a", range=(1, 2)), ValueError),
    ):
        with pytest.raises(error):
            wrong()


def test_an_empty_list_is_of_any_type(make_node):
    node = make_node()
    node.declare_parameter("strs", ["a"])
    node.set_parameter("strs", [])
    assert node.parameter("strs") == []
    with pytest.raises(OverflowError, match="64 bits"):
        node.declare_parameter("large", 2**70)


def test_a_callback_refuses(make_node):
    node = make_node()
    node.declare_parameter("even", 2)

    def check(parameters):
        if parameters["even"] % 2:
            raise ValueError("it is odd")

    node.on_set_parameters(check)
    node.set_parameter("even", 4)
    with pytest.raises(ValueError, match="it is odd"):
        node.set_parameter("even", 5)
    assert node.parameter("even") == 4


def test_those_of_another_node(make_node):
    served = make_node("served", arguments=["--ros-args", "-p", "height:=2.5"])
    assert served.declare_parameter("height", 1.0) == 2.5
    served.declare_parameter("name", "robot")
    thread = threading.Thread(target=served.spin)
    thread.start()
    theirs = make_node("asking").parameters_of("/served")
    assert {"height", "name"} <= set(theirs.list(timeout=PATIENCE))
    assert theirs.get("name") == "robot"
    with pytest.raises(ValueError, match="no parameter none"):
        theirs.get("none")
    theirs.set("name", "other")
    assert served.parameter("name") == "other"
    with pytest.raises(ValueError):
        theirs.set("height", "high")
    served.shutdown()
    thread.join()


def test_time(make_node):
    assert abs(make_node().now() - time.time()) < 5
