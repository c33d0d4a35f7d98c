"""Subscriptions."""

import inspect
from enum import Enum

import tsuji
from rclpy.entity import Entity, work_of


class Subscription(Entity):
    """Receives messages of a type from a topic. Made by `Node.create_subscription`."""

    class CallbackType(Enum):
        MessageOnly = 0
        WithMessageInfo = 1

    def __init__(self, node, raw, msg_type, topic, callback, callback_group, qos_profile, is_raw, event_callbacks, events):
        super().__init__(node, callback_group)
        self._raw, self.msg_type, self.topic, self.qos_profile, self.raw = raw, msg_type, topic, qos_profile, is_raw
        self.callback = callback
        self._received = 0
        self.event_handlers = event_callbacks._handlers(self, events, callback_group)

    @property
    def callback(self):
        return self._callback

    @callback.setter
    def callback(self, value):
        self._callback = value
        self._callback_type = Subscription.CallbackType.MessageOnly
        try:
            inspect.signature(value).bind(object())
        except TypeError:
            try:
                inspect.signature(value).bind(object(), object())
            except TypeError:
                raise RuntimeError(
                    "Subscription.__init__(): callback should be either be callable with one argument (to get only the message) or two "
                    "(to get message and message info)"
                ) from None
            self._callback_type = Subscription.CallbackType.WithMessageInfo
        except ValueError:
            # A function of C tells nothing of itself.
            pass

    def _take(self):
        message = self._raw.take()
        if message is None:
            return None
        self._received += 1
        given = message.to_bytes() if self.raw else message
        if self._callback_type is Subscription.CallbackType.MessageOnly:
            return work_of(self._callback, given)
        return work_of(self._callback, given, self._info_of(message))

    def _info_of(self, message):
        info = tsuji.info(message)
        sent = round(info["source_time"] * 1e9)
        latency = info["latency"]
        return {
            "source_timestamp": sent,
            "received_timestamp": sent + round((latency or 0) * 1e9),
            "publication_sequence_number": info["sequence"],
            "reception_sequence_number": self._received,
        }

    def get_publisher_count(self):
        return self._raw.matched

    @property
    def topic_name(self):
        return self._raw.topic

    @property
    def logger_name(self):
        return self.node.get_logger().name

    @property
    def handle(self):
        return self._raw

    def destroy(self):
        self.node.destroy_subscription(self)
