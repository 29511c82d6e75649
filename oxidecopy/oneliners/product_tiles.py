"""How products are cut into tiles, and which tile is taken for a shape: by a model of the time that each would take."""

from __future__ import annotations

from math import prod
from typing import Final, NamedTuple

from oxidecopy.isa import mma

_BARRIERS: Final = 1 << 10  # bytes beside tiles: of barriers, and what the system keeps
BLOCK: Final = 64  # rows of a staging tile, and columns of a block of an MN-major tile


class Tile(NamedTuple):
    """How a product is cut.

    Attributes:
        m: rows of one warpgroup.
        n: columns.
        groups: warpgroups, which share the rows of a tile.
        down: CTAs of a cluster below each other, each of which loads a part of b for all of them.
        across: CTAs of a cluster side by side, each of which loads a part of a for all of them.
        stages: of the ring.
        staged: tiles that each group's results leave through.
    """

    m: int = 64
    n: int = 256
    groups: int = 2
    down: int = 2
    across: int = 1
    stages: int = 4
    staged: int = 2

    @property
    def rows(self) -> int:
        """Rows of a CTA's tile."""
        return self.m * self.groups

    @property
    def cluster(self) -> int:
        """CTAs of a cluster."""
        return self.down * self.across

    @property
    def box(self) -> tuple[int, int]:
        """Rows and columns that a cluster computes in one turn."""
        return self.rows * self.down, self.n * self.across

    @property
    def words(self) -> str:
        """In words."""
        shared = " and ".join(name for name, n in (("a", self.across), ("b", self.down)) if n > 1)
        clusters = f", clusters of {self.down} x {self.across} that share {shared}" if shared else ""
        return f"tiles of {self.rows} x {self.n} by {self.groups} warpgroups, {self.stages} stages{clusters}"

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a CTA."""
        ring = (self.rows + self.n) * mma.DEPTH_BYTES * self.stages
        return ring + self.groups * self.staged * BLOCK * mma.DEPTH_BYTES + _BARRIERS


TILES: Final = (
    Tile(down=1),
    Tile(),
    Tile(down=1, across=2),
    Tile(n=192, down=1, stages=5, staged=1),
    Tile(n=192, stages=5, staged=1),
    Tile(m=128, n=128, down=1),
    Tile(m=128, n=128, down=1, across=2),
    Tile(n=128, down=1, stages=6),
    Tile(n=128, stages=6),
    Tile(n=128, down=1, across=2, stages=6),
    Tile(groups=1, down=1, stages=5),
    Tile(n=64, down=1, stages=8),
    Tile(n=64, groups=1, down=1, stages=8),
)
_WHOLE: Final = 192  # columns of tiles that are computed only where all of a program is (engines/cuda/code/product.py)
# The model: a launch, then turns of all multiprocessors. In each a tile is begun and put away, and its stages are multiplied as fast as
# tensor cores add, or as what they need comes out of L2. Fitted to what 17 ways took on an NVIDIA H200, to 4 % on average
# (docs/performance.md). Clusters of 2 x 2 were slower than any of these there.
_LAUNCH_US: Final = 8.0
_TILE_US: Final = 1.2
_SUMS_PER_US: Final = 20_480.0  # of a tile, that are put away
_PRODUCTS_PER_US: Final = 54_400.0  # rows times columns of a stage, that are multiplied
_BYTES_PER_US: Final = 120_000.0  # of operands, that come to a multiprocessor
_STAGE_US: Final = 0.135  # of the smallest
_WAIT_US: Final = 0.04  # of any
_FP8: Final = 1.3  # products of 8 bits are summed twice


class Sizes(NamedTuple):
    """What is multiplied.

    Attributes:
        out: extents of the result.
        k: of the operands.
        dtype: their element type.
        majors: along which dimension each is dense.
        odd: of each, whether its rows begin between lines of 128 bytes: then each row of a stage is in two of them.
        computes: an epilogue does more than a cast, and may be one that only an interpreter knows.
    """

    out: tuple[int, ...]
    k: int
    dtype: str
    majors: tuple[str, str] = ("k", "k")
    odd: tuple[bool, bool] = (False, False)
    computes: bool = False


def chosen(sizes: Sizes, sms: int) -> Tile:
    """The tile that takes the least time by the model; of those that take the same, one whose pieces share columns where these are read."""
    usable = (tile for tile in TILES if fits(tile, sizes))
    return min(usable, key=lambda tile: (microseconds(tile, sizes, sms), -tile.m if sizes.computes else 0))


def microseconds(tile: Tile, sizes: Sizes, sms: int) -> float:
    """The time of a product by the model."""
    *batch, m, n = sizes.out
    rows, columns = tile.box
    count = prod(batch) * -(-m // rows) * -(-n // columns)
    turns = -(-count // max(1, sms // tile.cluster))
    parts = zip((tile.rows // tile.across, tile.n // tile.down), sizes.odd, strict=True)
    brought = sum(part * mma.DEPTH_BYTES * (1 + odd) for part, odd in parts)
    products = tile.rows * tile.n / _PRODUCTS_PER_US * (_FP8 if sizes.dtype in mma.FP8 else 1.0)
    stages = -(-sizes.k // mma.depth_of(sizes.dtype)) * (_WAIT_US + max(products, brought / _BYTES_PER_US, _STAGE_US))
    return _LAUNCH_US + turns * (_TILE_US + tile.rows * tile.n / _SUMS_PER_US + stages)


def fits(tile: Tile, sizes: Sizes) -> bool:
    """There is a kernel for it; what a cluster shares lies in rows, and each of its CTAs has something to do."""
    (a, b), (m, n) = sizes.majors, sizes.out[-2:]
    if tile.n == _WHOLE and (sizes.computes or sizes.dtype in mma.FP8):
        return False
    return (tile.down == 1 or (b == "k" and m > tile.rows)) and (tile.across == 1 or (a == "k" and n > tile.n))
