"""Executors: what waits for callbacks that are due, and runs them."""

import atexit
import inspect
import os
import threading
import time
import weakref
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import tsuji
from rclpy.exceptions import InvalidHandle
from rclpy.task import Future, Task
from rclpy.utilities import get_default_context, timeout_sec_to_nsec


class TimeoutException(Exception):
    """Nothing came in time."""


class ShutdownException(Exception):
    """The executor was shut down."""


class ExternalShutdownException(Exception):
    """The context was shut down."""

    def __init__(self):
        super().__init__("Executor context is not valid")


class ConditionReachedException(Exception):
    """What was waited for is so."""


async def await_or_execute(callback, *args):
    """Awaits a coroutine function, or calls another."""
    if inspect.iscoroutinefunction(callback):
        return await callback(*args)
    return callback(*args)


# Whether the interpreter is about to end, before tsuji ends its nodes.
_is_ending = threading.Event()
atexit.register(_is_ending.set)


def _stay_at_the_end():
    """At the end of the interpreter a daemon thread stays where it is, and does not raise that nodes have ended."""
    if _is_ending.is_set() and threading.current_thread().daemon:
        threading.Event().wait()


# The longest wait at once.
LONGEST_WAIT_S = 3600.0
# How often an executor without nodes looks whether there is something to run.
NO_NODES_STEP_S = 0.01


