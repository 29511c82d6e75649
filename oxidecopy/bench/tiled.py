"""The pipelines of `oxidecopy.bench.work`: tiles come through a ring, results leave through a store ring, or one box for each CTA."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, final

import oxidecopy as ox
from oxidecopy.bench.copies import padding

Map = ox.TmaDescriptor[Any, Any, Any, Any]
F32 = ox.TmaDescriptor[ox.f32, ox.D2]
Vector = ox.TmaDescriptor[ox.f32, ox.D1]
BF16 = ox.TmaDescriptor[ox.bf16, ox.D2]
HALO = (1, 4)  # rows and columns; a box's rows are multiples of 16 bytes
Number = ox.Scalar[ox.f32]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Tiles:
    """How an array is cut up and worked on.

    Attributes:
        box: elements of a tile.
        stages: of the ring.
        stored: stages of the store ring.
        warps: that compute.
        per_sm: CTAs of a multiprocessor; without a ring, where each box has a CTA, the most that run at once (0: any number).
    """

    box: tuple[int, ...]
    per_sm: int
    stages: int = 0
    stored: int = 0
    warps: int = 0

    @property
    def words(self) -> str:
        box = "x".join(map(str, self.box))
        if not self.stages:
            return f"boxes of {box}, a CTA for each, {self.per_sm or 'as many as fit'} at once on an SM"
        return f"tiles of {box}, {self.stages} stages, {self.stored} to store from, {self.warps} warps, {self.per_sm} CTAs per SM"

    def beside(self, dtype: type[ox.DType]) -> int:
        """Shared memory beside the one tile of a CTA without a ring, so that no more than `per_sm` fit."""
        return padding(prod(self.box) * dtype.info.nbytes, self.per_sm)


def fused(tiles: Tiles) -> ox.Pipeline[...]:
    """Five operations on elements of two arrays, given out by a counter."""

    @ox.pipeline(warps=ox.roles(producer=1, consumers=tiles.warps))
    def fused_map(cta: ox.Cta, a: F32, b: F32, out: BF16, x: Number, y: Number, z: Number) -> None:
        ring, made = cta.ring(stages=tiles.stages, tiles=(a, b)), cta.store_ring(out, stages=tiles.stored)
        work = cta.schedule(a, order=ox.order.counter())
        with cta.producer() as leader:
            for at in work:
                with ring.produce(leader) as (left, right):
                    left.load(a, at)
                    right.load(b, at)
        with cta.consumers() as group:
            for stage in ring.stages(group, work):
                one, other = stage.tiles
                with made.put(group, stage.at) as result:
                    group.map(lambda v, w: (v * x + w * y - z).relu().cast(ox.bf16), one, other, out=result)

    return fused_map


def cast(tiles: Tiles) -> ox.Pipeline[...]:
    """f32 to bf16, given out by a counter."""

    @ox.pipeline(warps=ox.roles(producer=1, consumers=tiles.warps))
    def cast_copy(cta: ox.Cta, a: F32, out: BF16) -> None:
        ring, made = cta.ring(stages=tiles.stages, tiles=(a,)), cta.store_ring(out, stages=tiles.stored)
        work = cta.schedule(a, order=ox.order.counter())
        with cta.producer() as leader:
            for at in work:
                with ring.produce(leader) as (slot,):
                    slot.load(a, at)
        with cta.consumers() as group:
            for stage in ring.stages(group, work):
                (tile,) = stage.tiles
                with made.put(group, stage.at) as result:
                    group.map(lambda v: v.cast(ox.bf16), tile, out=result)

    return cast_copy


def transposed(tiles: Tiles) -> ox.Pipeline[...]:
    """Tiles into transposed ones, given out by a counter; dimensions before the last two stay."""

    @ox.pipeline(warps=ox.roles(producer=1, consumers=tiles.warps))
    def transpose(cta: ox.Cta, a: Map, out: Map) -> None:
        ring: ox.Ring[Any, Any] = cta.ring(stages=tiles.stages, tiles=(a,))
        made = cta.store_ring(out, stages=tiles.stored)
        work = cta.schedule(a, order=ox.order.counter())
        with cta.producer() as leader:
            for at in work:
                with ring.produce(leader) as (slot,):
                    slot.load(a, at)
        with cta.consumers() as group:
            for stage in ring.stages(group, work):
                (tile,) = stage.tiles
                *outer, row, column = stage.at
                with made.put(group, (*outer, column, row)) as result:
                    group.transpose(tile, out=result)

    return transpose


def around(tiles: Tiles, taps: Mapping[tuple[int, int], float]) -> ox.Pipeline[...]:
    """Weighted sums of neighbours: each tile comes with what lies around it, `HALO` more on each side; outside of the array are zeros."""
    rows, columns = HALO

    @ox.pipeline(warps=ox.roles(producer=1, consumers=tiles.warps))
    def stencil(cta: ox.Cta, a: F32, out: F32) -> None:
        ring, made = cta.ring(stages=tiles.stages, tiles=(a,)), cta.store_ring(out, stages=tiles.stored)
        work = cta.schedule(out, order=ox.order.counter())
        with cta.producer() as leader:
            for row, column in work:
                with ring.produce(leader) as (slot,):
                    slot.load(a, (row - rows, column - columns))
        with cta.consumers() as group:
            for stage in ring.stages(group, work):
                (tile,) = stage.tiles
                with made.put(group, stage.at) as result:
                    group.stencil(tile, taps=taps, out=result)

    return stencil


def row_sums(tiles: Tiles) -> ox.Pipeline[...]:
    """Rows of a box's height to a CTA, added up box by box; `per_sm` is how many of them fit."""

    @ox.pipeline(warps=ox.roles(producer=1, consumers=tiles.warps))
    def sums(cta: ox.Cta, a: Map, out: Vector) -> None:
        ring: ox.Ring[Any, Any] = cta.ring(stages=tiles.stages, tiles=(a,))
        made = cta.store_ring(out, stages=tiles.stored)
        columns = a.shape[1] // tiles.box[1]
        with cta.producer() as leader:
            for (row,) in cta.tiles(out, order=ox.order.once):
                for i in cta.range(columns):
                    with ring.produce(leader) as (slot,):
                        slot.load(a, (row, i * tiles.box[1]))
        with cta.consumers() as group:
            for at in cta.tiles(out, order=ox.order.once):
                with made.put(group, at) as total:
                    group.fill(total, 0.0)
                    group.sync()
                    for _ in cta.range(columns):
                        with ring.consume(group) as (tile,):
                            group.sum(tile, axis=1, out=total, accumulate=True)

    return sums


