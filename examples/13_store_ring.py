"""Store rings: a tile is filled while those before it are stored; a copy that no thread touches.

A store by the copy engine reads its tile some time later. With two staging tiles a group fills one while the engine reads the other; a
store ring counts which is free. In the second pipeline loads feed stores directly: a ring's tiles are passed on as they land, by two
threads in all. Four twins are broken on purpose: two groups on one store ring, a staging tile used too late, too many stores left pending,
and the double buffering by hand with a wait for one store too few.

    python examples/13_store_ring.py --input x.npy --output y.npy --pipeline rulers        # any 2-D int32 array
    python examples/13_store_ring.py --input x.npy --output y.npy --pipeline pass_on       # any 2-D int32 array
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

import oxidecopy as ox

STAGES = 2
RULER = (4, 64)
EVERY = (32, 64)
BOX = (32, 64)
Tiles = ox.TmaDescriptor[ox.i32, ox.D2]
Array = npt.NDArray[np.int32]


# ---- double buffering
# The user's array gets a ruler of four rows every 32 rows: its column numbers from 0 to 63, over and over. The descriptor's box is a ruler;
# `box=EVERY` makes the schedule visit every 32 rows, each time at the corner where the ruler goes.
#
# A pipeline without a producer needs no roles: `cta.warps` gives a group as well, and any grid and any number of warps would do.
@ox.pipeline(threads=128)
def rulers(cta: ox.Cta, dst: Tiles) -> None:
    outs = cta.store_ring(dst, stages=STAGES)
    with cta.warps(0, 4) as group:
        for at in cta.tiles(dst, box=EVERY):
            # The block waits until the store that used this tile last has read it: with two stages, at most one newer store is pending.
            with outs.put(group, at) as tile:
                cta.iota(tile, axis=1)
            # At its end: a fence by all who wrote, the group meets, and one lane stores the tile and goes on without waiting.
    # When the group's block ends, its lane waits for the stores that are left.


@rulers.recipe
def rulers_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    x, out, dst = ruled(dev, x)
    expected = x.copy()
    for row in range(0, x.shape[0], 32):
        expected[row : row + 4] = np.arange(x.shape[1], dtype=np.int32) % 64
    return ox.Recipe(launch=rulers[2].bind(dst), outputs={"out": out}, expected={"out": expected})


def ruled(dev: ox.Device, x: Array | None) -> tuple[Array, ox.GlobalArray[ox.i32, ox.D2], Tiles]:
    """The array that the rulers go to."""
    if x is None:
        x = np.full((150, 300), -1, dtype=np.int32)
    out = dev.array(x, ox.i32, pad=True)
    return x, out, ox.TmaDescriptor.tiled(out, box=RULER)


# ---- a chain of two copies
# What a ring's stage brings is stored as it is: `forward` waits until it has landed, stores it, and gives back the stage whose store has
# been read by then. No thread reads or writes the tile, so there is nothing to fence and nobody to meet: no consumers, one warp that loads,
# one that stores.
@ox.pipeline(warps=ox.roles(producer=1, consumers=(), store=1))
def pass_on(cta: ox.Cta, src: Tiles, dst: Tiles) -> None:
    ring = cta.ring(stages=4, tiles=(src,))
    with cta.producer() as leader:
        for at in cta.tiles(src):
            with ring.produce(leader) as (slot,):
                slot.load(src, at)
    with cta.storer() as leader:
        for at in cta.tiles(src):
            ring.forward(leader, dst, at, pending=2)  # two newer stores may be under way; their stages are held for so long


@pass_on.recipe
def pass_on_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    x, out, src, dst = chain(dev, x)
    return ox.Recipe(launch=pass_on[3].bind(src, dst), outputs={"out": out}, expected={"out": x})


def chain(dev: ox.Device, x: Array | None) -> tuple[Array, ox.GlobalArray[ox.i32, ox.D2], Tiles, Tiles]:
    """Source and target of the chain."""
    if x is None:
        x = np.arange(150 * 300, dtype=np.int32).reshape(150, 300)
    out = dev.empty(x.shape, ox.i32, pad=True)
    src = ox.TmaDescriptor.tiled(dev.array(x, ox.i32, pad=True), box=BOX)
    return x, out, src, ox.TmaDescriptor.tiled(out, box=BOX)


# ---- broken on purpose: two groups on one store ring
# Pending stores are counted for each thread. The lane of one group cannot wait for what the lane of the other has stored.
@ox.pipeline(threads=128)
def broken_groups(cta: ox.Cta, dst: Tiles) -> None:
    outs = cta.store_ring(dst, stages=STAGES)
    for half in range(2):
        with cta.warps(half * 2, half * 2 + 2) as group:  # the edit: two groups of two warps, not one of four
            for at in cta.tiles(dst, box=EVERY):
                with outs.put(group, at) as tile:
                    cta.iota(tile, axis=1)


@broken_groups.recipe(refused="OX1104")
def broken_groups_recipe(dev: ox.Device) -> ox.Recipe:
    _, out, dst = ruled(dev, None)
    return ox.Recipe(launch=broken_groups[2].bind(dst), outputs={"out": out})


# ---- broken on purpose: written behind its block
# The tile was empty when its store was issued, and is written while the engine reads it.
@ox.pipeline(threads=128)
def broken_block(cta: ox.Cta, dst: Tiles) -> None:
    outs = cta.store_ring(dst, stages=STAGES)
    with cta.warps(0, 4) as group:
        for at in cta.tiles(dst, box=EVERY):
            with outs.put(group, at) as tile:
                pass
            cta.iota(tile, axis=1)  # type: ignore[oxidecopy-scope]  # the edit: four spaces to the left


@broken_block.recipe(refused="OX1102")
def broken_block_recipe(dev: ox.Device) -> ox.Recipe:
    _, out, dst = ruled(dev, None)
    return ox.Recipe(launch=broken_block[2].bind(dst), outputs={"out": out})


# ---- broken on purpose: all stages pending
# With as many stores pending as there are stages, none would ever be given back to the producer.
@ox.pipeline(warps=ox.roles(producer=1, consumers=(), store=1))
def broken_pending(cta: ox.Cta, src: Tiles, dst: Tiles) -> None:
    ring = cta.ring(stages=4, tiles=(src,))
    with cta.producer() as leader:
        for at in cta.tiles(src):
            with ring.produce(leader) as (slot,):
                slot.load(src, at)
    with cta.storer() as leader:
        for at in cta.tiles(src):
            ring.forward(leader, dst, at, pending=4)  # the edit: not 2


@broken_pending.recipe(refused="OX1108")
def broken_pending_recipe(dev: ox.Device) -> ox.Recipe:
    _, out, src, dst = chain(dev, None)
    return ox.Recipe(launch=broken_pending[3].bind(src, dst), outputs={"out": out})


# ---- broken on purpose: by hand, and one store too few waited for
# Double buffering without a store ring. `wait_group_read(STAGES)` leaves two stores pending, so the one that used this tile may be one of
# them. It would be right for two tiles.
@ox.pipeline(threads=128)
def broken_count(cta: ox.Cta, dst: Tiles, n: ox.Idx) -> None:
    tiles = cta.shared(dst, stages=STAGES)
    with cta.warps(0, 4) as group:
        for i in cta.range(n):
            tile = tiles[i % STAGES]
            with group.elect() as lane:
                lane.wait_group_read(STAGES)  # the edit: not `STAGES - 1`
            group.sync()
            cta.iota(tile, axis=1)
            cta.fence_proxy_async()
            group.sync()
            with group.elect() as lane:
                dst.s2g(lane, tile, (i * 32, 0))
                lane.commit_group()
        with group.elect() as lane:
            lane.wait_group_read(0)


@broken_count.recipe(refused="OX3043")
def broken_count_recipe(dev: ox.Device) -> ox.Recipe:
    _, out, dst = ruled(dev, None)
    return ox.Recipe(launch=broken_count[1].bind(dst, 5), outputs={"out": out})


def main(argv: Sequence[str] | None = None) -> int:
    return ox.run_recipes(__doc__, rulers, pass_on, broken_groups, broken_block, broken_pending, broken_count, argv=argv)


if __name__ == "__main__":
    raise SystemExit(main())
