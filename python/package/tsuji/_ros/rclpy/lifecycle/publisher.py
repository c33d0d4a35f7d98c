"""Publishers that publish while their node is active."""

from rclpy.lifecycle.managed_entity import SimpleManagedEntity
from rclpy.publisher import Publisher


class LifecyclePublisher(SimpleManagedEntity, Publisher):
    """Publishes while it is active, and drops messages else."""

    def __init__(self, *args, **kwargs):
        SimpleManagedEntity.__init__(self)
        Publisher.__init__(self, *args, **kwargs)

    @SimpleManagedEntity.when_enabled
    def publish(self, msg):
        Publisher.publish(self, msg)
