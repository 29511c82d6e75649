"""Swizzle modes: which shared-memory address a byte of an unswizzled tile lands at.

The permutation works on absolute shared addresses (PTX 5.5.7; measured for loads and stores), so a tile whose base is aligned to less
than `repeat_bytes` sees a rotated pattern. Every function is its own inverse and keeps bits 7 and up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SwizzleInfo:
    """A mode: `span_bytes` is the widest inner row (and the row pitch), `repeat_bytes` the base alignment of the pattern."""

    name: str
    driver_enum: int
    span_bytes: int
    repeat_bytes: int
    mask: int
    shift: int
    min_sm: int = 90

    def permute(self, address: int) -> int:
        """The shared address at which the byte of unswizzled `address` is stored."""
        return address ^ (((address >> 7) & self.mask) << self.shift)


_ROWS = (
    SwizzleInfo(name="none", driver_enum=0, span_bytes=0, repeat_bytes=128, mask=0, shift=4),
    SwizzleInfo(name="32B", driver_enum=1, span_bytes=32, repeat_bytes=256, mask=1, shift=4),
    SwizzleInfo(name="64B", driver_enum=2, span_bytes=64, repeat_bytes=512, mask=3, shift=4),
    SwizzleInfo(name="128B", driver_enum=3, span_bytes=128, repeat_bytes=1024, mask=7, shift=4),
)

SWIZZLES: Final[dict[str, SwizzleInfo]] = {row.name: row for row in _ROWS}
