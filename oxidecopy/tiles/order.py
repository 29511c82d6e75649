"""Orders for `cta.tiles(desc, order=...)` and `cta.schedule(desc, order=...)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from oxidecopy.tiles.schedule import Affine, Custom, Grouped, Linear, Once
from oxidecopy.tiles.work import Counter
from oxidecopy.typed.symbolic import Idx, SymIdx

linear: Final = Linear()
once: Final = Once()


def grouped(rows: int) -> Grouped:
    """Groups of `rows` rows of tiles, walked down the rows first."""
    return Grouped(rows)


def counter() -> Counter:
    """The next tile nobody has taken, by a counter of the launch; for `cta.schedule` only."""
    return Counter()


def custom(fn: Affine, trips: Callable[[tuple[SymIdx, ...]], Idx]) -> Custom:
    """A user's own: `trips(counts)` visits, the i-th of them at tile index `fn(i, counts)`; both record affine arithmetic only."""
    return Custom(fn, trips)
