"""Transforms between frames: the buffer, fed without a node, and what stands around it."""

import math
import threading
from types import SimpleNamespace

import pytest
import tf2_geometry_msgs
import tf2_py
import tf2_ros
from builtin_interfaces.msg import Time as TimeMessage
from geometry_msgs.msg import (
    Point32,
    PointStamped,
    PolygonStamped,
    Pose,
    PoseStamped,
    PoseWithCovarianceStamped,
    TransformStamped,
    Vector3Stamped,
    Wrench,
    WrenchStamped,
)
from rclpy.duration import Duration
from rclpy.qos import DurabilityPolicy
from rclpy.time import Time
from tf2_msgs.msg import TFMessage

PATIENCE = Duration(seconds=30)
HALF = math.sqrt(0.5)
QUARTER_LEFT = (0.0, 0.0, HALF, HALF)
QUARTER_RIGHT = (0.0, 0.0, -HALF, HALF)
HALF_AROUND_X = (1.0, 0.0, 0.0, 0.0)


def seconds(value):
    return Time(nanoseconds=round(value * 1e9))


def stamped(parent, child, at=0.0, xyz=(0.0, 0.0, 0.0), turn=(0.0, 0.0, 0.0, 1.0)):
    it = TransformStamped(child_frame_id=child)
    it.header.frame_id = parent
    it.header.stamp = seconds(at).to_msg()
    to, rotation = it.transform.translation, it.transform.rotation
    to.x, to.y, to.z = xyz
    rotation.x, rotation.y, rotation.z, rotation.w = turn
    return it


def filled(*transforms, static=(), **arguments):
    buffer = tf2_ros.Buffer(**arguments)
    for it in transforms:
        assert buffer.set_transform(it, "test") is None
    for it in static:
        assert buffer.set_transform_static(it, "test") is None
    return buffer


def check(transform, xyz, turn=(0.0, 0.0, 0.0, 1.0), at=None):
    to, rotation = transform.transform.translation, transform.transform.rotation
    assert (to.x, to.y, to.z) == pytest.approx(xyz, abs=1e-12)
    assert (rotation.x, rotation.y, rotation.z, rotation.w) == pytest.approx(turn, abs=1e-12)
    if at is not None:
        assert transform.header.stamp == seconds(at).to_msg()


def tree():
    """map → odom → base → laser, and base → camera. In the map the laser is at (1, 2, 0.5), a quarter to the left."""
    return filled(
        stamped("map", "odom", 1, (1, 0, 0), QUARTER_LEFT),
        stamped("odom", "base", 1, (2, 0, 0)),
        static=(stamped("base", "laser", xyz=(0, 0, 0.5)), stamped("base", "camera", xyz=(0.25, 0, 0), turn=HALF_AROUND_X)),
    )


def test_what_was_set_is_found():
    given = stamped("a", "b", 2.5, (1, 2, 3), (0.5, 0.5, 0.5, 0.5))
    buffer = filled(given)
    assert buffer.lookup_transform("a", "b", seconds(2.5)) == given
    assert buffer.lookup_transform("a", "b", TimeMessage(sec=2, nanosec=500_000_000)) == given
    assert buffer.lookup_transform("a", "b", Time()) == given
    assert buffer.lookup_transform_core(target_frame="a", source_frame="b", time=Time()) == given


def test_between_two_samples():
    buffer = filled(stamped("a", "b", 1, (0, 0, 0)), stamped("a", "b", 3, (1, 2, -4), QUARTER_LEFT))
    # A quarter of 90° is 22.5°; the quaternion has half of that.
    check(buffer.lookup_transform("a", "b", seconds(1.5)), (0.25, 0.5, -1), (0, 0, 0.19509032201612825, 0.9807852804032304), 1.5)
    check(buffer.lookup_transform("a", "b", seconds(2)), (0.5, 1, -2), (0, 0, 0.3826834323650898, 0.9238795325112867), 2)
    check(buffer.lookup_transform("a", "b", seconds(1)), (0, 0, 0))
    check(buffer.lookup_transform("a", "b", seconds(3)), (1, 2, -4), QUARTER_LEFT)
    # The inverse of it: -(0.25, 0.5, -1), turned back by 22.5°, which has the cosine 0.92388 and the sine 0.38268.
    check(
        buffer.lookup_transform("b", "a", seconds(1.5)),
        (-0.4223115993103665, -0.36626890816437086, 1),
        (0, 0, -0.19509032201612825, 0.9807852804032304),
    )


def test_between_samples_around_a_slanted_axis():
    # 120° around (1, 1, 1): half of it is sin(30°) / √3 and cos(30°).
    buffer = filled(stamped("a", "b", 0.5), stamped("a", "b", 1.5, turn=(0.5, 0.5, 0.5, 0.5)))
    check(buffer.lookup_transform("a", "b", seconds(1)), (0, 0, 0), (0.28867513459481287,) * 3 + (0.8660254037844387,))


