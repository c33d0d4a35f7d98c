"""Which callbacks may run at the same time."""

import threading
import weakref


class CallbackGroup:
    """Base of the groups."""

    def __init__(self):
        self.entities = weakref.WeakSet()

    def add_entity(self, entity):
        self.entities.add(entity)

    def has_entity(self, entity):
        return entity in self.entities

    def can_execute(self, entity):
        raise NotImplementedError()

    def beginning_execution(self, entity):
        raise NotImplementedError()

    def ending_execution(self, entity):
        raise NotImplementedError()


class ReentrantCallbackGroup(CallbackGroup):
    """Its callbacks run beside each other, and each beside itself."""

    def can_execute(self, entity):
        return True

    def beginning_execution(self, entity):
        return True

    def ending_execution(self, entity):
        pass


class MutuallyExclusiveCallbackGroup(CallbackGroup):
    """Its callbacks run one at a time."""

    def __init__(self):
        super().__init__()
        self._active = None
        self._lock = threading.Lock()

    def can_execute(self, entity):
        return self._active is None

    def beginning_execution(self, entity):
        with self._lock:
            if self._active is not None:
                return False
            self._active = entity
            return True

    def ending_execution(self, entity):
        with self._lock:
            self._active = None
