"""What a tensor map says, without its 128 encoded bytes: the parameters of cuTensorMapEncodeTiled.

All tuples are outermost dimension first, as everywhere but in the driver call. Derived figures follow the measured rules: a box dimension
holds ceil(box / element stride) elements, rows lie one swizzle span apart, the barrier is told the dense bytes of the whole box.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import final

from oxidecopy.isa.dtypes import DTYPES, DTypeInfo
from oxidecopy.isa.swizzle import SWIZZLES, SwizzleInfo


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TensorMap:
    """A tiled map.

    Attributes:
        dtype: name of a row of `isa.dtypes`.
        global_dim: extents, elements.
        global_strides: bytes from one index to the next, for all dimensions but the innermost (which is dense); rank - 1 entries.
        box_dim: extents of one copy, elements, before element strides.
        element_strides: step of each dimension, elements; the innermost entry is ignored by the hardware without interleave.
        interleave: "none" (others come later).
        swizzle: name of a row of `isa.swizzle`.
        l2_promotion: bytes that L2 fetches at least: 0, 64, 128 or 256.
        oob_fill: "zero" or "nan".
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
        return SWIZZLES[self.swizzle]

    @property
    def tile_shape(self) -> tuple[int, ...]:
        """Elements per dimension that one copy moves."""
        return tile_shape(self.box_dim, self.element_strides)


def tile_shape(box_dim: tuple[int, ...], element_strides: tuple[int, ...]) -> tuple[int, ...]:
    """ceil(box / element stride) per dimension; the innermost stride does not count (measured, interleave none)."""
    return (*(-(-b // s) for b, s in zip(box_dim[:-1], element_strides[:-1], strict=True)), box_dim[-1])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TileLayout:
    """How a tile of `shape` elements lies in shared memory under a swizzle."""

    shape: tuple[int, ...]
    element_bytes: int
    swizzle: str

    @property
    def row_bytes(self) -> int:
        """Bytes of one innermost row."""
        return self.shape[-1] * self.element_bytes

    @property
    def pitch_bytes(self) -> int:
        """From one innermost row to the next: a swizzled row starts a whole span after the one before, however short it is."""
        span = SWIZZLES[self.swizzle].span_bytes
        return -(-self.row_bytes // span) * span if span else self.row_bytes

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
