"""Ping-pong: two warpgroups take turns, so that one computes while the other one stores its result.

CUTLASS's "ping-pong" kernel gives every second tile of the result to the same warpgroup. The tensor cores are always busy: while group 0
brings a tile out, group 1 has its mainloop. Both take their stages from one ring; two pairs of barriers say whose turn it is, one pair for
the mainloop and one for the staging tile, which both groups share. Four twins are broken on purpose: a group that does not count the
stages of the other, no turns for the mainloops, two groups that wait for each other, and a turn that is passed on too early.

    python examples/19_ping_pong.py --input x.npy --output y.npy       # any 2-D float32 array
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

import oxidecopy as ox

STAGES = 4
CTAS = 2  # each takes every second block of rows; as many as fit on the GPU would be fastest
ROWS, DEPTH = 64, 32  # of a tile
Tiles = ox.TmaDescriptor[ox.f32, ox.D2, ox.Swizzle128B]
Array = npt.NDArray[np.float32]


# ---- turns
# Tile t of the result is block row t of `src`, its slabs of 32 columns summed. Its mainloop takes `steps` stages, so step k of tile t uses
# stage number `t * steps + k`: each group counts the stages of both. A ring of this library will not do here: its groups are given every
# stage, and these take them in turns.
#
# A turn is a phase: `turns[g]` ends one whenever the other group is done, so the j-th turn of group 1 comes after phase j, and that of
# group 0, which begins, after phase j - 1. CUTLASS calls the pair an OrderedSequenceBarrier.
def body(cta: ox.Cta, src: Tiles, dst: Tiles, *, others: int = 1, first: int = 0, ordered: bool = True, pending: int = 0) -> None:
    slots, staging = cta.shared(src, stages=STAGES), cta.shared(dst, name="staging")
    full, empty = cta.barriers(STAGES, name="full").init(1), cta.barriers(STAGES, name="empty").init(1)
    mainloops, epilogues = cta.barriers(2, name="mainloops").init(1), cta.barriers(2, name="epilogues").init(1)
    rows, columns = src.shape
    steps = (columns + DEPTH - 1) // DEPTH
    ctas = cta.grid_dim.x
    tiles = ((rows + ROWS - 1) // ROWS - cta.block_idx.x + ctas - 1) // ctas  # of this CTA

    with cta.producer() as leader:
        for t in cta.range(tiles):
            for k in cta.range(steps):
                n = t * steps + k
                empty[n % STAGES].wait_phase(n // STAGES - 1)
                token = full[n % STAGES].arrive_expect_tx(leader, slots[n % STAGES])
                src.g2s(leader, slots[n % STAGES], ((cta.block_idx.x + t * ctas) * ROWS, k * DEPTH), token)

    for me in range(2):  # Python's loop: it is over before anything runs, and leaves two blocks side by side
        sums = cta.shared(dst, name="sums")
        with cta.consumers(me) as group:
            for j in cta.range((tiles - me + 1) // 2):
                t = j * 2 + me
                if ordered:
                    mainloops[me].wait_phase(j - 1 + (me if first == 0 else 1))
                group.fill(sums, 0)
                group.sync()
                for k in cta.range(steps):
                    n = (t if others else j) * steps + k
                    full[n % STAGES].wait_phase(n // STAGES)
                    group.map(lambda s, v: s + v, sums, slots[n % STAGES], out=sums)
                    group.sync()
                    with group.elect():
                        empty[n % STAGES].arrive()
                with group.elect():
                    mainloops[1 - me].arrive()

                epilogues[me].wait_phase(j - 1 + me)
                group.copy(sums, out=staging)
                cta.fence_proxy_async()
                group.sync()
                with group.elect() as lane:
                    dst.s2g(lane, staging, ((cta.block_idx.x + t * ctas) * ROWS, 0))
                    lane.commit_group()
                    lane.wait_group_read(pending)
                    epilogues[1 - me].arrive()


@ox.pipeline(warps=ox.roles(producer=1, consumers=(4, 4)))
def ping_pong(cta: ox.Cta, src: Tiles, dst: Tiles) -> None:
    body(cta, src, dst)


@ping_pong.recipe
def ping_pong_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    return recipe(dev, x, ping_pong)


def recipe(dev: ox.Device, x: Array | None, pipeline: ox.Pipeline[Tiles, Tiles]) -> ox.Recipe:
    if x is None:
        x = np.random.default_rng(19).standard_normal((600, 200), dtype=np.float32)
    src = ox.TmaDescriptor.tiled(dev.array(x, ox.f32, pad=True), box=(ROWS, DEPTH), swizzle=ox.Swizzle128B)
    out = dev.empty((x.shape[0], DEPTH), ox.f32, pad=True)
    dst = ox.TmaDescriptor.tiled(out, box=(ROWS, DEPTH), swizzle=ox.Swizzle128B)
    expected = np.zeros((x.shape[0], DEPTH), np.float32)
    for slab in np.split(np.pad(x, ((0, 0), (0, -x.shape[1] % DEPTH))), -(-x.shape[1] // DEPTH), axis=1):
        expected += slab
    return ox.Recipe(launch=pipeline[CTAS].bind(src, dst), outputs={"out": out}, expected={"out": expected})


# ---- broken on purpose: stages that the other group took
# CUTLASS has `state.advance(k_tile_count)` for this. Without it both groups wait for stage 0, then 1: each sums what is the other's.
@ox.pipeline(warps=ox.roles(producer=1, consumers=(4, 4)))
def broken_count(cta: ox.Cta, src: Tiles, dst: Tiles) -> None:
    body(cta, src, dst, others=0)  # the edit: not 1


@broken_count.recipe(refused="OX3014")
def broken_count_recipe(dev: ox.Device) -> ox.Recipe:
    return recipe(dev, None, broken_count)


# ---- broken on purpose: no turns for the mainloops
# The stages come in order, so what is there to wait for? But a wait on `full` sees no more than whether a phase is even or odd: group 1
# looks for the second filling of a stage before the first one has come, and is let through. Turns are not only for speed.
@ox.pipeline(warps=ox.roles(producer=1, consumers=(4, 4)))
def broken_order(cta: ox.Cta, src: Tiles, dst: Tiles) -> None:
    body(cta, src, dst, ordered=False)  # the edit: not True


@broken_order.recipe(refused="OX3013")
def broken_order_recipe(dev: ox.Device) -> ox.Recipe:
    return recipe(dev, None, broken_order)


# ---- broken on purpose: nobody begins
# Both groups wait for the other one to be done with its first mainloop.
@ox.pipeline(warps=ox.roles(producer=1, consumers=(4, 4)))
def broken_start(cta: ox.Cta, src: Tiles, dst: Tiles) -> None:
    body(cta, src, dst, first=1)  # the edit: not 0


@broken_start.recipe(refused="OX3030")
def broken_start_recipe(dev: ox.Device) -> ox.Recipe:
    return recipe(dev, None, broken_start)


# ---- broken on purpose: a tile that is still being stored
# The group passes the staging tile on while the copy engine may still read it, and the other one writes over it.
@ox.pipeline(warps=ox.roles(producer=1, consumers=(4, 4)))
def broken_turn(cta: ox.Cta, src: Tiles, dst: Tiles) -> None:
    body(cta, src, dst, pending=1)  # the edit: not 0


@broken_turn.recipe(refused="OX3043")
def broken_turn_recipe(dev: ox.Device) -> ox.Recipe:
    return recipe(dev, None, broken_turn)


def main(argv: Sequence[str] | None = None) -> int:
    return ox.run_recipes(__doc__, ping_pong, broken_count, broken_order, broken_start, broken_turn, argv=argv)


if __name__ == "__main__":
    raise SystemExit(main())
