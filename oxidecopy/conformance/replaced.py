"""Maps that the device replaces: windows of arrays, known only while the program runs; and rare copies in wide code."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import oxidecopy as ox
from oxidecopy.conformance.case import Case, Made, random_bits, small_integers
from oxidecopy.conformance.copies import Array, Map, Pipe

if TYPE_CHECKING:
    from oxidecopy.host.device import Device
    from oxidecopy.typed.dtypes import DType

_GROUP: Final = "replaced maps"
_WIDE: Final = "rare copies in wide code"
_CUTS: Final = (0, 5, 6, 19, 24, 40, 41)  # rows where windows begin and end
_BOX: Final = (8, 32)
_BIG: Final = (1 << 33) + 5
Rows = ox.GlobalArray[ox.i32, ox.D1]
Slots = ox.GlobalArray[ox.u8, ox.D2]


@ox.pipeline(threads=32)
def grouped(  # noqa: PLR0917 - all pipelines here take the same
    cta: ox.Cta, src: Map, dst: Map, x: Array, out: Array, cuts: Rows, slots: Slots, n: ox.Idx
) -> None:
    """Each block copies its windows, one after the other: their tiles are filled and cut off at a window's end."""
    load, store = cta.tensormap(src, slots), cta.tensormap(dst, slots)
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    rest = tuple(0 for _ in x.shape[1:])
    with cta.warps(0, 1) as warp:
        for i in cta.range(n):
            k = cta.block_idx.x + i * cta.grid_dim.x
            first, stop = (cta.load_index(cuts, k + j, below=x.shape[0] + 1) for j in range(2))
            with warp.elect() as leader:
                a, b = load.edit(leader), store.edit(leader)
                a.replace(leader, x, (first, *rest), (stop, *x.shape[1:]))
                b.replace(leader, out, (first, *rest), (stop, *x.shape[1:]))
            released = a.cp_fenceproxy(warp), b.cp_fenceproxy(warp)
            with warp.elect() as leader:
                source, target = (r.acquire(leader) for r in released)
                for t in range(2):
                    at = (t * tile.shape[0], *rest)
                    token = full.arrive_expect_tx(leader, tile)
                    source.g2s(leader, tile, at, token)
                    full.wait(token)
                    target.s2g(leader, tile, at)
                    leader.commit_group()
                    leader.wait_group_read(0)


