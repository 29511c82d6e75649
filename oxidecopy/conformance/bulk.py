"""Copies without a map: runs of arrays, reductions, multicasts, copies between CTAs; and cache hints on every copy, prefetches."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, Final

import oxidecopy as ox
from oxidecopy.conformance.case import Case, Made, random_bits, small_integers
from oxidecopy.conformance.copies import DTYPES, Array, Map, Pipe, blocks, corner
from oxidecopy.isa.bulk import REDUCES_IN_GLOBAL, REDUCES_IN_SHARED

if TYPE_CHECKING:
    from oxidecopy.host.device import Device
    from oxidecopy.typed.dtypes import DType

_SIZES: Final = (16, 48, 1024, 65_536)  # bytes of a run
_SHAPES: Final[tuple[tuple[int, int, int], ...]] = ((2, 1, 1), (1, 2, 1), (4, 1, 1), (2, 2, 2), (3, 1, 1))
_TILE: Final = 96  # elements of a tile that goes from CTA to CTA
POLICIES: Final = {
    "first": ox.cache.evict_first,
    "last": ox.cache.evict_last,
    "normal": ox.cache.evict_normal,
    "unchanged": ox.cache.evict_unchanged,
    "half last": ox.cache.fractional(ox.cache.evict_last, 0.5),
    "third first": ox.cache.fractional(ox.cache.evict_first, 1 / 3),
    "quarter normal": ox.cache.fractional(ox.cache.evict_normal, 0.25, rest=ox.cache.evict_first),
    "quarter last": ox.cache.fractional(ox.cache.evict_last, 0.25, rest=ox.cache.evict_first),
}


def runner(n: int, op: str = "", policy: ox.CachePolicy | None = None) -> Pipe:
    """Runs of `n` elements from one array to another; with `op` a reduction into what is there."""

    @ox.pipeline(threads=32)
    def run(cta: ox.Cta, src: Array, dst: Array) -> None:
        tile = cta.shared(src.dtype, (n,), align=ox.A16)
        full = cta.barrier().init(1)
        at: Any = (cta.block_idx.x * n,)
        with cta.elect() as leader:
            ox.bulk_prefetch(leader, src, at, nbytes=tile.nbytes, cache_hint=policy)
            token = full.arrive_expect_tx(leader, tile)
            ox.bulk_g2s(leader, tile, src, at, token, cache_hint=policy)
            full.wait(token)
            if op:
                ox.bulk_reduce(getattr(ox.reduce, op), leader, tile, dst, at, cache_hint=policy)
            else:
                ox.bulk_s2g(leader, tile, dst, at, cache_hint=policy)
            leader.commit_group()
            leader.wait_group(0)

    return run


@ox.pipeline(threads=64)
def rows(cta: ox.Cta, src: ox.GlobalArray[ox.u8, ox.D3], dst: ox.GlobalArray[ox.u8, ox.D3]) -> None:
    """Parts of rows with gaps between them, several to a tile, back in another order."""
    tile = cta.shared(ox.u8, (4, 48), align=ox.A128)
    full = cta.barrier().init(1)
    with cta.thread(33) as leader:
        token = full.arrive_expect_tx(leader, tile)
        for i in range(4):
            ox.bulk_g2s(leader, tile.part(i, of=4), src, (cta.block_idx.x, i, 32), token)
    full.wait(token)
    with cta.elect() as leader:
        for i in range(4):
            ox.bulk_s2g(leader, tile.part(3 - i, of=4), dst, (cta.block_idx.x, i, 16), nbytes=32)
        leader.commit_group()
        leader.wait_group(0)


def spread(shape: tuple[int, int, int]) -> Pipe:
    """Each rank copies one run into the CTAs of a mask."""
    size = prod(shape)

    @ox.pipeline(threads=32, cluster=shape)
    def run(cta: ox.ClusterCta, src: ox.GlobalArray[ox.f32, ox.D1], out: ox.GlobalArray[ox.f32, ox.D2]) -> None:
        tile = cta.shared(ox.f32, (_TILE,), align=ox.A16)
        full = cta.barrier().init(1)
        cta.cluster_sync()
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile)
            for rank in range(size):
                with cta.when(cta.cta_rank == rank):
                    mask = 1 << (rank + 1) % size
                    ox.bulk_g2s_multicast(leader, tile, src, (rank * _TILE,), token, cta_mask=mask, cache_hint=ox.cache.evict_first)
            full.wait(token)
            block = cta.block_idx.x + cta.grid_dim.x * (cta.block_idx.y + cta.grid_dim.y * cta.block_idx.z)
            ox.bulk_s2g(leader, tile, out, (block, 0))
            leader.commit_group()
            leader.wait_group(0)
        cta.cluster_sync()

    return run


def passed_on(shape: tuple[int, int, int], rounds: int) -> Pipe:
    """Every CTA hands its tile to the next rank, several times round; two stages, released by remote arrivals."""
    size = prod(shape)

    @ox.pipeline(threads=32, cluster=shape)
    def run(cta: ox.ClusterCta, src: ox.GlobalArray[ox.i32, ox.D2], out: ox.GlobalArray[ox.i32, ox.D2]) -> None:
        tiles = [cta.shared(ox.i32, (_TILE,), align=ox.A128) for _ in range(rounds + 1)]
        full = cta.barriers(rounds + 1).init(1)
        cta.cluster_sync()
        block = cta.block_idx.x + cta.grid_dim.x * (cta.block_idx.y + cta.grid_dim.y * cta.block_idx.z)
        with cta.elect() as leader:
            for i, tile in enumerate(tiles):
                token = full[i].arrive_expect_tx(leader, tile)
                if not i:
                    ox.bulk_g2s(leader, tile, src, (block, 0), token)
                full[i].wait(token)
                if i < rounds:
                    ox.bulk_s2s(leader, tile, tiles[i + 1], full[i + 1], cta_rank=(cta.cta_rank + 1) % size)
            ox.bulk_s2g(leader, tiles[rounds], out, (block, 0))
            leader.commit_group()
            leader.wait_group(0)
        cta.cluster_sync()

    return run


def gathered(shape: tuple[int, int, int], op: str) -> Pipe:
    """All CTAs of a cluster combine their tiles into that of rank 0, which the sender announces the bytes for."""
    size = prod(shape)

    @ox.pipeline(threads=32, cluster=shape)
    def run(cta: ox.ClusterCta, src: Array, out: Array) -> None:
        mine = cta.shared(src.dtype, (_TILE,), align=ox.A16)
        total = cta.shared(src.dtype, (_TILE,), align=ox.A16)
        full, done = cta.barrier().init(1), cta.barrier().init(size)
        block = cta.block_idx.x + cta.grid_dim.x * (cta.block_idx.y + cta.grid_dim.y * cta.block_idx.z)
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, mine, total)
            ox.bulk_g2s(leader, mine, src, (block, 0), token)
            ox.bulk_g2s(leader, total, src, (block, _TILE), token)
            full.wait(token)
        cta.cluster_sync()
        with cta.elect() as leader:
            done.arrive_expect_tx_remote(leader, mine, cta_rank=0)
            combine: Any = ox.bulk_reduce_s2s
            combine(getattr(ox.reduce, op), leader, mine, total, done, cta_rank=0)
            with cta.when(cta.cta_rank == 0):
                done.wait_phase(0)
                ox.bulk_s2g(leader, total, out, (block, 0))
                leader.commit_group()
                leader.wait_group(0)
        cta.cluster_sync()

    return run


def hinted(box: tuple[int, ...], policy: ox.CachePolicy, op: str = "") -> Pipe:
    """Prefetch, load and store (or reduction) of each box, all with one policy."""

    @ox.pipeline(threads=32)
    def run(cta: ox.Cta, src: Map, dst: Map) -> None:
        tile = cta.shared(src)
        full = cta.barrier().init(1)
        at = corner(cta, src, box, 0)
        with cta.elect() as leader:
            src.prefetch(leader, at, cache_hint=policy)
            token = full.arrive_expect_tx(leader, tile)
            src.g2s(leader, tile, at, token, cache_hint=policy)
            full.wait(token)
            if op:
                dst.reduce(getattr(ox.reduce, op), leader, tile, at, cache_hint=policy)
            else:
                dst.s2g(leader, tile, at, cache_hint=policy)
            leader.commit_group()
            leader.wait_group(0)

    return run


@ox.pipeline(warps=ox.roles(producer=1, consumers=2))
def hinted_ring(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], dst: ox.TmaDescriptor[ox.f32, ox.D2]) -> None:
    """Hints in a ring and its store ring."""
    ring = cta.ring(stages=3, tiles=(src,))
    outs = cta.store_ring(dst, stages=2)
    with cta.producer() as leader:
        for at in cta.tiles(src):
            with ring.produce(leader) as (slot,):
                slot.load(src, at, cache_hint=ox.cache.evict_first)
    with cta.consumers() as group:
        for at in cta.tiles(src):
            with ring.consume(group) as (tile,), outs.put(group, at, cache_hint=ox.cache.evict_last) as out:
                group.map(lambda v: v + v, tile, out=out)


@ox.pipeline(threads=32, cluster=(2, 1))
def hinted_multicast(cta: ox.ClusterCta, src: ox.TmaDescriptor[ox.f32, ox.D2], dst: ox.TmaDescriptor[ox.f32, ox.D2]) -> None:
    """A multicast with a policy, from each CTA a half."""
    tile = cta.shared(ox.f32, (32, 32), align=ox.A1024)
    full = cta.barrier().init(1)
    cta.cluster_sync()
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile)
        y = cta.block_idx.x // 2 * 32
        part = tile.part(cta.cta_rank, of=2)
        src.g2s_multicast(leader, part, (y + cta.cta_rank * 16, 0), token, cta_mask=3, cache_hint=ox.cache.evict_last)
        full.wait(token)
        dst.s2g(leader, part, (y + cta.cta_rank * 16, 0), cache_hint=ox.cache.evict_first)
        leader.commit_group()
        leader.wait_group(0)
    cta.cluster_sync()


# ---- the cases
def cases() -> Iterator[Case]:
    """All of this module."""
    group = "plain bulk copies"
    for dtype, nbytes in product(DTYPES, _SIZES):
        yield Case(name=f"copy {dtype.info.name} {nbytes}", group=group, make=partial(_runs, dtype, nbytes, "", None))
    for dtype in DTYPES:
        for op in sorted(REDUCES_IN_GLOBAL.get(dtype.info.name, ())):
            if op not in dtype.info.reduce:
                continue  # ox.reduce knows what tensor copies can do
            yield Case(name=f"reduce {op} {dtype.info.name}", group=group, make=partial(_runs, dtype, 1024, op, None))
    for name, policy in POLICIES.items():
        yield Case(name=f"copy, evict {name}", group=group, make=partial(_runs, ox.f32, 1024, "", policy))
        yield Case(name=f"reduce, evict {name}", group=group, make=partial(_runs, ox.f32, 1024, "add", policy))
    yield Case(name="parts of rows", group=group, make=_rows)
    yield from _between()
    yield from _hints()


def _between() -> Iterator[Case]:
    group = "between CTAs"
    for shape in _SHAPES:
        words = "x".join(map(str, shape))
        yield Case(name=f"multicast {words}", group=group, make=partial(_spread, shape))
        for rounds in (1, 3):
            yield Case(name=f"passed on {words}, {rounds} times", group=group, make=partial(_passed, shape, rounds))
    for name, legal in REDUCES_IN_SHARED.items():
        for op in sorted(legal - {"inc", "dec"}):  # whose result hangs on the order
            yield Case(name=f"reduce {op} {name}", group=group, make=partial(_gathered, (4, 1, 1), getattr(ox, name), op))


def _hints() -> Iterator[Case]:
    group = "cache hints"
    for (name, policy), rank in product(POLICIES.items(), (1, 2, 3, 4, 5)):
        yield Case(name=f"copy {rank}-D, evict {name}", group=group, make=partial(_hinted, ox.f32, rank, policy, ""))
    for dtype in (ox.u32, ox.f16, ox.i64):
        for op in sorted(dtype.info.reduce):
            yield Case(name=f"reduce {op} {dtype.info.name}", group=group, make=partial(_hinted, dtype, 2, ox.cache.evict_first, op))
    for rank in (1, 3, 4, 5):
        yield Case(name=f"reduce add u32 {rank}-D", group=group, make=partial(_hinted, ox.u32, rank, ox.cache.evict_last, "add"))
    yield Case(name="rings", group=group, make=partial(_between_maps, hinted_ring, 3, (32, 32), (32, 32)))
    yield Case(name="multicast", group=group, make=partial(_between_maps, hinted_multicast, 8, (16, 32), (16, 32)))


def _runs(dtype: type[DType], nbytes: int, op: str, policy: ox.CachePolicy | None, dev: Device) -> Made:
    n, count = nbytes // dtype.info.nbytes, 3
    make = small_integers if op and dtype.info.is_float else random_bits
    src, dst = (dev.array(make(dtype, (count * n,), seed), dtype) for seed in (1, 2))
    return Made(launch=runner(n, op, policy)[count].bind(src, dst), outputs={"dst": dst})


def _rows(dev: Device) -> Made:
    src = dev.array(random_bits(ox.u8, (3, 4, 90), 1), ox.u8, pad=True)
    dst = dev.zeros((3, 4, 90), ox.u8, pad=True)
    return Made(launch=rows[3].bind(src, dst), outputs={"dst": dst})


def _grid(shape: tuple[int, int, int]) -> tuple[int, int, int]:
    x, y, z = shape
    return (2 * x, y, 2 * z)


def _spread(shape: tuple[int, int, int], dev: Device) -> Made:
    grid = _grid(shape)
    src = dev.array(random_bits(ox.f32, (prod(shape) * _TILE,), 3), ox.f32)
    out = dev.zeros((prod(grid), _TILE), ox.f32)
    return Made(launch=spread(shape)[grid].bind(src, out), outputs={"out": out})


def _passed(shape: tuple[int, int, int], rounds: int, dev: Device) -> Made:
    grid = _grid(shape)
    src = dev.array(random_bits(ox.i32, (prod(grid), _TILE), 4), ox.i32)
    out = dev.zeros((prod(grid), _TILE), ox.i32)
    return Made(launch=passed_on(shape, rounds)[grid].bind(src, out), outputs={"out": out})


def _gathered(shape: tuple[int, int, int], dtype: type[Any], op: str, dev: Device) -> Made:
    grid = _grid(shape)
    src = dev.array(random_bits(dtype, (prod(grid), 2 * _TILE), 5), dtype)
    out = dev.zeros((prod(grid), _TILE), dtype)
    return Made(launch=gathered(shape, op)[grid].bind(src, out), outputs={"out": out})


def _hinted(dtype: type[DType], rank: int, policy: ox.CachePolicy, op: str, dev: Device) -> Made:
    shape = {1: (83,), 2: (21, 83), 3: (5, 9, 83), 4: (3, 4, 5, 83), 5: (2, 3, 3, 4, 83)}[rank]
    box = (*{1: (), 2: (8,), 3: (2, 8), 4: (2, 2, 4), 5: (1, 2, 2, 2)}[rank], 48 // dtype.info.nbytes)
    make = small_integers if op and dtype.info.is_float else random_bits
    src, dst = (dev.array(make(dtype, shape, seed), dtype, pad=True) for seed in (1, 2))
    maps: Any = ox.TmaDescriptor.tiled
    return Made(launch=hinted(box, policy, op)[blocks(shape, box, 0)].bind(maps(src, box=box), maps(dst, box=box)), outputs={"dst": dst})


def _between_maps(pipeline: Pipe, grid: int, box: tuple[int, int], stored: tuple[int, int], dev: Device) -> Made:
    src = dev.array(small_integers(ox.f32, (128, 32), 6), ox.f32)
    dst = dev.zeros((128, 32), ox.f32)
    made = pipeline[grid].bind(ox.TmaDescriptor.tiled(src, box=box), ox.TmaDescriptor.tiled(dst, box=stored))
    return Made(launch=made, outputs={"dst": dst})
