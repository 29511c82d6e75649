"""Descriptors of im2col maps: what `TmaDescriptor.im2col` and `TmaDescriptor.im2col_wide` make.

A class of their own each: the hardware faults when a copy of one kind goes through a map of another, so checkers must tell them apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Never, final

from typing_extensions import TypeVar

from oxidecopy.errors import ScopeError
from oxidecopy.typed.dtypes import DType
from oxidecopy.typed.geometry import AnyBox, AnySwizzle
from oxidecopy.typed.map_handle import MapHandle
from oxidecopy.typed.refusal import refuse
from oxidecopy.typed.symbolic import Idx

DT = TypeVar("DT", bound=DType)
C = TypeVar("C", bound=tuple[Idx, ...])
SW_co = TypeVar("SW_co", bound=AnySwizzle, default=AnySwizzle, covariant=True)
Bx = TypeVar("Bx", bound=AnyBox, default=Any)


@final
class Im2colDescriptor(MapHandle[DT, C], Generic[DT, C, SW_co, Bx]):
    """An im2col map over an array of (n, [[d,] h,] w, c); `Bx` is `Box2[pixels, channels]`, what one copy moves.

    A copy starts at a filter base and walks on, pixel by pixel, over the box of bases between the corners, from image to image.
    """

    __slots__ = ()

    def __init__(self, _key: Never) -> None: ...

    if not TYPE_CHECKING:

        def __init__(self, *_: object, **__: object) -> None:
            _refuse_constructor("im2col")


@final
class Im2colWideDescriptor(MapHandle[DT, C], Generic[DT, C, SW_co, Bx]):
    """A map of wide im2col copies, which walk along w alone (compute capability 10.0 and newer); `Bx` is `Box2[pixels, channels]`."""

    __slots__ = ()

    def __init__(self, _key: Never) -> None: ...

    if not TYPE_CHECKING:

        def __init__(self, *_: object, **__: object) -> None:
            _refuse_constructor("im2col_wide")


def _refuse_constructor(factory: str) -> Never:
    refuse(
        ScopeError,
        "OX1045",
        "a descriptor is not constructed directly",
        required="a factory, which checks its parameters",
        fix=f"use `ox.TmaDescriptor.{factory}(array, ...)`",
    )