def test_the_shorter_way_is_turned():
    # The same rotation as QUARTER_LEFT.
    buffer = filled(stamped("a", "b", 1), stamped("a", "b", 3, turn=(0, 0, -HALF, -HALF)))
    check(buffer.lookup_transform("a", "b", seconds(2)), (0, 0, 0), (0, 0, 0.3826834323650898, 0.9238795325112867))
    # 170° and -170° meet at 180°.
    there, back = math.radians(85), math.radians(-85)
    buffer = filled(
        stamped("a", "b", 1, turn=(0, 0, math.sin(there), math.cos(there))),
        stamped("a", "b", 3, turn=(0, 0, math.sin(back), math.cos(back))),
    )
    check(buffer.lookup_transform("a", "b", seconds(2)), (0, 0, 0), (0, 0, 1, 0))


def test_samples_in_any_order():
    buffer = filled(*[stamped("a", "b", at, (at * 10, 0, 0)) for at in (3, 1, 4, 2)])
    for at in (1, 1.5, 2.25, 3.75, 4):
        check(buffer.lookup_transform("a", "b", seconds(at)), (at * 10, 0, 0), at=at)


def test_along_a_chain_and_back():
    buffer = tree()
    check(buffer.lookup_transform("map", "laser", seconds(1)), (1, 2, 0.5), QUARTER_LEFT, 1)
    check(buffer.lookup_transform("laser", "map", seconds(1)), (-2, 1, -0.5), QUARTER_RIGHT, 1)
    check(buffer.lookup_transform("odom", "laser", seconds(1)), (2, 0, 0.5))
    check(buffer.lookup_transform("base", "map", seconds(1)), (-2, 1, 0), QUARTER_RIGHT)
    found = buffer.lookup_transform("map", "laser", Time())
    assert (found.header.frame_id, found.child_frame_id) == ("map", "laser")


def test_between_branches():
    buffer = tree()
    check(buffer.lookup_transform("laser", "camera", seconds(1)), (0.25, 0, -0.5), HALF_AROUND_X)
    check(buffer.lookup_transform("camera", "laser", seconds(1)), (-0.25, 0, -0.5), HALF_AROUND_X)
    # The frames above where they meet do not count.
    check(buffer.lookup_transform("laser", "camera", seconds(100)), (0.25, 0, -0.5), HALF_AROUND_X, 100)


def test_each_link_is_interpolated():
    buffer = filled(
        stamped("a", "b", 0.5, (0, 0, 0)),
        stamped("a", "b", 2.5, (4, 0, 0)),
        stamped("b", "c", 1, (0, 0, 0), QUARTER_LEFT),
        stamped("b", "c", 2, (0, 8, 0), QUARTER_LEFT),
        stamped("c", "d", 1.25, (1, 0, 0)),
        stamped("c", "d", 1.75, (3, 0, 0)),
    )
    # At 1.5: (2, 0) + (0, 4) + 2 along a quarter to the left.
    check(buffer.lookup_transform("a", "d", seconds(1.5)), (2, 6, 0), QUARTER_LEFT, 1.5)
    check(buffer.lookup_transform("d", "a", seconds(1.5)), (-6, 2, 0), QUARTER_RIGHT, 1.5)


def test_zero_is_the_latest_time_that_all_have():
    buffer = filled(
        stamped("map", "odom", 1, (0, 0, 0)),
        stamped("map", "odom", 5, (4, 0, 0)),
        stamped("odom", "base", 2),
        stamped("odom", "base", 3, (0, 1, 0)),
        static=[stamped("base", "laser", xyz=(0, 0, 1))],
    )
    check(buffer.lookup_transform("map", "laser", Time()), (2, 1, 1), at=3)
    check(buffer.lookup_transform("laser", "map", Time()), (-2, -1, -1), at=3)
    check(buffer.lookup_transform("map", "odom", Time()), (4, 0, 0), at=5)
    check(buffer.lookup_transform("base", "laser", Time()), (0, 0, 1), at=0)
    assert buffer.get_latest_common_time("map", "laser") == seconds(3)
    assert buffer.get_latest_common_time("odom", "map") == seconds(5)
    assert buffer.get_latest_common_time("laser", "base") == Time()
    assert buffer.get_latest_common_time("odom", "odom") == seconds(5)
    assert buffer.get_latest_common_time("map", "map") == Time()


