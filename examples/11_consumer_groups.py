"""Two consumer groups on one ring: a share each, or the same tiles at a pace of their own.

Every group of a ring is given every stage and gives it back on its own; a stage is free when all groups have. In the first pipeline two
groups divide each tile between them. In the second each makes its own copy, by ordinary stores and by the copy engine; the one that uses
the engine holds a stage more, so that its store runs while the next tile is waited for. Three twins are broken on purpose.

    python examples/11_consumer_groups.py --input x.npy --output y.npy     # any 2-D float32 array
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

import oxidecopy as ox

STAGES = 3
BOX = (64, 32)
Tiles = ox.TmaDescriptor[ox.f32, ox.D2, ox.Swizzle128B]
Result = ox.GlobalArray[ox.f32, ox.D2]
Array = npt.NDArray[np.float32]


# ---- a share each
# `consumers=(4, 4)`: two groups of four warps (a warpgroup each). Their code is the same, so it is written once: this `for` is Python's,
# and is over before anything runs; the two blocks it records lie side by side, as the producer's does.
@ox.pipeline(warps=ox.roles(producer=1, consumers=(4, 4)))
def shares(cta: ox.Cta, src: Tiles, out: Result) -> None:
    ring = cta.ring(stages=STAGES, tiles=(src,))
    with cta.producer() as leader:
        for at in cta.tiles(src):
            with ring.produce(leader) as (slot,):
                slot.load(src, at)
    for share in range(2):
        with cta.consumers(share) as group:
            for row, col in cta.tiles(src):
                with ring.consume(group) as (tile,):
                    cta.store(out, tile.part(share, of=2), (row + share * 32, col))


@shares.recipe
def shares_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    x, src = source(dev, x)
    out = dev.empty(x.shape, ox.f32)
    return ox.Recipe(launch=shares[3].bind(src, out), outputs={"out": out}, expected={"out": x})


def source(dev: ox.Device, x: Array | None) -> tuple[Array, Tiles]:
    """The input of all pipelines of this lesson."""
    if x is None:
        x = np.random.default_rng(11).standard_normal((300, 200), dtype=np.float32)
    return x, ox.TmaDescriptor.tiled(dev.array(x, ox.f32, pad=True), box=BOX, swizzle=ox.Swizzle128B)


def target(dev: ox.Device, x: Array) -> tuple[Result, Tiles]:
    """An output that the copy engine writes to."""
    out = dev.empty(x.shape, ox.f32, pad=True)
    return out, ox.TmaDescriptor.tiled(out, box=BOX, swizzle=ox.Swizzle128B)


# ---- all tiles to both, each at its own pace
# Group 0 stores each tile with its threads and gives it back at once. Group 1 has one lane ask the copy engine to store it. The engine then
# still reads the tile, so the stage cannot be given back yet; to wait for that here would be idle time.
#
# `keep=1` gives a stage back one stage later: at the end of tile i's block that is tile i - 1. So it is enough that the store of i - 1 has
# been read by then, and that is what `wait_group_read(1)` says: at most the newest one is under way. The tile was written by the engine and
# is read by the engine, hence no fence. This is software pipelining: the end of one tile's work overlaps the start of the next one's.
@ox.pipeline(warps=ox.roles(producer=1, consumers=(4, 1)))
def both(cta: ox.Cta, src: Tiles, first: Result, second: Tiles) -> None:
    ring = cta.ring(stages=STAGES, tiles=(src,))
    with cta.producer() as leader:
        for at in cta.tiles(src):
            with ring.produce(leader) as (slot,):
                slot.load(src, at)
    with cta.consumers(0) as threads:
        for at in cta.tiles(src):
            with ring.consume(threads) as (tile,):
                cta.store(first, tile, at)
    with cta.consumers(1) as warp:
        for at in cta.tiles(src):
            with ring.consume(warp, keep=1) as (tile,), warp.elect() as lane:
                second.s2g(lane, tile, at)
                lane.commit_group()
                lane.wait_group_read(1)
        # Shared memory must outlive what the engine reads from it.
        with warp.elect() as lane:
            lane.wait_group_read(0)


@both.recipe
def both_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    x, src = source(dev, x)
    first = dev.empty(x.shape, ox.f32)
    second, dst = target(dev, x)
    return ox.Recipe(launch=both[3].bind(src, first, dst), outputs={"first": first, "second": second}, expected={"first": x, "second": x})


# ---- broken on purpose: a stage given back under a store
# Without `keep` the stage goes back while the engine may be reading it, and the producer loads the next tile into what is being stored.
@ox.pipeline(warps=ox.roles(producer=1, consumers=(4, 1)))
def broken_keep(cta: ox.Cta, src: Tiles, first: Result, second: Tiles) -> None:
    ring = cta.ring(stages=STAGES, tiles=(src,))
    with cta.producer() as leader:
        for at in cta.tiles(src):
            with ring.produce(leader) as (slot,):
                slot.load(src, at)
    with cta.consumers(0) as threads:
        for at in cta.tiles(src):
            with ring.consume(threads) as (tile,):
                cta.store(first, tile, at)
    with cta.consumers(1) as warp:
        for at in cta.tiles(src):
            with ring.consume(warp) as (tile,), warp.elect() as lane:  # the edit: no `keep=1`
                second.s2g(lane, tile, at)
                lane.commit_group()
                lane.wait_group_read(1)
        with warp.elect() as lane:
            lane.wait_group_read(0)


@broken_keep.recipe(refused="OX3043")
def broken_keep_recipe(dev: ox.Device) -> ox.Recipe:
    x, src = source(dev, None)
    second, dst = target(dev, x)
    return ox.Recipe(launch=broken_keep[3].bind(src, dev.empty(x.shape, ox.f32), dst), outputs={"second": second})


# ---- broken on purpose: tiles taken in turns
# Each group takes every second tile and leaves the others to its neighbour. But a group counts the stages that it takes itself, and gives
# back no others: both would be given stages 0, 1, 2, ... and the producer would wait for stages that one of them never gives back. A group
# that has nothing to do with a tile takes it all the same: the condition goes inside the block.
@ox.pipeline(warps=ox.roles(producer=1, consumers=(4, 4)))
def broken_turns(cta: ox.Cta, src: Tiles, out: Result, n: ox.Idx) -> None:
    ring = cta.ring(stages=STAGES, tiles=(src,))
    with cta.producer() as leader:
        for i in cta.range(n):
            with ring.produce(leader) as (slot,):
                slot.load(src, (0, i * 32))
    for turn in range(2):
        with cta.consumers(turn) as group:
            for i in cta.range(n):
                # the edit: not `ring.consume(group) as (tile,), cta.when(i % 2 == turn)`
                with cta.when(i % 2 == turn), ring.consume(group) as (tile,):
                    cta.store(out, tile, (0, i * 32))


@broken_turns.recipe(refused="OX1105")
def broken_turns_recipe(dev: ox.Device) -> ox.Recipe:
    x, src = source(dev, None)
    out = dev.empty(x.shape, ox.f32)
    return ox.Recipe(launch=broken_turns[1].bind(src, out, 7), outputs={"out": out})


# ---- broken on purpose: a group that is not there
# The empty barriers count one arrival for each declared group. The second one never takes a stage, so none is ever free again.
@ox.pipeline(warps=ox.roles(producer=1, consumers=(4, 4)))
def broken_group(cta: ox.Cta, src: Tiles, out: Result) -> None:
    ring = cta.ring(stages=STAGES, tiles=(src,))
    with cta.producer() as leader:
        for at in cta.tiles(src):
            with ring.produce(leader) as (slot,):
                slot.load(src, at)
    with cta.consumers(0) as group:
        for at in cta.tiles(src):
            with ring.consume(group) as (tile,):
                cta.store(out, tile, at)
    with cta.consumers(1):
        pass  # the edit: it does not consume; `cta.ring(..., consumers=1)` would say so


@broken_group.recipe(refused="OX1109")
def broken_group_recipe(dev: ox.Device) -> ox.Recipe:
    x, src = source(dev, None)
    out = dev.empty(x.shape, ox.f32)
    return ox.Recipe(launch=broken_group[3].bind(src, out), outputs={"out": out}, expected={"out": x})


def main(argv: Sequence[str] | None = None) -> int:
    return ox.run_recipes(__doc__, shares, both, broken_keep, broken_turns, broken_group, argv=argv)


if __name__ == "__main__":
    raise SystemExit(main())
