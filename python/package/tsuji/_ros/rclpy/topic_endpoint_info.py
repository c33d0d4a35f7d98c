"""What the graph tells of an endpoint."""

from dataclasses import dataclass
from enum import IntEnum


class TopicEndpointTypeEnum(IntEnum):
    INVALID = 0
    PUBLISHER = 1
    SUBSCRIPTION = 2


@dataclass
class TopicEndpointInfo:
    """A publisher or subscription of a topic."""

    node_name: str = ""
    node_namespace: str = ""
    topic_type: str = ""
    topic_type_hash: str = ""
    endpoint_type: TopicEndpointTypeEnum = TopicEndpointTypeEnum.INVALID
    endpoint_gid: tuple = ()
    qos_profile: object = None

    def __str__(self):
        gid = ".".join(f"{it:02x}" for it in self.endpoint_gid)
        return (
            f"Node name: {self.node_name}\nNode namespace: {self.node_namespace}\nTopic type: {self.topic_type}\n"
            f"Topic type hash: {self.topic_type_hash}\nEndpoint type: {self.endpoint_type.name}\nGID: {gid}\nQoS profile: {self.qos_profile}"
        )
