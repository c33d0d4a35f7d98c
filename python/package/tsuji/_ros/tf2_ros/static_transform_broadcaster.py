"""What sends transforms that are valid at any time."""

from copy import deepcopy

from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile
from tf2_msgs.msg import TFMessage

from .transform_broadcaster import as_list


class StaticTransformBroadcaster:
    """Publishes static transforms on `/tf_static`, each time all that it was given, for those that subscribe later."""

    def __init__(self, node, qos=None):
        if qos is None:
            qos = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL, history=HistoryPolicy.KEEP_LAST)
        self.pub_tf = node.create_publisher(TFMessage, "/tf_static", qos)
        self.net_message = TFMessage()
        self._transforms = {}

    def sendTransform(self, transform):
        """Adds a transform, or several, and publishes all. One for the same child frame replaces the one before."""
        for it in as_list(transform):
            # The caller may go on to change its own.
            self._transforms[it.child_frame_id] = deepcopy(it)
        self.net_message = TFMessage(transforms=list(self._transforms.values()))
        self.pub_tf.publish(self.net_message)
