"""What fills a buffer with the transforms that others send."""

import threading

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile
from tf2_msgs.msg import TFMessage

DEFAULT_TF_TOPIC = "/tf"
DEFAULT_STATIC_TF_TOPIC = "/tf_static"


class TransformListener:
    """Subscribes to transforms and puts them into a buffer.

    Callbacks run when the node is spun; with `spin_thread` a thread does that. With `static_only` only static transforms come.
    """

    def __init__(
        self,
        buffer,
        node,
        *,
        spin_thread=False,
        qos=None,
        static_qos=None,
        tf_topic=DEFAULT_TF_TOPIC,
        tf_static_topic=DEFAULT_STATIC_TF_TOPIC,
        static_only=False,
    ):
        if qos is None:
            qos = QoSProfile(depth=100, durability=DurabilityPolicy.VOLATILE, history=HistoryPolicy.KEEP_LAST)
        if static_qos is None:
            static_qos = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL, history=HistoryPolicy.KEEP_LAST)
        self.buffer = buffer
        self.node = node
        # A callback of the node may wait for a transform meanwhile.
        self.group = ReentrantCallbackGroup()
        if not static_only:
            self.tf_sub = node.create_subscription(TFMessage, tf_topic, self.callback, qos, callback_group=self.group)
        self.tf_static_sub = node.create_subscription(
            TFMessage, tf_static_topic, self.static_callback, static_qos, callback_group=self.group
        )
        if spin_thread:
            self.executor = SingleThreadedExecutor()
            # A daemon, so that a program that forgets to shut down ends nevertheless.
            self.dedicated_listener_thread = threading.Thread(target=_spin, args=(self.executor, node), daemon=True)
            self.dedicated_listener_thread.start()

    def __del__(self):
        thread = getattr(self, "dedicated_listener_thread", None)
        if thread is not None:
            self.executor.shutdown()
            if thread is not threading.current_thread():
                thread.join()
        self.unregister()

    def unregister(self):
        """Ends the subscriptions."""
        for name in ("tf_sub", "tf_static_sub"):
            subscription = self.__dict__.pop(name, None)
            if subscription is not None:
                self.node.destroy_subscription(subscription)

    def callback(self, data):
        for transform in data.transforms:
            self.buffer.set_transform(transform, "default_authority")

    def static_callback(self, data):
        for transform in data.transforms:
            self.buffer.set_transform_static(transform, "default_authority")


def _spin(executor, node):
    executor.add_node(node)
    try:
        executor.spin()
    except ExternalShutdownException:
        pass
    executor.remove_node(node)
