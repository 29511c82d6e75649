"""Integers that need more than 32 bits, on their way to coordinates, stages, phases, conditions and trip counts that do not."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import oxidecopy as ox
from oxidecopy.conformance.case import Case, Made, random_bits
from oxidecopy.conformance.copies import Map, Pipe

if TYPE_CHECKING:
    from oxidecopy.host.device import Device

BOX = (8, 32)
N = 7
BIG = (1 << 33) + 5
Out = ox.GlobalArray[ox.f32, ox.D2]
Src = ox.TmaDescriptor[ox.f32, ox.D2]
Rows = ox.GlobalArray[ox.i64, ox.D1]


@ox.pipeline(threads=64)
def products(cta: ox.Cta, src: Src, out: Out, rows: Rows, n: ox.Idx) -> None:
    """A block's place by way of a product that is large."""
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    at = (cta.block_idx.x * (n + 1) // n * BOX[0], (cta.block_idx.x * (n + 2) + n - 5) % n // (n // 2) * BOX[1])
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        src.g2s(leader, tile, at, token)
    full.wait(token)
    cta.store(out, tile, at)


@ox.pipeline(threads=32)
def far_counters(cta: ox.Cta, src: Src, out: Out, rows: Rows, n: ox.Idx) -> None:
    """A loop whose counter starts far away."""
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    for i in cta.range(n, n + N):
        at = (cta.block_idx.x * BOX[0], (i - n) * BOX[1])
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile.nbytes)
            src.g2s(leader, tile, at, token)
        full.wait(token)
        cta.store(out, tile, at)
        cta.sync()


