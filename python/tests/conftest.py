import faulthandler
import shutil
import tempfile
import uuid

import pytest

import tsuji

# A hang tells where it is, and ends the run. Each test has as long, however many there are.
HANG_SECONDS = 300
faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)


@pytest.fixture(autouse=True)
def watchdog():
    faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)
    yield
    faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)


@pytest.fixture
def folder():
    """A run-time folder: its path is short enough for sockets."""
    path = tempfile.mkdtemp(prefix="tsuji-")
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def make_node(folder):
    """Makes nodes that see each other and nobody else."""
    made = []

    def make(name="node", **arguments):
        node = tsuji.Node(name, interop="none", runtime_dir=folder, **arguments)
        made.append(node)
        return node

    yield make
    for node in made:
        node.shutdown()


@pytest.fixture
def topic():
    return f"/t{uuid.uuid4().hex}"
