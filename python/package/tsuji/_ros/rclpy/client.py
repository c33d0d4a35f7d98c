"""Clients of services."""

import threading

import tsuji
from rclpy.entity import Entity
from rclpy.task import Future


class Client(Entity):
    """Calls a service. Made by `Node.create_client`."""

    def __init__(self, node, raw, srv_type, srv_name, qos_profile, callback_group):
        super().__init__(node, callback_group)
        self._raw, self.srv_type, self.srv_name, self.qos_profile = raw, srv_type, srv_name, qos_profile
        self._pending = {}
        self._lock = threading.Lock()

    def call(self, request, timeout_sec=None):
        """Calls and waits for the response, while another thread spins the node. Returns None after the time, as Jazzy's does."""
        event = threading.Event()
        future = self.call_async(request)
        future._set_executor(None)
        future.add_done_callback(lambda _: event.set())
        if not event.wait(timeout_sec):
            self.remove_pending_request(future)
            return None
        return future.result()

    def call_async(self, request):
        """Calls. Returns a future of the response, which comes while the node is spun."""
        if not isinstance(request, self.srv_type.Request):
            raise TypeError(f"Expected {self.srv_type.Request}, got {type(request)}")
        with self._lock:
            future = Future(executor=self.node.executor)
            # Under the lock: its response may come at once.
            self._pending[self._raw.post(request)] = future
        return future

    def get_pending_request(self, sequence_number):
        with self._lock:
            return self._pending[sequence_number]

    def remove_pending_request(self, future):
        """Forgets a call: its future will not be done."""
        with self._lock:
            self._pending = {number: it for number, it in self._pending.items() if it is not future}

    def _take(self):
        taken = self._raw.take()
        if taken is None:
            return None
        number, response = taken
        with self._lock:
            future = self._pending.pop(number, None)

        def respond():
            if future is not None and not future.cancelled():
                future._set_executor(self.node.executor)
                future.set_result(response)

        return respond

    def service_is_ready(self):
        return 0 < self._raw.servers

    def wait_for_service(self, timeout_sec=None):
        """Waits until there is a server. Returns whether there is one."""

        def wait(seconds):
            try:
                self._raw.wait_for_service(seconds)
            except (tsuji.NoServerError, TimeoutError):
                return False
            return True

        return self.node.context._in_steps(timeout_sec, wait)

    @property
    def service_name(self):
        return self._raw.name

    @property
    def logger_name(self):
        return self.node.get_logger().name

    @property
    def handle(self):
        return self._raw

    def configure_introspection(self, clock, service_event_qos_profile, introspection_state):
        _refuse_introspection(introspection_state)

    def destroy(self):
        self.node.destroy_client(self)


def _refuse_introspection(state):
    from rclpy.service_introspection import ServiceIntrospectionState

    if state != ServiceIntrospectionState.OFF:
        raise NotImplementedError("service introspection: tsuji.rclpy does not have it")
