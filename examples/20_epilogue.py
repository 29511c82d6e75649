"""An epilogue: alpha * sums + beta * C in small tiles, each stored while the next one is computed.

What CUTLASS runs behind a mainloop: the sums of a tile are cut into parts, the parts of C come by copies that were started long before, and
each part of D is made in one of two staging buffers and stored by the copy engine, which may still read one while the other one is
written. The sums are loaded here, as there is no product. `with_ring` has a store ring do all that lies between map and store, `by_hand`
does it itself; three twins of it are broken on purpose: no proxy fence, a buffer too few waited for, and nobody waits at the end.

    python examples/20_epilogue.py --input x.npy --output y.npy --pipeline with_ring     # any 2-D float32 array: the sums; C is its double
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

import oxidecopy as ox

ALPHA, BETA = 0.75, -0.5
PARTS, BUFFERS = 4, 2
TILE, PART = (64, 32), (64 // PARTS, 32)
Sums = ox.TmaDescriptor[ox.f32, ox.D2, ox.Swizzle128B]
Target = ox.TmaDescriptor[ox.f16, ox.D2, ox.Swizzle64B]
Scale = ox.Scalar[ox.f32]
Array = npt.NDArray[np.float32]


# ---- by rings
# Sums and C come through rings: the loads of the next tile's C are under way while this tile is stored. `d.put` waits until its buffer has
# been read, and behind the block are the fence by all who wrote, their sync, and the store by one lane (lesson 13).
@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def with_ring(cta: ox.Cta, acc: Sums, c: Sums, dst: Target, alpha: Scale, beta: Scale) -> None:
    tiles, sources = cta.ring(stages=2, tiles=(acc,)), cta.ring(stages=PARTS, tiles=(c,))
    d = cta.store_ring(dst, stages=BUFFERS)
    with cta.producer() as leader:
        for row, column in cta.tiles(acc):
            with tiles.produce(leader) as (slot,):
                slot.load(acc, (row, column))
            for part in range(PARTS):
                with sources.produce(leader) as (source,):
                    source.load(c, (row + part * PART[0], column))
    with cta.consumers() as group:
        for row, column in cta.tiles(acc):
            with tiles.consume(group) as (sums,):
                for part in range(PARTS):
                    with sources.consume(group) as (old,), d.put(group, (row + part * PART[0], column)) as made:
                        group.map(lambda s, v: (s * alpha + v * beta).cast(ox.f16), sums.part(part, of=PARTS), old, out=made)


@with_ring.recipe
def with_ring_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    return recipe(dev, x, with_ring)


# ---- by hand
# The same for one tile, by hand from the map on. Part n uses buffer `n % BUFFERS`. Before it is written, the lane that stores has waited
# until all but the newest `BUFFERS - 1` stores have read theirs, and the group has met behind that wait. After it is written, everybody who
# wrote fences: plain stores and the copy engine go different ways to shared memory, and a sync alone orders only the first.
def body(
    cta: ox.Cta, acc: Sums, c: Sums, dst: Target, alpha: Scale, beta: Scale, *, fence: bool = True, unread: int = BUFFERS - 1, left: int = 0
) -> None:
    tile, sources, buffers = cta.shared(acc), cta.shared(c, stages=PARTS), cta.shared(dst, stages=BUFFERS, name="buffers")
    full = cta.barriers(1 + PARTS, name="full").init(1)
    row, column = cta.block_idx.y * TILE[0], cta.block_idx.x * TILE[1]
    with cta.producer() as leader:
        token = full[PARTS].arrive_expect_tx(leader, tile)
        acc.g2s(leader, tile, (row, column), token)
        for part in range(PARTS):
            token = full[part].arrive_expect_tx(leader, sources[part])
            c.g2s(leader, sources[part], (row + part * PART[0], column), token)
    with cta.consumers() as group:
        full[PARTS].wait_phase(0)
        for part in range(PARTS):
            buffer = buffers[part % BUFFERS]
            full[part].wait_phase(0)
            with group.elect() as lane:
                lane.wait_group_read(unread)
            group.sync()
            group.map(lambda s, v: (s * alpha + v * beta).cast(ox.f16), tile.part(part, of=PARTS), sources[part], out=buffer)
            if fence:
                cta.fence_proxy_async()
            group.sync()
            with group.elect() as lane:
                dst.s2g(lane, buffer, (row + part * PART[0], column))
                lane.commit_group()
        with group.elect() as lane:
            lane.wait_group_read(left)


@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def by_hand(cta: ox.Cta, acc: Sums, c: Sums, dst: Target, alpha: Scale, beta: Scale) -> None:
    body(cta, acc, c, dst, alpha, beta)


@by_hand.recipe
def by_hand_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    return recipe(dev, x, by_hand)


def recipe(dev: ox.Device, x: Array | None, pipeline: ox.Pipeline[Sums, Sums, Target, Scale, Scale]) -> ox.Recipe:
    if x is None:
        x = np.random.default_rng(20).standard_normal((150, 100), dtype=np.float32)
    y = x + x
    acc = ox.TmaDescriptor.tiled(dev.array(x, ox.f32, pad=True), box=TILE, swizzle=ox.Swizzle128B)
    c = ox.TmaDescriptor.tiled(dev.array(y, ox.f32, pad=True), box=PART, swizzle=ox.Swizzle128B)
    out = dev.empty(x.shape, ox.f16, pad=True)
    dst = ox.TmaDescriptor.tiled(out, box=PART, swizzle=ox.Swizzle64B)
    grid = (-(-x.shape[1] // TILE[1]), -(-x.shape[0] // TILE[0]))
    with np.errstate(over="ignore"):  # what f16 cannot hold becomes an infinity, in both
        expected = (x * np.float32(ALPHA) + y * np.float32(BETA)).astype(np.float16)
    return ox.Recipe(launch=pipeline[grid].bind(acc, c, dst, ALPHA, BETA), outputs={"out": out}, expected={"out": expected})


# ---- broken on purpose: no fence
# The group has met, so every thread sees what was written; the copy engine may still read what was there before.
@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def broken_fence(cta: ox.Cta, acc: Sums, c: Sums, dst: Target, alpha: Scale, beta: Scale) -> None:
    body(cta, acc, c, dst, alpha, beta, fence=False)  # the edit: not True


@broken_fence.recipe(refused="OX3046")
def broken_fence_recipe(dev: ox.Device) -> ox.Recipe:
    return recipe(dev, None, broken_fence)


# ---- broken on purpose: one store too many under way
# `wait_group_read(2)` with two buffers waits for nothing that matters: part 2 is written over part 0, whose store may be reading it.
@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def broken_wait(cta: ox.Cta, acc: Sums, c: Sums, dst: Target, alpha: Scale, beta: Scale) -> None:
    body(cta, acc, c, dst, alpha, beta, unread=BUFFERS)  # the edit: not `BUFFERS - 1`


@broken_wait.recipe(refused="OX3043")
def broken_wait_recipe(dev: ox.Device) -> ox.Recipe:
    return recipe(dev, None, broken_wait)


# ---- broken on purpose: nobody waits at the end
# The CTA ends, and another one is given its shared memory, while the last store may still read from it.
@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def broken_end(cta: ox.Cta, acc: Sums, c: Sums, dst: Target, alpha: Scale, beta: Scale) -> None:
    body(cta, acc, c, dst, alpha, beta, left=1)  # the edit: not 0


@broken_end.recipe(refused="OX3050")
def broken_end_recipe(dev: ox.Device) -> ox.Recipe:
    return recipe(dev, None, broken_end)


def main(argv: Sequence[str] | None = None) -> int:
    return ox.run_recipes(__doc__, with_ring, by_hand, broken_fence, broken_wait, broken_end, argv=argv)


if __name__ == "__main__":
    raise SystemExit(main())