def test_latest_common_time_of_branches():
    buffer = filled(
        stamped("root", "base", 9),
        stamped("base", "left", 4),
        stamped("left", "hand", 6),
        stamped("base", "right", 3),
        stamped("right", "eye", 7),
    )
    assert buffer.get_latest_common_time("hand", "right") == seconds(3)
    assert buffer.get_latest_common_time("hand", "base") == seconds(4)
    assert buffer.get_latest_common_time("eye", "right") == seconds(7)
    with pytest.raises(tf2_ros.LookupException, match='^"x" passed to get_latest_common_time does not exist. $'):
        buffer.get_latest_common_time("x", "hand")
    buffer.set_transform(stamped("elsewhere", "thing", 1), "test")
    with pytest.raises(tf2_ros.TransformException, match="two or more unconnected trees"):
        buffer.get_latest_common_time("thing", "hand")


def test_a_frame_in_itself():
    buffer = filled(stamped("a", "b", 4, (1, 1, 1)))
    check(buffer.lookup_transform("b", "b", seconds(77)), (0, 0, 0), at=77)
    check(buffer.lookup_transform("b", "b", Time()), (0, 0, 0), at=4)
    check(buffer.lookup_transform("nobody", "nobody", Time()), (0, 0, 0), at=0)
    assert buffer.can_transform("nobody", "nobody", seconds(1), return_debug_tuple=True) == (True, "")


def test_static_is_valid_at_any_time():
    buffer = filled(static=[stamped("a", "b", 50, (1, 2, 3))])
    for at in (0, 1, 50, 1e9):
        check(buffer.lookup_transform("a", "b", seconds(at)), (1, 2, 3), at=at)
    buffer.set_transform_static(stamped("a", "b", 10, (4, 5, 6)), "test")
    check(buffer.lookup_transform("a", "b", seconds(50)), (4, 5, 6))


def test_static_takes_the_place_of_the_others_and_the_other_way_round():
    buffer = filled(stamped("a", "b", 1, (1, 0, 0)), stamped("a", "b", 2, (2, 0, 0)))
    buffer.set_transform_static(stamped("a", "b", xyz=(3, 0, 0)), "test")
    check(buffer.lookup_transform("a", "b", seconds(1)), (3, 0, 0))
    buffer.set_transform(stamped("a", "b", 7, (4, 0, 0)), "test")
    check(buffer.lookup_transform("a", "b", seconds(7)), (4, 0, 0))
    assert not buffer.can_transform("a", "b", seconds(1))


def test_a_frame_that_gets_another_parent():
    buffer = filled(
        stamped("a", "b", 1, (1, 0, 0)), stamped("c", "b", 3, (5, 0, 0)), stamped("c", "b", 5, (7, 0, 0)), static=[stamped("c", "a")]
    )
    # Not interpolated from one parent to another.
    check(buffer.lookup_transform("a", "b", seconds(2)), (1, 0, 0))
    check(buffer.lookup_transform("c", "b", seconds(4)), (6, 0, 0))


def test_of_two_at_the_same_time_the_last_counts():
    buffer = filled(stamped("a", "b", 1, (1, 0, 0)), stamped("a", "b", 1, (2, 0, 0)), stamped("a", "b", 1, (2, 0, 0)))
    check(buffer.lookup_transform("a", "b", Time()), (2, 0, 0))
    assert "rate: 20000.000" in buffer.all_frames_as_yaml()


def test_from_one_time_to_another():
    # A thing seen from the car at 1 s, in the frame that the car has at 3 s.
    buffer = filled(
        stamped("map", "car", 1, (0, 0, 0)),
        stamped("map", "car", 3, (10, 0, 0), QUARTER_LEFT),
        static=[stamped("car", "camera", xyz=(1, 0, 0))],
    )
    check(buffer.lookup_transform_full("car", seconds(3), "car", seconds(1), "map"), (0, 10, 0), QUARTER_RIGHT, 3)
    check(buffer.lookup_transform_full("car", seconds(3), "camera", seconds(1), "map"), (0, 9, 0), QUARTER_RIGHT, 3)
    check(buffer.lookup_transform_full("map", Time(), "camera", seconds(1), "map", timeout=PATIENCE), (1, 0, 0))
    assert buffer.can_transform_full("car", seconds(3), "camera", seconds(1), "map")
    assert buffer.can_transform_full("car", seconds(3), "camera", seconds(9), "map", return_debug_tuple=True) == (
        False,
        FUTURE.replace("3.500000", "9.000000") + ", when looking up transform from frame [camera] to frame [map]",
    )
    assert buffer.can_transform_full("car", Time(), "camera", Time(), "moon", return_debug_tuple=True) == (
        False,
        'Invalid frame ID "moon" passed to canTransform argument fixed_frame - frame does not exist',
    )
    with pytest.raises(tf2_ros.LookupException, match='^"moon" passed to lookupTransform argument fixed_frame does not exist. $'):
        buffer.lookup_transform_full("car", Time(), "camera", Time(), "moon")


