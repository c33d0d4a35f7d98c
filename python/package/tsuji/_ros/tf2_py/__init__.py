"""The tree of frames and the transforms between them over time. It knows of no node and no topic."""

import math
import threading
from bisect import bisect_right
from typing import NamedTuple

from geometry_msgs.msg import TransformStamped

from . import _rotation

__all__ = [
    "BufferCore",
    "ConnectivityException",
    "ExtrapolationException",
    "InvalidArgumentException",
    "LookupException",
    "TimeoutException",
    "TransformException",
]

_SECOND = 1_000_000_000
_CACHE_NS = 10 * _SECOND
_DEPTH_MAX = 1000
_NORM_TOLERANCE = 10e-3


class TransformException(Exception):
    """What every error of a transform is."""


class ConnectivityException(TransformException):
    """The two frames are not in the same tree."""


class LookupException(TransformException):
    """A frame is not known."""


class ExtrapolationException(TransformException):
    """The time is not between times for which there are transforms."""


class InvalidArgumentException(TransformException):
    """A name that no frame can have."""


class TimeoutException(TransformException):
    """It was not there in time."""


class BufferCore:
    """Keeps transforms and answers with the one between any two frames. Any thread may call it.

    A frame's transforms are kept for `cache_time`, 10 s unless given, before the newest of them; static ones are kept for ever. Frames are
    never forgotten.
    """

    def __init__(self, cache_time=None):
        self._cache_ns = _CACHE_NS if cache_time is None else _nanoseconds(cache_time, "duration")
        # None for a frame that is only a parent.
        self._histories = {}
        self._authorities = {}
        self._histories_lock = threading.RLock()

    def set_transform(self, transform, authority):
        """Adds a transform. One that cannot be is ignored, with what is wrong in the log."""
        self._insert(transform, authority, is_static=False)

    def set_transform_static(self, transform, authority):
        """Adds a transform that is valid at any time."""
        self._insert(transform, authority, is_static=True)

    def lookup_transform_core(self, target_frame, source_frame, time):
        """The transform that takes data from the source frame to the target frame. The time 0 is the latest that both have."""
        time = _nanoseconds(time)
        with self._histories_lock:
            return _message(target_frame, source_frame, *self._lookup(target_frame, source_frame, time))

    def lookup_transform_full_core(self, target_frame, target_time, source_frame, source_time, fixed_frame):
        """The transform from the source frame at one time to the target frame at another, `fixed_frame` being where it was in between."""
        target_time, source_time = _nanoseconds(target_time), _nanoseconds(source_time)
        with self._histories_lock:
            self._require("lookupTransform argument target_frame", target_frame)
            self._require("lookupTransform argument source_frame", source_frame)
            self._require("lookupTransform argument fixed_frame", fixed_frame)
            first, _ = self._lookup(fixed_frame, source_frame, source_time)
            second, time = self._lookup(target_frame, fixed_frame, target_time)
            return _message(target_frame, source_frame, _chained(second, first), time)

    def can_transform_core(self, target_frame, source_frame, time):
        """Whether `lookup_transform_core` would answer, and if not, why."""
        time = _nanoseconds(time)
        if target_frame == source_frame:
            return True, ""
        with self._histories_lock:
            try:
                self._require_for_can(target_frame=target_frame, source_frame=source_frame)
                self._path(target_frame, source_frame, time)
            except TransformException as error:
                return False, str(error)
        return True, ""

    def can_transform_full_core(self, target_frame, target_time, source_frame, source_time, fixed_frame):
        """Whether `lookup_transform_full_core` would answer, and if not, why."""
        target_time, source_time = _nanoseconds(target_time), _nanoseconds(source_time)
        with self._histories_lock:
            try:
                self._require_for_can(target_frame=target_frame, source_frame=source_frame, fixed_frame=fixed_frame)
                self._path(target_frame, fixed_frame, target_time)
                self._path(fixed_frame, source_frame, source_time)
            except TransformException as error:
                return False, str(error)
        return True, ""

    def get_latest_common_time(self, target_frame, source_frame):
        """The latest time for which there is a transform between the two frames; 0 if it is static."""
        from rclpy.time import Time

        with self._histories_lock:
            self._require("get_latest_common_time", target_frame)
            self._require("get_latest_common_time", source_frame)
            try:
                return Time(nanoseconds=self._latest_common_time(target_frame, source_frame))
            except TransformException as error:
                raise TransformException(str(error)) from None

    def clear(self):
        """Forgets all transforms but the static ones."""
        with self._histories_lock:
            for history in self._histories.values():
                if history is not None:
                    history.clear()

    def all_frames_as_yaml(self):
        with self._histories_lock:
            if not self._histories:
                return "[]"
            return "".join(
                f"{frame}: \n"
                f"  parent: '{history.newest().parent}'\n"
                f"  broadcaster: '{self._authorities.get(frame, 'no recorded authority')}'\n"
                f"  rate: {history.length() * _SECOND / max(history.span(), 100_000):.3f}\n"
                f"  most_recent_transform: {_text(history.latest())}\n"
                f"  oldest_transform: {_text(history.latest() - history.span())}\n"
                f"  buffer_length: {history.span() / _SECOND:.3f}\n"
                for frame, history in self._histories.items()
                if history is not None and history.newest() is not None
            )

    def all_frames_as_string(self):
        with self._histories_lock:
            return "".join(
                f"Frame {frame} exists with parent {'NO_PARENT' if history.newest() is None else history.newest().parent}.\n"
                for frame, history in self._histories.items()
                if history is not None
            )

    def _frameExists(self, frame):
        with self._histories_lock:
            return frame in self._histories

    def _getFrameStrings(self):
        with self._histories_lock:
            return list(self._histories)

    def _insert(self, transform, authority, is_static):
        parent, child = transform.header.frame_id.removeprefix("/"), transform.child_frame_id.removeprefix("/")
        translation, rotation = transform.transform.translation, transform.transform.rotation
        translation = (translation.x, translation.y, translation.z)
        rotation = (rotation.x, rotation.y, rotation.z, rotation.w)
        wrong = _what_is_wrong(parent, child, authority, translation, rotation)
        for text in wrong:
            _logger().error(text)
        if wrong:
            return
        stamp = _nanoseconds(transform.header.stamp)
        sample = _Sample(stamp, parent, translation, _rotation.normalize(rotation))
        with self._histories_lock:
            history = self._histories.get(child)
            if history is None or history.is_static != is_static:
                history = self._histories[child] = _Static() if is_static else _History(self._cache_ns)
            self._histories.setdefault(parent, None)
            if history.insert(sample):
                self._authorities[child] = authority
                return
        _logger().warning(
            f"TF_OLD_DATA ignoring data from the past for frame {child} at time {_text(stamp)} according to authority {authority}\n"
            "Possible reasons are listed at http://wiki.ros.org/tf/Errors%20explained"
        )

    def _require(self, argument, frame):
        if not frame:
            raise InvalidArgumentException(f'Invalid argument "{frame}" passed to {argument} - in tf2 frame_ids cannot be empty')
        if frame.startswith("/"):
            raise InvalidArgumentException(f"Invalid argument \"{frame}\" passed to {argument} - in tf2 frame_ids cannot start with a '/'")
        if frame not in self._histories:
            raise LookupException(f'"{frame}" passed to {argument} does not exist. ')

    def _require_for_can(self, **frames):
        for argument, frame in frames.items():
            if not frame:
                reason = "in tf2 frame_ids cannot be empty"
            elif frame.startswith("/"):
                reason = "in tf2 frame_ids cannot start with a '/'"
            elif frame not in self._histories:
                reason = "frame does not exist"
            else:
                continue
            raise LookupException(f'Invalid frame ID "{frame}" passed to canTransform argument {argument} - {reason}')

    def _lookup(self, target, source, time):
        """The translation and rotation, and the time that they are of."""
        if target == source:
            # Frames that nobody knows are where they are too.
            history = self._histories.get(target)
            return (_rotation.ZERO, _rotation.IDENTITY), time if time or history is None else history.latest()
        self._require("lookupTransform argument target_frame", target)
        self._require("lookupTransform argument source_frame", source)
        from_source, from_target, time = self._path(target, source, time)
        pose = _along(from_source, time)
        return _chained(_inverted(_along(from_target, time)), pose) if from_target else pose, time

    def _path(self, target, source, time):
        """The ways up from the source and from the target to where they meet, and the time that 0 stands for."""
        if target == source:
            return [], [], time
        if time == 0:
            time = self._latest_common_time(target, source)
        while_looking = f", when looking up transform from frame [{source}] to frame [{target}]"
        from_source, frame, missing = [], source, None
        while frame != target and (history := self._histories[frame]) is not None:
            try:
                step = history.around(time)
            except ExtrapolationException as error:
                # The target may be below this frame all the same.
                missing = error
                break
            from_source.append(step)
            frame = step[0].parent
            self._refuse_loop(from_source)
        top = frame
        from_target, frame = [], target
        while frame != top:
            if frame == source:
                return [], from_target, time
            if (history := self._histories[frame]) is None:
                break
            try:
                step = history.around(time)
            except ExtrapolationException as error:
                raise ExtrapolationException(f"{error}{while_looking}") from None
            from_target.append(step)
            frame = step[0].parent
            self._refuse_loop(from_target)
        if frame == top:
            return from_source, from_target, time
        if missing is not None:
            raise ExtrapolationException(f"{missing}{while_looking}")
        raise _unconnected(target, source)

    def _latest_common_time(self, target, source):
        if target == source:
            history = self._histories[source]
            return 0 if history is None else history.latest()
        from_source, frame = [], source
        while (newest := self._newest(frame)) is not None:
            from_source.append(newest)
            frame = newest.parent
            if frame == target:
                return _earliest(from_source)
            self._refuse_loop(from_source)
        above_source = {it.parent: number for number, it in enumerate(from_source, 1)}
        from_target, frame = [], target
        while (newest := self._newest(frame)) is not None:
            from_target.append(newest)
            frame = newest.parent
            if frame in above_source:
                return _earliest(from_target + from_source[: above_source[frame]])
            if frame == source:
                return _earliest(from_target)
            self._refuse_loop(from_target)
        raise _unconnected(target, source)

    def _newest(self, frame):
        history = self._histories[frame]
        return None if history is None else history.newest()

    def _refuse_loop(self, steps):
        if len(steps) > _DEPTH_MAX:
            raise LookupException(f"The tf tree is invalid because it contains a loop.\n{self.all_frames_as_string()}\n")


