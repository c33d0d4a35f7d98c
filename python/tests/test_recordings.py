"""Recordings: what is written is read, by topics and times."""

import gc
import subprocess
import sys
import textwrap
import time

import numpy
import pytest

import tsuji
from tsuji.interfaces.sensor_msgs.msg import Image, LaserScan
from tsuji.interfaces.std_msgs.msg import Float64, Header, String

START = 1_700_000_000.0


@pytest.fixture(params=["zstd", "lz4", None])
def path(tmp_path, request):
    path = tmp_path / "run.mcap"
    with tsuji.RecordingWriter(path, compression=request.param) as writer:
        for number in range(100):
            time = START + number / 10
            writer.write("/chatter", String(data=f"message {number}"), time=time)
            if number % 10 == 0:
                writer.write("/image", Image(height=number, data=numpy.full(3000, number, dtype=numpy.uint8)), time=time)
        writer.write("/scan", LaserScan(ranges=[0.5, 1.5]), time=START + 5)
    return path


def test_everything_is_there(path):
    recording = tsuji.open(path)
    assert recording.topics == {
        "/chatter": ("std_msgs/msg/String", 100),
        "/image": ("sensor_msgs/msg/Image", 10),
        "/scan": ("sensor_msgs/msg/LaserScan", 1),
    }
    assert len(recording) == 111 and recording.damages == []
    assert (recording.start, recording.end) == (START, pytest.approx(START + 9.9))
    texts = [it.message.data for it in recording if it.topic == "/chatter"]
    assert texts == [f"message {it}" for it in range(100)]
    times = [it.time for it in recording]
    assert times == sorted(times)
    assert "111 messages of 3 topics in 9.900 s" in repr(recording)


@pytest.mark.parametrize("mapped", [False, True])
def test_topics_and_times(path, mapped):
    recording = tsuji.open(path, mapped=mapped)
    pictures = [it.message for it in recording.messages("/image")]
    assert [it.height for it in pictures] == list(range(0, 100, 10))
    assert all((it.data == it.height).all() and not it.data.flags.writeable for it in pictures)
    some = list(recording.messages(["/chatter", "/scan"], start=START + 4.95, end=START + 5.15))
    assert [(it.topic, type(it.message).__name__) for it in some] == [
        ("/chatter", "String"),
        ("/scan", "LaserScan"),
        ("/chatter", "String"),
    ]
    assert some[1].message.ranges.tolist() == [0.5, 1.5]
    assert String.from_bytes(some[0].data) == some[0].message


def test_classes_are_those_of_the_file(tmp_path):
    own = tsuji.load_text("own_msgs/msg/Reading", "float64 value\nstring unit\n")
    with tsuji.RecordingWriter(tmp_path / "own.mcap") as writer:
        writer.write("/reading", own(value=1.5, unit="m"))
    [read] = tsuji.open(tmp_path / "own.mcap")
    assert isinstance(read.message, own) and read.message == own(value=1.5, unit="m")


def test_topics_have_what_their_publishers_offer(tmp_path):
    sensor = tsuji.QoS(7, reliability="best_effort", durability="transient_local", deadline=1.5)
    with tsuji.RecordingWriter(tmp_path / "it.mcap") as writer:
        writer.add_topic("/map", String, tsuji.QoS.LATCHED)
        writer.add_topic("/empty", "std_msgs/msg/String", sensor)
        writer.add_topic("/depth", String, 3)
        for topic in ("/map", "/plain", "/depth"):
            writer.write(topic, String(data=topic))
        with pytest.raises(ValueError, match="/map is in it with its QoS already"):
            writer.add_topic("/map", String)
    recording = tsuji.open(tmp_path / "it.mcap")
    assert recording.offered_qos == {"/map": [tsuji.QoS.LATCHED], "/empty": [sensor], "/depth": [tsuji.QoS(3)], "/plain": [tsuji.QoS()]}
    assert recording.topics["/empty"] == ("std_msgs/msg/String", 0)


@pytest.mark.parametrize("compression", ["zstd", "lz4", None])
def test_a_writer_that_is_killed_leaves_what_it_wrote(tmp_path, compression):
    body = """
    import sys, time, tsuji
    from tsuji.interfaces.std_msgs.msg import String
    writer = tsuji.RecordingWriter(sys.argv[1], compression=eval(sys.argv[2]))
    for number in range(3):
        writer.write("/chatter", String(data=str(number)))
    print("written", flush=True)
    # Nothing more is written that could take along what was.
    time.sleep(1000)
    """
    path = tmp_path / "it.mcap"
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(body), str(path), repr(compression)], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "written\n"
        until = time.monotonic() + 60
        while len(tsuji.open(path)) < 3:
            assert time.monotonic() < until and child.poll() is None
            time.sleep(0.005)
    finally:
        child.kill()
        child.communicate()
    assert [it.message.data for it in tsuji.open(path)] == ["0", "1", "2"]


def test_a_forked_child_leaves_the_file_alone(tmp_path):
    body = """
    import os, sys, tsuji
    from tsuji.interfaces.std_msgs.msg import String
    writer = tsuji.RecordingWriter(sys.argv[1])
    writer.write("/chatter", String(data="0"))
    child = os.fork()
    if child == 0:
        try:
            writer.write("/chatter", String(data="child"))
        except ValueError as error:
            print("written by another process" in str(error), flush=True)
        del writer
        sys.exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    writer.write("/chatter", String(data="1"))
    writer.close()
    """
    path = tmp_path / "it.mcap"
    arguments = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(body), str(path)]
    child = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
    assert (child.returncode, child.stdout, child.stderr) == (0, "True\n0\n", "")
    recording = tsuji.open(path)
    assert recording.damages == [] and [it.message.data for it in recording] == ["0", "1"]


