"""A multicast ring: the CTAs of a cluster load each tile together, and each of them gets all of it.

Lesson 04 did it for one tile, lesson 07 kept the cluster's barriers by hand in a loop. Here a ring does both: each CTA's producer loads its
slice into all CTAs, and a stage is free when the consumers of all CTAs have given it back, which they tell each other across the cluster.
Three twins are broken on purpose: a role that forgets how large a tile is, one that forgets that it works for the cluster, and a stage that
is given back to the own CTA only, by hand.

    python examples/12_multicast_ring.py --input x.npy --output y.npy      # any 2-D float32 array
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

import oxidecopy as ox

STAGES = 3
CLUSTER = 2
SLICE = (32, 32)
TILE = (CLUSTER * 32, 32)
Source = ox.TmaDescriptor[ox.f32, ox.D2, ox.Swizzle128B]
Result = ox.GlobalArray[ox.f32, ox.D2]
Array = npt.NDArray[np.float32]


# The descriptor's box is a slice; a tile of the ring is as many slices tall as the cluster has CTAs. `box=TILE` tells the schedule how much
# one visit covers, and `per="cluster"` gives all CTAs of a cluster the same visits: it is the clusters that share the tiles out.
#
# Two matrices are made of one. Both CTAs have the whole tile; the one of rank 0 stores it to the first, the other one to the second. Global
# memory is read once for both.
@ox.pipeline(warps=ox.roles(producer=1, consumers=4), cluster=CLUSTER)
def twice(cta: ox.ClusterCta, src: Source, first: Result, second: Result) -> None:
    # The barriers of all CTAs are initialised and the cluster has met; it meets once more at the end, so that nobody leaves while a peer
    # may still load into it or arrive at its barriers.
    ring = cta.multicast_ring(stages=STAGES, tiles=(src,))
    with cta.producer() as leader:
        for at in cta.tiles(src, per="cluster", box=TILE):
            with ring.produce(leader) as (slot,):
                slot.load(src, at)  # the corner of the tile; the ring finds this CTA's slice of it
    with cta.consumers() as group:
        for at in cta.tiles(src, per="cluster", box=TILE):
            with ring.consume(group) as (tile,):
                for rank, out in enumerate((first, second)):
                    with cta.when(cta.cta_rank == rank):
                        cta.store(out, tile, at)


@twice.recipe
def twice_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    x, src, first, second = arguments(dev, x)
    # Two clusters: a grid counts CTAs.
    launch = twice[2 * CLUSTER].bind(src, first, second)
    return ox.Recipe(launch=launch, outputs={"first": first, "second": second}, expected={"first": x, "second": x})


def arguments(dev: ox.Device, x: Array | None) -> tuple[Array, Source, Result, Result]:
    """What all pipelines of this lesson are launched with."""
    if x is None:
        x = np.random.default_rng(12).standard_normal((200, 140), dtype=np.float32)
    src = ox.TmaDescriptor.tiled(dev.array(x, ox.f32, pad=True), box=SLICE, swizzle=ox.Swizzle128B)
    return x, src, dev.empty(x.shape, ox.f32), dev.empty(x.shape, ox.f32)


# ---- broken on purpose: half the tile
# Without `box=` a visit covers the descriptor's box, which is a slice. The consumers now wait for twice as many stages as are filled.
@ox.pipeline(warps=ox.roles(producer=1, consumers=4), cluster=CLUSTER)
def broken_box(cta: ox.ClusterCta, src: Source, first: Result, second: Result) -> None:
    ring = cta.multicast_ring(stages=STAGES, tiles=(src,))
    with cta.producer() as leader:
        for at in cta.tiles(src, per="cluster", box=TILE):
            with ring.produce(leader) as (slot,):
                slot.load(src, at)
    with cta.consumers() as group:
        for at in cta.tiles(src, per="cluster"):  # the edit: no `box=TILE`
            with ring.consume(group) as (tile,):
                for rank, out in enumerate((first, second)):
                    with cta.when(cta.cta_rank == rank):
                        cta.store(out, tile, at)


@broken_box.recipe(refused="OX3012")
def broken_box_recipe(dev: ox.Device) -> ox.Recipe:
    _, src, first, second = arguments(dev, None)
    return ox.Recipe(launch=broken_box[2 * CLUSTER].bind(src, first, second), outputs={"first": first, "second": second})


# ---- broken on purpose: each CTA for itself
# The producers share the tiles out between CTAs and not between clusters: each would load slices of other tiles, and a stage would be a
# mixture of two. The corner gives it away while recording: it is not the same for the CTAs of a cluster.
@ox.pipeline(warps=ox.roles(producer=1, consumers=4), cluster=CLUSTER)
def broken_share(cta: ox.ClusterCta, src: Source, first: Result, second: Result) -> None:
    ring = cta.multicast_ring(stages=STAGES, tiles=(src,))
    with cta.producer() as leader:
        for at in cta.tiles(src, box=TILE):  # the edit: no `per="cluster"`
            with ring.produce(leader) as (slot,):
                slot.load(src, at)
    with cta.consumers() as group:
        for at in cta.tiles(src, per="cluster", box=TILE):
            with ring.consume(group) as (tile,):
                for rank, out in enumerate((first, second)):
                    with cta.when(cta.cta_rank == rank):
                        cta.store(out, tile, at)


@broken_share.recipe(refused="OX1147")
def broken_share_recipe(dev: ox.Device) -> ox.Recipe:
    _, src, first, second = arguments(dev, None)
    return ox.Recipe(launch=broken_share[2 * CLUSTER].bind(src, first, second), outputs={"first": first, "second": second})


# ---- broken on purpose: by hand, and only the own CTA is told
# What the ring records, by hand, but for the release: a CTA's producer learns that its own consumers are done with the stage, and loads its
# slice into both CTAs, where the peer's consumers may still be reading.
@ox.pipeline(warps=ox.roles(producer=1, consumers=4), cluster=CLUSTER)
def broken_release(cta: ox.ClusterCta, src: Source, out: Result, n: ox.Idx) -> None:
    tiles = cta.shared(ox.f32, (STAGES * 64, 32), align=ox.A1024)
    full = cta.barriers(STAGES).init(1)
    empty = cta.barriers(STAGES).init(1)
    rank = cta.cta_rank
    cta.cluster_sync()
    with cta.producer() as leader:
        for i in cta.range(n):
            stage = i % STAGES
            empty[stage].wait_phase(i // STAGES - 1)
            part = tiles.part(stage * CLUSTER + rank, of=STAGES * CLUSTER)
            token = full[stage].arrive_expect_tx(leader, CLUSTER * part.nbytes)
            src.g2s_multicast(leader, part, (rank * 32, i * 32), token, cta_mask=0b11)
    with cta.consumers() as group:
        for i in cta.range(n):
            stage = i % STAGES
            full[stage].wait_phase(i // STAGES)
            cta.store(out, tiles.part(stage, of=STAGES), (0, i * 32))
            group.sync()
            with group.elect():
                empty[stage].arrive()  # the edit: not `arrive_remote(r)` for both ranks r, with `init(2)`
    cta.cluster_sync()


@broken_release.recipe(refused="OX3044")
def broken_release_recipe(dev: ox.Device) -> ox.Recipe:
    _, src, out, _ = arguments(dev, None)
    return ox.Recipe(launch=broken_release[CLUSTER].bind(src, out, 7), outputs={"out": out})


def main(argv: Sequence[str] | None = None) -> int:
    return ox.run_recipes(__doc__, twice, broken_box, broken_share, broken_release, argv=argv)


if __name__ == "__main__":
    raise SystemExit(main())
