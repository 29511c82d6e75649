"""Store-reduce: many CTAs add, minimise and maximise into one result, in any order.

A stack of images goes in; their sum, minimum and maximum come out. Each image has CTAs of its own, which load a tile and reduce it into
the same place of the three results. One twin is broken on purpose: it ends without waiting for its stores.

    python examples/03_reduce.py --input x.npy --output sum.npy    # any 3-D int32 array: image, row, column
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

import oxidecopy as ox

BOX = (1, 32, 64)  # one image, 32 rows, 64 columns
Images = ox.TmaDescriptor[ox.i32, ox.D3]
Array = npt.NDArray[np.int32]


# `reduce` is a store that combines: element by element, `new = op(old, tile)`, done by the memory system, each element in one piece. What
# an element type can do is part of its type: `ox.reduce.min` on a map of f32 is a type error, because the hardware has no such operation.
# Integers give the same result in any order. (Float sums do not, and would have to be compared with a bound.)
@ox.pipeline(threads=32)
def combine(cta: ox.Cta, src: Images, total: Images, low: Images, high: Images) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    y, x = cta.block_idx.y * 32, cta.block_idx.x * 64

    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        src.g2s(leader, tile, (cta.block_idx.z, y, x), token)
    full.wait(token)

    # The tile was written by the copy engine and is read by it: no fence is needed, only the wait. All three reductions read the tile, so
    # they may share a group.
    with cta.elect() as leader:
        total.reduce(ox.reduce.add, leader, tile, (0, y, x))
        low.reduce(ox.reduce.min, leader, tile, (0, y, x))
        high.reduce(ox.reduce.max, leader, tile, (0, y, x))
        leader.commit_group()
        leader.wait_group(0)
    full.inval()


class Launch(NamedTuple):
    """What both pipelines of this lesson are launched with, and what must come out."""

    grid: ox.Grid
    maps: tuple[Images, Images, Images, Images]
    outputs: dict[str, ox.GlobalArray[ox.i32, ox.D3]]
    expected: dict[str, Array]


@combine.recipe
def combine_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    made = prepared(dev, x)
    return ox.Recipe(launch=combine[made.grid].bind(*made.maps), outputs=made.outputs, expected=made.expected)


def prepared(dev: ox.Device, x: Array | None) -> Launch:
    """The results begin with what changes nothing: 0, the largest and the smallest number."""
    if x is None:
        x = np.random.default_rng(3).integers(-1000, 1000, size=(5, 48, 100), dtype=np.int32)
    src = ox.TmaDescriptor.tiled(dev.array(x, ox.i32, pad=True), box=BOX)
    images, rows, cols = x.shape
    limits = np.iinfo(np.int32)
    total, low, high = (dev.array(np.full((1, rows, cols), start, np.int32), ox.i32, pad=True) for start in (0, limits.max, limits.min))
    return Launch(
        grid=ox.Grid(x=-(-cols // 64), y=-(-rows // 32), z=images),
        maps=(
            src,
            ox.TmaDescriptor.tiled(total, box=BOX),
            ox.TmaDescriptor.tiled(low, box=BOX),
            ox.TmaDescriptor.tiled(high, box=BOX),
        ),
        outputs={"total": total, "low": low, "high": high},
        # Rows and columns beyond the edge are loaded as zeros. They would be wrong for a minimum, but they lie beyond the edge of the
        # results, too, where nothing is written.
        expected={
            "total": x.sum(axis=0, dtype=np.int32, keepdims=True),
            "low": x.min(axis=0, keepdims=True),
            "high": x.max(axis=0, keepdims=True),
        },
    )


# ---- broken on purpose: stores not waited for
# The CTA may end while the engine still reads the tile. The next CTA on the same multiprocessor gets that shared memory.
@ox.pipeline(threads=32)
def broken_drain(cta: ox.Cta, src: Images, total: Images, low: Images, high: Images) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    y, x = cta.block_idx.y * 32, cta.block_idx.x * 64
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        src.g2s(leader, tile, (cta.block_idx.z, y, x), token)
    full.wait(token)
    with cta.elect() as leader:
        total.reduce(ox.reduce.add, leader, tile, (0, y, x))
        low.reduce(ox.reduce.min, leader, tile, (0, y, x))
        high.reduce(ox.reduce.max, leader, tile, (0, y, x))
        leader.commit_group()
        # the edit: no `leader.wait_group(0)`
    full.inval()


@broken_drain.recipe(refused="OX3050")
def broken_drain_recipe(dev: ox.Device) -> ox.Recipe:
    made = prepared(dev, None)
    return ox.Recipe(launch=broken_drain[made.grid].bind(*made.maps), outputs=made.outputs, expected=made.expected)


def main(argv: Sequence[str] | None = None) -> int:
    return ox.run_recipes(__doc__, combine, broken_drain, argv=argv)


if __name__ == "__main__":
    raise SystemExit(main())
