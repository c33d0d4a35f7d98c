"""These tests speak to rclpy alone. They run on tsuji's, and, to see that they ask for the right thing, on the real one:
`TSUJI_REAL_RCLPY=1`, in an environment that has it."""

import faulthandler
import os
import shutil
import tempfile

import pytest

IS_REAL = bool(os.environ.get("TSUJI_REAL_RCLPY"))
if IS_REAL:
    import sys

    # Its wheels have the same action under another name.
    import test_msgs.action

    sys.modules["example_interfaces"] = test_msgs
    sys.modules["example_interfaces.action"] = test_msgs.action
else:
    os.environ["TSUJI_INTEROP"] = "none"
    # Short enough for sockets.
    FOLDER = os.environ["TSUJI_RUNTIME_DIR"] = tempfile.mkdtemp(prefix="tsuji-")
    import tsuji.rclpy

    tsuji.rclpy.install()

# A hang tells where it is, and ends the run.
faulthandler.dump_traceback_later(300, exit=True)


def pytest_sessionfinish():
    if not IS_REAL:
        shutil.rmtree(FOLDER, ignore_errors=True)


@pytest.fixture
def context():
    """A context of its own for each test, which is the default one."""
    import rclpy

    rclpy.init(args=[])
    yield
    rclpy.try_shutdown()


@pytest.fixture
def node(context, request):
    import rclpy

    node = rclpy.create_node("node")
    yield node
    node.destroy_node()


@pytest.fixture
def other(context):
    import rclpy

    node = rclpy.create_node("other")
    yield node
    node.destroy_node()


@pytest.fixture
def executor(node, other):
    """One thread spins both nodes."""
    from rclpy.executors import SingleThreadedExecutor

    executor = SingleThreadedExecutor()
    executor.add_node(node)
    executor.add_node(other)
    yield executor
    executor.shutdown()


PATIENCE = 30


@pytest.fixture
def spin_until(executor):
    """Spins until something is so."""
    import time

    def spin(is_so):
        until = time.monotonic() + PATIENCE
        while not is_so():
            assert time.monotonic() < until
            executor.spin_once(timeout_sec=0.05)

    return spin


@pytest.fixture
def result_of(executor):
    """Spins until a future is done."""

    def spin(future):
        executor.spin_until_future_complete(future, timeout_sec=PATIENCE)
        assert future.done()
        return future.result()

    return spin


@pytest.fixture
def spun():
    """Spins executors, each in a thread, until the end of the context."""
    import threading

    import rclpy
    from rclpy.executors import ExternalShutdownException

    threads = []

    def spin(executor):
        def run():
            try:
                executor.spin()
            except ExternalShutdownException:
                pass

        threads.append(threading.Thread(target=run))
        threads[-1].start()

    yield spin
    rclpy.try_shutdown()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
