"""Shapes at type level: ranks (a coordinate tuple's type), boxes, alignments and swizzle modes."""

from __future__ import annotations

from typing import Any, ClassVar, Generic, TypeAlias, final, get_args

from typing_extensions import TypeVar

from oxidecopy.isa.swizzle import EVERY_SWIZZLE, SwizzleInfo
from oxidecopy.typed.symbolic import Idx

# ---- ranks: the type of a coordinate tuple, outermost dimension first
D1: TypeAlias = tuple[Idx]
D2: TypeAlias = tuple[Idx, Idx]
D3: TypeAlias = tuple[Idx, Idx, Idx]
D4: TypeAlias = tuple[Idx, Idx, Idx, Idx]
D5: TypeAlias = tuple[Idx, Idx, Idx, Idx, Idx]

# ---- boxes: `Box2[Literal[64], Literal[32]]` is known to checkers, a tuple `(64, 32)` only by its rank
N0 = TypeVar("N0", bound=int)
N1 = TypeVar("N1", bound=int)
N2 = TypeVar("N2", bound=int)
N3 = TypeVar("N3", bound=int)
N4 = TypeVar("N4", bound=int)


class AnyBox:
    """Base of the box types."""


class Box1(AnyBox, Generic[N0]):
    """Extents of a 1-D box, in elements."""


class Box2(AnyBox, Generic[N0, N1]):
    """Extents of a 2-D box, outermost first, in elements."""


class Box3(AnyBox, Generic[N0, N1, N2]):
    """Extents of a 3-D box, outermost first, in elements."""


class Box4(AnyBox, Generic[N0, N1, N2, N3]):
    """Extents of a 4-D box, outermost first, in elements."""


class Box5(AnyBox, Generic[N0, N1, N2, N3, N4]):
    """Extents of a 5-D box, outermost first, in elements."""


def box_extents(box: object) -> tuple[int, ...] | None:
    """The literals of a type-level box such as `Box2[Literal[64], Literal[32]]`; None when `box` is no such type."""
    origin = getattr(box, "__origin__", None)
    if not (isinstance(origin, type) and issubclass(origin, AnyBox)):
        return None
    extents: list[int] = []
    for argument in get_args(box):
        values: tuple[Any, ...] = get_args(argument)
        if len(values) != 1 or type(values[0]) is not int:
            return None
        extents.append(values[0])
    return tuple(extents)


# ---- alignments of shared arrays: each is also every weaker one
class A16:
    """At least 16 bytes: enough for plain accesses and plain bulk copies."""

    bytes: ClassVar[int] = 16


class A128(A16):
    """At least 128 bytes: what every tensor copy needs."""

    bytes: ClassVar[int] = 128


class A256(A128):
    """At least 256 bytes: the repeat of a 32-byte swizzle."""

    bytes: ClassVar[int] = 256


class A512(A256):
    """At least 512 bytes: the repeat of a 64-byte swizzle."""

    bytes: ClassVar[int] = 512


class A1024(A512):
    """At least 1,024 bytes: the repeat of a 128-byte swizzle."""

    bytes: ClassVar[int] = 1024


# ---- swizzle modes
class AnySwizzle:
    """Base of the swizzle modes; as an annotation it means: whatever mode."""

    info: ClassVar[SwizzleInfo]


@final
class SwizzleNone(AnySwizzle):
    """Rows follow each other densely."""

    info: ClassVar[SwizzleInfo] = EVERY_SWIZZLE["none"]


@final
class Swizzle32B(AnySwizzle):
    """Rows of up to 32 bytes, 16-byte chunks permuted over 256 bytes."""

    info: ClassVar[SwizzleInfo] = EVERY_SWIZZLE["32B"]


@final
class Swizzle64B(AnySwizzle):
    """Rows of up to 64 bytes, 16-byte chunks permuted over 512 bytes."""

    info: ClassVar[SwizzleInfo] = EVERY_SWIZZLE["64B"]


@final
class Swizzle128B(AnySwizzle):
    """Rows of up to 128 bytes, 16-byte chunks permuted over 1,024 bytes: column reads without bank conflicts."""

    info: ClassVar[SwizzleInfo] = EVERY_SWIZZLE["128B"]


@final
class Swizzle128BAtom32B(AnySwizzle):
    """As `Swizzle128B` with chunks of 32 bytes (compute capability 10.0 and newer)."""

    info: ClassVar[SwizzleInfo] = EVERY_SWIZZLE["128B_ATOM_32B"]


@final
class Swizzle128BAtom32BFlip8B(AnySwizzle):
    """As `Swizzle128BAtom32B`, the 8-byte halves of 16 bytes swapped in every other line (compute capability 10.0 and newer)."""

    info: ClassVar[SwizzleInfo] = EVERY_SWIZZLE["128B_ATOM_32B_FLIP_8B"]


@final
class Swizzle128BAtom64B(AnySwizzle):
    """As `Swizzle128B` with chunks of 64 bytes (compute capability 10.0 and newer)."""

    info: ClassVar[SwizzleInfo] = EVERY_SWIZZLE["128B_ATOM_64B"]