TWO = (stamped("a", "b", 1), stamped("a", "b", 3))
ONE = (stamped("a", "b", 1),)
UNCONNECTED = (
    "Could not find a connection between 'a' and 'd' because they are not part of the same tree.Tf has two or more unconnected trees."
)
PLACE = ", when looking up transform from frame [b] to frame [a]"
FUTURE = "Lookup would require extrapolation into the future.  Requested time 3.500000 but the latest data is at time 3.000000"
PAST = "Lookup would require extrapolation into the past.  Requested time 0.500000 but the earliest data is at time 1.000000"
ONLY = "Lookup would require extrapolation at time 1.500000, but only time 1.000000 is in the buffer"


@pytest.mark.parametrize(
    ("transforms", "target", "source", "at", "error", "text"),
    [
        (ONE, "x", "b", 0, tf2_py.LookupException, '"x" passed to lookupTransform argument target_frame does not exist. '),
        (ONE, "a", "x", 0, tf2_py.LookupException, '"x" passed to lookupTransform argument source_frame does not exist. '),
        (
            ONE,
            "",
            "b",
            0,
            tf2_py.InvalidArgumentException,
            'Invalid argument "" passed to lookupTransform argument target_frame - in tf2 frame_ids cannot be empty',
        ),
        (
            ONE,
            "a",
            "/b",
            0,
            tf2_py.InvalidArgumentException,
            "Invalid argument \"/b\" passed to lookupTransform argument source_frame - in tf2 frame_ids cannot start with a '/'",
        ),
        ((*ONE, stamped("c", "d", 1)), "a", "d", 0, tf2_py.ConnectivityException, UNCONNECTED),
        ((*ONE, stamped("c", "d", 1)), "a", "d", 1, tf2_py.ConnectivityException, UNCONNECTED),
        (TWO, "a", "b", 3.5, tf2_py.ExtrapolationException, FUTURE + PLACE),
        (TWO, "a", "b", 0.5, tf2_py.ExtrapolationException, PAST + PLACE),
        (ONE, "a", "b", 1.5, tf2_py.ExtrapolationException, ONLY + PLACE),
        (TWO, "b", "a", 3.5, tf2_py.ExtrapolationException, FUTURE + ", when looking up transform from frame [a] to frame [b]"),
        # The link without data is above the other one, and below.
        (
            (*TWO, stamped("b", "c", 3.5)),
            "a",
            "c",
            3.5,
            tf2_py.ExtrapolationException,
            FUTURE + ", when looking up transform from frame [c] to frame [a]",
        ),
        (
            (*TWO, stamped("b", "c", 3.5)),
            "c",
            "a",
            3.5,
            tf2_py.ExtrapolationException,
            FUTURE + ", when looking up transform from frame [a] to frame [c]",
        ),
    ],
)
def test_errors(transforms, target, source, at, error, text):
    buffer = filled(*transforms)
    with pytest.raises(tf2_py.TransformException) as raised:
        buffer.lookup_transform(target, source, seconds(at))
    assert raised.type is error and str(raised.value) == text
    can, why = buffer.can_transform(target, source, seconds(at), return_debug_tuple=True)
    assert can is False
    if error in (tf2_py.ConnectivityException, tf2_py.ExtrapolationException):
        assert why == text


@pytest.mark.parametrize(
    ("frame", "reason"),
    [("x", "frame does not exist"), ("", "in tf2 frame_ids cannot be empty"), ("/a", "in tf2 frame_ids cannot start with a '/'")],
)
def test_why_it_cannot_be(frame, reason):
    buffer = filled(*ONE)
    for argument, frames in (("target_frame", (frame, "b")), ("source_frame", ("a", frame))):
        text = f'Invalid frame ID "{frame}" passed to canTransform argument {argument} - {reason}'
        assert buffer.can_transform_core(*frames, Time()) == (False, text)


def test_wrong_arguments():
    buffer = filled(*ONE)
    with pytest.raises(TypeError, match="time must have sec and nanosec, or nanoseconds"):
        buffer.lookup_transform("a", "b", 5)
    with pytest.raises(TypeError, match="duration must have"):
        tf2_py.BufferCore(5)


def test_all_errors_are_transform_exceptions():
    for name in ("Lookup", "Connectivity", "Extrapolation", "InvalidArgument", "Timeout"):
        kind = getattr(tf2_ros, f"{name}Exception")
        assert issubclass(kind, tf2_ros.TransformException) and kind is getattr(tf2_py, f"{name}Exception")