def of_windows(dtype: type[DType], shape: tuple[int, ...], box: tuple[int, ...], swizzle: type[ox.AnySwizzle], dev: Device) -> Made:
    """A launch of `grouped` over rows of `shape`; the templates are over arrays of other extents."""
    x, out = dev.array(random_bits(dtype, (_CUTS[-1], *shape), 3), dtype), dev.zeros((_CUTS[-1], *shape), dtype)
    like: Any = dev.zeros((16, *shape), dtype)
    wanted: Any = box
    template: Any = ox.TmaDescriptor.tiled(like, box=wanted, swizzle=swizzle)
    blocks = 2
    cuts: Any = dev.array(np.array(_CUTS, np.int32))
    slots = dev.empty((blocks * 2, 128), ox.u8)
    launch = grouped[blocks].bind(template, template, x, out, cuts, slots, len(_CUTS) // 2)
    return Made(launch=launch, outputs={"out": out, "x": x})


@ox.pipeline(threads=96)
def handed_on(  # noqa: PLR0917 - all pipelines here take the same
    cta: ox.Cta, src: Map, dst: Map, x: Array, out: Array, cuts: Rows, slots: Slots, n: ox.Idx
) -> None:
    """One warp replaces, others copy: a sync between release and acquire, another before the next release."""
    load, store = cta.tensormap(src, slots), cta.tensormap(dst, slots)
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    for i in cta.range(n):
        k = cta.block_idx.x + i * cta.grid_dim.x
        with cta.warps(1, 2) as warp:
            with warp.elect() as leader:
                a, b = load.edit(leader), store.edit(leader)
                a.replace(leader, x, (k * 3, 16), (k * 3 + 6, ox.minimum(64, x.shape[1])))
                b.replace(leader, out, (k * 6, 0), (k * 6 + 5, 48))
            released = a.cp_fenceproxy(warp), b.cp_fenceproxy(warp)
        cta.sync()
        with cta.thread(95) as leader:
            source = released[0].acquire(leader)
            token = full.arrive_expect_tx(leader, tile)
            source.g2s(leader, tile, (-2, 16), token, cache_hint=ox.cache.evict_first)
        full.wait_phase(i)
        with cta.thread(7) as leader:
            target = released[1].acquire(leader)
            target.reduce(ox.reduce.add, leader, tile, (0, 32))
            leader.commit_group()
            leader.wait_group_read(0)
        cta.sync()


@ox.pipeline(threads=64, cluster=(2, 1, 1))
def shared_out(  # noqa: PLR0917 - as above
    cta: ox.ClusterCta, src: Map, dst: Map, x: Array, out: Array, cuts: Rows, slots: Slots, n: ox.Idx
) -> None:
    """Each CTA of a cluster multicasts its part of a tile through a map of its own."""
    load = cta.tensormap(src, slots)
    tile = cta.shared(dst)
    full = cta.barrier().init(1)
    cta.cluster_sync()
    first = cta.load_index(cuts, cta.block_idx.x // 2 + n, below=x.shape[0] - 15)
    with cta.warps(0, 1) as warp:
        with warp.elect() as leader:
            draft = load.edit(leader)
            draft.replace(leader, x, (first, 0), (first + 11, x.shape[1]))
        released = draft.cp_fenceproxy(warp)
        with warp.elect() as leader:
            source = released.acquire(leader)
            token = full.arrive_expect_tx(leader, tile)
            source.g2s_multicast(leader, tile.part(cta.cta_rank, of=2), (cta.cta_rank * 8, 0), token, cta_mask=3)
        full.wait(token)
        with warp.elect() as leader:
            dst.s2g(leader, tile, (cta.block_idx.x * 16, 0))
            leader.commit_group()
            leader.wait_group(0)
    cta.cluster_sync()


@ox.pipeline(threads=32)
def once_more(  # noqa: PLR0917 - all pipelines here take the same
    cta: ox.Cta, src: Map, dst: Map, x: Array, out: Array, cuts: Rows, slots: Slots, n: ox.Idx
) -> None:
    """A map that is used, replaced and used again at once, many times: none of the copies may go through an old one."""
    slot = cta.tensormap(src, slots)
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    with cta.warps(0, 1) as warp:
        for i in cta.range(n):
            with warp.elect() as leader:
                draft = slot.edit(leader)
                draft.replace(leader, x, (i % x.shape[0], 0), (i % x.shape[0] + 1, x.shape[1]))
            released = draft.cp_fenceproxy(warp)
            with warp.elect() as leader:
                source = released.acquire(leader)
                token = full.arrive_expect_tx(leader, tile)
                source.g2s(leader, tile, (0, 0), token)
                full.wait(token)
                dst.reduce(ox.reduce.add, leader, tile, (cta.block_idx.x * _BOX[0], 0))
                leader.commit_group()
                leader.wait_group_read(0)


def made(pipeline: Pipe, blocks: int, n: int, box: tuple[int, int], dev: Device) -> Made:
    """A launch of one of these pipelines, over small integers."""
    x, out = dev.array(small_integers(ox.f32, (64, 80), 5)), dev.zeros((64, 96), ox.f32)
    src: Map = ox.TmaDescriptor.tiled(x, box=_BOX)
    dst: Map = ox.TmaDescriptor.tiled(out, box=box)
    cuts, slots = dev.array(np.array([3, 40, 7, 1, 20], np.int32)), dev.empty((2 * blocks, 128), ox.u8)
    launch = pipeline[blocks].bind(src, dst, x, out, cuts, slots, n)
    return Made(launch=launch, outputs={"out": out, "x": x})


@ox.pipeline(threads=32)
def far(  # noqa: PLR0917 - all pipelines here take the same
    cta: ox.Cta, src: Map, dst: Map, x: Array, out: Array, cuts: Rows, slots: Slots, n: ox.Idx
) -> None:
    """Windows, hints and runs by way of numbers beyond 32 bits."""
    slot = cta.tensormap(src, slots)
    tile, run = cta.shared(src), cta.shared(ox.f32, (32,), align=ox.A128)
    full = cta.barriers(2).init(1)
    block = cta.block_idx.x * (n + 1) // n
    with cta.warps(0, 1) as warp:
        with warp.elect() as leader:
            draft = slot.edit(leader)
            draft.replace(leader, x, (block * 5, 0), (block * 5 + 3, x.shape[1]))
        released = draft.cp_fenceproxy(warp)
        with warp.elect() as leader:
            source = released.acquire(leader)
            token = full[0].arrive_expect_tx(leader, tile)
            source.g2s(leader, tile, (0, block * 32), token, cache_hint=ox.cache.evict_last)
            more = full[1].arrive_expect_tx(leader, run)
            ox.bulk_g2s(leader, run, x, (block, 16), more)
            full[0].wait(token)
            full[1].wait(more)
            dst.s2g(leader, tile, (block * _BOX[0], 0), cache_hint=ox.cache.evict_first)
            ox.bulk_s2g(leader, run, out, (block + 56, 32))
            leader.commit_group()
            leader.wait_group(0)


@ox.pipeline(threads=1024)
def crowd(  # noqa: PLR0917 - all pipelines here take the same
    cta: ox.Cta, src: Map, dst: Map, x: Array, out: Array, cuts: Rows, slots: Slots, n: ox.Idx
) -> None:
    """More thread classes than warps, each with hints, runs, or a map of its own."""
    slot = cta.tensormap(src, slots)
    tiles = [cta.shared(src) for _ in range(6)]
    run = cta.shared(ox.f32, (32,), align=ox.A128)
    full = cta.barriers(40).init(1)
    for i in range(34):
        with cta.thread(29 * i + 3) as leader:
            if i < 5:
                token = full[i].arrive_expect_tx(leader, tiles[i])
                src.g2s(leader, tiles[i], (i * _BOX[0], 0), token, cache_hint=ox.cache.evict_first)
                full[i].wait(token)
                dst.s2g(leader, tiles[i], (i * _BOX[0], 0))
            elif i < 8:
                src.prefetch(leader, (i, 0))
            elif i == 9:
                token = full[i].arrive_expect_tx(leader, run)
                ox.bulk_g2s(leader, run, x, (33, 4), token)
                full[i].wait(token)
                ox.bulk_s2g(leader, run, out, (47, 64))
            else:
                full[i].arrive()
            leader.commit_group()
            leader.wait_group(0)
    with cta.warps(31, 32) as warp:
        with warp.elect() as leader:
            draft = slot.edit(leader)
            draft.replace(leader, x, (2, 0), (5, x.shape[1]))
        released = draft.cp_fenceproxy(warp)
        with warp.elect() as leader:
            source = released.acquire(leader)
            token = full[39].arrive_expect_tx(leader, tiles[5])
            source.g2s(leader, tiles[5], (0, 0), token)
            full[39].wait(token)
            dst.s2g(leader, tiles[5], (48, 32))
            leader.commit_group()
            leader.wait_group(0)


def cases() -> Iterator[Case]:
    """All of this module."""
    plain = ox.SwizzleNone
    for dtype, shape, box, swizzle in (
        (ox.f32, (32,), (8, 32), plain),
        (ox.f32, (32,), (8, 32), ox.Swizzle128B),
        (ox.f16, (24,), (8, 32), ox.Swizzle64B),
        (ox.bf16, (40,), (16, 16), ox.Swizzle32B),
        (ox.u8, (48,), (4, 64), plain),
        (ox.i64, (16,), (8, 16), ox.Swizzle128B),
        (ox.f64, (3, 8), (4, 2, 8), plain),
        (ox.u16, (2, 3, 16), (2, 2, 2, 16), plain),
        (ox.i32, (2, 2, 2, 8), (3, 2, 1, 2, 8), ox.Swizzle32B),
        (ox.tf32, (32,), (8, 32), plain),
    ):
        name = f"{dtype.info.name}, rank {len(box)}, {swizzle.info.name}"
        yield Case(name=name, group=_GROUP, make=partial(of_windows, dtype, shape, box, swizzle))
    yield Case(name="handed on", group=_GROUP, make=partial(made, handed_on, 3, 3, _BOX))
    yield Case(name="shared out", group=_GROUP, make=partial(made, shared_out, 4, 1, (16, 32)))
    yield Case(name="once more", group=_GROUP, make=partial(made, once_more, 4, 300, _BOX))
    yield Case(name="far", group=_WIDE, make=partial(made, far, 3, _BIG, _BOX))
    yield Case(name="crowd", group=_WIDE, make=partial(made, crowd, 1, 1, _BOX))
