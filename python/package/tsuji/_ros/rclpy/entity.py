"""What an executor asks of everything that it runs callbacks of."""

import inspect

from rclpy.exceptions import InvalidHandle


class Entity:
    """Something of a node that has callbacks."""

    def __init__(self, node, callback_group):
        self.node = node
        self.callback_group = callback_group
        # Whether it waits for a thread that takes what has come.
        self._is_pending = False
        callback_group.add_entity(self)

    def _can_execute(self):
        """Whether it may be waited for."""
        return True

    def _waitable(self):
        """What ends a wait; None where nothing does."""
        return self._raw

    def _missed(self):
        """A wait said that it is ready, and it could not be run."""

    def _take(self):
        """Something to be run for what has come, as `Task` takes it; None where nothing has."""
        raise NotImplementedError()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.destroy()


class GuardedEntity(Entity):
    """One whose `_raw` is a guard condition. A wait says but once that this is ready, so it is triggered again where that was missed."""

    def _missed(self):
        self._raw.trigger()


class DestroyedHandle:
    """In the place of what was destroyed."""

    def __init__(self, entity):
        self._what = type(entity).__name__

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise InvalidHandle(f"cannot use {self._what} because destruction was requested")


def work_of(callback, *arguments, then=None):
    """What calls `callback`, which may be a coroutine function, and `then` with its result."""
    if inspect.iscoroutinefunction(callback):

        async def wait():
            result = await callback(*arguments)
            return result if then is None else then(result)

        return wait

    def call():
        result = callback(*arguments)
        return result if then is None else then(result)

    return call
