"""The pipelines that are measured: f32 tiles of 64 x 64, loaded and stored by tensor copies."""

from __future__ import annotations

from typing import Final

import oxidecopy as ox

TILE: Final = 64  # elements along each side
STAGES: Final = 4

Map = ox.TmaDescriptor[ox.f32, ox.D2]


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
