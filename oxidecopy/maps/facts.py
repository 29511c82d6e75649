"""What several rules ask of the parameters: sizes in bits and bytes, which arrays can be read at all, and names for messages."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, NamedTuple, final

from oxidecopy.isa import limits
from oxidecopy.isa.dtypes import DTypeInfo
from oxidecopy.isa.swizzle import SwizzleInfo
from oxidecopy.maps.enumerators import DTYPE_OF, PADDED, SWIZZLE_OF
from oxidecopy.maps.parameters import Extents, MapParameters
from oxidecopy.program.tensor_map import SLICE_BYTES

_SLICES: Final = dict(enumerate(SLICE_BYTES.values()))  # enumerator of the interleave -> bytes
_CORNER_BITS: Final = {1: 16, 2: 8, 3: 5}  # spatial dimensions -> bits of each entry (API)


class Corner(NamedTuple):
    """The corners of dimension `axis`; `entry` is where they stand in the arrays, None for those that a wide map does not say."""

    axis: int
    entry: int | None
    lower: int
    upper: int


@final
class Facts:
    """Parameters seen by the rules, for a device of compute capability `sm` (90 for 9.0). What cannot be read is empty or 0.

    Attributes:
        p: the parameters.
        sm: the device.
        info: the element type's row; None for an enumerator that names no type.
        bits: of one element in global memory.
        padded: a packed type with gaps in shared memory.
        group_bytes: shared memory of 16 elements.
        swizzle: the mode's row; None for an unknown enumerator.
        interleaved: some interleave, known or not.
        slice_bytes: of one pixel of a slice.
        unit: alignment of address and strides, bytes.
        dims: the extents.
        strides: where there are as many as there must be; so are `steps` and `box`.
        steps: the element strides.
        tiled: it has a box.
        box: of a tiled map.
        inner: elements of one row of a copy.
        row_bytes: shared bytes of one row, the gaps of padded types included.
    """

    __slots__ = (
        "bits",
        "box",
        "dims",
        "group_bytes",
        "info",
        "inner",
        "interleaved",
        "p",
        "padded",
        "row_bytes",
        "slice_bytes",
        "sm",
        "steps",
        "strides",
        "swizzle",
        "tiled",
        "unit",
    )

    def __init__(self, parameters: MapParameters, sm: int) -> None:
        self.p = parameters
        self.sm = sm
        self.info: DTypeInfo | None = DTYPE_OF.get(parameters.dtype)
        self.bits = self.info.bits if self.info else 0
        self.padded = parameters.dtype in PADDED
        self.group_bytes = 16 if self.padded else self.bits * 2
        self.swizzle: SwizzleInfo | None = SWIZZLE_OF.get(parameters.swizzle)
        self.interleaved = parameters.interleave != 0
        self.slice_bytes = _SLICES.get(parameters.interleave, 0)
        self.unit = 32 if self.padded or self.slice_bytes == 32 else limits.GLOBAL_STRIDE_ALIGN
        self.dims: tuple[int, ...] = parameters.global_dim or ()
        rank = len(self.dims)
        self.strides = _sized(parameters.global_strides, rank - 1)
        self.steps = _sized(parameters.element_strides, rank)
        self.tiled = parameters.kind == "tiled"
        self.box = _sized(parameters.box_dim, rank) if self.tiled else ()
        self.inner = (self.box[-1] if self.box else 0) if self.tiled else parameters.channels
        self.row_bytes = self.inner * self.group_bytes // 16

    def but(self, **changes: Any) -> MapParameters:
        """The parameters with some changed: a mend."""
        return replace(self.p, **changes)

    # ---- element type
    @property
    def name(self) -> str:
        """The element type in words."""
        return self.p.element or (self.info.name if self.info else f"type {self.p.dtype}")

    @property
    def array(self) -> str:
        """The array in words."""
        return f"the {self.name} array of shape {self.p.global_dim or 'null'}"

    @property
    def size(self) -> str:
        """The element's size in words."""
        return f"{self.bits // 8} bytes" if self.bits % 8 == 0 else f"{self.bits} bits"

    # ---- layout
    @property
    def swizzle_name(self) -> str:
        """The mode in words."""
        return self.swizzle.name if self.swizzle else str(self.p.swizzle)

    # ---- the innermost extent of a copy
    @property
    def inner_name(self) -> str:
        """What `inner` is called."""
        return "box inner" if self.tiled else "channels"

    def with_inner(self, inner: int) -> MapParameters:
        """The parameters with another row."""
        return self.but(box_dim=(*self.box[:-1], inner)) if self.tiled else self.but(channels=inner)

    @property
    def row(self) -> str:
        """The row's size in words: of padded types as it lies in shared memory."""
        if self.padded:
            return f"{self.inner} x {self.size} and gaps ({self.name}) = {self.row_bytes} bytes"
        return f"{self.inner} x {self.size} ({self.name}) = {self.inner * self.bits / 8:g} bytes"

    # ---- arrays
    @property
    def corner_count(self) -> int:
        """Entries of a corner."""
        return 1 if self.p.kind == "im2col_wide" else max(self.p.rank - 2, 0)

    @property
    def corner_bits(self) -> int:
        """Of each entry of a corner. Before 10.0 a wide map is an im2col map whose other corners are 0 (measured)."""
        return 16 if self.p.kind == "im2col_wide" and self.sm >= 100 else _CORNER_BITS.get(self.p.rank - 2, 16)

    @property
    def corners(self) -> tuple[Corner, ...]:
        """Those of each dimension that an im2col copy walks, outermost first; nothing when they cannot be read.

        With interleave, channels are no dimension of their own: the walk goes over all but batch and slices (measured).
        """
        lower, upper = _sized(self.p.lower, self.corner_count), _sized(self.p.upper, self.corner_count)
        walked = range(2, self.p.rank) if self.interleaved else range(1, self.p.rank - 1)
        if not lower or not upper or self.p.rank < 3:
            return ()
        fixed = len(walked) - len(lower)
        first = [Corner(axis, None, 0, 0) for axis in walked[:fixed]] if self.sm < 100 else []
        return (*first, *(Corner(axis, i, lower[i], upper[i]) for i, axis in enumerate(walked[fixed:])))

    @property
    def row_pitch(self) -> int:
        """Bytes of one row of the array when rows lie as close as they may."""
        bits = self.slice_bytes * 8 or self.bits
        return up(-(-self.dims[-1] * bits // 8), self.unit) if self.dims else 0

    def padded_strides(self) -> tuple[int, ...] | None:
        """Strides of a dense array of padded rows; None when they would be out of range."""
        strides, pitch = [], self.row_pitch
        for extent in reversed(self.dims[:-1]):
            strides.append(pitch)
            pitch *= max(extent, 1)
        return tuple(reversed(strides)) if max(strides, default=0) < limits.GLOBAL_STRIDE_LIMIT else None


def _sized(values: Extents, count: int) -> tuple[int, ...]:
    """The values where there are as many as there must be."""
    return values if values is not None and len(values) == count else ()


def up(value: int, unit: int) -> int:
    """`value` rounded up to a multiple of `unit`."""
    return -(-value // unit) * unit


def split(value: int, unit: int) -> str:
    """A value in words of the multiple that it misses: `24 bytes = 1 x 16 + 8`."""
    return f"{value} bytes = {value // unit} x {unit} + {value % unit}"


def replaced(values: tuple[int, ...], axis: int, value: int) -> tuple[int, ...]:
    """One entry changed."""
    return (*values[:axis], value, *values[axis + 1 :])


def clamped(values: tuple[int, ...], low: int, high: int) -> tuple[int, ...]:
    """Each entry brought into its bounds."""
    return tuple(min(max(value, low), high) for value in values)


def capability(sm: int) -> str:
    """90 as 9.0."""
    return f"{sm // 10}.{sm % 10}"
