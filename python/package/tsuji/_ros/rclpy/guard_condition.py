"""Guard conditions: callbacks that a program itself makes due."""

from rclpy.entity import GuardedEntity, work_of


class GuardCondition(GuardedEntity):
    """Calls back after it was triggered. Made by `Node.create_guard_condition`."""

    def __init__(self, node, callback, callback_group):
        super().__init__(node, callback_group)
        self.callback = callback
        self._raw = node._raw.guard_condition()
        self._is_triggered = False

    def _take(self):
        if not self._is_triggered:
            return None
        self._is_triggered = False
        return work_of(self.callback) if self.callback is not None else (lambda: None)

    def trigger(self):
        self._is_triggered = True
        self._raw.trigger()

    @property
    def handle(self):
        return self._raw

    def destroy(self):
        self.node.destroy_guard_condition(self)