def test_a_loop_is_an_error():
    buffer = filled(stamped("a", "b", 1), stamped("b", "c", 1), stamped("c", "a", 1), stamped("x", "y", 1))
    for at in (0, 1):
        with pytest.raises(
            tf2_py.LookupException, match="^The tf tree is invalid because it contains a loop.\nFrame b exists with parent a"
        ):
            buffer.lookup_transform("y", "a", seconds(at))
        with pytest.raises(tf2_py.LookupException, match="contains a loop"):
            buffer.lookup_transform("a", "y", seconds(at))


def test_slashes_before_names_are_taken_away_when_set():
    buffer = filled(stamped("/a", "/b", 1))
    assert buffer.can_transform("a", "b", Time())
    assert buffer._getFrameStrings() == ["b", "a"] and buffer._frameExists("a") and not buffer._frameExists("/a")


@pytest.mark.parametrize(
    ("transform", "text"),
    [
        (stamped("a", "/a"), "TF_SELF_TRANSFORM"),
        (stamped("a", ""), "TF_NO_CHILD_FRAME_ID"),
        (stamped("/", "b"), "TF_NO_FRAME_ID"),
        (stamped("a", "b", xyz=(0, math.nan, 0)), "TF_NAN_INPUT"),
        (stamped("a", "b", turn=(0, 0, 0, math.nan)), "TF_NAN_INPUT"),
        (stamped("a", "b", turn=(0, 0, 0, 0)), "TF_DENORMALIZED_QUATERNION"),
        (stamped("a", "b", turn=(0, 0, 0, 1.01)), "TF_DENORMALIZED_QUATERNION"),
    ],
)
def test_what_cannot_be_is_ignored_and_logged(monkeypatch, transform, text):
    errors = []
    monkeypatch.setattr(tf2_py, "_logger", lambda: SimpleNamespace(error=errors.append))
    assert filled(transform)._getFrameStrings() == []
    assert errors[0].startswith(text) and '"test"' in errors[0]


def test_a_quaternion_that_is_nearly_one_becomes_one():
    buffer = filled(stamped("a", "b", 1, turn=(0, 0, 0, 1.001)), stamped("b", "c", 1, (1, 0, 0)))
    check(buffer.lookup_transform("a", "c", Time()), (1, 0, 0))


def test_old_samples_go(monkeypatch):
    warnings = []
    monkeypatch.setattr(tf2_py, "_logger", lambda: SimpleNamespace(warning=warnings.append))
    buffer = filled(*[stamped("a", "b", at, (at, 0, 0)) for at in (1, 2, 5)], cache_time=Duration(seconds=2))
    # It is the sample before the last that decides.
    check(buffer.lookup_transform("a", "b", seconds(1)), (1, 0, 0))
    buffer.set_transform(stamped("a", "b", 5.5, (5.5, 0, 0)), "test")
    with pytest.raises(tf2_py.ExtrapolationException, match="into the past.  Requested time 2.000000 but the earliest data is at time 5.0"):
        buffer.lookup_transform("a", "b", seconds(2))
    assert warnings == []
    buffer.set_transform(stamped("a", "b", 3.25, (0, 0, 0)), "somebody")
    assert len(warnings) == 1 and warnings[0].startswith(
        "TF_OLD_DATA ignoring data from the past for frame b at time 3.250000 according to authority somebody\n"
    )
    buffer.set_transform(stamped("a", "b", 3.5, (3.5, 0, 0)), "test")
    check(buffer.lookup_transform("a", "b", seconds(4)), (4, 0, 0))


def test_samples_are_kept_for_ten_seconds_unless_told_otherwise():
    buffer = filled(*[stamped("a", "b", at) for at in range(1, 31)])
    assert buffer.can_transform("a", "b", seconds(19.5))
    assert not buffer.can_transform("a", "b", seconds(18.5))


def test_clear_keeps_static_ones_and_names():
    buffer = tree()
    buffer.clear()
    check(buffer.lookup_transform("base", "laser", Time()), (0, 0, 0.5))
    with pytest.raises(tf2_py.ConnectivityException):
        buffer.lookup_transform("map", "base", Time())
    with pytest.raises(tf2_py.ExtrapolationException, match="at time 1.000000, but only time 0.000000 is in the buffer, when looking up"):
        buffer.lookup_transform("map", "base", seconds(1))
    assert "Frame odom exists with parent NO_PARENT." in buffer.all_frames_as_string()
    buffer.set_transform(stamped("odom", "base", 0.5, (3, 0, 0)), "test")
    check(buffer.lookup_transform("odom", "laser", Time()), (3, 0, 0.5), at=0.5)


