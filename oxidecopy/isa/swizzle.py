"""Swizzle modes: which shared-memory address a byte of an unswizzled tile lands at.

The permutation works on absolute shared addresses (PTX 5.5.7; measured for loads and stores), so a tile whose base is aligned to less
than `repeat_bytes` sees a rotated pattern. Every function is its own inverse and keeps bits 7 and up.

The modes with wider atoms came with compute capability 10.0 (PTX 5.5.7, none of them measured): which lines FLIP_8B flips is not written
down anywhere, odd ones are assumed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SwizzleInfo:
    """A mode: `span_bytes` is the widest inner row (and the row pitch), `repeat_bytes` the base alignment of the pattern.

    Bits 7 and up of an address, cut by `mask`, are combined with the bits from `shift` on; `flip_8b` also swaps the 8-byte halves of each
    16 bytes on odd 128-byte lines.
    """

    name: str
    driver_enum: int
    span_bytes: int
    repeat_bytes: int
    mask: int
    shift: int
    min_sm: int = 90
    flip_8b: bool = False

    @property
    def grain_bytes(self) -> int:
        """Bytes that stay together, in order, when they are aligned to as many."""
        return 8 if self.flip_8b else 16

    def permute(self, address: int) -> int:
        """The shared address at which the byte of unswizzled `address` is stored."""
        moved = address ^ (((address >> 7) & self.mask) << self.shift)
        return moved ^ ((address >> 7 & 1) << 3) if self.flip_8b else moved


_ROWS = (
    SwizzleInfo(name="none", driver_enum=0, span_bytes=0, repeat_bytes=128, mask=0, shift=4),
    SwizzleInfo(name="32B", driver_enum=1, span_bytes=32, repeat_bytes=256, mask=1, shift=4),
    SwizzleInfo(name="64B", driver_enum=2, span_bytes=64, repeat_bytes=512, mask=3, shift=4),
    SwizzleInfo(name="128B", driver_enum=3, span_bytes=128, repeat_bytes=1024, mask=7, shift=4),
)

_ATOMS = (
    SwizzleInfo(name="128B_ATOM_32B", driver_enum=4, span_bytes=128, repeat_bytes=512, mask=3, shift=5, min_sm=100),
    SwizzleInfo(name="128B_ATOM_32B_FLIP_8B", driver_enum=5, span_bytes=128, repeat_bytes=1024, mask=3, shift=5, min_sm=100, flip_8b=True),
    SwizzleInfo(name="128B_ATOM_64B", driver_enum=6, span_bytes=128, repeat_bytes=256, mask=1, shift=6, min_sm=100),
)

SWIZZLES: Final[dict[str, SwizzleInfo]] = {row.name: row for row in _ROWS}
# What the engines and the typed surface do not take yet, but can be described and drawn.
ATOM_SWIZZLES: Final[dict[str, SwizzleInfo]] = {row.name: row for row in _ATOMS}
EVERY_SWIZZLE: Final[dict[str, SwizzleInfo]] = SWIZZLES | ATOM_SWIZZLES
