"""What a node with a lifecycle takes through its states."""

import inspect
from functools import wraps

from rclpy.lifecycle.transitions import TransitionCallbackReturn


class ManagedEntity:
    """Is told of each transition."""

    def on_configure(self, state):
        return TransitionCallbackReturn.SUCCESS

    def on_cleanup(self, state):
        return TransitionCallbackReturn.SUCCESS

    def on_shutdown(self, state):
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state):
        return TransitionCallbackReturn.SUCCESS

    def on_deactivate(self, state):
        return TransitionCallbackReturn.SUCCESS

    def on_error(self, state):
        return TransitionCallbackReturn.SUCCESS


class SimpleManagedEntity(ManagedEntity):
    """Is active or not."""

    def __init__(self):
        self._enabled = False

    def on_activate(self, state):
        self._enabled = True
        return TransitionCallbackReturn.SUCCESS

    def on_deactivate(self, state):
        self._enabled = False
        return TransitionCallbackReturn.SUCCESS

    @property
    def is_activated(self):
        return self._enabled

    @staticmethod
    def when_enabled(wrapped=None, *, when_not_enabled=None):
        """Lets a method do something only while the entity is active."""

        def decorator(wrapped):
            @wraps(wrapped)
            def only_while_active(self, *args, **kwargs):
                if not self._enabled:
                    return None if when_not_enabled is None else when_not_enabled()
                return wrapped(self, *args, **kwargs)

            only_while_active.__signature__ = inspect.signature(wrapped)
            return only_while_active

        return decorator if wrapped is None else decorator(wrapped)
