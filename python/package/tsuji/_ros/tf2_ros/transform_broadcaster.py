"""What sends transforms."""

from rclpy.qos import QoSProfile
from tf2_msgs.msg import TFMessage


class TransformBroadcaster:
    """Publishes transforms on `/tf`."""

    def __init__(self, node, qos=None):
        self.pub_tf = node.create_publisher(TFMessage, "/tf", QoSProfile(depth=100) if qos is None else qos)

    def sendTransform(self, transform):
        """Publishes a transform, or several together."""
        self.pub_tf.publish(TFMessage(transforms=as_list(transform)))


def as_list(transform):
    return list(transform) if hasattr(transform, "__iter__") else [transform]
