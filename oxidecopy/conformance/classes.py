"""Blocks with more classes of threads than warps: each runs as if it were alone, whoever waits for whom."""

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

BOX = (4, 32)
MANY = 40
N = 3
Out = ox.GlobalArray[ox.f32, ox.D2]
Src = ox.TmaDescriptor[ox.f32, ox.D2]
Rows = ox.GlobalArray[ox.i32, ox.D1]


@ox.pipeline(threads=64)
def fills(cta: ox.Cta, src: Src, out: Out, rows: Rows, n: ox.Idx) -> None:
    """Each thread fills a tile of its own; all store."""
    tiles = cta.shared(src, stages=MANY)
    for i in range(MANY):
        with cta.thread(i):
            cta.fill(tiles[i], i + 0.5)
    cta.sync()
    for k in cta.range(MANY):
        cta.store(out, tiles[k], (cta.block_idx.x * BOX[0], k * BOX[1]))


@ox.pipeline(threads=256)
def loads(cta: ox.Cta, src: Src, out: Out, rows: Rows, n: ox.Idx) -> None:
    """Each thread loads a box; the first warp waits for all and stores."""
    tiles = cta.shared(src, stages=MANY)
    full = cta.barriers(MANY).init(1)
    for i in range(MANY):
        with cta.thread(5 * i) as leader:
            token = full[i].arrive_expect_tx(leader, tiles[i].nbytes)
            src.g2s(leader, tiles[i], (cta.block_idx.x * BOX[0], i * BOX[1]), token)
    with cta.warps(0, 1):
        for k in cta.range(MANY):
            full[k].wait_phase(0)
            cta.store(out, tiles[k], (cta.block_idx.x * BOX[0], k * BOX[1]))


@ox.pipeline(threads=128)
def groups_of_threads(cta: ox.Cta, src: Src, out: Out, rows: Rows, n: ox.Idx) -> None:
    """Bulk groups belong to threads: each waits for its own, with some pending."""
    tiles = cta.shared(src, stages=MANY)
    for i in range(MANY):
        with cta.thread(3 * i) as leader:
            for j in cta.range(n):
                cta.iota(tiles[i], axis=1)
                cta.fence_proxy_async()
                src.s2g(leader, tiles[i], (cta.block_idx.x * BOX[0], (i + j * 0) * BOX[1]))
                leader.commit_group()
                leader.wait_group_read(0)
            leader.wait_group(0)


@ox.pipeline(threads=128)
def chain(cta: ox.Cta, src: Src, out: Out, rows: Rows, n: ox.Idx) -> None:
    """Each thread waits for the one after it, so the last must run for the first to get on."""
    tile = cta.shared(ox.f32, BOX, align=ox.A128)
    bars = cta.barriers(MANY + 1, kind=ox.GeneralBarrier).init(1)
    with cta.thread(127):
        for j in cta.range(n):
            bars[MANY].arrive()
            bars[0].wait_phase(j)
    for i in range(MANY):
        with cta.thread(i):
            for j in cta.range(n):
                bars[i + 1].wait_phase(j)
                cta.fill(tile, i)
                cta.store(out, tile, (cta.block_idx.x * BOX[0], i * BOX[1]))
                bars[i].arrive()