class _Sample(NamedTuple):
    """Where a frame is in its parent frame at one time."""

    stamp: int
    parent: str
    translation: tuple
    rotation: tuple


class _History:
    """Where a frame is over time. The oldest samples go when they are older than the newest by more than `cache_ns`."""

    is_static = False

    def __init__(self, cache_ns):
        self._cache_ns = cache_ns
        self._stamps = []
        self._samples = []

    def insert(self, sample):
        """Returns whether it is not too old to be kept. Of samples of the same time the last that came counts, where only one can."""
        if self._stamps:
            # As tf2 does, by the newest before this one: what was there while nothing came is still there.
            oldest = self._stamps[-1] - self._cache_ns
            expired = next((number for number, stamp in enumerate(self._stamps) if stamp >= oldest), 0)
            del self._stamps[:expired], self._samples[:expired]
            if sample.stamp < oldest:
                return False
        at = bisect_right(self._stamps, sample.stamp)
        if not self._has(sample, at):
            self._stamps.insert(at, sample.stamp)
            self._samples.insert(at, sample)
        return True

    def _has(self, sample, at):
        while at > 0 and self._stamps[at - 1] == sample.stamp:
            at -= 1
            if self._samples[at] == sample:
                return True
        return False

    def clear(self):
        self._stamps.clear()
        self._samples.clear()

    def around(self, time):
        """The sample at this time and None, or the two on both sides of it."""
        if time == 0 and self._stamps:
            return self._samples[-1], None
        if len(self._stamps) < 2 and self._stamps != [time]:
            only = self._stamps[0] if self._stamps else 0
            raise ExtrapolationException(
                f"Lookup would require extrapolation at time {_text(time)}, but only time {_text(only)} is in the buffer"
            )
        earliest, latest = self._stamps[0], self._stamps[-1]
        if time == latest:
            return self._samples[-1], None
        if time == earliest:
            return self._samples[0], None
        if time > latest:
            raise ExtrapolationException(
                "Lookup would require extrapolation into the future.  "
                f"Requested time {_text(time)} but the latest data is at time {_text(latest)}"
            )
        if time < earliest:
            raise ExtrapolationException(
                "Lookup would require extrapolation into the past.  "
                f"Requested time {_text(time)} but the earliest data is at time {_text(earliest)}"
            )
        after = bisect_right(self._stamps, time)
        return self._samples[after - 1], self._samples[after]

    def newest(self):
        return self._samples[-1] if self._samples else None

    def latest(self):
        return self._stamps[-1] if self._stamps else 0

    def span(self):
        return self._stamps[-1] - self._stamps[0] if self._stamps else 0

    def length(self):
        return len(self._stamps)


