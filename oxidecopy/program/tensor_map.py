"""What a tensor map says, without its 128 encoded bytes: the parameters of cuTensorMapEncodeTiled, ...Im2col and ...Im2colWide.

All tuples are outermost dimension first, as everywhere but in the driver call. Derived figures follow the measured rules: a box dimension
holds ceil(box / element stride) elements, rows lie one swizzle span apart, the barrier is told the dense bytes of the whole box. An im2col
copy moves `pixels` rows of `channels` elements, whatever the rank and the element strides, which only step from one pixel to the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Final, final

from oxidecopy.isa.dtypes import DTYPES, DTypeInfo
from oxidecopy.isa.swizzle import EVERY_SWIZZLE, SwizzleInfo

if TYPE_CHECKING:
    from oxidecopy.program.program import MapParam


TILE: Final = "tile"
IM2COL: Final = "im2col"
IM2COL_WIDE: Final = ("im2col_w", "im2col_w128")  # PTX .im2col::w and .im2col::w::128
MODES: Final = (TILE, IM2COL, *IM2COL_WIDE)
SLICE_BYTES: Final = {"none": 0, "16B": 16, "32B": 32}  # interleave -> bytes of one pixel of a slice of channels (PTX 5.5.6)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TensorMap:
    """A tiled or an im2col map.

    Attributes:
        dtype: name of a row of `isa.dtypes`.
        global_dim: extents, elements.
        global_strides: bytes from one index to the next, for all dimensions but the innermost (which is dense); rank - 1 entries.
        box_dim: extents of one copy, elements, before element strides; of an im2col map (pixels, channels), whatever its rank.
        element_strides: step of each dimension, elements; the innermost entry is ignored by the hardware without interleave.
        interleave: a key of `SLICE_BYTES`.
        swizzle: name of a row of `isa.swizzle`.
        l2_promotion: bytes that L2 fetches at least: 0, 64, 128 or 256.
        oob_fill: "zero" or "nan".
        mode: what kind of copy it is for, one of `MODES`.
        lower: of an im2col map, where the box of filter bases begins, elements: (w,), (h, w) or (d, h, w); of a wide one always (w,).
        upper: where it ends, counted from the last element of each dimension.
    """

    dtype: str
    global_dim: tuple[int, ...]
    global_strides: tuple[int, ...]
    box_dim: tuple[int, ...]
    element_strides: tuple[int, ...]
    interleave: str = "none"
    swizzle: str = "none"
    l2_promotion: int = 128
    oob_fill: str = "zero"
    mode: str = TILE
    lower: tuple[int, ...] = ()
    upper: tuple[int, ...] = ()

    @property
    def rank(self) -> int:
        """Dimensions."""
        return len(self.global_dim)

    @property
    def dtype_info(self) -> DTypeInfo:
        """The element type's row."""
        return DTYPES[self.dtype]

    @property
    def swizzle_info(self) -> SwizzleInfo:
        """The swizzle mode's row."""
        return EVERY_SWIZZLE[self.swizzle]

    @property
    def row_bytes(self) -> int:
        """Bytes of one row of the array, its innermost dimension; with interleave that is one of slice pixels."""
        inner = self.global_dim[-1]
        return inner * SLICE_BYTES[self.interleave] or self.dtype_info.row_bytes(inner)

    @property
    def tile_shape(self) -> tuple[int, ...]:
        """Elements per dimension that one copy moves; of packed types the bytes that they are in shared memory."""
        return self.layout.shape

    @property
    def layout(self) -> TileLayout:
        """The shared-memory image of one copy."""
        return tile_layout(self)


def tile_layout(of: TensorMap | MapParam) -> TileLayout:
    """The image of one copy. Interleaved rows are dense whatever the swizzle (measured); rows of packed types are bytes."""
    info = DTYPES[of.dtype]
    size = 1 if info.packed else info.nbytes
    slice_elements = SLICE_BYTES[of.interleave] // size
    if of.mode != TILE:
        pixels, channels = of.box_dim
        shape: tuple[int, ...] = (pixels, slice_elements or channels)
    elif slice_elements:
        shape = _slice_shape(of.box_dim, of.element_strides, slice_elements)
    else:
        shape = tile_shape(of.box_dim, of.element_strides)
    if info.packed and not slice_elements:
        shape = (*shape[:-1], info.shared_bytes(shape[-1]))
    return TileLayout(shape=shape, element_bytes=size, swizzle=of.swizzle, dense=slice_elements > 0)


def tile_shape(box_dim: tuple[int, ...], element_strides: tuple[int, ...]) -> tuple[int, ...]:
    """ceil(box / element stride) per dimension; the innermost stride does not count (measured, interleave none)."""
    return (*(-(-b // s) for b, s in zip(box_dim[:-1], element_strides[:-1], strict=True)), box_dim[-1])


def box_bytes(of: TensorMap) -> int:
    """What the driver counts for one box, and bounds (measured): dense bytes, each extent divided by its stride and rounded down."""
    if of.mode != TILE:
        return of.dtype_info.shared_bytes(prod(of.box_dim))
    return of.dtype_info.shared_bytes(prod(b // s for b, s in zip(of.box_dim, of.element_strides, strict=True)))


def _slice_shape(box_dim: tuple[int, ...], element_strides: tuple[int, ...], slice_elements: int) -> tuple[int, ...]:
    """One slice of channels (dimension 1) whatever the box asks for, in rows of slice pixels; each stride counts (measured)."""
    counts = [-(-b // s) for b, s in zip(box_dim, element_strides, strict=True)]
    return (counts[0], 1, *counts[2:-1], counts[-1] * slice_elements)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TileLayout:
    """How a tile of `shape` elements lies in shared memory under a swizzle; `dense` rows are never padded to its span."""

    shape: tuple[int, ...]
    element_bytes: int
    swizzle: str
    dense: bool = False

    @property
    def row_bytes(self) -> int:
        """Bytes of one innermost row."""
        return self.shape[-1] * self.element_bytes

    @property
    def pitch_bytes(self) -> int:
        """From one innermost row to the next: a swizzled row starts a whole span after the one before, however short it is."""
        span = EVERY_SWIZZLE[self.swizzle].span_bytes
        return -(-self.row_bytes // span) * span if span and not self.dense else self.row_bytes

    @property
    def rows(self) -> int:
        """Innermost rows of the tile."""
        return prod(self.shape[:-1])

    @property
    def nbytes(self) -> int:
        """Dense bytes: what a barrier is told."""
        return prod(self.shape) * self.element_bytes

    @property
    def footprint_bytes(self) -> int:
        """Bytes from the first to the last one occupied, whole 128-byte lines when swizzled (the permutation stays inside them)."""
        used = self.pitch_bytes * (self.rows - 1) + self.row_bytes
        return -(-used // 128) * 128 if self.swizzle != "none" else used
