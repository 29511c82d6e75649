from __future__ import annotations

from typing import Literal as L

import oxidecopy as ox

Armed = ox.TxToken[ox.TmaBarrier]
Row = ox.TmaDescriptor[ox.f32, ox.D2, ox.SwizzleNone, ox.Box2[L[1], L[64]]]
Box = ox.TmaDescriptor[ox.f32, ox.D2, ox.SwizzleNone, ox.Box2[L[8], L[64]]]
Conv = ox.Im2colDescriptor[ox.f16, ox.D4, ox.Swizzle128B, ox.Box2[L[32], L[64]]]
Signal = ox.ManagedBarrier[ox.Ready, ox.TmaBarrier]


def hints(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], leader: ox.Leader, token: Armed) -> None:
    tile = cta.shared(src)
    src.prefetch(leader, (0, 0, 0))  # E
    src.g2s(leader, tile, (0, 0), token, cache_hint="evict_first")  # E
    src.s2g(leader, tile, (0, 0), cache_hint=ox.cache.fractional(ox.cache.fractional(ox.cache.evict_last, 0.5), 0.5))  # E
    src.s2g(leader, tile, (0, 0), cache_hint=ox.cache.fractional(ox.cache.evict_last, 0.5, rest=ox.cache.evict_last))  # E


def runs(cta: ox.Cta, src: ox.GlobalArray[ox.i32, ox.D2], leader: ox.Leader, token: Armed, plain: ox.BarrierToken[ox.TmaBarrier]) -> None:
    tile = cta.shared(ox.i32, (64,), align=ox.A16)
    other = cta.shared(ox.u32, (64,), align=ox.A16)
    ox.bulk_g2s(leader, tile, src, (0,), token)  # E
    ox.bulk_g2s(leader, other, src, (0, 0), token)  # E
    ox.bulk_g2s(leader, tile, src, (0, 0), plain)  # E
    ox.bulk_reduce(ox.reduce.inc, leader, tile, src, (0, 0))  # E
    ox.bulk_prefetch(leader, src, (0, 0))  # E


def floats(cta: ox.Cta, dst: ox.GlobalArray[ox.f32, ox.D1], leader: ox.Leader) -> None:
    tile = cta.shared(ox.f32, (64,), align=ox.A16)
    ox.bulk_reduce(ox.reduce.min, leader, tile, dst, (0,))  # E


def alone(cta: ox.Cta, leader: ox.Leader, full: Signal, token: Armed, src: ox.GlobalArray[ox.u64, ox.D1]) -> None:
    tile = cta.shared(ox.u64, (64,), align=ox.A16)
    ox.bulk_g2s_multicast(leader, tile, src, (0,), token, cta_mask=3)  # E
    ox.bulk_s2s(leader, tile, tile, full, cta_rank=1)  # E


def sends(cta: ox.ClusterCta, leader: ox.ClusterLeader, full: Signal, unready: ox.ManagedBarrier[ox.Uninit, ox.TmaBarrier]) -> None:
    tile = cta.shared(ox.u64, (64,), align=ox.A16)
    other = cta.shared(ox.i64, (64,), align=ox.A16)
    square = cta.shared(ox.u64, (8, 8), align=ox.A16)
    ox.bulk_s2s(leader, tile, other, full, cta_rank=1)  # E
    ox.bulk_s2s(leader, tile, square, full, cta_rank=1)  # E
    ox.bulk_s2s(leader, tile, tile, unready, cta_rank=1)  # E
    ox.bulk_reduce_s2s(ox.reduce.max, leader, tile, tile, full, cta_rank=0)  # E


def combined(cta: ox.ClusterCta, leader: ox.ClusterLeader, full: Signal) -> None:
    a, b = cta.shared(ox.i32, (64,), align=ox.A16), cta.shared(ox.f32, (64,), align=ox.A16)
    ox.bulk_reduce_s2s(ox.reduce.inc, leader, a, a, full, cta_rank=0)  # E
    ox.bulk_reduce_s2s(ox.reduce.add, leader, b, b, full, cta_rank=0)  # E


