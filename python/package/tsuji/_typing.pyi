"""What the stubs of messages are written in."""

from collections.abc import Iterable
from typing import Any, Generic, TypeAlias, TypeVar, overload

import numpy
from numpy.typing import NDArray

N = TypeVar("N", bound=numpy.generic)
P = TypeVar("P")

NumbersIn: TypeAlias = NDArray[N] | Iterable[P] | bytes | bytearray | memoryview

class Numbers(Generic[N, P]):
    """A field of numbers: read as an array, and set to whatever makes one."""

    @overload
    def __get__(self, message: None, owner: Any = ..., /) -> Numbers[N, P]: ...
    @overload
    def __get__(self, message: object, owner: Any = ..., /) -> NDArray[N]: ...
    def __set__(self, message: object, value: NumbersIn[N, P], /) -> None: ...
