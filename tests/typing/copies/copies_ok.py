from __future__ import annotations

from typing import Literal as L

import oxidecopy as ox

Armed = ox.TxToken[ox.TmaBarrier]
Row = ox.TmaDescriptor[ox.f32, ox.D2, ox.SwizzleNone, ox.Box2[L[1], L[64]]]
Conv = ox.Im2colDescriptor[ox.f16, ox.D4, ox.Swizzle128B, ox.Box2[L[32], L[64]]]
Signal = ox.ManagedBarrier[ox.Ready, ox.TmaBarrier]


def hints(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], leader: ox.Leader, token: Armed) -> None:
    tile = cta.shared(src)
    src.prefetch(leader, (0, 0), cache_hint=ox.cache.evict_last)
    src.g2s(leader, tile, (0, 0), token, cache_hint=ox.cache.evict_first)
    src.s2g(leader, tile, (0, 0), cache_hint=ox.cache.fractional(ox.cache.evict_last, 0.5))
    src.reduce(ox.reduce.add, leader, tile, (0, 0), cache_hint=ox.cache.fractional(ox.cache.evict_normal, 0.5, rest=ox.cache.evict_first))


def runs(cta: ox.Cta, src: ox.GlobalArray[ox.i32, ox.D2], leader: ox.Leader, token: Armed) -> None:
    tile = cta.shared(ox.i32, (64,), align=ox.A16)
    ox.bulk_prefetch(leader, src, (0, 0), nbytes=256)
    ox.bulk_g2s(leader, tile, src, (cta.block_idx.x, 0), token)
    ox.bulk_s2g(leader, tile, src, (0, 0), nbytes=128, cache_hint=ox.cache.evict_first)
    ox.bulk_reduce(ox.reduce.max, leader, tile, src, (0, 0))


def sends(cta: ox.ClusterCta, leader: ox.ClusterLeader, full: Signal, token: Armed, src: ox.GlobalArray[ox.u64, ox.D1]) -> None:
    tile = cta.shared(ox.u64, (64,), align=ox.A16)
    there = cta.shared(ox.u64, (64,), align=ox.A128)
    ox.bulk_g2s_multicast(leader, tile, src, (0,), token, cta_mask=3)
    ox.bulk_s2s(leader, tile, there, full, cta_rank=1 - cta.cta_rank)
    ox.bulk_reduce_s2s(ox.reduce.add, leader, tile, there, full, cta_rank=0)


def combined(cta: ox.ClusterCta, leader: ox.ClusterLeader, full: Signal) -> None:
    a, b = cta.shared(ox.i32, (64,), align=ox.A16), cta.shared(ox.i32, (64,), align=ox.A16)
    ox.bulk_reduce_s2s(ox.reduce.min, leader, a, b, full, cta_rank=0)
    c, d = cta.shared(ox.u32, (64,), align=ox.A16), cta.shared(ox.u32, (64,), align=ox.A16)
    ox.bulk_reduce_s2s(ox.reduce.inc, leader, c, d, full, cta_rank=0)