@ox.pipeline(threads=512)
def overlapping(cta: ox.Cta, src: Src, out: Out, rows: Rows, n: ox.Idx) -> None:
    """Scopes that lie across each other: every thread of some is in several."""
    tiles = cta.shared(src, stages=MANY)
    for i in range(12):
        with cta.warps(i, i + 4):
            cta.fill(tiles[i], i)
        cta.sync()
    for i in range(12, MANY):
        with cta.thread(13 * i):
            cta.fill(tiles[i], i)
    cta.sync()
    for i in range(12):
        with cta.warps(i // 2, 16):
            cta.store(out, tiles[i], (cta.block_idx.x * BOX[0], i * BOX[1]))
    for i in range(12, MANY):
        with cta.threads_except(i):
            cta.store(out, tiles[i], (cta.block_idx.x * BOX[0], i * BOX[1]))


@ox.pipeline(threads=1024)
def barriers_of_groups(cta: ox.Cta, src: Src, out: Out, rows: Rows, n: ox.Idx) -> None:
    """Groups that meet at barriers of their own while others do something else; threads out of the groups hand over."""
    tiles = cta.shared(src, stages=8)
    for g in range(8):
        with cta.warps(4 * g, 4 * g + 4) as group:
            for j in cta.range(n):
                for k in range(5):
                    with cta.thread(128 * g + 17 * k):
                        cta.fill(tiles[g], k)
                    group.sync()
                    cta.store(out, tiles[g], ((cta.block_idx.x + j * 0) * BOX[0], (5 * g + k) * BOX[1]))
                    group.sync()


@ox.pipeline(threads=96)
def by_indices(cta: ox.Cta, src: Src, out: Out, rows: Rows, n: ox.Idx) -> None:
    """Each thread reads which box is its own, and copies it in and out."""
    tiles = cta.shared(src, stages=MANY)
    full = cta.barriers(MANY).init(1)
    for i in range(MANY):
        with cta.thread(2 * i) as leader:
            row = cta.load_index(rows, i, below=MANY)
            token = full[i].arrive_expect_tx(leader, tiles[i].nbytes)
            src.g2s(leader, tiles[i], (cta.block_idx.x * BOX[0], row * BOX[1]), token)
            full[i].wait(token)
            cta.store(out, tiles[i], (cta.block_idx.x * BOX[0], i * BOX[1]))


@ox.pipeline(threads=64)
def rings(cta: ox.Cta, src: Src, out: Out, rows: Rows, n: ox.Idx) -> None:
    """Twenty rings of a stage, each of two threads."""
    tiles = cta.shared(src, stages=20)
    full = cta.barriers(20).init(1)
    empty = cta.barriers(20).init(1)
    for i in range(20):
        with cta.thread(i) as leader:
            for j in cta.range(n):
                empty[i].wait_phase(j - 1)
                token = full[i].arrive_expect_tx(leader, tiles[i].nbytes)
                src.g2s(leader, tiles[i], (cta.block_idx.x * BOX[0], (2 * i + j % 2) * BOX[1]), token)
        with cta.thread(63 - i):
            for j in cta.range(n):
                full[i].wait_phase(j)
                cta.store(out, tiles[i], (cta.block_idx.x * BOX[0], (2 * i + j % 2) * BOX[1]))
                empty[i].arrive()


@ox.pipeline(threads=64, cluster=(2, 1, 1))
def in_a_cluster(cta: ox.ClusterCta, src: Src, out: Out, rows: Rows, n: ox.Idx) -> None:
    """Threads of two CTAs, pair by pair, and syncs of the cluster in the midst of it."""
    tiles = cta.shared(src, stages=MANY)
    bars = cta.barriers(MANY, kind=ox.GeneralBarrier).init(1)
    cta.cluster_sync()
    for j in cta.range(n):
        for i in range(MANY):
            with cta.thread(i):
                bars[i].arrive_remote(1 - cta.cta_rank)
                bars[i].wait_phase(j)
                cta.fill(tiles[i], i + 0.25)
                cta.store(out, tiles[i], (cta.block_idx.x * BOX[0], i * BOX[1]))
        cta.cluster_sync()


@ox.pipeline(threads=128)
def carried_and_wide(cta: ox.Cta, src: Src, out: Out, rows: Rows, n: ox.Idx) -> None:
    """With tokens in branches that another thread waits for, and places by way of large numbers."""
    tiles = cta.shared(src, stages=MANY)
    full = cta.barriers(MANY).init(1)
    big = (n + 1) * (1 << 33)
    for j in cta.range(n):
        for i in range(MANY):
            with cta.when((j + i) % 2 == 0):
                with cta.thread(i) as leader:
                    token = full[i].arrive_expect_tx(leader, tiles[i].nbytes)
                    src.g2s(leader, tiles[i], (cta.block_idx.x * big // big * BOX[0], i * BOX[1]), token)
                with cta.thread(100):
                    full[i].wait(token)
                    cta.store(out, tiles[i], (cta.block_idx.x * BOX[0], (i * big + j) // big * BOX[1]))
        cta.sync()


@ox.pipeline(threads=128)
def each_thread(cta: ox.Cta, src: Src, out: Out, rows: Rows, n: ox.Idx) -> None:
    """A class for each thread: all arrive, in an order of their own."""
    tile = cta.shared(src)
    made = cta.barrier(kind=ox.GeneralBarrier).init(128)
    cta.iota(tile, axis=0)
    cta.sync()
    for i in range(128):
        with cta.thread(i * 7 % 128):
            made.arrive()
    made.wait_phase(0)
    cta.store(out, tile, (cta.block_idx.x * BOX[0], 0))


def cases() -> Iterator[Case]:
    """All of this module."""
    for pipeline in (
        fills,
        loads,
        groups_of_threads,
        chain,
        overlapping,
        barriers_of_groups,
        by_indices,
        rings,
        in_a_cluster,
        carried_and_wide,
        each_thread,
    ):
        yield Case(name=pipeline.__name__, group="thread classes", make=partial(made, pipeline, N))


def made(pipeline: Pipe, n: int, dev: Device) -> Made:
    """A launch of one of these pipelines, which all take the same arguments."""
    blocks = 2
    src = dev.array(random_bits(ox.f32, (blocks * BOX[0], MANY * BOX[1]), 4).view(np.float32))
    out = dev.zeros((blocks * BOX[0], MANY * BOX[1]), ox.f32)
    order: Any = np.random.default_rng(6).permutation(MANY)
    rows: Any = dev.array(order.astype(np.int32))
    source: Map = ox.TmaDescriptor.tiled(src, box=BOX)
    return Made(launch=pipeline[blocks].bind(source, out, rows, n), outputs={"out": out, "src": src})
