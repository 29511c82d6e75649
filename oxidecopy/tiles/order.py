"""Orders for `cta.tiles(desc, order=...)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from oxidecopy.tiles.schedule import Affine, Custom, Grouped, Linear, Once
from oxidecopy.typed.symbolic import Idx, SymIdx

linear: Final = Linear()
once: Final = Once()


def grouped(rows: int) -> Grouped:
    """Groups of `rows` rows of tiles, walked down the rows first."""
    return Grouped(rows)


def custom(fn: Affine, trips: Callable[[tuple[SymIdx, ...]], Idx]) -> Custom:
    """A user's own: `trips(counts)` visits, the i-th of them at tile index `fn(i, counts)`; both record affine arithmetic only."""
    return Custom(fn, trips)