def test_frames_as_text():
    assert tf2_py.BufferCore().all_frames_as_yaml() == "[]" and tf2_py.BufferCore().all_frames_as_string() == ""
    buffer = filled(*[stamped("a", "b", at) for at in (1, 1.5, 2, 3)], static=[stamped("b", "c")])
    assert buffer.all_frames_as_string() == "Frame b exists with parent a.\nFrame c exists with parent b.\n"
    assert buffer.all_frames_as_yaml() == (
        "b: \n  parent: 'a'\n  broadcaster: 'test'\n  rate: 2.000\n  most_recent_transform: 3.000000\n"
        "  oldest_transform: 1.000000\n  buffer_length: 2.000\n"
        "c: \n  parent: 'b'\n  broadcaster: 'test'\n  rate: 10000.000\n  most_recent_transform: 0.000000\n"
        "  oldest_transform: 0.000000\n  buffer_length: 0.000\n"
    )


def test_waiting_for_one_that_comes():
    buffer = filled(stamped("a", "b", 1))
    later = threading.Timer(0.05, lambda: [buffer.set_transform(stamped("a", "b", at, (at, 0, 0)), "test") for at in (2, 3)])
    later.start()
    check(buffer.lookup_transform("a", "b", seconds(2.5), PATIENCE), (2.5, 0, 0))
    later.join()

    later = threading.Timer(0.05, lambda: buffer.set_transform_static(stamped("b", "c"), "test"))
    later.start()
    assert buffer.can_transform("a", "c", seconds(3), timeout=PATIENCE)
    later.join()


def test_waiting_for_one_that_does_not_come():
    buffer = filled(stamped("a", "b", 1))
    assert not buffer.can_transform("a", "b", seconds(2), Duration(seconds=0.02))
    assert not buffer.can_transform_full("a", seconds(2), "b", seconds(2), "a", Duration(seconds=0.02))
    with pytest.raises(tf2_ros.ExtrapolationException):
        buffer.lookup_transform("a", "b", seconds(2), Duration(seconds=0.02))


def test_futures():
    buffer = tf2_ros.Buffer()
    futures = [buffer.wait_for_transform_async("a", "b", seconds(1)) for _ in range(2)]
    full = buffer.wait_for_transform_full_async("a", seconds(1), "b", seconds(1), "a")
    never = buffer.wait_for_transform_async("a", "x", seconds(1))
    again = []
    futures[0].add_done_callback(lambda _: again.append(buffer.wait_for_transform_async("a", "b", seconds(2))))
    futures[1].cancel()
    buffer.set_transform(stamped("a", "b", 5), "test")
    assert not futures[0].done()
    buffer.set_transform(stamped("a", "b", 1, (1, 0, 0)), "test")
    check(futures[0].result(), (1, 0, 0), at=1)
    check(full.result(), (1, 0, 0), at=1)
    assert futures[1].cancelled() and not never.done()
    check(again[0].result(), (0.75, 0, 0), at=2)
    check(buffer.wait_for_transform_async("a", "b", Time()).result(), (0, 0, 0), at=5)


def test_coroutines():
    buffer = tf2_ros.Buffer()
    coroutines = [
        buffer.lookup_transform_async("a", "b", seconds(1)),
        buffer.lookup_transform_full_async("a", seconds(1), "b", seconds(1), "a"),
    ]
    for it in coroutines:
        it.send(None)
    buffer.set_transform(stamped("a", "b", 1, (1, 0, 0)), "test")
    for it in coroutines:
        with pytest.raises(StopIteration) as end:
            it.send(None)
        check(end.value.value, (1, 0, 0))


def test_threads():
    buffer, failed, go_on = tf2_ros.Buffer(), [], threading.Event()
    go_on.set()
    buffer.set_transform_static(stamped("b", "c", xyz=(1, 0, 0)), "test")
    buffer.set_transform(stamped("a", "b", 1), "test")

    def look():
        while go_on.is_set():
            found = buffer.lookup_transform("a", "c", Time())
            at = found.header.stamp.sec + found.header.stamp.nanosec / 1e9
            if found.transform.translation.x != pytest.approx(at):
                failed.append(found)

    threads = [threading.Thread(target=look) for _ in range(2)]
    for it in threads:
        it.start()
    for number in range(8, 2000):
        buffer.set_transform(stamped("a", "b", number / 8, (number / 8 - 1, 0, 0)), "test")
    go_on.clear()
    for it in threads:
        it.join()
    assert failed == []


def at_two(message, frame="a"):
    message.header.frame_id = frame
    message.header.stamp = seconds(2).to_msg()
    return message


def numbers(message, names="xyz"):
    return pytest.approx([getattr(message, it) for it in names], abs=1e-12)


