"""Nodes."""

import copy
import weakref

import tsuji
from rclpy._parameters import ParametersMixin
from rclpy.callback_groups import CallbackGroup, MutuallyExclusiveCallbackGroup, ReentrantCallbackGroup
from rclpy.client import Client
from rclpy.clock import Clock, ROSClock
from rclpy.clock_type import ClockType
from rclpy.entity import DestroyedHandle
from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
from rclpy.exceptions import NotInitializedException
from rclpy.expand_topic_name import _expanded
from rclpy.guard_condition import GuardCondition
from rclpy.impl import rcutils_logger
from rclpy.logging import get_logger
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher
from rclpy.qos import (
    DurabilityPolicy,
    QoSProfile,
    ReliabilityPolicy,
    qos_profile_parameter_events,
    qos_profile_services_default,
)
from rclpy.qos_overriding_options import _declare_qos_parameters
from rclpy.service import Service
from rclpy.subscription import Subscription
from rclpy.time_source import TimeSource
from rclpy.timer import Rate, Timer
from rclpy.topic_endpoint_info import TopicEndpointInfo, TopicEndpointTypeEnum
from rclpy.type_support import check_is_valid_msg_type, check_is_valid_srv_type
from rclpy.utilities import get_default_context
from rclpy.validate import validate_namespace, validate_node_name, validate_topic_name

HIDDEN_NODE_PREFIX = "_"


