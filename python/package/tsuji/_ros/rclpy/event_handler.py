"""Events of publishers and subscriptions: deadlines missed, liveliness, QoS that does not fit."""

from dataclasses import dataclass

from rclpy.entity import GuardedEntity, work_of
from rclpy.exceptions import UnsupportedEventTypeError
from rclpy.qos import QoSPolicyKind, qos_policy_name_from_kind


@dataclass
class QoSRequestedDeadlineMissedInfo:
    total_count: int = 0
    total_count_change: int = 0


class QoSOfferedDeadlineMissedInfo(QoSRequestedDeadlineMissedInfo):
    pass


class QoSLivelinessLostInfo(QoSRequestedDeadlineMissedInfo):
    pass


class QoSMessageLostInfo(QoSRequestedDeadlineMissedInfo):
    pass


class IncompatibleTypeInfo(QoSRequestedDeadlineMissedInfo):
    pass


@dataclass
class QoSLivelinessChangedInfo:
    alive_count: int = 0
    not_alive_count: int = 0
    alive_count_change: int = 0
    not_alive_count_change: int = 0


@dataclass
class QoSRequestedIncompatibleQoSInfo:
    total_count: int = 0
    total_count_change: int = 0
    last_policy_kind: int = 0


class QoSOfferedIncompatibleQoSInfo(QoSRequestedIncompatibleQoSInfo):
    pass


@dataclass
class MatchedInfo:
    total_count: int = 0
    total_count_change: int = 0
    current_count: int = 0
    current_count_change: int = 0


QoSSubscriptionMatchedInfo = QoSPublisherMatchedInfo = MatchedInfo


class EventHandler(GuardedEntity):
    """Calls back for the events of an endpoint. It runs as the other entities of the node do."""

    def __init__(self, node, endpoint, events, callback_group, callbacks, kinds):
        super().__init__(node, callback_group)
        # What is waited for is this condition, and what is taken are the endpoint's events.
        self._raw, self._endpoint, self._callbacks, self._kinds = events, endpoint, callbacks, kinds
        self._counts = {}
        self._due = []
        # Some may have come before anybody waited.
        events.trigger()

    def _take(self):
        for event in self._endpoint._raw.take_events():
            made = self._info_of(event)
            callback = self._callbacks.get(event["event"])
            if made is not None and callback is not None:
                self._due.append((callback, made))
        if not self._due:
            return None
        callback, info = self._due.pop(0)
        if self._due:
            self._raw.trigger()
        return work_of(callback, info)

    def _info_of(self, event):
        kind = event["event"]
        make = self._kinds.get(kind)
        if make is None:
            return None
        before = self._counts.get(kind, (0, 0))
        if kind == "matched":
            current = event["current"]
            change = current - before[1]
            total = before[0] + max(change, 0)
            self._counts[kind] = (total, current)
            return make(total, max(change, 0), current, change)
        if kind == "liveliness_changed":
            alive, not_alive = event["alive"], event["not_alive"]
            self._counts[kind] = (alive, not_alive)
            return make(alive, not_alive, alive - before[0], not_alive - before[1])
        total = event.get("total", before[0] + 1)
        self._counts[kind] = (total, 0)
        if kind == "incompatible_qos":
            return make(total, total - before[0], _policy_of(event["mismatches"]))
        return make(total, total - before[0])

    def destroy(self):
        self._callbacks = {}


# Names of policies as tsuji says them first in a mismatch.
_POLICIES = {
    "reliability": QoSPolicyKind.RELIABILITY,
    "durability": QoSPolicyKind.DURABILITY,
    "deadline": QoSPolicyKind.DEADLINE,
    "liveliness": QoSPolicyKind.LIVELINESS,
}


def _policy_of(mismatches):
    for mismatch in mismatches:
        for name, kind in _POLICIES.items():
            if mismatch.startswith(name):
                return kind
    return QoSPolicyKind.INVALID


