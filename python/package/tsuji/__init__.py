"""ROS 2 in Python without ROS.

import tsuji
from tsuji.interfaces.std_msgs.msg import String

with tsuji.Node("talker") as node:
    publisher = node.publisher("chatter", String)
    publisher.publish(data="hello")
"""

import atexit
import itertools
import threading
import weakref

from . import _tsuji
from ._tsuji import (
    ActionServer,
    Loan,
    Publisher,
    RecordedMessage,
    RemoteParameters,
    ServerGoal,
    Timer,
    BusyError,
    ClosedError,
    ExhaustedError,
    Message,
    NoServerError,
    QoS,
    Recording,
    RecordingWriter,
    ServerLostError,
    TooLargeError,
    TsujiError,
    UnsupportedError,
    __version__,
    add_interface_folder,
    info,
    load,
    load_action,
    load_service,
    load_text,
)

__all__ = [
    "ActionClient",
    "ActionServer",
    "Goal",
    "Loan",
    "Publisher",
    "RecordedMessage",
    "RemoteParameters",
    "ServerGoal",
    "Timer",
    "Action",
    "Client",
    "Service",
    "Server",
    "Subscription",
    "BusyError",
    "ClosedError",
    "ExhaustedError",
    "Message",
    "NoServerError",
    "Node",
    "QoS",
    "Recording",
    "RecordingWriter",
    "ServerLostError",
    "TooLargeError",
    "TsujiError",
    "UnsupportedError",
    "__version__",
    "add_interface_folder",
    "info",
    "load",
    "load_action",
    "load_service",
    "load_text",
]

# The name that programs know of files; it is not that of builtins here.
open = _tsuji.open_recording

# No callback begins while the interpreter ends.
atexit.register(_tsuji.shut_down_all)


def _rebuild(name, definition, data):
    """A message from what pickle keeps."""
    import copy

    # One of one's own, which can be written to.
    return copy.deepcopy(load_text(name, definition).from_bytes(data))


class Service:
    """A type of services: its classes are `Request` and `Response`."""

    __slots__ = ()
    __class_getitem__ = classmethod(lambda cls, _: cls)


class Action:
    """A type of actions: its classes are `Goal`, `Result` and `Feedback`."""

    __slots__ = ()
    __class_getitem__ = classmethod(lambda cls, _: cls)


Server = _tsuji.Service


class _Waiting:
    """The tasks of one event loop that wait for something of tsuji. The loop keeps it, and so does each task while it waits."""

    # By loop; and that of the loop which was asked for last, for each thread.
    of_loops = weakref.WeakKeyDictionary()
    last = threading.local()

    def __init__(self, loop):
        self.futures = {}
        self.wakers = _tsuji.LoopWakers()
        self.numbers = itertools.count()
        loop.add_reader(self.wakers.fileno(), self.wake)

    @classmethod
    def of(cls, loop):
        known, waiting = getattr(cls.last, "known", (_nothing, _nothing))
        if known() is loop and (found := waiting()) is not None:
            return found
        found = cls.of_loops.get(loop, _nothing)()
        if found is None:
            found = cls(loop)
            cls.of_loops[loop] = weakref.ref(found)
        cls.last.known = weakref.ref(loop), weakref.ref(found)
        return found

    def wake(self):
        tasks = self.wakers.take()
        for task in list(self.futures) if tasks is None else tasks:
            future = self.futures.get(task)
            if future is not None and not future.done():
                future.set_result(None)


def _nothing():
    """What a weak reference to nothing answers."""


async def _wait_for(poll):
    """Waits until `poll` returns something. `poll` gets what it wakes when it is worth asking again."""
    # It takes ten times as long to import as all the rest.
    import asyncio

    loop = asyncio.get_running_loop()
    waiting = _Waiting.of(loop)
    task = next(waiting.numbers)
    waker = waiting.wakers.waker(task)
    try:
        while True:
            arrived = waiting.futures[task] = loop.create_future()
            answer = poll(waker)
            if answer is not None:
                return answer
            await arrived
    finally:
        del waiting.futures[task]


# So many messages that are there already are taken before the other tasks of an event loop run.
_IN_A_ROW_MAX = 64


async def _others_run():
    import asyncio

    await asyncio.sleep(0)


async def _until(is_so, raw):
    """Waits until something is so of which nobody tells, or the node is shut down."""
    import asyncio

    while not is_so():
        raw.check_open()
        await asyncio.sleep(0.005)


class _Wrapper:
    """Python part of a class, around an object of the extension. What it does not define itself, that object does."""

    def __init__(self, raw):
        self._raw = raw

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        value = getattr(self._raw, name)
        if callable(value):
            # A method is found at once the next time.
            self.__dict__[name] = value
        return value