class Node(ParametersMixin):
    """A node: a name in the graph, and what is made under it."""

    PARAM_REL_TOL = 1e-6

    def __init__(
        self,
        node_name,
        *,
        context=None,
        cli_args=None,
        namespace=None,
        use_global_arguments=True,
        enable_rosout=True,
        start_parameter_services=True,
        parameter_overrides=None,
        allow_undeclared_parameters=False,
        automatically_declare_parameters_from_overrides=False,
        enable_logger_service=False,
    ):
        self._context = get_default_context() if context is None else context
        if not self._context.ok():
            raise NotInitializedException("cannot create node")
        validate_node_name(node_name)
        namespace = namespace or "/"
        namespace = namespace if namespace.startswith("/") else "/" + namespace
        validate_namespace(namespace)
        of_all, own = (self._context.arguments if use_global_arguments else []), list(cli_args or ())
        # Of rules for names the first counts, of values of parameters the last: the node's own before all others.
        arguments = [*own, "--", *of_all, "--", *own] if own and of_all else [*own, *of_all]
        if not enable_rosout:
            arguments += ["--ros-args", "--disable-rosout-logs"]
        self._raw = tsuji._tsuji.Node(node_name, namespace=namespace, domain=self._context._domain_id, arguments=arguments)
        self._name = self._raw.name
        self._namespace = self._raw.fully_qualified_name.rpartition("/")[0] or "/"
        self._publishers, self._subscriptions, self._clients, self._services = [], [], [], []
        self._timers, self._guards, self._event_handlers, self._others = [], [], [], []
        self._default_callback_group = MutuallyExclusiveCallbackGroup()
        self._executor = None
        logger_name = self._raw.fully_qualified_name.lstrip("/").replace("/", ".")
        rcutils_logger.add_node(logger_name, self)
        self._logger = get_logger(logger_name)
        self._clock = ROSClock()
        said = self._raw.parameters_from_arguments()
        self._init_parameters(said, parameter_overrides, allow_undeclared_parameters, automatically_declare_parameters_from_overrides)
        self._time_source = TimeSource(node=self)
        self._time_source.attach_clock(self._clock)
        if start_parameter_services:
            from rclpy.parameter_service import ParameterService

            self._parameter_service = ParameterService(self)
        if enable_logger_service:
            from rclpy.logging_service import LoggingService

            self._logger_service = LoggingService(self)

    # What is made under it.

    publishers = property(lambda self: iter(list(self._publishers)))
    subscriptions = property(lambda self: iter(list(self._subscriptions)))
    clients = property(lambda self: iter(list(self._clients)))
    services = property(lambda self: iter(list(self._services)))
    timers = property(lambda self: iter(list(self._timers)))
    guards = property(lambda self: iter(list(self._guards)))
    waitables = property(lambda self: iter([*self._event_handlers, *self._others]))

    def _entities(self):
        """All that an executor waits for."""
        return [*self._guards, *self._event_handlers, *self._subscriptions, *self._clients, *self._services, *self._others]

    def _hide(self, entity):
        """Lets no executor take what comes to this one, which stays the node's."""
        for entities in (self._subscriptions, self._others):
            if entity in entities:
                entities.remove(entity)
        self._wake_executor()

    @property
    def executor(self):
        return None if self._executor is None else self._executor()

    @executor.setter
    def executor(self, new_executor):
        current = self.executor
        if current is new_executor:
            return
        if current is not None:
            current.remove_node(self)
        if new_executor is None:
            self._executor = None
        else:
            self._executor = weakref.ref(new_executor)
            new_executor.add_node(self)

    def _leave(self, executor):
        if self.executor is executor:
            self._executor = None

    def _wake_executor(self):
        executor = self.executor
        if executor is not None:
            executor.wake()

    @property
    def context(self):
        return self._context

    @property
    def default_callback_group(self):
        return self._default_callback_group

    @property
    def handle(self):
        return self._raw

    def get_name(self):
        return self._name

    def get_namespace(self):
        return self._namespace

    def get_fully_qualified_name(self):
        return self._raw.fully_qualified_name

    def get_clock(self):
        return self._clock

    def get_logger(self):
        return self._logger

    def _qos_of(self, qos_or_depth):
        if isinstance(qos_or_depth, QoSProfile):
            return qos_or_depth
        if not isinstance(qos_or_depth, int):
            raise TypeError(f"Expected QoSProfile or int, but received '{type(qos_or_depth)}'")
        if qos_or_depth < 0:
            raise ValueError("history depth must be greater than or equal to zero")
        return QoSProfile(depth=qos_or_depth)

    def _other_ends(self, qos, topic, kind):
        """The profiles at the other end, for whoever wants the best available."""
        if qos.reliability is not ReliabilityPolicy.BEST_AVAILABLE and qos.durability is not DurabilityPolicy.BEST_AVAILABLE:
            return ()
        return [it.qos_profile for it in self._info_by_topic(topic, kind)]

    def _endpoint_parts(self, kind, msg_type, topic, qos_profile, overriding):
        """What an endpoint of a topic is made with: its profile, the same as tsuji has it, and what its events trigger."""
        qos = self._qos_of(qos_profile)
        check_is_valid_msg_type(msg_type)
        validate_topic_name(topic)
        if overriding is not None:
            qos = copy.copy(qos)
            _declare_qos_parameters(kind, self, self.resolve_topic_name(topic), qos, overriding)
        other = {"publisher": "subscription", "subscription": "publisher"}[kind]
        return qos, qos._to_tsuji(self._other_ends(qos, topic, other)), self._raw.guard_condition()

    def _added(self, entities, entity):
        """Keeps an entity, and lets the executor know of it. Returns it."""
        entities.append(entity)
        self._wake_executor()
        return entity

    def create_publisher(
        self,
        msg_type,
        topic,
        qos_profile,
        *,
        callback_group=None,
        event_callbacks=None,
        qos_overriding_options=None,
        publisher_class=Publisher,
    ):
        """A publisher of messages of a type."""
        qos, made, events = self._endpoint_parts("publisher", msg_type, topic, qos_profile, qos_overriding_options)
        raw = self._raw.publisher(topic, msg_type, made, events=events)
        publisher = publisher_class(
            self,
            raw,
            msg_type,
            topic,
            qos,
            event_callbacks or PublisherEventCallbacks(),
            events,
            callback_group or self._default_callback_group,
        )
        self._event_handlers.extend(publisher.event_handlers)
        return self._added(self._publishers, publisher)

    def create_subscription(
        self,
        msg_type,
        topic,
        callback,
        qos_profile,
        *,
        callback_group=None,
        event_callbacks=None,
        qos_overriding_options=None,
        raw=False,
        content_filter_options=None,
    ):
        """A subscription to messages of a type, which `callback` gets while the node is spun."""
        qos, made, events = self._endpoint_parts("subscription", msg_type, topic, qos_profile, qos_overriding_options)
        endpoint = self._raw.subscription(topic, msg_type, made, events=events)
        if content_filter_options is not None and content_filter_options.filter_expression:
            endpoint.set_content_filter(content_filter_options.filter_expression, list(content_filter_options.expression_parameters))
        group = callback_group or self._default_callback_group
        subscription = Subscription(
            self, endpoint, msg_type, topic, callback, group, qos, raw, event_callbacks or SubscriptionEventCallbacks(), events
        )
        self._event_handlers.extend(subscription.event_handlers)
        return self._added(self._subscriptions, subscription)

    def create_client(self, srv_type, srv_name, *, qos_profile=qos_profile_services_default, callback_group=None):
        """A client of a service."""
        check_is_valid_srv_type(srv_type)
        validate_topic_name(srv_name, is_service=True)
        raw = self._raw.client(srv_name, srv_type, qos_profile._to_tsuji())
        client = Client(self, raw, srv_type, srv_name, qos_profile, callback_group or self._default_callback_group)
        return self._added(self._clients, client)

    def create_service(self, srv_type, srv_name, callback, *, qos_profile=qos_profile_services_default, callback_group=None):
        """A server, whose `callback` gets a request and a response to fill, which it returns, while the node is spun."""
        check_is_valid_srv_type(srv_type)
        validate_topic_name(srv_name, is_service=True)
        raw = self._raw.polled_service(srv_name, srv_type, qos_profile._to_tsuji())
        service = Service(self, raw, srv_type, srv_name, callback, callback_group or self._default_callback_group, qos_profile)
        return self._added(self._services, service)

    def create_timer(self, timer_period_sec, callback, callback_group=None, clock=None, autostart=True):
        """Calls back every `timer_period_sec` seconds of ROS time, or of this clock, while the node is spun."""
        group = callback_group or self._default_callback_group
        timer = Timer(self, callback, group, int(float(timer_period_sec) * 10**9), clock or self._clock, autostart)
        return self._added(self._timers, timer)

    def create_guard_condition(self, callback, callback_group=None):
        """What calls back after it was triggered."""
        guard = GuardCondition(self, callback, callback_group or self._default_callback_group)
        return self._added(self._guards, guard)

    def create_rate(self, frequency, clock=None):
        """What sleeps so that a loop runs so many times a second."""
        if frequency <= 0:
            raise ValueError("frequency must be > 0")
        return Rate(self, clock or self._clock, int(10**9 / frequency))

    def add_waitable(self, waitable):
        self._added(self._others, waitable)

    def remove_waitable(self, waitable):
        self._others.remove(waitable)
        self._wake_executor()

    def _destroy(self, entities, entity):
        if entity not in entities:
            return False
        entities.remove(entity)
        self._forget(entity)
        return True

    def _forget(self, entity):
        for handler in getattr(entity, "event_handlers", ()):
            if handler in self._event_handlers:
                self._event_handlers.remove(handler)
                handler._raw = None
        # It leaves the graph now; whoever still has the entity is told that it has ended.
        entity._raw = DestroyedHandle(entity)
        self._wake_executor()

    def destroy_publisher(self, publisher):
        return self._destroy(self._publishers, publisher)

    def destroy_subscription(self, subscription):
        known = self._destroy(self._subscriptions, subscription)
        if not known and not isinstance(subscription._raw, DestroyedHandle):
            # One that was hidden.
            self._forget(subscription)
        return known

    def destroy_client(self, client):
        return self._destroy(self._clients, client)

    def destroy_service(self, service):
        return self._destroy(self._services, service)

    def destroy_timer(self, timer):
        if timer not in self._timers:
            return False
        self._timers.remove(timer)
        timer.cancel()
        return True

    def destroy_guard_condition(self, guard):
        return self._destroy(self._guards, guard)

    def destroy_rate(self, rate):
        rate.destroy()
        return True

    def destroy_node(self):
        """Ends the node and all that was made under it."""
        executor = self.executor
        if executor is not None:
            executor.remove_node(self)
        self._executor = None
        self._time_source.detach_node()
        for other in list(self._others):
            other.destroy()
        for entities in (self._publishers, self._subscriptions, self._clients, self._services, self._guards):
            for entity in list(entities):
                self._destroy(entities, entity)
        for timer in list(self._timers):
            self.destroy_timer(timer)
        self._raw.shutdown()

    # The graph.

    def resolve_topic_name(self, topic, *, only_expand=False):
        """The full name of a topic; remappings are not looked at."""
        validate_topic_name(topic)
        return _expanded(topic, self._name, self._namespace)

    def resolve_service_name(self, service, *, only_expand=False):
        """The full name of a service; remappings are not looked at."""
        validate_topic_name(service, is_service=True)
        return _expanded(service, self._name, self._namespace)

    def _endpoints(self, *kinds):
        return [it for it in self._raw.graph()[1] if it[1] in kinds]

    @staticmethod
    def _names_and_types(endpoints):
        found = {}
        for _, _, name, type_name, *_ in endpoints:
            types = found.setdefault(name, [])
            if type_name not in types:
                types.append(type_name)
        return sorted((name, sorted(types)) for name, types in found.items())

    def _of_node(self, kind, node_name, node_namespace):
        full = f"{node_namespace.rstrip('/')}/{node_name}"
        nodes, endpoints = self._raw.graph()
        if not any(f"{namespace.rstrip('/')}/{name}" == full for name, namespace, _ in nodes):
            raise NodeNameNonExistentError(f"Cannot get {kind} names and types for nonexistent node: {full}")
        return self._names_and_types(it for it in endpoints if it[1] == kind and it[0] == full)

    def get_publisher_names_and_types_by_node(self, node_name, node_namespace, no_demangle=False):
        return self._of_node("publisher", node_name, node_namespace)

    def get_subscriber_names_and_types_by_node(self, node_name, node_namespace, no_demangle=False):
        return self._of_node("subscription", node_name, node_namespace)

    def get_service_names_and_types_by_node(self, node_name, node_namespace):
        return self._of_node("server", node_name, node_namespace)

    def get_client_names_and_types_by_node(self, node_name, node_namespace):
        return self._of_node("client", node_name, node_namespace)

    def get_topic_names_and_types(self, no_demangle=False):
        return self._names_and_types(self._endpoints("publisher", "subscription"))

    def get_service_names_and_types(self):
        return self._names_and_types(self._endpoints("server", "client"))

    def get_node_names(self):
        return [name for name, _, _ in self._raw.graph()[0]]

    def get_fully_qualified_node_names(self):
        return [f"{namespace.rstrip('/')}/{name}" for name, namespace, _ in self._raw.graph()[0]]

    def get_node_names_and_namespaces(self):
        return [(name, namespace) for name, namespace, _ in self._raw.graph()[0]]

    def get_node_names_and_namespaces_with_enclaves(self):
        return list(self._raw.graph()[0])

    def _count(self, kind, name):
        full = _expanded(name, self._name, self._namespace)
        return sum(it[2] == full for it in self._endpoints(kind))

    def count_publishers(self, topic_name):
        validate_topic_name(topic_name)
        return self._count("publisher", topic_name)

    def count_subscribers(self, topic_name):
        validate_topic_name(topic_name)
        return self._count("subscription", topic_name)

    def count_clients(self, service_name):
        validate_topic_name(service_name, is_service=True)
        return self._count("client", service_name)

    def count_services(self, service_name):
        validate_topic_name(service_name, is_service=True)
        return self._count("server", service_name)

    def _info_by_topic(self, topic_name, kind):
        full = _expanded(topic_name, self._name, self._namespace)
        ends = {"publisher": TopicEndpointTypeEnum.PUBLISHER, "subscription": TopicEndpointTypeEnum.SUBSCRIPTION}
        found = []
        for node, is_kind, name, type_name, type_hash, gid, qos in self._endpoints(kind):
            if name == full:
                namespace, _, node_name = node.rpartition("/")
                found.append(
                    TopicEndpointInfo(
                        node_name=node_name,
                        node_namespace=namespace or "/",
                        topic_type=type_name,
                        topic_type_hash=type_hash,
                        endpoint_type=ends[is_kind],
                        endpoint_gid=list(bytes.fromhex("".join(it for it in gid if it in "0123456789abcdef"))),
                        qos_profile=QoSProfile._of_tsuji(qos),
                    )
                )
        return found

    def get_publishers_info_by_topic(self, topic_name, no_mangle=False):
        return self._info_by_topic(topic_name, "publisher")

    def get_subscriptions_info_by_topic(self, topic_name, no_mangle=False):
        return self._info_by_topic(topic_name, "subscription")

    def wait_for_node(self, fully_qualified_node_name, timeout):
        """Waits until there is such a node, for so many seconds. Returns whether there is."""
        guard, waits = self._raw.graph_guard_condition(), self._raw.wait_list()

        def wait(seconds):
            if fully_qualified_node_name in self.get_fully_qualified_node_names():
                return True
            waits.wait([guard], seconds)
            return False

        return self._context._in_steps(timeout, wait)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.destroy_node()

    def __repr__(self):
        return f"<rclpy node {self.get_fully_qualified_name()}>"


class NodeNameNonExistentError(RuntimeError):
    """There is no node of that name."""


def __getattr__(name):
    if name == "ParameterEvent":
        from rcl_interfaces.msg import ParameterEvent

        return ParameterEvent
    raise AttributeError(name)


__all__ = [
    "CallbackGroup",
    "Clock",
    "ClockType",
    "Node",
    "NodeNameNonExistentError",
    "Parameter",
    "ReentrantCallbackGroup",
    "qos_profile_parameter_events",
]