class _Static:
    """Where a frame is at any time."""

    is_static = True

    def __init__(self):
        self._sample = None

    def insert(self, sample):
        # Without a time, so that it does not count for the latest common one.
        self._sample = sample._replace(stamp=0)
        return True

    def clear(self):
        pass

    def around(self, _time):
        return self._sample, None

    def newest(self):
        return self._sample

    def latest(self):
        return 0

    def span(self):
        return 0

    def length(self):
        return 1


def _along(steps, time):
    """Where the first frame of a way up is in the last one."""
    translation, rotation = _rotation.ZERO, _rotation.IDENTITY
    for step in steps:
        translation, rotation = _chained(_at(step, time), (translation, rotation))
    return translation, rotation


def _at(step, time):
    older, newer = step
    if newer is None or newer.parent != older.parent:
        return older.translation, older.rotation
    ratio = (time - older.stamp) / (newer.stamp - older.stamp)
    return (
        _rotation.between(older.translation, newer.translation, ratio),
        _rotation.slerp(older.rotation, newer.rotation, ratio),
    )


def _chained(second, first):
    translation, rotation = second
    return (
        _rotation.add(_rotation.rotate(rotation, first[0]), translation),
        _rotation.multiply(rotation, first[1]),
    )


def _inverted(pose):
    x, y, z = pose[0]
    rotation = _rotation.conjugate(pose[1])
    return _rotation.rotate(rotation, (-x, -y, -z)), rotation


