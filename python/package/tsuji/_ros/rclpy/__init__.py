"""rclpy's API over tsuji: what programs find that `tsuji.rclpy` runs."""

from rclpy.context import Context
from rclpy.parameter import Parameter
from rclpy.signals import SignalHandlerOptions, install_signal_handlers, uninstall_signal_handlers
from rclpy.task import Future
from rclpy.utilities import get_default_context, get_rmw_implementation_identifier, ok, try_shutdown  # noqa: F401
from rclpy.utilities import shutdown as _shutdown

_executor = None


class InitContextManager:
    """What `init` returns: in a `with` it shuts down at the end."""

    def __init__(self, context):
        self.context = context

    def __enter__(self):
        return self.context

    def __exit__(self, *_):
        self.context.try_shutdown()
        if self.context is get_default_context():
            uninstall_signal_handlers()


def init(*, args=None, context=None, domain_id=None, signal_handler_options=None):
    """Begins to use ROS: reads the arguments, and handles signals for the default context."""
    of_all = context is None
    context = get_default_context() if of_all else context
    if signal_handler_options is None:
        signal_handler_options = SignalHandlerOptions.ALL if of_all else SignalHandlerOptions.NO
    context.init(args, domain_id=domain_id)
    install_signal_handlers(signal_handler_options)
    return InitContextManager(context)


def get_global_executor():
    """The executor that `spin` and the like use, unless they are given one."""
    global _executor
    from rclpy.executors import SingleThreadedExecutor

    if _executor is None or _executor._is_shutdown:
        _executor = SingleThreadedExecutor()
        _executor.context.on_shutdown(_end_global_executor)
    return _executor


def _end_global_executor():
    global _executor
    if _executor is not None:
        _executor.shutdown(timeout_sec=0)
        _executor = None


def shutdown(*, context=None, uninstall_handlers=None):
    """Ends what `init` began. Raises `RuntimeError` where it has ended already."""
    _shutdown(context=context)
    if uninstall_handlers or (uninstall_handlers is None and context is None):
        uninstall_signal_handlers()


def create_node(node_name, **options):
    """A node, with the options of `Node`."""
    from rclpy.node import Node

    return Node(node_name, **options)


def spin_once(node, *, executor=None, timeout_sec=None):
    """Executes one callback, or waits for one until `timeout_sec` is over."""
    executor = get_global_executor() if executor is None else executor
    executor.add_node(node)
    try:
        executor.spin_once(timeout_sec=timeout_sec)
    finally:
        executor.remove_node(node)


def spin(node, executor=None):
    """Executes callbacks until the context is shut down."""
    executor = get_global_executor() if executor is None else executor
    executor.add_node(node)
    try:
        while executor.context.ok():
            executor.spin_once()
    finally:
        executor.remove_node(node)


def spin_until_future_complete(node, future, executor=None, timeout_sec=None):
    """Executes callbacks until the future is done, the context is shut down, or the time is over."""
    executor = get_global_executor() if executor is None else executor
    executor.add_node(node)
    try:
        executor.spin_until_future_complete(future, timeout_sec)
    finally:
        executor.remove_node(node)


# Now and not when it is needed: a thread that lives on after the main one could not import it any more.
import rclpy.executors  # noqa: E402, F401

__all__ = [
    "Context",
    "Future",
    "InitContextManager",
    "Parameter",
    "SignalHandlerOptions",
    "create_node",
    "get_default_context",
    "get_global_executor",
    "get_rmw_implementation_identifier",
    "init",
    "ok",
    "shutdown",
    "spin",
    "spin_once",
    "spin_until_future_complete",
    "try_shutdown",
]