class Executor:
    """Base of the executors. It runs what its nodes have to be called, and tasks.

    It works in rounds: what is ready when a round begins is run once, before anything is run again, so that nothing that is always
    ready keeps the rest from running.
    """

    # Whether callbacks run in other threads than the one that waits. Then a message is taken by the thread that runs its callback.
    _has_threads = True

    def __init__(self, *, context=None):
        self._context = get_default_context() if context is None else context
        self._nodes = []
        self._nodes_lock = threading.RLock()
        # Tasks that can go on, and what is left of the round.
        self._tasks = deque()
        self._round = deque()
        # No lock and no Event: a signal handler may set it while the same thread looks at it.
        self._is_woken = False
        self._waits = None
        # Threads that wait, and callbacks that run, in all threads and in this one.
        self._spinners = self._working = 0
        self._running = threading.local()
        self._idle = threading.Condition()
        self._is_shutdown = False
        self._raised = deque()
        self._context._executors.add(self)

    @property
    def context(self):
        return self._context

    def create_task(self, callback, *args, **kwargs):
        """Runs a function, coroutine function or coroutine. Returns a future of its result."""
        task = Task(callback, args, kwargs, executor=self)
        self._call_task(task)
        return task

    def _call_task(self, task):
        self._tasks.append(task)
        self.wake()

    def shutdown(self, timeout_sec=None):
        """Ends it, and waits for callbacks that run. Returns whether all have ended in time."""
        self._is_shutdown = True
        self.wake()
        if timeout_sec is not None and timeout_sec < 0:
            timeout_sec = None
        # Whoever does it in a callback does not wait for that.
        own = getattr(self._running, "depth", 0)
        with self._idle:
            if not self._idle.wait_for(lambda: self._working <= own, timeout_sec):
                return False
            if self._spinners == 0:
                self._waits = None
        with self._nodes_lock:
            nodes, self._nodes = self._nodes, []
        for node in nodes:
            node._leave(self)
        return True

    def add_node(self, node):
        """Lets this executor run the callbacks of the node. Returns whether it did not so before."""
        with self._nodes_lock:
            if node in self._nodes:
                return False
            self._nodes.append(node)
            node.executor = self
        self.wake()
        return True

    def remove_node(self, node):
        """Lets the node be."""
        with self._nodes_lock:
            if node not in self._nodes:
                return
            self._nodes.remove(node)
        node._leave(self)
        self.wake()

    def get_nodes(self):
        with self._nodes_lock:
            return list(self._nodes)

    def wake(self):
        """Ends a wait: something has changed."""
        self._is_woken = True
        waits = self._waits
        if waits is not None:
            waits[1].trigger()

    def spin(self):
        """Runs callbacks until the executor or its context is shut down."""
        while self._context.ok() and not self._is_shutdown:
            self.spin_once()

    def spin_until_future_complete(self, future, timeout_sec=None):
        """Runs callbacks until the future is done, the context is shut down, or the time is over."""

        def wake(_future):
            self.wake()

        future.add_done_callback(wake)
        timeout_ns = timeout_sec_to_nsec(timeout_sec)
        end = None if timeout_ns < 0 else time.monotonic_ns() + timeout_ns
        try:
            while self._context.ok() and not future.done() and not self._is_shutdown:
                left = None if end is None else max(0, end - time.monotonic_ns()) / 1e9
                self.spin_once_until_future_complete(future, left)
                if end is not None and end <= time.monotonic_ns():
                    return
        finally:
            future.remove_done_callback(wake)

    def spin_once(self, timeout_sec=None):
        """Runs what is due next, or waits for it."""
        self._spin_once_impl(timeout_sec)

    def spin_once_until_future_complete(self, future, timeout_sec=None):
        """Runs what is due next, unless the future is done first."""
        self._spin_once_impl(timeout_sec, future.done)

    def _spin_once_impl(self, timeout_sec=None, condition=lambda: False):
        raise NotImplementedError()

    def can_execute(self, entity):
        """Whether the callback of `entity` may run now. Executors of a program's own may refuse more."""
        return not entity._is_pending and entity._can_execute() and entity.callback_group.can_execute(entity)

    def wait_for_ready_callbacks(self, timeout_sec=None, nodes=None, condition=lambda: False):
        """For executors of a program's own: what is to be called next, with its entity and node; both are None for a task. Raises
        `TimeoutException`, `ShutdownException`, `ExternalShutdownException` or `ConditionReachedException` where nothing is."""
        task = self._next(timeout_sec, condition)
        return task, getattr(task, "_entity", None), getattr(task, "_node", None)

    def _next(self, timeout_sec, condition):
        """What is to be run next. Raises where nothing comes."""
        timeout_ns = timeout_sec_to_nsec(timeout_sec)
        end = None if timeout_ns < 0 else time.monotonic_ns() + timeout_ns
        has_waited = False
        with self._idle:
            self._spinners += 1
        try:
            while True:
                _stay_at_the_end()
                # Before anything is looked at: what changes later ends the wait.
                self._is_woken = False
                if not self._context.ok():
                    raise ExternalShutdownException()
                if self._is_shutdown:
                    raise ShutdownException()
                if self._raised:
                    raise self._raised.popleft()
                if condition():
                    raise ConditionReachedException()
                work = self._find()
                if work is not None:
                    return work
                left = LONGEST_WAIT_S if end is None else (end - time.monotonic_ns()) / 1e9
                if left <= 0 and has_waited:
                    raise TimeoutException()
                self._begin_round(max(0.0, left))
                has_waited = True
        finally:
            with self._idle:
                self._spinners -= 1
                if self._is_shutdown and self._spinners == 0:
                    self._waits = None

    def _find(self):
        """The next of the round that can run."""
        while self._round:
            entity, node = self._round.popleft()
            if node is None:
                return entity
            if node.executor is not self or not self.can_execute(entity):
                entity._missed()
                continue
            work = self._begin(entity, node)
            if work is not None:
                return work
        return None

    def _begin_round(self, timeout_s):
        """Collects what is ready: waits until something is, for so many seconds at most."""
        nodes = self.get_nodes()
        tasks = []
        # Those that come meanwhile are of the next round.
        for _ in range(len(self._tasks)):
            tasks.append((self._tasks.popleft(), None))
        timers, soonest_s = self._due_timers(nodes)
        waited_s = 0.0 if tasks or timers else min(timeout_s, soonest_s)
        ready = self._wait(nodes, waited_s)
        if not timers:
            timers, _ = self._due_timers(nodes)
        self._round.extend([*timers, *ready, *tasks])

    def _due_timers(self, nodes):
        """Timers that are due, and in how many seconds the next one is."""
        due, soonest_s = [], LONGEST_WAIT_S
        for node in nodes:
            for timer in tuple(node._timers):
                left_s = timer._seconds_left()
                if left_s is None or not self.can_execute(timer):
                    continue
                if left_s <= 0:
                    due.append((timer, node))
                else:
                    soonest_s = min(soonest_s, left_s)
        return due, soonest_s

    def _wait(self, nodes, timeout_s):
        """Waits until an entity is ready, and returns those that are, with their nodes."""
        waited, places = [], []
        for node in nodes:
            for entity in node._entities():
                if self.can_execute(entity):
                    waitable = entity._waitable()
                    if waitable is not None:
                        waited.append(waitable)
                        places.append((entity, node))
        waits = self._waits or self._make_waits(nodes)
        if waits is None:
            # Nothing can come but a task.
            end = time.monotonic() + timeout_s
            while not self._is_woken and (left := end - time.monotonic()) > 0:
                time.sleep(min(left, NO_NODES_STEP_S))
            return []
        waiting, guard = waits
        try:
            ready = waiting.wait([guard, *waited], 0.0 if self._is_woken else timeout_s)
        except tsuji.ClosedError:
            # The participant has ended with its last node; another has its own.
            self._waits = None
            return []
        return [places[it - 1] for it in ready if it]

    def _make_waits(self, nodes):
        for node in nodes:
            if node._raw.is_ok:
                # What was changed before it could be woken is in the flag.
                self._waits = node._raw.wait_list(), node._raw.guard_condition()
                break
        return self._waits

    def _begin(self, entity, node):
        """A task of what `entity` has to be called, if its group lets it and there is something."""
        group = entity.callback_group
        if not group.beginning_execution(entity):
            entity._missed()
            return None
        work = None
        try:
            work = self._take_in_thread(entity) if self._has_threads else entity._take()
        except (InvalidHandle, tsuji.ClosedError):
            # It was destroyed meanwhile.
            pass
        finally:
            if work is None:
                group.ending_execution(entity)
        if work is None:
            return None
        task = Task(work, executor=self)
        task._entity, task._node = entity, node
        task._callbacks.append(GroupRelease(entity, self))
        return task

    def _take_in_thread(self, entity):
        # Until it is taken it would be ready again and again.
        entity._is_pending = True

        async def take_and_run():
            try:
                work = entity._take()
            except (InvalidHandle, tsuji.ClosedError):
                work = None
            finally:
                entity._is_pending = False
                self.wake()
            if work is not None:
                await await_or_execute(work)

        return take_and_run

    def _run(self, task):
        """Runs a task, and raises what it raises."""
        depth = getattr(self._running, "depth", 0)
        self._running.depth = depth + 1
        with self._idle:
            self._working += 1
        try:
            task()
        except BaseException:
            # Ctrl-C and the like: whoever spins may go on, so the group is not to stay busy.
            task.cancel()
            raise
        finally:
            self._running.depth = depth
            with self._idle:
                self._working -= 1
                self._idle.notify_all()
        if task.done() and not task.cancelled() and task.exception() is not None:
            _stay_at_the_end()
            raise task.exception()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.shutdown()


