"""Prefetch with a ring: the pipeline of lesson 06 with no barrier, phase or byte count to write.

Roles say which warps load and which use. A ring is a number of stages between them: tiles, a full and an empty barrier for each, and the
count of what was loaded and used. What was a dozen lines by hand is four here. Four twins are broken on purpose: two misuse the ring and
are refused while recording, one lets the two roles walk over different tiles, one forgets by hand what a ring does not forget.

    python examples/10_ring.py --input x.npy --output y.npy        # any 2-D float32 array
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

import oxidecopy as ox

STAGES = 4
BOX = (64, 32)
Source = ox.TmaDescriptor[ox.f32, ox.D2, ox.Swizzle128B]
Result = ox.GlobalArray[ox.f32, ox.D2]
Array = npt.NDArray[np.float32]


# ---- the ring
# Roles count warps: one loads, four use. They take the place of `threads`: 160 here.
@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def prefetch(cta: ox.Cta, src: Source, out: Result) -> None:
    # A tile of `src` in each stage, aligned as its swizzle needs; the barriers are initialised, and the CTA has met.
    ring = cta.ring(stages=STAGES, tiles=(src,))

    # One lane of the producer's warp. `cta.tiles` gives this CTA's share of the boxes that cover the array, as the coordinates of their
    # corners: box number block_idx, then every grid_dim-th after it. So any grid will do, and the last boxes may reach over the edge.
    with cta.producer() as leader:
        for at in cta.tiles(src):
            # The block waits until the stage is free and announces its bytes. Its slot must be loaded exactly once.
            with ring.produce(leader) as (slot,):
                slot.load(src, at)

    # The consumers walk over the same boxes in the same order: the n-th stage taken is the n-th that was filled.
    with cta.consumers() as group:
        for at in cta.tiles(src):
            # The block waits until the stage has landed. At its end the group meets, and one lane gives the stage back.
            with ring.consume(group) as (tile,):
                cta.store(out, tile, at)


@prefetch.recipe
def prefetch_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    x, src, out = arguments(dev, x)
    # Three CTAs, however many boxes there are.
    return ox.Recipe(launch=prefetch[3].bind(src, out), outputs={"out": out}, expected={"out": x})


def arguments(dev: ox.Device, x: Array | None) -> tuple[Array, Source, Result]:
    """What all pipelines of this lesson are launched with."""
    if x is None:
        x = np.random.default_rng(10).standard_normal((300, 200), dtype=np.float32)
    src = ox.TmaDescriptor.tiled(dev.array(x, ox.f32, pad=True), box=BOX, swizzle=ox.Swizzle128B)
    return x, src, dev.empty(x.shape, ox.f32)


# ---- another order
# The order of the boxes is an argument: `once` gives each CTA one box, `grouped` goes down a few rows of boxes before it moves right, so
# that CTAs that run together share columns in the L2 cache. Both roles must be given the same one, so it gets a name.
ORDER = ox.order.grouped(2)


@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def rasterised(cta: ox.Cta, src: Source, out: Result) -> None:
    ring = cta.ring(stages=STAGES, tiles=(src,))
    with cta.producer() as leader:
        for at in cta.tiles(src, order=ORDER):
            with ring.produce(leader) as (slot,):
                slot.load(src, at)
    with cta.consumers() as group:
        for at in cta.tiles(src, order=ORDER):
            with ring.consume(group) as (tile,):
                cta.store(out, tile, at)


@rasterised.recipe
def rasterised_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    x, src, out = arguments(dev, x)
    return ox.Recipe(launch=rasterised[3].bind(src, out), outputs={"out": out}, expected={"out": x})


# ---- broken on purpose: a slot that is not loaded
# The stage has announced bytes that nobody sends: its consumers would wait for ever. A condition that skips the load is as bad as none.
@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def broken_slot(cta: ox.Cta, src: Source, out: Result) -> None:
    ring = cta.ring(stages=STAGES, tiles=(src,))
    with cta.producer() as leader:
        for _ in cta.tiles(src):
            with ring.produce(leader):
                pass  # the edit: no `slot.load(src, at)`
    with cta.consumers() as group:
        for at in cta.tiles(src):
            with ring.consume(group) as (tile,):
                cta.store(out, tile, at)


@broken_slot.recipe(refused="OX1107")
def broken_slot_recipe(dev: ox.Device) -> ox.Recipe:
    x, src, out = arguments(dev, None)
    return ox.Recipe(launch=broken_slot[3].bind(src, out), outputs={"out": out}, expected={"out": x})


# ---- broken on purpose: a tile used behind its block
# The stage has been given back: the producer may be loading the next tile over it.
@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def broken_block(cta: ox.Cta, src: Source, out: Result) -> None:
    ring = cta.ring(stages=STAGES, tiles=(src,))
    with cta.producer() as leader:
        for at in cta.tiles(src):
            with ring.produce(leader) as (slot,):
                slot.load(src, at)
    with cta.consumers() as group:
        for at in cta.tiles(src):
            with ring.consume(group) as (tile,):
                pass
            cta.store(out, tile, at)  # type: ignore[oxidecopy-scope]  # the edit: four spaces to the left


@broken_block.recipe(refused="OX1102")
def broken_block_recipe(dev: ox.Device) -> ox.Recipe:
    x, src, out = arguments(dev, None)
    return ox.Recipe(launch=broken_block[3].bind(src, out), outputs={"out": out}, expected={"out": x})


# ---- broken on purpose: the roles walk differently
# The producer takes larger steps and fills fewer stages, the consumers wait for more. A ring does not compare the loops of its two sides,
# the verifier does: it follows both, for these extents and this grid.
@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def broken_order(cta: ox.Cta, src: Source, out: Result) -> None:
    ring = cta.ring(stages=STAGES, tiles=(src,))
    with cta.producer() as leader:
        for at in cta.tiles(src, box=(128, 32)):  # the edit: `box=`, for this role only
            with ring.produce(leader) as (slot,):
                slot.load(src, at)
    with cta.consumers() as group:
        for at in cta.tiles(src):
            with ring.consume(group) as (tile,):
                cta.store(out, tile, at)


@broken_order.recipe(refused="OX3012")
def broken_order_recipe(dev: ox.Device) -> ox.Recipe:
    x, src, out = arguments(dev, None)
    return ox.Recipe(launch=broken_order[3].bind(src, out), outputs={"out": out}, expected={"out": x})


# ---- broken on purpose: by hand, and a stage that is never given back
# The same pipeline without a ring, as in lesson 06 (a ring's group meets, and one lane arrives for all of it: `empty` counts 1). Everything
# is right for the first four tiles; the fifth waits for ever. Roles and schedules may be had without a ring.
@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def broken_release(cta: ox.Cta, src: Source, out: Result, n: ox.Idx) -> None:
    tiles = cta.shared(src, stages=STAGES)
    full = cta.barriers(STAGES).init(1)
    empty = cta.barriers(STAGES).init(1)
    with cta.producer() as leader:
        for i in cta.range(n):
            stage = i % STAGES
            empty[stage].wait_phase(i // STAGES - 1)
            token = full[stage].arrive_expect_tx(leader, tiles[stage].nbytes)
            src.g2s(leader, tiles[stage], (cta.block_idx.x * 64, i * 32), token)
    with cta.consumers() as group:
        for i in cta.range(n):
            stage = i % STAGES
            full[stage].wait_phase(i // STAGES)
            cta.store(out, tiles[stage], (cta.block_idx.x * 64, i * 32))
            group.sync()
            # the edit: no `with group.elect(): empty[stage].arrive()`


@broken_release.recipe(refused="OX3012")
def broken_release_recipe(dev: ox.Device) -> ox.Recipe:
    x, src, out = arguments(dev, None)
    return ox.Recipe(launch=broken_release[5].bind(src, out, 7), outputs={"out": out}, expected={"out": x})


def main(argv: Sequence[str] | None = None) -> int:
    return ox.run_recipes(__doc__, prefetch, rasterised, broken_slot, broken_block, broken_order, broken_release, argv=argv)


if __name__ == "__main__":
    raise SystemExit(main())
