"""The default context, and small things."""

import sys
import threading

from rclpy.context import Context

_context = None
_lock = threading.Lock()


def get_default_context(*, shutting_down=False):
    """The context of those who name none. After it has ended there is a new one for the next `init`."""
    global _context
    with _lock:
        if _context is None:
            _context = Context()
        context = _context
        if shutting_down:
            _context = None
        return context


def remove_ros_args(args=None):
    """The arguments without those between `--ros-args` and `--`."""
    kept, is_ros = [], False
    for argument in sys.argv if args is None else args:
        if argument == "--ros-args":
            is_ros = True
        elif is_ros and argument == "--":
            is_ros = False
        elif not is_ros:
            kept.append(argument)
    return kept


def ok(*, context=None):
    """Whether the context is initialized and not shut down."""
    return (get_default_context() if context is None else context).ok()


def shutdown(*, context=None):
    """Shuts the context down. Raises `RuntimeError` where it has ended already."""
    (get_default_context(shutting_down=True) if context is None else context).shutdown()


def try_shutdown(*, context=None):
    """Shuts the context down, if it has not ended."""
    if context is None:
        context = get_default_context()
        # One that was never initialized is still for the next init.
        if context.is_initialized:
            context = get_default_context(shutting_down=True)
    context.try_shutdown()


def get_rmw_implementation_identifier():
    return "rmw_tsuji"


def get_available_rmw_implementations():
    return {"rmw_tsuji"}


def timeout_sec_to_nsec(timeout_sec):
    """Nanoseconds of a timeout; -1, which is for ever, of None and of less than 0."""
    if timeout_sec is None or timeout_sec < 0:
        return -1
    return int(float(timeout_sec) * 10**9)