def pixels(cta: ox.Cta, src: Conv, boxes: Box, leader: ox.Leader, token: Armed) -> None:
    tile = cta.shared(src)
    src.g2s(leader, tile, (0, 0, 0, 0), token)  # E
    src.g2s(leader, tile, (0, 0, 0, 0), token, offsets=(1,))  # E
    src.g2s(leader, tile, (0, 0, 0), token, offsets=(1, 1))  # E
    src.s2g(leader, tile, (0, 0, 0, 0), offsets=(0, 0))  # E
    src.reduce(ox.reduce.bit_or, leader, tile, (0, 0, 0, 0))  # E
    src.prefetch(leader, (0, 0, 0, 0))  # E
    boxes.g2s(leader, cta.shared(boxes), (0, 0), token, offsets=(0, 0))  # E


@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def slots(cta: ox.Cta, src: Conv, boxes: Box) -> None:
    ring = cta.ring(stages=2, tiles=(src, boxes))
    with cta.producer() as leader, ring.produce(leader) as (a, b):
        a.load(src, (0, 0, 0, 0))  # E
        a.load(src, (0, 0, 0, 0), offsets=(1,))  # E
        b.load(boxes, (0, 0), offsets=(0, 0))  # E
        b.load(src, (0, 0, 0, 0), offsets=(0, 0))  # E
        b.load_part(boxes, (0,), 0, of=4)  # E
        b.load_part(src, (0, 0, 0, 0), 0, of=4)  # E


def shared_slots(cta: ox.ClusterCta, src: Conv, boxes: ox.TmaDescriptor[ox.f16, ox.D2]) -> None:
    cta.multicast_ring(stages=2, tiles=(src,))  # E
    cta.multicast_ring(stages=2, tiles=(), own=(src,))  # E
    cta.multicast_ring(stages=2, tiles=(boxes,), along=("x", "y"))  # E
    cta.multicast_ring(stages=2, tiles=(boxes, boxes), along=("x",))  # E


def taken(src: Conv, boxes: Box) -> None:
    as_tiled(src)  # E
    as_pixels(boxes)  # E


def as_tiled(src: ox.TmaDescriptor[ox.f16, ox.D4, ox.Swizzle128B]) -> None: ...


def as_pixels(src: ox.Im2colDescriptor[ox.f32, ox.D4]) -> None: ...


def rows(cta: ox.Cta, src: Row, boxes: Box, leader: ox.Leader, token: Armed) -> None:
    tile = cta.shared(ox.f32, ox.Box2[L[4], L[64]], align=ox.A1024)
    src.gather4(leader, tile, (1, 2, 3), 0, token)  # E
    src.gather4(leader, cta.shared(src), (1, 2, 3, 4), 0, token)  # E
    boxes.gather4(leader, tile, (1, 2, 3, 4), 0, token)  # E
    boxes.scatter4(leader, tile, (1, 2, 3, 4), 0)  # E


def packed(
    cta: ox.Cta,
    leader: ox.Leader,
    token: Armed,
    four: ox.TmaDescriptor[ox.u4x16_align8b, ox.D2, ox.Swizzle64B, ox.Box2[L[8], L[128]]],
    gaps: ox.TmaDescriptor[ox.u4x16_align16b, ox.D2, ox.Swizzle128B, ox.Box2[L[8], L[128]]],
    out: ox.GlobalArray[ox.u8, ox.D2],
) -> None:
    four.g2s(leader, cta.shared(gaps), (0, 0), token)  # E
    four.g2s(leader, cta.shared(four).bytes, (0, 0), token)  # E
    four.reduce(ox.reduce.add, leader, cta.shared(four), (0, 0))  # E
    cta.store(out, cta.shared(four), (0, 0))  # E
    out.packed(ox.f16)  # E


