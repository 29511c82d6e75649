"""What im2col copies can be told (PTX 5.5.4 and 5.5.5)."""

from __future__ import annotations

from typing import Final

# By spatial dimensions: the bits of each offset operand. More are not diagnosed: they are cut, or spill into the next one (measured).
OFFSET_BITS: Final = {1: 16, 2: 8, 3: 5}

# ---- wide copies, along w alone
WIDE_PIXELS: Final = 128  # of one copy in mode im2col::w::128, whatever the map says
WIDE_GROUP: Final = 32  # there the halo comes behind each of so many
WIDE_OFFSET_MAX: Final = 31
HALO_MAX: Final = {"im2col_w": 511, "im2col_w128": 31}  # pixels


def wide_rows(mode: str, pixels: int, halo: int) -> int:
    """Pixels that one wide copy moves, the halo included."""
    return pixels + halo if mode == "im2col_w" else WIDE_PIXELS // WIDE_GROUP * (WIDE_GROUP + halo)