class Node(_Wrapper):
    """A node of ROS 2, for threads (`with`) and for asyncio (`async with`). It keeps its callbacks until it is shut down."""

    def __init__(self, name, **options):
        super().__init__(_tsuji.Node(name, **options))
        self._kept = []

    def __repr__(self):
        return repr(self._raw)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.shutdown()

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        self.shutdown()

    def subscribe(self, topic, type, qos=None, callback=None, *, on_event=None):
        """A subscription to `topic`. Messages go to `callback` while the node is spun, or are taken: by `async for`, `for`,
        `take()`, `latest()` or `recv()`. `on_event` gets its events as dicts, such as `{"event": "matched", "current": 1}`, while the
        node is spun."""
        raw = self._raw.subscription(topic, type, qos, callback, on_event=on_event)
        return Subscription(raw) if callback is None else self._keep(raw)

    def service(self, name, type, callback):
        """A server; `callback` gets each request and returns the response, while the node is spun."""
        return self._keep(self._raw.service(name, type, callback))

    def action_server(self, name, type, execute):
        """A server of an action. `execute` gets each goal in a thread of its own, and returns the result; goals are taken while the
        node is spun."""

        def begin(goal):
            thread = threading.Thread(target=_execute, args=(goal, execute, self._raw), name="tsuji goal", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                # Before CPython 3.13 the text alone says that the interpreter is about to end.
                goal.abort()
                if "interpreter shutdown" not in str(error):
                    raise

        return self._keep(self._raw.action_server(name, type, begin))

    def timer(self, period, callback):
        """Calls back every `period` seconds while the node is spun."""
        return self._keep(self._raw.timer(period, callback))

    def on_set_parameters(self, callback):
        """Calls `callback` with a dict of new values before parameters are set. It refuses them by raising `ValueError`."""
        return self._keep(self._raw.on_set_parameters(callback))

    def client(self, name, type, qos=None):
        """A client of a service: `call()` for threads, `await call_async()` for asyncio."""
        return Client(self._raw.client(name, type, qos))

    def action_client(self, name, type):
        """A client of an action: `send_goal()` for threads, `await send_goal_async()` for asyncio."""
        return ActionClient(self._raw.action_client(name, type))

    def destroy(self, made):
        """Ends what calls back before the node does."""
        self._kept.remove(made)
        made.end()

    def _keep(self, made):
        self._kept.append(made)
        return made


def _execute(goal, execute, node):
    """Executes a goal: what `execute` returns is the result of one that it has not ended."""
    try:
        result = execute(goal)
        if goal.is_active:
            goal.succeed(result)
        elif result is not None:
            raise TypeError("a result of a goal that has ended; allowed: none")
    except BaseException as error:
        if goal.is_active:
            goal.abort()
        node.raise_in_spin(error)


class Subscription(_Wrapper):
    """A subscription whose messages are taken."""

    __class_getitem__ = classmethod(lambda cls, _: cls)

    def __init__(self, raw):
        super().__init__(raw)
        # How many tasks have taken without a wait.
        self._in_a_row = 0

    def __iter__(self):
        return self

    def __next__(self):
        try:
            return self._raw.recv()
        except ClosedError:
            raise StopIteration from None

    def __aiter__(self):
        return self

    async def __anext__(self):
        try:
            return await self._next()
        except ClosedError:
            raise StopAsyncIteration from None

    async def recv_async(self, timeout=None):
        """The next message."""
        import asyncio

        async with asyncio.timeout(timeout):
            return await self._next()

    async def _next(self):
        if self._in_a_row == _IN_A_ROW_MAX:
            # Before the next is taken, which a task that is cancelled here would lose.
            self._in_a_row = 0
            await _others_run()
        message = self.take()
        if message is not None:
            self._in_a_row += 1
            return message
        self._in_a_row = 0
        return await _wait_for(self.poll)


class ActionClient(_Wrapper):
    """Sends goals to the server of an action."""

    __class_getitem__ = classmethod(lambda cls, _: cls)

    def send_goal(self, goal, timeout=None):
        """Sends a goal and waits until the server has taken it; None where it has refused it."""
        goal = self._raw.send_goal(goal, timeout)
        return None if goal is None else Goal(goal)

    async def send_goal_async(self, goal, timeout=None):
        """The same for asyncio. Without a server it waits for one."""
        import asyncio

        async with asyncio.timeout(timeout):
            await _until(lambda: self._raw.is_ready, self._raw)
            (goal,) = await _wait_for(self._raw.start_goal(goal).poll)
        return None if goal is None else Goal(goal)


class Goal(_Wrapper):
    """A goal that the server has taken. Its feedback comes by `for` and by `async for`."""

    __class_getitem__ = classmethod(lambda cls, _: cls)

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._raw)

    def __aiter__(self):
        return self

    async def __anext__(self):
        (feedback,) = await _wait_for(self._raw.poll_feedback)
        if feedback is None:
            raise StopAsyncIteration
        return feedback

    async def result_async(self, timeout=None):
        """How the goal has ended (succeeded, canceled or aborted), with the result."""
        import asyncio

        async with asyncio.timeout(timeout):
            return await _wait_for(self._raw.poll_result)

    async def cancel_async(self, timeout=5.0):
        """Asks the server to cancel the goal. Returns canceling, rejected, ended or unknown goal."""
        import asyncio

        async with asyncio.timeout(timeout):
            return await _wait_for(self._raw.start_cancel().poll)


class Client(_Wrapper):
    """A client of a service."""

    __class_getitem__ = classmethod(lambda cls, _: cls)

    async def call_async(self, request, timeout=None):
        """Sends a request, and returns the response. Without a server it waits for one."""
        import asyncio

        async with asyncio.timeout(timeout):
            await _until(lambda: self._raw.servers, self._raw)
            pending = self._raw.send(request)
            try:
                return await _wait_for(pending.poll)
            finally:
                # It is not open any more, whoever gave it up.
                pending.forget()
