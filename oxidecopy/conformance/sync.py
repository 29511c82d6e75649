"""Barriers, roles and thread counts: every way of handing a tile from one thread to another."""

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

BOX = (16, 32)
N = 7  # tiles of each block
Out = ox.GlobalArray[ox.f32, ox.D2]
Src = ox.TmaDescriptor[ox.f32, ox.D2]


# ---- waits
@ox.pipeline(threads=128)
def tokens_in_a_loop(cta: ox.Cta, src: Src, out: Out, n: ox.Idx) -> None:
    """A token made and waited for in each iteration: its phase is that of the iteration."""
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    for i in cta.range(n):
        at = (cta.block_idx.x * BOX[0], i * BOX[1])
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile.nbytes)
            src.g2s(leader, tile, at, token)
        full.wait(token)
        cta.store(out, tile, at)
        cta.sync()


@ox.pipeline(threads=64)
def two_tokens(cta: ox.Cta, src: Src, out: Out, n: ox.Idx) -> None:
    """Two phases of one barrier in each iteration."""
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    for i in cta.range(n):
        at = (cta.block_idx.x * BOX[0], i * BOX[1])
        for _ in range(2):
            with cta.elect() as leader:
                token = full.arrive_expect_tx(leader, tile.nbytes)
                src.g2s(leader, tile, at, token)
            full.wait(token)
            cta.store(out, tile, at)
            cta.sync()