def wide(
    cta: ox.Cta,
    leader: ox.Leader,
    token: Armed,
    src: ox.Im2colWideDescriptor[ox.f16, ox.D4, ox.Swizzle128B, ox.Box2[L[32], L[64]]],
    walk: Conv,
) -> None:
    tile = cta.shared(src, halo=2)
    src.g2s(leader, tile, (0, 0, 0), token, halo=2)  # E
    src.g2s(leader, tile, (0, 0, 0, 0), token, halo="2")  # E
    src.g2s(leader, tile, (0, 0, 0, 0), token, offsets=(0, 0))  # E
    src.s2g(leader, tile, (0, 0, 0, 0))  # E
    src.reduce(ox.reduce.add, leader, tile, (0, 0, 0, 0))  # E
    src.g2s(leader, cta.shared(ox.f32, (34, 64), align=ox.A1024), (0, 0, 0, 0), token, halo=2)  # E
    src.g2s(leader, cta.shared(ox.f16, (34, 64), align=ox.A128), (0, 0, 0, 0), token, halo=2)  # E
    src.g2s_multicast(leader, tile, (0, 0, 0, 0), token, cta_mask=3, halo=2)  # E
    cta.shared(walk, halo=2)  # E


def replaced(
    cta: ox.Cta, src: Box, x: ox.GlobalArray[ox.f32, ox.D2], y: ox.GlobalArray[ox.f16, ox.D2], slots: ox.GlobalArray[ox.u8, ox.D2], token: Armed
) -> None:
    cta.tensormap(src, x)  # E
    slot = cta.tensormap(src, slots)
    tile = cta.shared(src)
    other = cta.shared(ox.f16, (8, 64), align=ox.A1024)
    with cta.warps(0, 1) as warp:
        slot.edit(warp)  # E
        with warp.elect() as leader:
            slot.g2s(leader, tile, (0, 0), token)  # E
            draft = slot.edit(leader)
            draft.g2s(leader, tile, (0, 0), token)  # E
            draft.acquire(leader)  # E
            draft.replace(leader, y, (0, 0), (8, 8))  # E
            draft.replace(leader, x, (0,), (8,))  # E
        draft.cp_fenceproxy(leader)  # E
        released = draft.cp_fenceproxy(warp)
        released.acquire(warp)  # E
        with warp.elect() as leader:
            released.s2g(leader, tile, (0, 0))  # E
            released.acquire(leader).g2s(leader, other, (0, 0), token)  # E
            released.acquire(leader).g2s(leader, tile, (0, 0, 0), token)  # E


def pixels_are_not_replaced(cta: ox.Cta, src: Conv, slots: ox.GlobalArray[ox.u8, ox.D2]) -> None:
    cta.tensormap(src, slots)  # E


def reshaped(cta: ox.Cta, group: ox.Group, box: ox.TmaDescriptor[ox.f32, ox.D2, ox.SwizzleNone, ox.Box2[L[8], L[64]]]) -> None:
    tile = cta.shared(box)
    flat = cta.shared(ox.f32, (64, 8), align=ox.A128)
    halves, cube = cta.shared(ox.f16, (64, 8), align=ox.A128), cta.shared(ox.f32, (2, 8, 64), align=ox.A128)
    vector, whole = cta.shared(ox.f32, (8,), align=ox.A128), cta.shared(ox.i32, (8, 64), align=ox.A128)
    wide = cta.shared(ox.f64, (8, 64), align=ox.A128)
    group.transpose(tile, out=halves)  # E
    group.transpose(tile, out=cube)  # E
    group.transpose(tile, out=tile)  # E
    group.transpose(tile, flat)  # E
    group.transpose(vector, out=vector)  # E
    group.sum(tile, axis=1, out=flat)  # E
    group.sum(whole, axis=1, out=vector)  # E
    group.sum(wide, axis=1, out=vector)  # E
    group.sum(tile, axis=2, out=vector)  # E
    group.sum(cube, axis=1, out=vector)  # E
    group.max(tile, axis=0, out=cta.shared(ox.f16, (64,), align=ox.A128))  # E
    cta.max(tile, out=vector)  # E