def test_data_is_transformed():
    buffer = filled(stamped("a", "b", 2, (1, 0, 0), HALF_AROUND_X))
    point = at_two(PointStamped())
    point.point.x, point.point.y, point.point.z = 1.0, 2.0, 3.0
    result = buffer.transform(point, "b")
    assert numbers(result.point) == [0, -2, -3] and result.header.frame_id == "b"
    assert result.header.stamp == point.header.stamp and point.point.x == 1
    assert numbers(buffer.transform(point, "b", new_type=PointStamped).point) == [0, -2, -3]
    assert numbers(buffer.transform_full(point, "b", seconds(2), "a", timeout=PATIENCE).point) == [0, -2, -3]
    assert buffer.transform(point, "a").point == point.point
    with pytest.raises(tf2_ros.ExtrapolationException):
        point.header.stamp = seconds(3).to_msg()
        buffer.transform(point, "b")
    with pytest.raises(tf2_ros.TypeException, match="is not loaded or supported"):
        buffer.transform(stamped("a", "b"), "b")


def test_poses():
    buffer = filled(stamped("a", "b", 2, (1, 0, 0), HALF_AROUND_X))
    pose = at_two(PoseStamped())
    position, turn = pose.pose.position, pose.pose.orientation
    position.x, position.y, position.z = 1.0, 2.0, 3.0
    turn.x, turn.y, turn.z, turn.w = HALF_AROUND_X
    result = buffer.transform(pose, "b")
    assert numbers(result.pose.position) == [0, -2, -3] and numbers(result.pose.orientation, "xyzw") == [0, 0, 0, 1]

    turned = tf2_geometry_msgs.do_transform_pose(Pose(position=position), stamped("a", "b", 0, (1, 1, 1), QUARTER_LEFT))
    assert numbers(turned.position) == [-1, 2, 4] and numbers(turned.orientation, "xyzw") == list(QUARTER_LEFT)

    wide = at_two(PoseWithCovarianceStamped())
    wide.pose.pose = pose.pose
    wide.pose.covariance = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0] * 6
    result = buffer.transform(wide, "b")
    assert numbers(result.pose.pose.position) == [0, -2, -3]
    # Half a turn around x changes the signs of y and z, in the rows and in the columns.
    signs = [1, -1, -1] * 2
    expected = [signs[row] * signs[column] * (column + 1) for row in range(6) for column in range(6)]
    assert list(result.pose.covariance) == pytest.approx(expected, abs=1e-12)


def test_covariance_by_a_quarter():
    given = [0.0] * 36
    given[0], given[7], given[14], given[21], given[5] = 1.0, 4.0, 9.0, 16.0, 2.0
    result = tf2_geometry_msgs.transform_covariance(given, stamped("a", "b", turn=QUARTER_LEFT))
    expected = [0.0] * 36
    # x becomes y, and y becomes -x: the variances change places, and so does what binds x to the turn around z.
    expected[0], expected[7], expected[14], expected[28], expected[11] = 4, 1, 9, 16, 2
    assert result == pytest.approx(expected, abs=1e-12)


def test_vectors_are_only_turned():
    transform = stamped("a", "b", 2, (1, 2, 3), QUARTER_LEFT)
    vector = Vector3Stamped()
    vector.vector.x = 2.0
    result = tf2_geometry_msgs.do_transform_vector3(vector, transform)
    assert numbers(result.vector) == [0, 2, 0] and result.header == transform.header
    assert transform.transform.translation.x == 1


def test_wrenches_get_the_torque_of_the_lever():
    transform = stamped("a", "b", 2, (0, 0, 2), QUARTER_LEFT)
    wrench = Wrench()
    wrench.force.x, wrench.torque.z = 3.0, 1.0
    result = tf2_geometry_msgs.do_transform_wrench(wrench, transform)
    # The force is along y then; 2 above the origin it turns around -x.
    assert numbers(result.force) == [0, 3, 0] and numbers(result.torque) == [-6, 0, 1]
    result = filled(transform).transform(at_two(WrenchStamped(wrench=wrench), "b"), "a")
    assert numbers(result.wrench.torque) == [-6, 0, 1] and result.header.frame_id == "a"


def test_polygons():
    polygon = PolygonStamped()
    polygon.polygon.points = [Point32(x=1.0), Point32(y=1.0)]
    result = tf2_geometry_msgs.do_transform_polygon_stamped(polygon, stamped("a", "b", 2, (5, 0, 0), QUARTER_LEFT))
    assert [(it.x, it.y, it.z) for it in result.polygon.points] == [pytest.approx(it, abs=1e-6) for it in ((5, 1, 0), (4, 0, 0))]


class Length(float):
    pass


def test_own_types():
    tf2_ros.TransformRegistration().add(Length, lambda it, transform: Length(it + transform.transform.translation.x))
    tf2_ros.ConvertRegistration().add_to_msg(Length, lambda it: PointStamped())
    tf2_ros.ConvertRegistration().add_convert((Length, str), lambda it: f"{it} m")
    length = tf2_ros.Stamped(Length(2), TimeMessage(sec=1), "b")
    buffer = filled(stamped("a", "b", 1, (5, 0, 0)))
    assert buffer.transform(length, "a") == 7
    assert buffer.transform(length, "a", new_type=str) == "7.0 m"
    assert isinstance(buffer.transform(length, "a", new_type=PointStamped), PointStamped)
    copy = tf2_ros.convert(length, Length)
    assert copy == 2 and copy is not length
    with pytest.raises(tf2_ros.TypeException):
        tf2_ros.convert(length, int)


