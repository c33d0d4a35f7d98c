"""Contexts: what a program says to ROS, and whether it is to end."""

import os
import sys
import threading
import time
import weakref
from inspect import ismethod

from rclpy.exceptions import RCLError

# How long a wait lasts before it looks whether the context has ended.
STEP_S = 0.5


class Context:
    """Arguments and domain of nodes, from `init` to `shutdown`."""

    def __init__(self):
        self._lock = threading.RLock()
        self._arguments = None
        self._domain_id = None
        self._is_ok = False
        self._callbacks = []
        # Those that are to learn at once that it has ended: executors, and clocks by which somebody sleeps.
        self._executors = weakref.WeakSet()
        self._clocks = weakref.WeakSet()

    def init(self, args=None, *, initialize_logging=True, domain_id=None):
        """Reads the arguments of the program, or these."""
        with self._lock:
            if domain_id is not None and domain_id < 0:
                raise RuntimeError(f"Domain id ({domain_id}) should not be lower than zero.")
            if self._arguments is not None:
                raise RuntimeError("Context.init() must only be called once")
            self._arguments = list(sys.argv if args is None else args)
            self._domain_id = domain_id
            self._is_ok = True

    @property
    def is_initialized(self):
        """Whether it was initialized, though it may have ended."""
        return self._arguments is not None

    @property
    def arguments(self):
        return list(self._arguments or ())

    def ok(self):
        """Whether it was initialized and is not shut down."""
        return self._is_ok

    def get_domain_id(self):
        if self._arguments is None:
            raise RuntimeError("Context must be initialized before it can have a domain id")
        if self._domain_id is not None:
            return self._domain_id
        return int(os.environ.get("ROS_DOMAIN_ID") or 0)

    def shutdown(self):
        """Ends it. Raises `RuntimeError` where it was not initialized, and `RCLError`, which is one, where it has ended already."""
        if self._arguments is None:
            raise RuntimeError("Context must be initialized before it can be shutdown")
        if not self._end():
            raise RCLError("context is already shut down")

    def try_shutdown(self):
        """Ends it, if it has not ended."""
        self._end()

    def _end(self):
        with self._lock:
            if not self._is_ok:
                return False
            self._is_ok = False
            callbacks, self._callbacks = self._callbacks, []
        for waiting in [*self._executors, *self._clocks]:
            waiting.wake()
        for callback in callbacks:
            callback = callback() if isinstance(callback, weakref.WeakMethod) else callback
            if callback is not None:
                callback()
        return True

    def on_shutdown(self, callback):
        """Calls back when it ends. Methods are held weakly."""
        if not callable(callback):
            raise TypeError(f"callback should be a callable, got {type(callback)}")
        with self._lock:
            if self._arguments is None or self._is_ok:
                self._callbacks.append(weakref.WeakMethod(callback) if ismethod(callback) else callback)
                return
        callback()

    def _in_steps(self, timeout_sec, wait):
        """Calls `wait` with so many seconds again and again, so that the end of the context is seen, until it returns true or the
        time is over. Returns whether it did."""
        until = None if timeout_sec is None else time.monotonic() + timeout_sec
        while self._is_ok:
            left = STEP_S if until is None else min(STEP_S, until - time.monotonic())
            if wait(max(left, 0.0)):
                return True
            if until is not None and until <= time.monotonic():
                return False
        return False

    def destroy(self):
        self.try_shutdown()

    def __enter__(self):
        if self._arguments is None:
            self.init()
        return self

    def __exit__(self, *_):
        self.try_shutdown()
