"""Transforms between frames over topics: the buffer, what fills it, and what sends to others."""

from tf2_py import (
    BufferCore,
    ConnectivityException,
    ExtrapolationException,
    InvalidArgumentException,
    LookupException,
    TimeoutException,
    TransformException,
)

from .buffer import Buffer
from .buffer_interface import (
    BufferInterface,
    ConvertRegistration,
    NotImplementedException,
    Stamped,
    TransformRegistration,
    TypeException,
    convert,
)
from .static_transform_broadcaster import StaticTransformBroadcaster
from .transform_broadcaster import TransformBroadcaster
from .transform_listener import TransformListener

__all__ = [
    "Buffer",
    "BufferCore",
    "BufferInterface",
    "ConnectivityException",
    "ConvertRegistration",
    "ExtrapolationException",
    "InvalidArgumentException",
    "LookupException",
    "NotImplementedException",
    "Stamped",
    "StaticTransformBroadcaster",
    "TimeoutException",
    "TransformBroadcaster",
    "TransformException",
    "TransformListener",
    "TransformRegistration",
    "TypeException",
    "convert",
]