@ox.pipeline(threads=96)
def everyone_arrives(cta: ox.Cta, src: Src, out: Out, n: ox.Idx) -> None:
    """Full counts one thread, empty all of them; stages by hand, by phase numbers."""
    tiles = cta.shared(src, stages=3)
    full = cta.barriers(3).init(1)
    empty = cta.barriers(3).init(96)
    for i in cta.range(n):
        at = (cta.block_idx.x * BOX[0], i * BOX[1])
        with cta.thread(64) as leader:
            empty[i % 3].wait_phase(i // 3 - 1)
            token = full[i % 3].arrive_expect_tx(leader, tiles[i % 3].nbytes)
            src.g2s(leader, tiles[i % 3], at, token)
        full[i % 3].wait_phase(i // 3)
        cta.store(out, tiles[i % 3], at)
        empty[i % 3].arrive()


@ox.pipeline(threads=70)
def parities(cta: ox.Cta, src: Src, out: Out, n: ox.Idx) -> None:
    """Waits by parity, and a try_wait that gates nothing but itself; threads that are no multiple of 32."""
    tile = cta.shared(src)
    full = cta.barrier().init(2)
    for i in cta.range(n):
        at = (cta.block_idx.x * BOX[0], i * BOX[1])
        with cta.thread(69) as leader:
            token = full.arrive_expect_tx(leader, tile.nbytes)
            src.g2s(leader, tile, at, token)
        with cta.thread(3):
            full.arrive()
        full.wait_parity(i % 2)
        cta.store(out, tile, at)
        cta.sync()


@ox.pipeline(threads=1)
def one_thread(cta: ox.Cta, src: Src, out: Out, n: ox.Idx) -> None:
    """A block of one thread does it all; expect and arrive apart."""
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    for i in cta.range(n):
        at = (cta.block_idx.x * BOX[0], i * BOX[1])
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile.nbytes)
            src.g2s(leader, tile, at, token)
            full.wait(token)
        cta.store(out, tile, at)


@ox.pipeline(threads=1024)
def many_threads(cta: ox.Cta, src: Src, out: Out, n: ox.Idx) -> None:
    """The largest block, with single threads that do other things than the rest."""
    tiles = cta.shared(src, stages=2)
    full = cta.barriers(2).init(1)
    empty = cta.barriers(2).init(1)
    with cta.thread(1000) as leader:
        for i in cta.range(n):
            empty[i % 2].wait_phase(i // 2 - 1)
            token = full[i % 2].arrive_expect_tx(leader, tiles[i % 2].nbytes)
            src.g2s(leader, tiles[i % 2], (cta.block_idx.x * BOX[0], i * BOX[1]), token)
    with cta.warps(0, 16) as group:
        for i in cta.range(n):
            full[i % 2].wait_phase(i // 2)
            cta.store(out, tiles[i % 2], (cta.block_idx.x * BOX[0], i * BOX[1]))
            group.sync()
            with group.elect():
                empty[i % 2].arrive()


@ox.pipeline(threads=128)
def handed_on(cta: ox.Cta, src: Src, out: Out, n: ox.Idx) -> None:
    """A barrier that counts a warp's arrivals: generic writes of one warp read by another."""
    tile = cta.shared(ox.f32, BOX, align=ox.A1024)
    made = cta.barrier(kind=ox.GeneralBarrier).init(32)
    used = cta.barrier(kind=ox.GeneralBarrier).init(64)
    with cta.warps(0, 1):
        for i in cta.range(n):
            used.wait_phase(i - 1)
            cta.iota(tile, axis=1)
            made.arrive()
    with cta.warps(1, 3):
        for i in cta.range(n):
            made.wait_phase(i)
            cta.store(out, tile, (cta.block_idx.x * BOX[0], i * BOX[1]))
            used.arrive()


@ox.pipeline(threads=64)
def conditional(cta: ox.Cta, src: Src, out: Out, n: ox.Idx) -> None:
    """Conditions on block and loop, nested loops, floor arithmetic with negative numbers, minimum and maximum."""
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    for i in cta.range(n - 1, -1, -1):
        at = (cta.block_idx.x * BOX[0], ox.minimum(i, n - 1) * BOX[1] + ox.maximum(-i, 0))
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile.nbytes)
            src.g2s(leader, tile, at, token)
        full.wait(token)
        with cta.when(((i - 3) // 2 != -1) & (cta.block_idx.x % 2 == i % 2) | (i == 0)):
            cta.store(out, tile, at)
        for j in cta.range(0, 2):
            with cta.when((j == 1) & (i > 2)):
                cta.store(out, tile, (at[0] + (cta.grid_dim.x - 1 + j) * BOX[0], at[1]))
        cta.sync()


@ox.pipeline(threads=64)
def announced(cta: ox.Cta, src: Src, out: Out, n: ox.Idx) -> None:
    """Bytes announced in parts, and taken back by hand; an answer that nobody needs."""
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    for i in cta.range(n):
        at = (cta.block_idx.x * BOX[0], i * BOX[1])
        with cta.elect() as leader:
            full.expect_tx(leader, 1024)
            token = full.arrive_expect_tx(leader, tile.nbytes)
            src.g2s(leader, tile, at, token)
            full.complete_tx(leader, 1024)
            full.try_wait(token)
            full.test_wait_parity(i % 2)
        full.wait(token)
        cta.store(out, tile, at)
        cta.sync()


@ox.pipeline(threads=64)
def dropped(cta: ox.Cta, src: Src, out: Out, n: ox.Idx) -> None:
    """A barrier of two that goes on with one."""
    tile = cta.shared(src)
    full = cta.barrier().init(2)
    with cta.thread(32):
        full.arrive_drop()
    for i in cta.range(n):
        at = (cta.block_idx.x * BOX[0], i * BOX[1])
        with cta.thread(0) as leader:
            token = full.arrive_expect_tx(leader, tile.nbytes)
            src.g2s(leader, tile, at, token)
        full.wait_phase(i)
        cta.store(out, tile, at)
        cta.sync()


# ---- indices that are read
@ox.pipeline(threads=64)
def gathered(cta: ox.Cta, src: Src, out: Out, rows: ox.GlobalArray[ox.i32, ox.D1], n: ox.Idx) -> None:
    """Rows of boxes in the order of an index array."""
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    row = cta.load_index(rows, cta.block_idx.x, below=cta.grid_dim.x)
    for i in cta.range(n):
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile.nbytes)
            src.g2s(leader, tile, (row * BOX[0], i * BOX[1]), token)
        full.wait(token)
        cta.store(out, tile, (cta.block_idx.x * BOX[0], i * BOX[1]))
        cta.sync()


def cases() -> Iterator[Case]:
    """All of this module."""
    for pipeline in (
        tokens_in_a_loop,
        two_tokens,
        everyone_arrives,
        parities,
        one_thread,
        many_threads,
        handed_on,
        conditional,
        announced,
        dropped,
    ):
        for n in (0, 1, N):
            yield Case(name=f"{pipeline.__name__} n={n}", group="barriers and roles", make=partial(_rows, pipeline, n))
    yield Case(name="gathered", group="indices", make=_gathered)


def _rows(pipeline: Pipe, n: int, dev: Device) -> Made:
    blocks = 5
    src = dev.array(random_bits(ox.f32, (blocks * BOX[0] - 3, N * BOX[1]), 4).view(np.float32))
    out = dev.zeros((2 * blocks * BOX[0], N * BOX[1]), ox.f32)
    source: Map = ox.TmaDescriptor.tiled(src, box=BOX)
    return Made(launch=pipeline[blocks].bind(source, out, n), outputs={"out": out})


def _gathered(dev: Device) -> Made:
    blocks = 9
    src = dev.array(random_bits(ox.f32, (blocks * BOX[0], N * BOX[1]), 5).view(np.float32))
    out = dev.zeros((blocks * BOX[0], N * BOX[1]), ox.f32)
    order: Any = np.random.default_rng(6).permutation(blocks)
    rows: ox.GlobalArray[ox.i32, ox.D1] = dev.array(order.astype(np.int32))
    source: Any = ox.TmaDescriptor.tiled(src, box=BOX)
    return Made(launch=gathered[blocks].bind(source, out, rows, N), outputs={"out": out})