def test_what_is_wrong_is_told(path, tmp_path):
    with pytest.raises(FileNotFoundError, match="none.mcap"):
        tsuji.open(tmp_path / "none.mcap")
    with pytest.raises(FileExistsError, match="it exists"):
        tsuji.RecordingWriter(path)
    with pytest.raises(LookupError, match="no topic /none; allowed: /chatter, /image, /scan"):
        tsuji.open(path).messages("/none")
    with pytest.raises(ValueError, match="compression"):
        tsuji.RecordingWriter(tmp_path / "x.mcap", compression="rar")
    (tmp_path / "odd.mcap").write_bytes(b"no recording")
    with pytest.raises(ValueError):
        tsuji.open(tmp_path / "odd.mcap")
    writer = tsuji.RecordingWriter(tmp_path / "closed.mcap")
    writer.close()
    with pytest.raises(ValueError, match="it is closed"):
        writer.write("/t", String())
    with pytest.raises(TypeError):
        writer.write("/t", "text")


def test_a_file_that_was_cut(path, tmp_path):
    cut = tmp_path / "cut.mcap"
    cut.write_bytes(path.read_bytes()[:-200])
    recording = tsuji.open(cut)
    assert recording.damages and len([it.message for it in recording]) == 111


def test_times_are_exact(tmp_path):
    for first in (1_700_000_000_123_456_789, 1_700_000_000_987_654_321):
        path = tmp_path / f"{first}.mcap"
        with tsuji.RecordingWriter(path) as writer:
            for number in range(3):
                writer.write("/t", String(data=str(number)), time_ns=first + number * 1_000_000_007)
        recording = tsuji.open(path)
        read = list(recording.messages(start=recording.start, end=recording.end))
        assert [it.time_ns - first for it in read] == [0, 1_000_000_007, 2_000_000_014]


def test_a_file_that_is_another_by_now(tmp_path):
    path = tmp_path / "it.mcap"
    with tsuji.RecordingWriter(path) as writer:
        writer.write("/a", String(data="a"))
    recording = tsuji.open(path)
    path.unlink()
    with tsuji.RecordingWriter(path) as writer:
        writer.write("/b", String(data="b"))
        writer.write("/a", String(data="a"))
    assert [(it.topic, it.message.data) for it in recording] == [("/b", "b"), ("/a", "a")]


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_what_is_held_stays_when_the_rest_is_gone(tmp_path, compression, mapped):
    path = tmp_path / "run.mcap"
    with tsuji.RecordingWriter(path, compression=compression) as writer:
        for number in range(20):
            data = numpy.full(500_000, number, dtype=numpy.uint8)
            writer.write("/image", Image(height=500, width=1000, step=1000, encoding="mono8", data=data), time=number + 1)
            writer.write("/level", Float64(data=number / 2), time=number + 1.5)
    held = [(it.topic, it.message) for it in tsuji.open(path, mapped=mapped)]
    path.unlink()
    arrays = [message.data for topic, message in held if topic == "/image"]
    levels = [message for topic, message in held if topic == "/level"]
    del held
    gc.collect()
    assert [(int(it[0]), int(it[-1]), it.size) for it in arrays] == [(number, number, 500_000) for number in range(20)]
    assert [it.data for it in levels] == [number / 2 for number in range(20)]
    assert not arrays[0].flags.writeable


@pytest.mark.parametrize("mapped", [False, True])
def test_a_message_of_a_recording_is_published(tmp_path, make_node, topic, mapped):
    path = tmp_path / "run.mcap"
    ranges = numpy.arange(100_000, dtype=numpy.float32)
    # Names of several lengths let the messages lie at every place in the file.
    frames = ["f" * length for length in range(1, 9)]
    with tsuji.RecordingWriter(path, compression=None) as writer:
        for number, frame in enumerate(frames):
            writer.write("/scan", LaserScan(header=Header(frame_id=frame), ranges=ranges), time=number + 1)
    node = make_node()
    publisher, subscription = node.publisher(topic, LaserScan), node.subscribe(topic, LaserScan)
    publisher.wait_for_subscriptions(timeout=30)
    for it in tsuji.open(path, mapped=mapped):
        publisher.publish(it.message)
        came = subscription.recv(timeout=30)
        assert came.header.frame_id == it.message.header.frame_id
        assert came.ranges.flags.aligned and (came.ranges == ranges).all()
        # And one whose fields were asked for before.
        publisher.publish(it.message)
        assert (subscription.recv(timeout=30).ranges == ranges).all()


def test_a_mapped_file_that_is_made_shorter(tmp_path):
    path = tmp_path / "run.mcap"
    with tsuji.RecordingWriter(path, compression=None) as writer:
        for number in range(20):
            data = numpy.full(500_000, 7, dtype=numpy.uint8)
            writer.write("/image", Image(height=500, width=1000, step=1000, encoding="mono8", data=data), time=number + 1)
    messages = iter(tsuji.open(path, mapped=True))
    first, second = next(messages).message, next(messages).message
    before, after = first.data, second.data
    with open(path, "r+b") as file:
        file.truncate(400_000)
    with pytest.raises(OSError, match="run.mcap.*made shorter"):
        for it in messages:
            it.message.data.sum()
    assert before[0] == 7 and before[-1] == 0 and after.sum() == 0
    with pytest.raises(OSError, match="it is empty"):
        path.write_bytes(b"")
        tsuji.open(path, mapped=True)
