"""Nodes with a lifecycle."""

from rclpy.lifecycle.managed_entity import ManagedEntity, SimpleManagedEntity
from rclpy.lifecycle.node import LifecycleNode, LifecycleNodeMixin, LifecycleState
from rclpy.lifecycle.publisher import LifecyclePublisher
from rclpy.lifecycle.transitions import TransitionCallbackReturn

State = LifecycleState
Node = LifecycleNode
Publisher = LifecyclePublisher
NodeMixin = LifecycleNodeMixin

__all__ = [
    "LifecycleNode",
    "LifecycleNodeMixin",
    "LifecyclePublisher",
    "LifecycleState",
    "ManagedEntity",
    "Node",
    "NodeMixin",
    "Publisher",
    "SimpleManagedEntity",
    "State",
    "TransitionCallbackReturn",
]