class _EventCallbacks:
    def _handlers(self, endpoint, events, callback_group):
        """The handlers of an endpoint whose events are kept, in a list, as rclpy has them."""
        callbacks = {kind: it for kind, it in self._by_kind().items() if it is not None}
        if "incompatible_qos" not in callbacks and self.use_default_callbacks:
            callbacks["incompatible_qos"] = lambda info: self._warn(endpoint, info)
        if not callbacks:
            return []
        return [EventHandler(endpoint.node, endpoint, events, callback_group, callbacks, self._kinds)]


class SubscriptionEventCallbacks(_EventCallbacks):
    """What is called for the events of a subscription."""

    _kinds = {
        "deadline_missed": QoSRequestedDeadlineMissedInfo,
        "liveliness_changed": QoSLivelinessChangedInfo,
        "message_lost": QoSMessageLostInfo,
        "incompatible_qos": QoSRequestedIncompatibleQoSInfo,
        "incompatible_type": IncompatibleTypeInfo,
        "matched": QoSSubscriptionMatchedInfo,
    }

    def __init__(
        self,
        *,
        deadline=None,
        incompatible_qos=None,
        liveliness=None,
        message_lost=None,
        incompatible_type=None,
        matched=None,
        use_default_callbacks=True,
    ):
        self.deadline, self.incompatible_qos, self.liveliness = deadline, incompatible_qos, liveliness
        self.message_lost, self.incompatible_type, self.matched = message_lost, incompatible_type, matched
        self.use_default_callbacks = use_default_callbacks

    def _by_kind(self):
        return {
            "deadline_missed": self.deadline,
            "liveliness_changed": self.liveliness,
            "message_lost": self.message_lost,
            "incompatible_qos": self.incompatible_qos,
            "incompatible_type": self.incompatible_type,
            "matched": self.matched,
        }

    @staticmethod
    def _warn(subscription, info):
        policy = qos_policy_name_from_kind(info.last_policy_kind)
        subscription.node.get_logger().warning(
            f"New publisher discovered on topic '{subscription.topic_name}', offering incompatible QoS. "
            f"No messages will be received from it. Last incompatible policy: {policy}"
        )


class PublisherEventCallbacks(_EventCallbacks):
    """What is called for the events of a publisher."""

    _kinds = {
        "deadline_missed": QoSOfferedDeadlineMissedInfo,
        "liveliness_lost": QoSLivelinessLostInfo,
        "incompatible_qos": QoSOfferedIncompatibleQoSInfo,
        "incompatible_type": IncompatibleTypeInfo,
        "matched": QoSPublisherMatchedInfo,
    }

    def __init__(
        self, *, deadline=None, incompatible_qos=None, liveliness=None, incompatible_type=None, matched=None, use_default_callbacks=True
    ):
        self.deadline, self.incompatible_qos, self.liveliness = deadline, incompatible_qos, liveliness
        self.incompatible_type, self.matched = incompatible_type, matched
        self.use_default_callbacks = use_default_callbacks

    def _by_kind(self):
        return {
            "deadline_missed": self.deadline,
            "liveliness_lost": self.liveliness,
            "incompatible_qos": self.incompatible_qos,
            "incompatible_type": self.incompatible_type,
            "matched": self.matched,
        }

    @staticmethod
    def _warn(publisher, info):
        policy = qos_policy_name_from_kind(info.last_policy_kind)
        publisher.node.get_logger().warning(
            f"New subscription discovered on topic '{publisher.topic_name}', requesting incompatible QoS. "
            f"No messages will be sent to it. Last incompatible policy: {policy}"
        )


QoSEventHandler = EventHandler

__all__ = [
    "EventHandler",
    "IncompatibleTypeInfo",
    "PublisherEventCallbacks",
    "QoSEventHandler",
    "QoSLivelinessChangedInfo",
    "QoSLivelinessLostInfo",
    "QoSMessageLostInfo",
    "QoSOfferedDeadlineMissedInfo",
    "QoSOfferedIncompatibleQoSInfo",
    "QoSPublisherMatchedInfo",
    "QoSRequestedDeadlineMissedInfo",
    "QoSRequestedIncompatibleQoSInfo",
    "QoSSubscriptionMatchedInfo",
    "SubscriptionEventCallbacks",
    "UnsupportedEventTypeError",
]
