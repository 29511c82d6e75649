"""The pipelines that are measured: f32 tiles of 64 x 64, loaded and stored by tensor copies; and rings of a cluster, for their proof."""

from __future__ import annotations

from typing import Final

import oxidecopy as ox

TILE: Final = 64  # elements along each side
STAGES: Final = 4

CLUSTER: Final = 2
DEPTH: Final = 32  # columns of the rings' tiles

Map = ox.TmaDescriptor[ox.f32, ox.D2]
Swizzled = ox.TmaDescriptor[ox.f32, ox.D2, ox.Swizzle128B]
Result = ox.GlobalArray[ox.f32, ox.D2]


def one_shot(cta: ox.Cta, src: Map, dst: Map) -> None:
    """One tile per CTA: load, wait, store."""
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    at = (cta.block_idx.y * TILE, cta.block_idx.x * TILE)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        src.g2s(leader, tile, at, token)
        full.wait(token)
        dst.s2g(leader, tile, at)
        leader.commit_group()
        leader.wait_group(0)
    full.inval()


def prefetch(cta: ox.Cta, src: Map, dst: Map, tiles: ox.Idx) -> None:
    """A row of `tiles` tiles per CTA through a ring: a warp that fetches `STAGES` tiles ahead of the warp that stores them."""
    ring = cta.shared(src, stages=STAGES)
    full = cta.barriers(STAGES).init(1)
    empty = cta.barriers(STAGES).init(1)
    y = cta.block_idx.x * TILE
    with cta.warps(0, 1) as producer, producer.elect() as leader:
        for i in cta.range(tiles):
            stage = i % STAGES
            empty[stage].wait_phase(i // STAGES - 1)
            token = full[stage].arrive_expect_tx(leader, ring[stage].nbytes)
            src.g2s(leader, ring[stage], (y, i * TILE), token)
    with cta.warps(1, 2) as consumer, consumer.elect() as leader:
        for i in cta.range(tiles):
            stage = i % STAGES
            full[stage].wait_phase(i // STAGES)
            dst.s2g(leader, ring[stage], (y, i * TILE))
            leader.commit_group()
            leader.wait_group_read(0)
            empty[stage].arrive()
        leader.wait_group(0)
    full.inval()
    empty.inval()


def cluster_ring(cta: ox.ClusterCta, src: Map, first: Result, second: Result) -> None:
    """Both CTAs of a cluster load each tile together; the one of rank 0 stores it to `first`, the other one to `second`."""
    box = (CLUSTER * DEPTH, DEPTH)
    ring = cta.multicast_ring(stages=STAGES, tiles=(src,))
    with cta.producer() as leader:
        for at in cta.tiles(src, per="cluster", box=box):
            with ring.produce(leader) as (slot,):
                slot.load(src, at)
    with cta.consumers() as group:
        for at in cta.tiles(src, per="cluster", box=box):
            with ring.consume(group) as (tile,):
                for rank, out in enumerate((first, second)):
                    with cta.when(cta.cta_rank == rank):
                        cta.store(out, tile, at)


def gemm_ring(cta: ox.ClusterCta, a: Swizzled, b: Swizzled, first: Result, second: Result, steps: ox.Idx) -> None:
    """The loads of a matrix product: `steps` stages of a tile of each matrix, and two groups of consumers.

    There is no product: group 0 stores the tile of `a` in the CTA of rank 0, group 1 that of `b` in the CTA of rank 1.
    All clusters load the same tiles of `b`, of twice as many rows; in `second` they lie one cluster's below another's.
    """
    ring = cta.multicast_ring(stages=STAGES, tiles=(a, b))
    row = cta.block_idx.x // CLUSTER * CLUSTER * TILE
    with cta.producer() as leader:
        for k in cta.range(steps):
            with ring.produce(leader) as (left, right):
                left.load(a, (row, k * DEPTH))
                right.load(b, (0, k * DEPTH))
    with cta.consumers(0) as group:
        for k in cta.range(steps):
            with ring.consume(group) as (left, _), cta.when(cta.cta_rank == 0):
                cta.store(first, left, (row, k * DEPTH))
    with cta.consumers(1) as group:
        for k in cta.range(steps):
            with ring.consume(group) as (_, right), cta.when(cta.cta_rank == 1):
                cta.store(second, right, (2 * row, k * DEPTH))
