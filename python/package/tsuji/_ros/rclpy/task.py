"""Futures, and tasks that an executor runs."""

import inspect
import sys
import threading
import warnings
from enum import Enum


class FutureState(Enum):
    PENDING = "PENDING"
    CANCELLED = "CANCELLED"
    FINISHED = "FINISHED"


# By thread: what a coroutine has just begun to wait for.
_awaited = threading.local()


class Future:
    """A result that is to come. It can be awaited in a task of an executor."""

    def __init__(self, *, executor=None):
        self._lock = threading.RLock()
        self._is_done = self._is_cancelled = False
        self._result = self._exception = None
        self._is_exception_fetched = False
        self._callbacks = []
        self._executor = executor

    def __del__(self):
        if getattr(self, "_exception", None) is not None and not self._is_exception_fetched:
            print(f"The following exception was never retrieved: {self._exception}", file=sys.stderr)

    def __await__(self):
        while not self.done():
            # Nothing, which asyncio takes for a turn of its loop; a task of an executor looks for the future.
            _awaited.future = self
            yield
        return self.result()

    def cancel(self):
        """Ends it without a result, unless it is done."""
        with self._lock:
            if self.done():
                return
            self._is_cancelled = True
        self._run_done_callbacks()

    def cancelled(self):
        return self._is_cancelled

    def done(self):
        """Whether it has a result, has failed or is cancelled."""
        return self._is_done or self._is_cancelled

    def result(self):
        """The result; None as long as there is none. Raises what it has failed by."""
        if self._exception is not None:
            raise self.exception()
        return self._result

    def exception(self):
        """What it has failed by, or None."""
        self._is_exception_fetched = True
        return self._exception

    def set_result(self, result):
        with self._lock:
            self._result, self._is_done, self._is_cancelled = result, True, False
        self._run_done_callbacks()

    def set_exception(self, exception):
        with self._lock:
            self._exception, self._is_exception_fetched = exception, False
            self._is_done, self._is_cancelled = True, False
        self._run_done_callbacks()

    def add_done_callback(self, callback):
        """Calls `callback` with this future when it is done, by its executor if it has one."""
        with self._lock:
            if not self.done():
                self._callbacks.append(callback)
                return
        self._call(callback)

    def remove_done_callback(self, callback):
        """Forgets a callback. Returns whether it was known."""
        with self._lock:
            before = len(self._callbacks)
            self._callbacks = [it for it in self._callbacks if it != callback]
            return len(self._callbacks) != before

    def _set_executor(self, executor):
        self._executor = executor

    def _run_done_callbacks(self):
        with self._lock:
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            self._call(callback)

    def _call(self, callback):
        executor = self._executor
        if executor is not None and not getattr(callback, "is_immediate", False):
            executor.create_task(callback, self)
            return
        try:
            callback(self)
        except Exception as error:
            # Whoever has set the result is not to blame.
            warnings.warn(f"Unhandled exception in done callback: {error}", RuntimeWarning, stacklevel=2)


class Task(Future):
    """A function or coroutine that an executor runs, step by step."""

    def __init__(self, handler, args=None, kwargs=None, executor=None):
        super().__init__(executor=executor)
        self._handler = handler
        self._args, self._kwargs = args or (), kwargs or {}
        self._turn = threading.Lock()
        self._is_executing = False

    def __call__(self):
        """Goes on until it ends or waits."""
        if self.done() or not self._turn.acquire(blocking=False):
            return
        waits_for, has_more = None, False
        try:
            if self.done():
                return
            self._is_executing = True
            if inspect.iscoroutinefunction(self._handler):
                # Not before: one that is never run need not be awaited.
                self._handler = self._handler(*self._args, **self._kwargs)
            if inspect.iscoroutine(self._handler):
                _awaited.future = None
                try:
                    self._handler.send(None)
                except StopIteration as end:
                    self._end(end.value)
                else:
                    waits_for, has_more = _awaited.future, True
            else:
                self._end(self._handler(*self._args, **self._kwargs))
        except Exception as error:
            self._handler = None
            self.set_exception(error)
        finally:
            self._is_executing = False
            self._turn.release()
        # Not before: whoever goes on with it would find it busy, and leave it.
        if has_more:
            self._go_on_after(waits_for)

    def _end(self, result):
        self._handler, self._args, self._kwargs = None, (), {}
        self.set_result(result)

    def _go_on_after(self, waits_for):
        if waits_for is not None:
            # Not by its executor, which may be another that nobody spins.
            with waits_for._lock:
                if not waits_for.done():
                    waits_for._callbacks.append(TaskResume(self))
                    return
        self._resume()

    def _resume(self):
        if self._executor is not None:
            self._executor._call_task(self)

    def executing(self):
        return self._is_executing

    def cancel(self):
        super().cancel()
        if inspect.iscoroutine(self._handler) and self._turn.acquire(blocking=False):
            try:
                self._handler.close()
            finally:
                self._turn.release()


class TaskResume:
    # By whoever has set the result, not by an executor.
    is_immediate = True

    def __init__(self, task):
        self.task = task

    def __call__(self, _future):
        self.task._resume()
