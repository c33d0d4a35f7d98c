"""The buffer of transforms that programs use."""

import threading
import time as _time

import tf2_py
from rclpy.clock import Clock, JumpThreshold
from rclpy.duration import Duration
from rclpy.logging import get_logger
from rclpy.task import Future

from .buffer_interface import NO_WAITING, BufferInterface


class Buffer(tf2_py.BufferCore, BufferInterface):
    """Keeps transforms, waits for those that are still to come, and with a `node` answers its service `tf2_frames`.

    When the clock jumps back, it is cleared. What waits blocks its thread: the transforms have to come by another one.
    """

    def __init__(self, cache_time=None, node=None):
        tf2_py.BufferCore.__init__(self, cache_time)
        BufferInterface.__init__(self)
        # Also the lock of `_waiting`. What it guards is done with nobody else's code in between.
        self._changed = threading.Condition()
        self._waiting = []
        if node is not None:
            from tf2_msgs.srv import FrameGraph

            self.srv = node.create_service(FrameGraph, "tf2_frames", self._answer_frames)
        self.clock = Clock() if node is None else node.get_clock()
        threshold = JumpThreshold(min_forward=None, min_backward=Duration(seconds=-1), on_clock_change=True)
        self.jump_handle = self.clock.create_jump_callback(threshold, post_callback=self.time_jump_callback)

    def time_jump_callback(self, _time_jump):
        get_logger("tf2_buffer").warning("Detected jump back in time. Clearing tf buffer.")
        self.clear()

    def set_transform(self, transform, authority):
        super().set_transform(transform, authority)
        self._tell()

    def set_transform_static(self, transform, authority):
        super().set_transform_static(transform, authority)
        self._tell()

    def lookup_transform(self, target_frame, source_frame, time, timeout=NO_WAITING):
        """The transform that takes data from the source frame to the target frame; it is waited for up to `timeout`.

        The time 0 is the latest that both have. Raises a `TransformException` if there is none.
        """
        self.can_transform(target_frame, source_frame, time, timeout)
        return self.lookup_transform_core(target_frame, source_frame, time)

    def lookup_transform_full(self, target_frame, target_time, source_frame, source_time, fixed_frame, timeout=NO_WAITING):
        """The transform from the source frame at one time to the target frame at another, `fixed_frame` being where it was in between."""
        self.can_transform_full(target_frame, target_time, source_frame, source_time, fixed_frame, timeout)
        return self.lookup_transform_full_core(target_frame, target_time, source_frame, source_time, fixed_frame)

    async def lookup_transform_async(self, target_frame, source_frame, time):
        """Waits for a transform and returns it."""
        return await self.wait_for_transform_async(target_frame, source_frame, time)

    async def lookup_transform_full_async(self, target_frame, target_time, source_frame, source_time, fixed_frame):
        """Waits for a transform between two times and returns it."""
        return await self.wait_for_transform_full_async(target_frame, target_time, source_frame, source_time, fixed_frame)

    def can_transform(self, target_frame, source_frame, time, timeout=NO_WAITING, return_debug_tuple=False):
        """Whether there is a transform, after up to `timeout`. With `return_debug_tuple` also why not."""
        result = self._wait(lambda: self.can_transform_core(target_frame, source_frame, time), timeout)
        return result if return_debug_tuple else result[0]

    def can_transform_full(
        self, target_frame, target_time, source_frame, source_time, fixed_frame, timeout=NO_WAITING, return_debug_tuple=False
    ):
        """Whether there is a transform between two times, after up to `timeout`. With `return_debug_tuple` also why not."""
        result = self._wait(
            lambda: self.can_transform_full_core(target_frame, target_time, source_frame, source_time, fixed_frame), timeout
        )
        return result if return_debug_tuple else result[0]

    def wait_for_transform_async(self, target_frame, source_frame, time):
        """A future that has the transform as its result as soon as there is one."""
        return self._wait_async(lambda: self.lookup_transform_core(target_frame, source_frame, time))

    def wait_for_transform_full_async(self, target_frame, target_time, source_frame, source_time, fixed_frame):
        """A future that has the transform between two times as its result as soon as there is one."""
        return self._wait_async(lambda: self.lookup_transform_full_core(target_frame, target_time, source_frame, source_time, fixed_frame))

    def _answer_frames(self, _request, response):
        response.frame_yaml = self.all_frames_as_yaml()
        return response

    def _wait(self, can_transform, timeout):
        # By the wall's clock, as in ROS 2: the time of a simulation may stand still.
        deadline = _time.monotonic() + timeout.nanoseconds / 1e9
        with self._changed:
            while not (result := can_transform())[0] and (left := deadline - _time.monotonic()) > 0:
                self._changed.wait(left)
        return result

    def _wait_async(self, lookup):
        future = Future()
        with self._changed:
            result = _try(lookup)
            if result is None:
                # Those that are cancelled go here too: there may be none to come.
                self._waiting = [it for it in self._waiting if not it[0].done()]
                self._waiting.append((future, lookup))
        if result is not None:
            future.set_result(result)
        return future

    def _tell(self):
        """Ends the waiting for what is there now."""
        ready = []
        with self._changed:
            self._changed.notify_all()
            if not self._waiting:
                return
            waiting = []
            for future, lookup in self._waiting:
                if future.done():
                    continue
                result = _try(lookup)
                if result is None:
                    waiting.append((future, lookup))
                else:
                    ready.append((future, result))
            self._waiting = waiting
        for future, result in ready:
            future.set_result(result)


def _try(lookup):
    try:
        return lookup()
    except tf2_py.TransformException:
        return None
