"""Split-K: several CTAs sum parts of one result, and the copy engine adds them up where they meet.

A product with few rows and long sums has too few tiles to fill a GPU, so the sums are cut: split s takes every n-th slab. `in_memory` has
each CTA add its tile to the result by `cp.reduce`, on any number of splits; `in_cluster` adds up the tiles of a cluster in the shared
memory of its first CTA, which stores once. Integers, since the order of the sums is not fixed. Three twins are broken on purpose: stores
where reductions are needed, a first split that stores, and a share of the slabs that the two roles compute differently.

    python examples/21_split_k.py --input x.npy --output y.npy     # any 2-D int32 array: the sum of its slabs of 32 columns
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

import oxidecopy as ox

SPLITS = 4
BOX = (32, 32)
Tiles = ox.TmaDescriptor[ox.i32, ox.D2]
Array = npt.NDArray[np.int32]


def slabs(src: Tiles) -> ox.Idx:
    return (src.shape[1] + BOX[1] - 1) // BOX[1]


# ---- in global memory
# `first` is what split 0 does with its sums, `others` what the rest does. All must add: nobody knows who comes first, so the result starts
# as zeros, and each adds to what is there. `spare` is how a share is rounded when the splits do not divide the slabs.
def body(cta: ox.Cta, src: Tiles, dst: Tiles, *, first: str = "add", others: str = "add", spare: int = SPLITS - 1) -> None:
    ring = cta.ring(stages=4, tiles=(src,))
    sums = cta.shared(dst)
    split, row = cta.block_idx.x, cta.block_idx.y * BOX[0]
    with cta.producer() as leader:
        for i in cta.range((slabs(src) - split + SPLITS - 1) // SPLITS):
            with ring.produce(leader) as (slot,):
                slot.load(src, (row, (split + i * SPLITS) * BOX[1]))
    with cta.consumers() as group:
        group.fill(sums, 0)
        group.sync()
        for _ in cta.range((slabs(src) - split + spare) // SPLITS):
            with ring.consume(group) as (tile,):
                group.map(lambda s, v: s + v, sums, tile, out=sums)
        cta.fence_proxy_async()
        group.sync()
        with group.elect() as lane:
            for splits, how in ((split == 0, first), (split > 0, others)):
                with cta.when(splits):
                    if how == "add":
                        dst.reduce(ox.reduce.add, lane, sums, (row, 0))
                    else:
                        dst.s2g(lane, sums, (row, 0))
            lane.commit_group()
            lane.wait_group_read(0)


@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def in_memory(cta: ox.Cta, src: Tiles, dst: Tiles) -> None:
    body(cta, src, dst)


@in_memory.recipe
def in_memory_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    return recipe(dev, x, in_memory)


# ---- in a cluster
# The splits of a tile are a cluster. Their sums travel between shared memories, and global memory is written once. The first CTA announces
# what its peers will add, and they add to its own sums; all that needs the cluster to meet twice: when those sums are complete, and at the
# end, since a copy reads the shared memory of its sender.
@ox.pipeline(warps=ox.roles(producer=1, consumers=4), cluster=SPLITS)
def in_cluster(cta: ox.ClusterCta, src: Tiles, dst: Tiles) -> None:
    ring = cta.ring(stages=4, tiles=(src,))
    sums = cta.shared(dst)
    arrived = cta.barrier(name="arrived").init(1)
    row = cta.block_idx.y * BOX[0]
    with cta.producer() as leader:
        for i in cta.range((slabs(src) - cta.cta_rank + SPLITS - 1) // SPLITS):
            with ring.produce(leader) as (slot,):
                slot.load(src, (row, (cta.cta_rank + i * SPLITS) * BOX[1]))
    with cta.consumers() as group:
        group.fill(sums, 0)
        group.sync()
        for _ in cta.range((slabs(src) - cta.cta_rank + SPLITS - 1) // SPLITS):
            with ring.consume(group) as (tile,):
                group.map(lambda s, v: s + v, sums, tile, out=sums)
        cta.fence_proxy_async()
    cta.cluster_sync()
    with cta.consumers() as group, group.elect() as lane:
        with cta.when(cta.cta_rank > 0):
            ox.bulk_reduce_s2s(ox.reduce.add, lane, sums, sums, arrived, cta_rank=0)
        with cta.when(cta.cta_rank == 0):
            token = arrived.arrive_expect_tx(lane, (SPLITS - 1) * sums.nbytes)
            arrived.wait(token)
            dst.s2g(lane, sums, (row, 0))
            lane.commit_group()
            lane.wait_group_read(0)
    cta.cluster_sync()


@in_cluster.recipe
def in_cluster_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    return recipe(dev, x, in_cluster)


def recipe(dev: ox.Device, x: Array | None, pipeline: ox.Pipeline[Tiles, Tiles]) -> ox.Recipe:
    if x is None:
        x = np.random.default_rng(21).integers(-1000, 1000, (90, 430), dtype=np.int32)
    src = ox.TmaDescriptor.tiled(dev.array(x, ox.i32, pad=True), box=BOX)
    rows, columns = x.shape
    out = dev.zeros((rows, BOX[1]), ox.i32, pad=True)
    launch = pipeline[SPLITS, -(-rows // BOX[0])].bind(src, ox.TmaDescriptor.tiled(out, box=BOX))
    expected = np.pad(x, ((0, 0), (0, -columns % BOX[1]))).reshape(rows, -1, BOX[1]).sum(axis=1, dtype=np.int32)
    return ox.Recipe(launch=launch, outputs={"out": out}, expected={"out": expected})


# ---- broken on purpose: the last one wins
# Each split stores its sums over those of the others.
@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def broken_store(cta: ox.Cta, src: Tiles, dst: Tiles) -> None:
    body(cta, src, dst, first="store", others="store")  # the edit: not "add"


@broken_store.recipe(refused="OX3201")
def broken_store_recipe(dev: ox.Device) -> ox.Recipe:
    return recipe(dev, None, broken_store)


# ---- broken on purpose: the first one stores
# It saves the zeros, and is right as long as split 0 is the first to be done: nothing says that it is.
@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def broken_first(cta: ox.Cta, src: Tiles, dst: Tiles) -> None:
    body(cta, src, dst, first="store")  # the edit: not "add"


@broken_first.recipe(refused="OX3201")
def broken_first_recipe(dev: ox.Device) -> ox.Recipe:
    return recipe(dev, None, broken_first)


# ---- broken on purpose: shares rounded down
# 14 slabs among 4 splits: the consumers of the first two leave out their fourth slab, which the producer has loaded for them.
@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def broken_share(cta: ox.Cta, src: Tiles, dst: Tiles) -> None:
    body(cta, src, dst, spare=0)  # the edit: not `SPLITS - 1`


@broken_share.recipe(refused="OX3051")
def broken_share_recipe(dev: ox.Device) -> ox.Recipe:
    return recipe(dev, None, broken_share)


def main(argv: Sequence[str] | None = None) -> int:
    return ox.run_recipes(__doc__, in_memory, in_cluster, broken_store, broken_first, broken_share, argv=argv)


if __name__ == "__main__":
    raise SystemExit(main())