def test_an_interface_without_methods():
    interface = tf2_ros.BufferInterface()
    for ask in (
        lambda: interface.lookup_transform("a", "b", Time()),
        lambda: interface.lookup_transform_full("a", Time(), "b", Time(), "c"),
        lambda: interface.can_transform("a", "b", Time()),
        lambda: interface.can_transform_full("a", Time(), "b", Time(), "c"),
    ):
        with pytest.raises(tf2_ros.NotImplementedException):
            ask()


class Node:
    """Notes what is asked of it."""

    def __init__(self):
        self.topics, self.published, self.subscriptions = {}, [], {}

    def create_publisher(self, of_type, topic, qos):
        assert of_type is TFMessage
        self.topics[topic] = qos
        return SimpleNamespace(publish=lambda message: self.published.append([it.child_frame_id for it in message.transforms]))

    def create_subscription(self, of_type, topic, callback, qos, *, callback_group):
        assert of_type is TFMessage
        self.topics[topic] = qos
        self.subscriptions[topic] = callback
        return topic

    def destroy_subscription(self, topic):
        del self.subscriptions[topic]


def test_broadcaster():
    node = Node()
    broadcaster = tf2_ros.TransformBroadcaster(node)
    broadcaster.sendTransform(stamped("a", "b"))
    broadcaster.sendTransform([stamped("a", "b"), stamped("a", "c")])
    broadcaster.sendTransform(it for it in (stamped("a", "d"),))
    assert node.published == [["b"], ["b", "c"], ["d"]] and node.topics["/tf"].depth == 100
    tf2_ros.TransformBroadcaster(node, 7)
    assert node.topics["/tf"] == 7


def test_static_broadcaster_sends_all_that_it_was_given():
    node = Node()
    broadcaster = tf2_ros.StaticTransformBroadcaster(node)
    given = stamped("a", "b", xyz=(1, 0, 0))
    broadcaster.sendTransform(given)
    given.child_frame_id = "c"
    broadcaster.sendTransform(given)
    broadcaster.sendTransform([stamped("a", "d"), stamped("a", "b", xyz=(2, 0, 0))])
    assert node.published == [["b"], ["b", "c"], ["b", "c", "d"]]
    assert [it.transform.translation.x for it in broadcaster.net_message.transforms] == [2, 1, 0]
    assert node.topics["/tf_static"].durability == DurabilityPolicy.TRANSIENT_LOCAL


def test_listener():
    node, buffer = Node(), tf2_ros.Buffer()
    listener = tf2_ros.TransformListener(buffer, node)
    assert node.topics["/tf"].depth == node.topics["/tf_static"].depth == 100
    assert node.topics["/tf_static"].durability == DurabilityPolicy.TRANSIENT_LOCAL
    assert node.topics["/tf"].durability == DurabilityPolicy.VOLATILE
    node.subscriptions["/tf"](TFMessage(transforms=[stamped("a", "b", 1), stamped("a", "b", 2, (2, 0, 0))]))
    node.subscriptions["/tf_static"](TFMessage(transforms=[stamped("b", "c", xyz=(0, 1, 0))]))
    check(buffer.lookup_transform("a", "c", seconds(1.5)), (1, 1, 0))
    listener.unregister()
    listener.unregister()
    assert node.subscriptions == {}


def test_listener_of_other_topics():
    node = Node()
    listener = tf2_ros.TransformListener(tf2_ros.Buffer(), node, static_only=True, static_qos=3, tf_static_topic="/robot/tf_static")
    assert list(node.subscriptions) == ["/robot/tf_static"] and node.topics["/robot/tf_static"] == 3
    listener.unregister()


def test_buffer_answers_with_its_frames_and_is_cleared_when_time_jumps():
    services, jumps = {}, []
    clock = SimpleNamespace(create_jump_callback=lambda threshold, *, post_callback: jumps.append(post_callback))
    node = SimpleNamespace(create_service=lambda of_type, name, answer: services.update({name: answer}), get_clock=lambda: clock)
    buffer = filled(stamped("a", "b", 1), node=node)
    response = services["tf2_frames"](None, SimpleNamespace(frame_yaml=""))
    assert response.frame_yaml == buffer.all_frames_as_yaml() and "parent: 'a'" in response.frame_yaml
    jumps[0](None)
    assert not buffer.can_transform("a", "b", Time())
