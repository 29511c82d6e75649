"""The bank conflicts of a warp that reads a tile: along rows, down columns, and as ldmatrix does.

Nothing here is measured: degrees follow from where elements lie (`tile`) and from how banks work (`isa.banks`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, final

from oxidecopy.draw.checks import swizzle_faults
from oxidecopy.draw.tile import PlacedTile
from oxidecopy.isa.banks import LANES, conflict_degree
from oxidecopy.isa.swizzle import EVERY_SWIZZLE

CHUNK_BYTES: Final = 16  # of a row of a matrix that ldmatrix loads
MATRIX_ROWS: Final = 8
_PATTERN: Final = 1024  # bytes after which every pattern of every swizzle is the same again

# Row and innermost index that each lane reads.
Lanes: TypeAlias = tuple[tuple[int, int], ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """One way to read the whole tile.

    Attributes:
        name: "row", "column" or "ldmatrix".
        lanes: threads that read at once.
        nbytes: that each of them reads.
        best: degree of the access with the fewest conflicts; 1 is none.
        worst: of the one with the most.
        at: row and innermost index where a worst access starts.
    """

    name: str
    lanes: int
    nbytes: int
    best: int
    worst: int
    at: tuple[int, int]

    @property
    def degree(self) -> str:
        """In words: `4`, or `1 to 4` where it depends on the place."""
        return str(self.worst) if self.best == self.worst else f"{self.best} to {self.worst}"


def reads(tile: PlacedTile) -> tuple[Read, ...]:
    """All three; ldmatrix only of tiles with rows of whole, aligned 16-byte chunks (which FLIP_8B keeps, with their halves swapped)."""
    found = [_read(tile, "row", _along_rows(tile)), _read(tile, "column", _down_columns(tile))]
    if not (tile.row_bytes | tile.pitch_bytes | tile.address) % CHUNK_BYTES:
        found.append(_read(tile, "ldmatrix", _matrices(tile), CHUNK_BYTES))
    return tuple(found)


def under_each_swizzle(tile: PlacedTile) -> dict[str, tuple[Read, ...]]:
    """The reads of the same box under every mode; empty where no map combines them."""
    others = {name: replace(tile, swizzle=name) for name in EVERY_SWIZZLE}
    return {name: () if swizzle_faults(other) else reads(other) for name, other in others.items()}


def _read(tile: PlacedTile, name: str, accesses: Iterator[Lanes], nbytes: int = 0) -> Read:
    """Goes through all accesses; those that begin at the same place of the pattern have the same degree."""
    each = nbytes or -(-tile.element_bits // 8)
    known: dict[tuple[int, int, int], int] = {}
    best, worst, most, at = 0, 0, 0, (0, 0)
    for lanes in accesses:
        row, index = lanes[0]
        key = (tile.linear(row, 0)[0] % _PATTERN, index, len(lanes))
        degree = known.get(key)
        if degree is None:
            degree = known[key] = conflict_degree([tile.position(*lane)[0] // each * each for lane in lanes], each)
        if degree > worst:
            worst, at = degree, lanes[0]
        best = min(best or degree, degree)
        most = max(most, len(lanes))
    return Read(name=name, lanes=most, nbytes=each, best=best, worst=worst, at=at)


def _along_rows(tile: PlacedTile) -> Iterator[Lanes]:
    """Lane i reads the i-th next element; the row after is gone on with where one ends."""
    inner = tile.shape[-1]
    total = tile.rows * inner
    for first in range(0, total, LANES):
        yield tuple([divmod(n, inner) for n in range(first, min(first + LANES, total))])


def _down_columns(tile: PlacedTile) -> Iterator[Lanes]:
    """Lane i reads one element of the i-th next row."""
    for first in range(0, tile.rows, LANES):
        rows = range(first, min(first + LANES, tile.rows))
        for index in range(tile.shape[-1]):
            yield tuple([(row, index) for row in rows])


def _matrices(tile: PlacedTile) -> Iterator[Lanes]:
    """Eight rows of one 16-byte chunk: a matrix of ldmatrix."""
    elements, nbytes = tile.group
    step = CHUNK_BYTES // nbytes * elements
    for first in range(0, tile.rows, MATRIX_ROWS):
        rows = range(first, min(first + MATRIX_ROWS, tile.rows))
        for index in range(0, tile.shape[-1], step):
            yield tuple([(row, index) for row in rows])