def pixels(cta: ox.Cta, src: Conv, leader: ox.Leader, token: Armed) -> None:
    tile = cta.shared(src)
    src.prefetch(leader, (0, 0, 0, 0), offsets=(1, 2))
    src.g2s(leader, tile, (0, 0, 0, 0), token, offsets=(cta.block_idx.z // 3, cta.block_idx.z % 3))
    src.s2g(leader, tile, (0, 0, 0, 0))
    src.reduce(ox.reduce.add, leader, tile, (0, 0, 0, 0))


@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def slots(cta: ox.Cta, src: Conv, boxes: ox.TmaDescriptor[ox.f16, ox.D2]) -> None:
    ring = cta.ring(stages=2, tiles=(src, boxes))
    with cta.producer() as leader, ring.produce(leader) as (a, b):
        a.load(src, (0, 0, 0, 0), offsets=(1, cta.block_idx.x), cache_hint=ox.cache.evict_last)
        for r in cta.range(4):
            b.load_part(boxes, (r * 2, 0), r, of=4)
    with cta.consumers() as group, ring.consume(group) as (x, y):
        group.copy(x, out=x)
        group.copy(y, out=y)


@ox.pipeline(warps=ox.roles(producer=1, consumers=4), cluster=2)
def own_slots(cta: ox.ClusterCta, src: Conv, boxes: ox.TmaDescriptor[ox.f16, ox.D2]) -> None:
    ring = cta.multicast_ring(stages=2, tiles=(boxes,), own=(src,))
    with cta.producer() as leader, ring.produce(leader) as (together, alone):
        together.load(boxes, (0, 0))
        alone.load(src, (0, 0, 0, 0), offsets=(0, 0))
    with cta.consumers() as group, ring.consume(group) as (_, tile):
        group.copy(tile, out=tile)


def pixels_for_all(cta: ox.ClusterCta, src: Conv, leader: ox.ClusterLeader, token: Armed) -> None:
    src.g2s_multicast(leader, cta.shared(src), (0, 0, 0, 0), token, offsets=(0, 0), cta_mask=3)


def rows(cta: ox.Cta, src: Row, leader: ox.Leader, token: Armed) -> None:
    tile = cta.shared(ox.f32, ox.Box2[L[4], L[64]], align=ox.A1024)
    src.gather4(leader, tile, (1, 2, 3, cta.block_idx.x), 0, token)
    src.scatter4(leader, tile, (1, 2, 3, 4), 0)


def packed(
    cta: ox.Cta,
    leader: ox.Leader,
    token: Armed,
    four: ox.TmaDescriptor[ox.u4x16_align8b, ox.D2, ox.Swizzle64B, ox.Box2[L[8], L[128]]],
    gaps: ox.TmaDescriptor[ox.u4x16_align16b, ox.D2, ox.Swizzle128B, ox.Box2[L[8], L[128]]],
    six: ox.TmaDescriptor[ox.u6x16_align16b, ox.D2, ox.Swizzle128B, ox.Box2[L[8], L[128]]],
    out: ox.GlobalArray[ox.u8, ox.D2],
    pixels: ox.Im2colDescriptor[ox.u6x16_align16b, ox.D4, ox.Swizzle128B, ox.Box2[L[32], L[128]]],
) -> None:
    tile, other = cta.shared(four), cta.shared(gaps)
    four.g2s(leader, tile, (0, 0), token)
    gaps.g2s(leader, other, (0, 0), token)
    four.s2g(leader, tile, (0, 0))
    cta.store(out, tile.bytes, (0, 0))
    values = cta.shared(ox.u8, ox.Box2[L[8], L[128]], align=ox.A1024)
    cta.fill(values, 63)
    six.s2g(leader, values, (0, 0))
    pixels.g2s(leader, cta.shared(pixels), (0, 0, 0, 0), token, offsets=(0, 0))
    print(out.packed(ox.u4x16_align8b).bytes.shape)


def wide(
    cta: ox.ClusterCta,
    leader: ox.ClusterLeader,
    token: Armed,
    src: ox.Im2colWideDescriptor[ox.f16, ox.D4, ox.Swizzle128B, ox.Box2[L[32], L[64]]],
) -> None:
    tile = cta.shared(src, halo=2)
    src.prefetch(leader, (0, 0, 0, 0), halo=2, offset=cta.block_idx.x)
    src.g2s(leader, tile, (0, 0, 0, 0), token, halo=2, offset=1)
    src.g2s_multicast(leader, tile, (0, 0, 0, 0), token, cta_mask=3, halo=2)
    src.g2s(leader, cta.shared(src, stages=2)[0], (0, 0, 0, 0), token)


def replaced(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], x: ox.GlobalArray[ox.f32, ox.D2], slots: ox.GlobalArray[ox.u8, ox.D2], token: Armed) -> None:
    slot = cta.tensormap(src, slots)
    tile = cta.shared(src)
    first = cta.block_idx.x
    with cta.warps(0, 1) as warp:
        with warp.elect() as leader:
            draft = slot.edit(leader)
            draft.replace(leader, x, (first, 0), (first + 8, x.shape[1]))
        released = draft.cp_fenceproxy(warp)
        with warp.elect() as leader:
            desc = released.acquire(leader)
            desc.g2s(leader, tile, (0, 0), token)
            desc.s2g(leader, tile, (0, 0))


def reshaped(cta: ox.Cta, group: ox.Group, box: ox.TmaDescriptor[ox.f32, ox.D2, ox.SwizzleNone, ox.Box2[L[8], L[64]]]) -> None:
    tile = cta.shared(box)
    flat, halves = cta.shared(ox.f32, (64, 8), align=ox.A128), cta.shared(ox.f16, (8, 64), align=ox.A128)
    cube, turned = cta.shared(ox.bf16, (2, 8, 64), align=ox.A128), cta.shared(ox.bf16, (2, 64, 8), align=ox.A128)
    rows, columns = cta.shared(ox.f32, (8,), align=ox.A128), cta.shared(ox.f32, (64,), align=ox.A128)
    group.transpose(tile, out=flat)
    cta.transpose(cube, out=turned)
    group.sum(tile, axis=1, out=rows)
    group.sum(halves, axis=0, out=columns, accumulate=True)
    cta.max(tile, axis=0, out=columns)


def axes_of_slots(cta: ox.ClusterCta, boxes: ox.TmaDescriptor[ox.f16, ox.D2]) -> None:
    cta.multicast_ring(stages=2, tiles=(boxes, boxes), along=("y", "x"))
    cta.multicast_ring(stages=2, tiles=(boxes,), own=(boxes,), along=("x",))