class GroupRelease:
    """Lets the group of an entity run others again, when a task is done."""

    # By whoever has done the task, not by an executor.
    is_immediate = True

    def __init__(self, entity, executor):
        self.entity, self.executor = entity, weakref.ref(executor)

    def __call__(self, _future):
        # One that was given up before a thread took it.
        self.entity._is_pending = False
        self.entity.callback_group.ending_execution(self.entity)
        executor = self.executor()
        if executor is not None and executor._has_threads:
            executor.wake()


class SingleThreadedExecutor(Executor):
    """Runs callbacks in the thread that spins it."""

    _has_threads = False

    def _spin_once_impl(self, timeout_sec=None, condition=lambda: False):
        try:
            task = self._next(timeout_sec, condition)
        except (ShutdownException, TimeoutException, ConditionReachedException):
            return
        self._run(task)


class MultiThreadedExecutor(Executor):
    """Runs callbacks in threads: as many as there are processors, and two at least, unless `num_threads` says how many."""

    def __init__(self, num_threads=None, *, context=None):
        super().__init__(context=context)
        if num_threads is None:
            num_threads = max(len(os.sched_getaffinity(0)), 2)
        if num_threads < 1:
            raise ValueError(f"num_threads: {num_threads}; allowed: 1 or more")
        self._pool = ThreadPoolExecutor(num_threads, thread_name_prefix="rclpy")

    def _spin_once_impl(self, timeout_sec=None, condition=lambda: False):
        try:
            task = self._next(timeout_sec, condition)
        except (ShutdownException, TimeoutException, ConditionReachedException):
            return
        try:
            self._pool.submit(self._run_in_thread, task)
        except RuntimeError:
            # Another thread has shut it down meanwhile.
            task.cancel()
            if not self._is_shutdown:
                raise

    def _run_in_thread(self, task):
        try:
            self._run(task)
        except BaseException as error:
            # Whoever spins raises it.
            self._raised.append(error)
            self.wake()

    def shutdown(self, timeout_sec=None, *, wait_for_threads=True):
        is_done = super().shutdown(timeout_sec)
        # A thread does not wait for itself.
        is_own = 0 < getattr(self._running, "depth", 0)
        self._pool.shutdown(wait=wait_for_threads and is_done and not is_own)
        return is_done


__all__ = [
    "ConditionReachedException",
    "Executor",
    "ExternalShutdownException",
    "Future",
    "MultiThreadedExecutor",
    "ShutdownException",
    "SingleThreadedExecutor",
    "Task",
    "TimeoutException",
    "await_or_execute",
]
