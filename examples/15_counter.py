"""Work that is dealt while it runs: CTAs take tiles from a counter, and a map changes them on the way.

With `linear` each CTA knows its tiles before it starts, and the slowest CTA decides when the launch ends. With `counter` a CTA takes the
next tile when it has room for one: how many it gets, and which, differs from run to run. Only the producer asks the counter; the consumers
are told through the ring. So they need the schedule, not a loop of their own. Four twins are broken on purpose: three where a role does
not follow the schedule, one where the program branches on a tile that nobody knows beforehand.

    python examples/15_counter.py --input x.npy --output y.npy --pipeline copy         # any 2-D float32 array
    python examples/15_counter.py --input x.npy --output y.npy --pipeline scale        # any 2-D float32 array; the result is float16
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

import oxidecopy as ox

BOX = (32, 32)
ALPHA = 1.7
COUNTER = ox.order.counter()
Source = ox.TmaDescriptor[ox.f32, ox.D2, ox.Swizzle128B]
Target = ox.TmaDescriptor[ox.f16, ox.D2, ox.Swizzle64B]
Result = ox.GlobalArray[ox.f32, ox.D2]
Array = npt.NDArray[np.float32]


# ---- the counter
@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def copy(cta: ox.Cta, src: Source, out: Result) -> None:
    ring = cta.ring(stages=4, tiles=(src,))

    # One schedule for all roles, made where everybody is. It belongs to the launch: each box is given to one CTA, once.
    work = cta.schedule(src, order=COUNTER)

    # The producer's loop asks for the next box each time around, and ends when there is none. With each stage goes the box that it brings.
    with cta.producer() as leader:
        for at in work:
            with ring.produce(leader) as (slot,):
                slot.load(src, at)

    # The consumers' loop is over the stages that the producer fills, however many: `stage.at` is where the stage's tiles come from.
    with cta.consumers() as group:
        for stage in ring.stages(group, work):
            (tile,) = stage.tiles
            cta.store(out, tile, stage.at)


@copy.recipe
def copy_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    x, src = source(dev, x)
    out = dev.empty(x.shape, ox.f32)
    # More CTAs than boxes would do too: some then get none. The verifier has proven every number of boxes that a CTA may get.
    return ox.Recipe(launch=copy[3].bind(src, out), outputs={"out": out}, expected={"out": x})


def source(dev: ox.Device, x: Array | None) -> tuple[Array, Source]:
    """What all pipelines of this lesson read."""
    if x is None:
        x = np.random.default_rng(15).standard_normal((150, 200), dtype=np.float32)
    return x, ox.TmaDescriptor.tiled(dev.array(x, ox.f32, pad=True), box=BOX, swizzle=ox.Swizzle128B)


# ---- a map on the way
# Load, compute, store: the ring brings f32, `group.map` scales it and rounds it to f16, and a store ring (lesson 13) takes it away. The two
# tiles are swizzled differently; a map goes by places in the box, so that is nobody's concern.
@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def scale(cta: ox.Cta, src: Source, dst: Target, alpha: ox.Scalar[ox.f32]) -> None:
    ring = cta.ring(stages=4, tiles=(src,))
    outs = cta.store_ring(dst, stages=2)
    work = cta.schedule(src, order=COUNTER)
    with cta.producer() as leader:
        for at in work:
            with ring.produce(leader) as (slot,):
                slot.load(src, at)
    with cta.consumers() as group:
        for stage in ring.stages(group, work):
            (tile,) = stage.tiles
            with outs.put(group, stage.at) as made:
                # Called once, while recording, with a symbol for an element. The product is rounded to f32, the cast to f16, as numpy does.
                group.map(lambda v: (v * alpha).cast(ox.f16), tile, out=made)


@scale.recipe
def scale_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    x, src = source(dev, x)
    out = dev.empty(x.shape, ox.f16, pad=True)
    dst = ox.TmaDescriptor.tiled(out, box=BOX, swizzle=ox.Swizzle64B)
    with np.errstate(over="ignore"):  # what f16 cannot hold becomes an infinity, in both
        expected = (x * np.float32(ALPHA)).astype(np.float16)
    return ox.Recipe(launch=scale[3].bind(src, dst, ALPHA), outputs={"out": out}, expected={"out": expected})


# ---- broken on purpose: consumers that count for themselves
# `cta.tiles` gives each CTA a share that is known beforehand. The producer may be given fewer boxes than that, and then the consumers wait
# for ever; in equal numbers they may be other boxes.
@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def broken_trips(cta: ox.Cta, src: Source, out: Result) -> None:
    ring = cta.ring(stages=4, tiles=(src,))
    work = cta.schedule(src, order=COUNTER)
    with cta.producer() as leader:
        for at in work:
            with ring.produce(leader) as (slot,):
                slot.load(src, at)
    with cta.consumers() as group:
        for at in cta.tiles(src):  # the edit: not `for stage in ring.stages(group, work)`
            with ring.consume(group) as (tile,):
                cta.store(out, tile, at)


@broken_trips.recipe(refused="OX3012")
def broken_trips_recipe(dev: ox.Device) -> ox.Recipe:
    x, src = source(dev, None)
    out = dev.empty(x.shape, ox.f32)
    return ox.Recipe(launch=broken_trips[3].bind(src, out), outputs={"out": out}, expected={"out": x})


# ---- broken on purpose: a producer that does not ask
# The stages carry no box, because no schedule filled them: there is nothing that the consumers could be told.
@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def broken_untold(cta: ox.Cta, src: Source, out: Result) -> None:
    ring = cta.ring(stages=4, tiles=(src,))
    work = cta.schedule(src, order=COUNTER)
    with cta.producer() as leader:
        for at in cta.tiles(src):  # the edit: not `for at in work`
            with ring.produce(leader) as (slot,):
                slot.load(src, at)
    with cta.consumers() as group:
        for stage in ring.stages(group, work):
            cta.store(out, stage.tiles[0], stage.at)


@broken_untold.recipe(refused="OX1145")
def broken_untold_recipe(dev: ox.Device) -> ox.Recipe:
    x, src = source(dev, None)
    out = dev.empty(x.shape, ox.f32)
    return ox.Recipe(launch=broken_untold[3].bind(src, out), outputs={"out": out}, expected={"out": x})


# ---- broken on purpose: a counter for one role
# Two roles that both ask the counter would each be given other boxes. `cta.tiles` is such a schedule, of one role alone.
@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def broken_alone(cta: ox.Cta, src: Source, out: Result) -> None:
    ring = cta.ring(stages=4, tiles=(src,))
    with cta.producer() as leader:
        for at in cta.tiles(src, order=COUNTER):  # the edit: not `cta.schedule`, once, for all
            with ring.produce(leader) as (slot,):
                slot.load(src, at)
    with cta.consumers() as group:
        for at in cta.tiles(src, order=COUNTER):
            with ring.consume(group) as (tile,):
                cta.store(out, tile, at)


@broken_alone.recipe(refused="OX1141")
def broken_alone_recipe(dev: ox.Device) -> ox.Recipe:
    x, src = source(dev, None)
    out = dev.empty(x.shape, ox.f32)
    return ox.Recipe(launch=broken_alone[3].bind(src, out), outputs={"out": out}, expected={"out": x})


# ---- broken on purpose: a branch on the box
# Which box it is, is read from memory. The verifier would have to follow both ways, for every deal of the boxes. So a box from a counter
# may say where a copy goes, and nothing else.
@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def broken_branch(cta: ox.Cta, src: Source, out: Result) -> None:
    ring = cta.ring(stages=4, tiles=(src,))
    work = cta.schedule(src, order=COUNTER)
    with cta.producer() as leader:
        for at in work:
            with ring.produce(leader) as (slot,):
                slot.load(src, at)
    with cta.consumers() as group:
        for stage in ring.stages(group, work):
            with cta.when(stage.at[0] == 0):  # the edit: a condition
                cta.store(out, stage.tiles[0], stage.at)


@broken_branch.recipe(refused="OX1140")
def broken_branch_recipe(dev: ox.Device) -> ox.Recipe:
    x, src = source(dev, None)
    out = dev.empty(x.shape, ox.f32)
    return ox.Recipe(launch=broken_branch[3].bind(src, out), outputs={"out": out}, expected={"out": x})


def main(argv: Sequence[str] | None = None) -> int:
    return ox.run_recipes(__doc__, copy, scale, broken_trips, broken_untold, broken_alone, broken_branch, argv=argv)


if __name__ == "__main__":
    raise SystemExit(main())