@ox.pipeline(threads=96)
def far_down(cta: ox.Cta, src: Src, out: Out, rows: Rows, n: ox.Idx) -> None:
    """Steps of nearly 32 bits, down into what is far below 0."""
    tile = cta.shared(ox.f32, BOX, align=ox.A1024)
    for i in cta.range(0, -5 * ((1 << 31) - 1), -((1 << 31) - 1)):
        cta.fill(tile, 3)
        cta.sync()
        cta.store(out, tile, (cta.block_idx.x * BOX[0], -i // ((1 << 31) - 1) * BOX[1]))
        cta.sync()


@ox.pipeline(threads=64)
def far_phases(cta: ox.Cta, src: Src, out: Out, rows: Rows, n: ox.Idx) -> None:
    """Stage, phase and parity by way of large numbers."""
    tiles = cta.shared(src, stages=3)
    full = cta.barriers(3).init(1)
    for i in cta.range(N):
        big = i * n + n // 2
        stage, phase = big // n % 3, big // (3 * n)
        at = (cta.block_idx.x * BOX[0], i * BOX[1])
        with cta.thread(33) as leader:
            token = full[stage].arrive_expect_tx(leader, tiles[stage].nbytes)
            src.g2s(leader, tiles[stage], at, token)
        full[stage].wait_phase(phase)
        full[stage].wait_parity(phase + (n - n % 2))
        cta.store(out, tiles[stage], at)
        cta.sync()


@ox.pipeline(threads=64)
def conditions(cta: ox.Cta, src: Src, out: Out, rows: Rows, n: ox.Idx) -> None:
    """All comparisons, of numbers that are large and near each other."""
    tile = cta.shared(ox.f32, BOX, align=ox.A1024)
    cta.iota(tile, axis=0)
    cta.sync()
    for i in cta.range(N):
        a, b = cta.block_idx.x * n + i, i * n + cta.block_idx.x
        for j, cond in enumerate((a < b, a <= b, a == b, a != b, (a > n) & (b < 3 * n) | (i == 2))):
            with cta.when(cond):
                cta.store(out, tile, (cta.block_idx.x * BOX[0], (i + j) % N * BOX[1]))


@ox.pipeline(threads=64)
def bounds(cta: ox.Cta, src: Src, out: Out, rows: Rows, n: ox.Idx) -> None:
    """Floor division and remainders of negative numbers, minima and maxima."""
    tile = cta.shared(ox.f32, BOX, align=ox.A1024)
    cta.iota(tile, axis=1)
    cta.sync()
    for i in cta.range(N):
        big = (i - 3) * n - cta.block_idx.x
        first = ox.minimum(ox.maximum(big // 3 % (n + 1), -n), 3 * n) // (n // 8)
        cta.store(out, tile, (cta.block_idx.x * BOX[0], ox.minimum(first, N) * BOX[1]))
        cta.store(out, tile, (cta.block_idx.x * BOX[0], (N + big % n % 5) * BOX[1]))
        cta.store(out, tile, (cta.block_idx.x * BOX[0], (N + -big // (1 << 34) % 3 + 3) * BOX[1]))


@ox.pipeline(threads=32)
def indices(cta: ox.Cta, src: Src, out: Out, rows: Rows, n: ox.Idx) -> None:
    """Numbers of 64 bits lead to what is read in memory, and from it."""
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    for i in cta.range(N):
        row = cta.load_index(rows, i * (n + 1) // n, below=N)
        at = (cta.block_idx.x * BOX[0], row * (n + 3) // n * BOX[1])
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile.nbytes)
            src.g2s(leader, tile, at, token)
        full.wait(token)
        cta.store(out, tile, (at[0], i * BOX[1]))
        cta.sync()


@ox.pipeline(threads=128)
def far_away(cta: ox.Cta, src: Src, out: Out, rows: Rows, n: ox.Idx) -> None:
    """Plain stores beyond any array, in both directions, of which nothing is left."""
    tile = cta.shared(ox.f32, BOX, align=ox.A1024)
    cta.fill(tile, 7)
    cta.sync()
    for i in cta.range(N):
        cta.store(out, tile, (cta.block_idx.x * BOX[0], (i % 3 - 1) * n + i * BOX[1] - 5))
        cta.store(out, tile, ((2 * i - 3) * (1 << 58) + cta.block_idx.x * (1 << 60), i * BOX[1]))


@ox.pipeline(threads=64)
def stores(cta: ox.Cta, src: Src, out: Out, rows: Rows, n: ox.Idx) -> None:
    """Tensor copies to places that are computed so, several in flight."""
    tiles = cta.shared(src, stages=2)
    full = cta.barriers(2).init(1)
    with cta.elect() as leader:
        for i in cta.range(N):
            k = i * (n + 1) // n % 2
            leader.wait_group_read(1)
            token = full[k].arrive_expect_tx(leader, tiles[k].nbytes)
            src.g2s(leader, tiles[k], (cta.block_idx.x * BOX[0], i * (n + 1) // n * BOX[1]), token)
            full[k].wait_phase(i // 2)
            src.s2g(leader, tiles[k], (cta.block_idx.x * (n + 3) // n * BOX[0], (i * (n + 1) + 1) // n * BOX[1]))
            leader.commit_group()
        leader.wait_group(0)


@ox.pipeline(threads=64, cluster=(2, 1, 1))
def in_a_cluster(cta: ox.ClusterCta, src: Src, out: Out, rows: Rows, n: ox.Idx) -> None:
    """Ranks, masks and parts of a cluster by way of large numbers."""
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    cta.cluster_sync()
    for i in cta.range(N):
        rank = (cta.cta_rank * (n + 1) + i) // n
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile.nbytes)
            with cta.when(rank == i % 2):
                src.g2s_multicast(leader, tile, (cta.block_idx.x // 2 * 2 * BOX[0], i * BOX[1]), token, cta_mask=3 + i * (n + 1) // n - i)
        full.wait_phase(i)
        cta.store(out, tile, (cta.block_idx.x * BOX[0], i * BOX[1]))
        cta.cluster_sync()


@ox.pipeline(warps=ox.roles(producer=1, consumers=2))
def in_a_ring(cta: ox.Cta, src: Src, out: Out, rows: Rows, n: ox.Idx) -> None:
    """A ring, whose loops run op by op then."""
    made = cta.ring(stages=3, tiles=(src,))
    with cta.producer() as leader:
        for at in cta.tiles(src):
            with made.produce(leader) as (slot,):
                slot.load(src, (at[0] * (n + 1) // n, at[1]))
    with cta.consumers() as group:
        for at in cta.tiles(src):
            with made.consume(group) as (tile,):
                cta.store(out, tile, (at[0], at[1] * (n + 1) // n))


@ox.pipeline(threads=32)
def deep(cta: ox.Cta, src: Src, out: Out, rows: Rows, n: ox.Idx) -> None:
    """Expressions that need more places than there are, with constants of 64 bits."""
    tile = cta.shared(ox.f32, BOX, align=ox.A1024)
    cta.iota(tile, axis=1)
    cta.sync()
    for i in cta.range(N):
        a, b = i * n + 1, cta.block_idx.x * n + i
        c = (a % (1 << 40) + b // 9) // ((1 << 35) + 1) + (ox.minimum(a, b) // 3 - ox.maximum(b % n, i) % (1 << 37)) // (1 << 38)
        d = ((a // 7 - b // 5) % (1 << 50) // (1 << 48) + (c + a) // (1 << 41) * 5) % N
        cta.store(out, tile, (cta.block_idx.x * BOX[0], (c % 3 + d) * BOX[1]))


def cases() -> Iterator[Case]:
    """All of this module."""
    for pipeline in (
        products,
        far_counters,
        far_down,
        far_phases,
        conditions,
        bounds,
        indices,
        far_away,
        stores,
        in_a_cluster,
        in_a_ring,
        deep,
    ):
        yield Case(name=pipeline.__name__, group="wide integers", make=partial(made, pipeline, BIG))


def made(pipeline: Pipe, n: int, dev: Device) -> Made:
    """A launch of one of these pipelines, which all take the same arguments."""
    blocks = 4
    src = dev.array(random_bits(ox.f32, (blocks * BOX[0], N * BOX[1]), 4).view(np.float32))
    out = dev.zeros((blocks * BOX[0], 2 * N * BOX[1]), ox.f32)
    rows: Any = dev.array(np.array([3, 0, 1, 6, 2, 5, 4], np.int64))
    source: Map = ox.TmaDescriptor.tiled(src, box=BOX)
    return Made(launch=pipeline[blocks].bind(source, out, rows, n), outputs={"out": out, "src": src})
