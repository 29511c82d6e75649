"""Tokens whose phase nobody can tell beforehand: made in branches, by several threads, beside arrivals from the cluster."""

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
N = 7  # tiles of each block
Out = ox.GlobalArray[ox.f32, ox.D2]
Src = ox.TmaDescriptor[ox.f32, ox.D2]
Rows = ox.GlobalArray[ox.i32, ox.D1]


def place(cta: ox.Cta, i: ox.Idx) -> tuple[ox.SymIdx, ox.SymIdx]:
    """Where tile i of this block lies."""
    return cta.block_idx.x * BOX[0], cta.grid_dim.x * 0 + i * BOX[1]


# ---- one thread makes it and waits
@ox.pipeline(threads=64)
def in_a_branch(cta: ox.Cta, src: Src, out: Out, rows: Rows, n: ox.Idx) -> None:
    """Some iterations load a tile, and whoever loads waits."""
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    for i in cta.range(n):
        with cta.elect() as leader, cta.when(i % 3 != 1):
            token = full.arrive_expect_tx(leader, tile.nbytes)
            src.g2s(leader, tile, place(cta, i), token)
            full.wait(token)
        cta.sync()
        with cta.when(i > 0):
            cta.store(out, tile, place(cta, i))
        cta.sync()


@ox.pipeline(threads=32)
def in_either_branch(cta: ox.Cta, src: Src, out: Out, rows: Rows, n: ox.Idx) -> None:
    """Both branches arrive, one of them twice."""
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    with cta.elect() as leader:
        for i in cta.range(n):
            with cta.when(i % 2 == 0):
                token = full.arrive_expect_tx(leader, tile.nbytes)
                src.g2s(leader, tile, place(cta, i), token)
                full.wait(token)
            with cta.when(i % 2 == 1):
                full.wait(full.arrive())
                token = full.arrive_expect_tx(leader, tile.nbytes)
                src.g2s(leader, tile, place(cta, i), token)
                full.wait(token)
            cta.store(out, tile, place(cta, i))


@ox.pipeline(threads=32)
def in_a_growing_loop(cta: ox.Cta, src: Src, out: Out, rows: Rows, n: ox.Idx) -> None:
    """The inner loop is longer each time."""
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    with cta.elect() as leader:
        for i in cta.range(n):
            for j in cta.range(i + 1):
                token = full.arrive_expect_tx(leader, tile.nbytes)
                src.g2s(leader, tile, place(cta, i - j), token)
                full.wait(token)
                cta.store(out, tile, place(cta, i))


@ox.pipeline(threads=96)
def by_block(cta: ox.Cta, src: Src, out: Out, rows: Rows, n: ox.Idx) -> None:
    """Each block and iteration loops another number of times, over two barriers that take turns."""
    tiles = cta.shared(src, stages=2)
    full = cta.barriers(2).init(1)
    with cta.thread(40) as leader:
        for i in cta.range(n):
            for j in cta.range((cta.block_idx.x + i) % 4):
                k = (i + j) % 2
                token = full[k].arrive_expect_tx(leader, tiles[k].nbytes)
                src.g2s(leader, tiles[k], place(cta, i), token)
                full[k].wait(token)
                cta.store(out, tiles[k], (cta.block_idx.x * BOX[0], i * BOX[1]))


@ox.pipeline(threads=32)
def asked_first(cta: ox.Cta, src: Src, out: Out, rows: Rows, n: ox.Idx) -> None:
    """Asked about before it is waited for; what the answer is changes nothing."""
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    with cta.elect() as leader:
        for i in cta.range(n):
            with cta.when(i % 3 != 0):
                token = full.arrive_expect_tx(leader, tile.nbytes)
                src.g2s(leader, tile, place(cta, i), token)
                full.try_wait(token)
                full.test_wait(token)
                full.wait(token)
                cta.store(out, tile, place(cta, i))


@ox.pipeline(threads=64)
def dropped(cta: ox.Cta, src: Src, out: Out, rows: Rows, n: ox.Idx) -> None:
    """A thread leaves the barrier in the middle of a loop; the other goes on alone."""
    tile = cta.shared(src)
    full = cta.barrier().init(2)
    for i in cta.range(n):
        with cta.thread(32):
            with cta.when(i < 2):
                full.arrive()
            with cta.when(i == 2):
                full.arrive_drop()
        with cta.thread(0) as leader:
            token = full.arrive_expect_tx(leader, tile.nbytes)
            src.g2s(leader, tile, place(cta, i), token)
            full.wait(token)
        cta.sync()
        cta.store(out, tile, place(cta, i))
        cta.sync()


# ---- others wait
@ox.pipeline(threads=128)
def waited_for_by_all(cta: ox.Cta, src: Src, out: Out, rows: Rows, n: ox.Idx) -> None:
    """One thread makes it in some iterations, all wait."""
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    for i in cta.range(n):
        with cta.when(i % 3 != 0):
            with cta.elect() as leader:
                token = full.arrive_expect_tx(leader, tile.nbytes)
                src.g2s(leader, tile, place(cta, i), token)
            full.wait(token)
            cta.store(out, tile, place(cta, i))
            cta.sync()