def column_sums(tiles: Tiles, boxes: int) -> ox.Pipeline[...]:
    """So many boxes one below the other to a CTA, whose sums it adds to the output; CTAs side by side have boxes side by side."""

    @ox.pipeline(warps=ox.roles(producer=1, consumers=tiles.warps))
    def sums(cta: ox.Cta, a: Map, out: Vector) -> None:
        ring: ox.Ring[Any, Any] = cta.ring(stages=tiles.stages, tiles=(a,))
        total = cta.shared(out)
        rows, columns = tiles.box
        across = a.shape[1] // columns
        first, column = cta.block_idx.x // across * (boxes * rows), cta.block_idx.x % across * columns
        with cta.producer() as leader:
            for i in cta.range(boxes):
                with ring.produce(leader) as (slot,):
                    slot.load(a, (first + i * rows, column))
        with cta.consumers() as group:
            group.fill(total, 0.0)
            group.sync()
            for _ in cta.range(boxes):
                with ring.consume(group) as (tile,):
                    group.sum(tile, axis=0, out=total, accumulate=True)
            group.sync()
            cta.fence_proxy_async()
            group.sync()
            with group.elect() as leader:
                out.reduce(ox.reduce.add, leader, total, (column,))
                leader.commit_group()
                leader.wait_group_read(0)

    return sums


def add_once(beside: int) -> ox.Pipeline[...]:
    """A CTA for each box, which adds it to the first box of the output; so many bytes of shared memory beside it."""

    @ox.pipeline(threads=32)
    def add_boxes(cta: ox.Cta, src: F32, total: F32) -> None:
        tile = cta.shared(src)
        if beside:
            cta.shared(ox.u8, (beside,), align=ox.A128)
        full = cta.barrier().init(1)
        for at in cta.tiles(src, order=ox.order.once):
            with cta.elect() as leader:
                token = full.arrive_expect_tx(leader, tile.nbytes)
                src.g2s(leader, tile, at, token)
                full.wait(token)
                total.reduce(ox.reduce.add, leader, tile, (0, 0))
                leader.commit_group()
                leader.wait_group_read(0)

    return add_boxes