def _message(target, source, pose, time):
    message = TransformStamped()
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(time, _SECOND)
    message.header.frame_id = target
    message.child_frame_id = source
    to, turn = message.transform.translation, message.transform.rotation
    to.x, to.y, to.z = pose[0]
    turn.x, turn.y, turn.z, turn.w = _with_sign(_rotation.normalize(pose[1]))
    return message


def _with_sign(rotation):
    """Of the two quaternions of a rotation the one that tf2 gives."""
    x, y, z, w = rotation
    decides = w if abs(w) > 0.5 else max(x, y, z, key=abs)
    return (-x, -y, -z, -w) if decides < 0.0 else rotation


def _earliest(samples):
    return min((it.stamp for it in samples if it.stamp), default=0)


def _unconnected(target, source):
    # tf2 has no space between these sentences.
    return ConnectivityException(
        f"Could not find a connection between '{target}' and '{source}' because they are not part of the same tree."
        "Tf has two or more unconnected trees."
    )


def _what_is_wrong(parent, child, authority, translation, rotation):
    wrong = []
    if child == parent:
        wrong.append(
            f'TF_SELF_TRANSFORM: Ignoring transform from authority "{authority}" with frame_id and child_frame_id "{child}" '
            "because they are the same"
        )
    if not child:
        wrong.append(f'TF_NO_CHILD_FRAME_ID: Ignoring transform from authority "{authority}" because child_frame_id not set ')
    if not parent:
        wrong.append(
            f'TF_NO_FRAME_ID: Ignoring transform with child_frame_id "{child}" from authority "{authority}" because frame_id not set'
        )
    if any(math.isnan(it) for it in translation + rotation):
        wrong.append(
            f'TF_NAN_INPUT: Ignoring transform for child_frame_id "{child}" from authority "{authority}" '
            f"because of a nan value in the transform {_numbers(translation)} {_numbers(rotation)}"
        )
    # Written so that a NaN is wrong.
    if not abs(sum(it * it for it in rotation) - 1.0) < _NORM_TOLERANCE:
        wrong.append(
            f'TF_DENORMALIZED_QUATERNION: Ignoring transform for child_frame_id "{child}" from authority "{authority}" '
            f"because of an invalid quaternion in the transform {_numbers(rotation)}"
        )
    return wrong


def _numbers(values):
    return f"({' '.join(f'{it:f}' for it in values)})"


def _text(time):
    return f"{time / _SECOND:.6f}"


def _nanoseconds(time, what="time"):
    """Of a time or duration of rclpy, or of one in a message."""
    if hasattr(time, "nanosec"):
        return time.sec * _SECOND + time.nanosec
    if hasattr(time, "nanoseconds"):
        return time.nanoseconds
    raise TypeError(f"{what} must have sec and nanosec, or nanoseconds.")


def _logger():
    from rclpy.logging import get_logger

    return get_logger("tf2_buffer")