@ox.pipeline(threads=96)
def waited_for_later(cta: ox.Cta, src: Src, out: Out, rows: Rows, n: ox.Idx) -> None:
    """Made in one branch, waited for in another that stands for the same."""
    tiles = cta.shared(src, stages=2)
    full = cta.barriers(2).init(1)
    for i in cta.range(n):
        with cta.thread(95) as leader:
            with cta.when(i % 4 != 2):
                first = full[0].arrive_expect_tx(leader, tiles[0].nbytes)
                src.g2s(leader, tiles[0], place(cta, i), first)
            with cta.when(i % 2 == 0):
                second = full[1].arrive_expect_tx(leader, tiles[1].nbytes)
                src.g2s(leader, tiles[1], place(cta, i), second)
        with cta.when((i + 2) % 4 != 0):
            full[0].wait(first)
            cta.store(out, tiles[0], place(cta, i))
        with cta.when((i + 1) % 2 == 1):
            full[1].wait(second)
            cta.store(out, tiles[1], place(cta, i + N))
        cta.sync()


@ox.pipeline(threads=128)
def made_by_many(cta: ox.Cta, src: Src, out: Out, rows: Rows, n: ox.Idx) -> None:
    """All threads but one make each token together, that one waits for it and stores; and the other way round."""
    tile = cta.shared(ox.f32, BOX, align=ox.A1024)
    made = cta.barrier(kind=ox.GeneralBarrier).init(127)
    used = cta.barrier(kind=ox.GeneralBarrier).init(1)
    for i in cta.range(n):
        with cta.when(i % 3 != 2):
            with cta.threads_except(70):
                cta.iota(tile, axis=1)
                token = made.arrive()
            with cta.thread(70):
                made.wait(token)
                cta.store(out, tile, place(cta, i))
                free = used.arrive()
            with cta.threads_except(70):
                used.wait(free)


@ox.pipeline(threads=128)
def together(cta: ox.Cta, src: Src, out: Out, rows: Rows, n: ox.Idx) -> None:
    """All threads arrive and wait, in several warps of one class and two that stand alone."""
    tile = cta.shared(ox.f32, BOX, align=ox.A1024)
    made = cta.barrier(kind=ox.GeneralBarrier).init(128)
    for i in cta.range(n):
        with cta.when(i % 2 == 1):
            with cta.thread(3):
                cta.fill(tile, 3)
            made.wait(made.arrive())
            cta.store(out, tile, place(cta, i))
            made.wait(made.arrive())
        with cta.when(i % 3 == 0):
            with cta.thread(100):
                cta.fill(tile, 100)
            made.wait(made.arrive())
            cta.store(out, tile, place(cta, i + N))
            made.wait(made.arrive())


@ox.pipeline(threads=64)
def one_ahead(cta: ox.Cta, src: Src, out: Out, rows: Rows, n: ox.Idx) -> None:
    """Who makes the tokens is up to a stage ahead of who waits for them."""
    tiles = cta.shared(src, stages=2)
    full = cta.barriers(2).init(1)
    empty = cta.barriers(2).init(1)
    for i in cta.range(n):
        for j in cta.range(i % 3 + 1):
            with cta.thread(0) as leader:
                token = full[j % 2].arrive_expect_tx(leader, tiles[j % 2].nbytes)
                src.g2s(leader, tiles[j % 2], place(cta, i), token)
            with cta.thread(32):
                full[j % 2].wait(token)
                cta.store(out, tiles[j % 2], place(cta, i))
                free = empty[j % 2].arrive()
            with cta.thread(0):
                empty[j % 2].wait(free)


# ---- arrivals on more than one
@ox.pipeline(threads=64)
def several_elements(cta: ox.Cta, src: Src, out: Out, rows: Rows, n: ox.Idx) -> None:
    """Two threads go round a ring of barriers in different ways."""
    tiles = cta.shared(src, stages=3)
    full = cta.barriers(3).init(1)
    for i in cta.range(n):
        for who, shift in ((0, 0), (32, 1)):
            stage = (i + shift) % 3
            with cta.thread(who) as leader:
                token = full[stage].arrive_expect_tx(leader, tiles[stage].nbytes)
                src.g2s(leader, tiles[stage], place(cta, i), token)
            full[stage].wait(token)
            cta.store(out, tiles[stage], place(cta, i + shift * N))
            cta.sync()


@ox.pipeline(threads=32, cluster=(2, 1, 1))
def beside_the_cluster(cta: ox.ClusterCta, src: Src, out: Out, rows: Rows, n: ox.Idx) -> None:
    """Each phase has an arrival of the own CTA and one of its peer."""
    tile = cta.shared(src)
    full = cta.barrier().init(2)
    cta.cluster_sync()
    for i in cta.range(n):
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile.nbytes)
            src.g2s(leader, tile, place(cta, i), token)
            full.arrive_remote(1 - cta.cta_rank)
        full.wait(token)
        cta.store(out, tile, place(cta, i))
        cta.sync()
        cta.cluster_sync()
    cta.cluster_sync()


def cases() -> Iterator[Case]:
    """All of this module."""
    for pipeline in (
        in_a_branch,
        in_either_branch,
        in_a_growing_loop,
        by_block,
        asked_first,
        dropped,
        waited_for_by_all,
        waited_for_later,
        made_by_many,
        together,
        one_ahead,
        several_elements,
        beside_the_cluster,
    ):
        yield Case(name=pipeline.__name__, group="carried tokens", make=partial(made, pipeline, N))


def made(pipeline: Pipe, n: int, dev: Device) -> Made:
    """A launch of one of these pipelines, which all take the same arguments."""
    blocks = 4
    src = dev.array(random_bits(ox.f32, (blocks * BOX[0] - 3, N * BOX[1]), 4).view(np.float32))
    out = dev.zeros((blocks * BOX[0], 2 * N * BOX[1]), ox.f32)
    rows: Any = dev.array(np.array([3, 0, 1, 4, 2, 0, 3], np.int32))
    source: Map = ox.TmaDescriptor.tiled(src, box=BOX)
    return Made(launch=pipeline[blocks].bind(source, out, rows, n), outputs={"out": out})
