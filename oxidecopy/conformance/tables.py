"""Tables of descriptors: each way to choose an entry, with matrices of different sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import oxidecopy as ox
from oxidecopy.conformance.case import Case, Made, random_bits, small_integers

if TYPE_CHECKING:
    from oxidecopy.host.device import Device

BOX: Final = (16, 32)
Table = ox.DescriptorTable[Any, Any, Any, Any]
List = ox.GlobalArray[ox.i32, ox.D1]
Pipe = ox.Pipeline[...]
SIZES: Final = ((40, 96), (16, 32), (3, 4), (100, 20), (17, 64))
MANY: Final = tuple((8 + i % 9, 4 * (1 + i % 11)) for i in range(70))  # more than fit into a launch's parameter


@ox.pipeline(threads=64)
def by_number(cta: ox.Cta, src: Table, dst: Table) -> None:
    """Entries by plain ints."""
    tile, full = cta.shared(src[0]), cta.barriers(1).init(1)
    with cta.elect() as leader:
        for i in range(len(src)):
            token = full[0].arrive_expect_tx(leader, tile.nbytes)
            src[i].g2s(leader, tile, (0, 0), token)
            full[0].wait_phase(i)
            dst[i].s2g(leader, tile, (0, 0))
            leader.commit_group()
            leader.wait_group(0)


@ox.pipeline(threads=64)
def by_block(cta: ox.Cta, src: Table, dst: Table) -> None:
    """A matrix for each row of blocks; blocks behind its edges load zeros, and store nothing."""
    tile, full = cta.shared(src[0]), cta.barrier().init(1)
    i, at = cta.block_idx.z, (cta.block_idx.y * BOX[0], cta.block_idx.x * BOX[1])
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        src[i].g2s(leader, tile, at, token)
    full.wait(token)
    with cta.elect() as leader:
        dst[i].s2g(leader, tile, at)
        leader.commit_group()
        leader.wait_group(0)


@ox.pipeline(threads=32)
def by_counter(cta: ox.Cta, src: Table, dst: Table) -> None:
    """A loop over the entries, from the last one on."""
    tile, full = cta.shared(src[0]), cta.barriers(1).init(1)
    with cta.elect() as leader:
        for i in cta.range(len(src)):
            token = full[0].arrive_expect_tx(leader, tile.nbytes)
            src[len(src) - 1 - i].g2s(leader, tile, (0, 0), token)
            full[0].wait_phase(i)
            dst[len(src) - 1 - i].s2g(leader, tile, (0, 0))
            leader.commit_group()
            leader.wait_group(0)


@ox.pipeline(warps=ox.roles(producer=1, consumers=(), store=1))
def by_extent(cta: ox.Cta, src: Table, dst: Table) -> None:
    """A ring for each block: as many stages as its own matrix has boxes, one below the other."""
    i, x = cta.block_idx.y, cta.block_idx.x * BOX[1]
    ring = cta.ring(stages=3, tiles=(src[0],))
    steps = (src[i].shape[0] + BOX[0] - 1) // BOX[0]
    with cta.producer() as leader:
        for y in cta.range(steps):
            with ring.produce(leader) as (slot,):
                slot.load(src[i], (y * BOX[0], x))
    with cta.storer() as leader:
        for y in cta.range(steps):
            ring.forward(leader, dst[i], (y * BOX[0], x))


@ox.pipeline(threads=32)
def by_list(cta: ox.Cta, src: Table, dst: Table, which: List, most: ox.Idx) -> None:
    """Entries, rows and columns of the boxes are read: three numbers each, one box for each block."""
    tile, full = cta.shared(src[0]), cta.barrier().init(1)
    turn = cta.block_idx.x * 3
    i = cta.load_index(which, turn, below=len(src))
    at = (cta.load_index(which, turn + 1, below=most) * BOX[0], cta.load_index(which, turn + 2, below=most) * BOX[1])
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        src[i].g2s(leader, tile, at, token)
    full.wait(token)
    with cta.elect() as leader:
        dst[i].s2g(leader, tile, at)
        leader.commit_group()
        leader.wait_group(0)


@ox.pipeline(threads=32)
def by_sums(cta: ox.Cta, src: Table, dst: Table, which: List) -> None:
    """Sums into entries that are read, some of them several times."""
    tile, full = cta.shared(src[0]), cta.barriers(1).init(1)
    with cta.elect() as leader:
        for k in cta.range(which.shape[0]):
            token = full[0].arrive_expect_tx(leader, tile.nbytes)
            src[ox.minimum(k, len(src) - 1)].g2s(leader, tile, (0, 0), token)
            full[0].wait_phase(k)
            dst[cta.load_index(which, k, below=len(dst))].reduce(ox.reduce.add, leader, tile, (0, 0))
            leader.commit_group()
            leader.wait_group_read(0)
        leader.wait_group(0)


@ox.pipeline(warps=ox.roles(producer=1, consumers=(), store=1))
def by_tile(cta: ox.Cta, src: Table, dst: Table, queue: ox.TmaDescriptor[ox.f32, ox.D2]) -> None:
    """Entries by what a counter of the launch gives: `queue` has as many boxes as there are entries, and is not copied."""
    ring = cta.ring(stages=2, tiles=(src[0],))
    work = cta.schedule(queue, order=ox.order.counter())
    with cta.producer() as leader:
        for at in work:
            with ring.produce(leader) as (slot,):
                slot.load(src[at[0] // BOX[0]], (0, 0))
    with cta.storer() as leader:
        for at in ring.visits(leader, work):
            ring.forward(leader, dst[at[0] // BOX[0]], (0, 0))


# ---- cases
def cases() -> Iterator[Case]:
    """All of this module."""
    for words, sizes in (("one", SIZES[:1]), ("five", SIZES), ("seventy", MANY)):
        for name, make in _MAKES.items():
            yield Case(name=f"{name}, {words}", group="tables", make=partial(make, sizes))


def _tables(sizes: tuple[tuple[int, int], ...], dev: Device, dtype: Any = ox.f32) -> tuple[Table, Table, dict[str, Any]]:
    """Matrices of these sizes, and as many like them."""
    make = random_bits if dtype is ox.f32 else small_integers
    xs = [dev.array(make(dtype, size, seed), dtype, pad=True) for seed, size in enumerate(sizes)]
    outs = [dev.zeros(size, dtype, pad=True) for size in sizes]
    src, dst = (ox.DescriptorTable([ox.TmaDescriptor.tiled(a, box=BOX) for a in arrays]) for arrays in (xs, outs))
    return src, dst, {f"out{i}": out for i, out in enumerate(outs)}


def _plain(pipe: Pipe, sizes: tuple[tuple[int, int], ...], dev: Device) -> Made:
    src, dst, outs = _tables(sizes, dev)
    return Made(launch=pipe[1].bind(src, dst), outputs=outs)


def _boxes(sizes: tuple[tuple[int, int], ...], dev: Device) -> Made:
    src, dst, outs = _tables(sizes, dev)
    grid = (-(-max(w for _, w in sizes) // BOX[1]), -(-max(h for h, _ in sizes) // BOX[0]), len(sizes))
    return Made(launch=by_block[grid].bind(src, dst), outputs=outs)


def _extents(sizes: tuple[tuple[int, int], ...], dev: Device) -> Made:
    src, dst, outs = _tables(sizes[:32], dev)
    return Made(launch=by_extent[-(-max(w for _, w in sizes) // BOX[1]), len(src)].bind(src, dst), outputs=outs)


def _list(sizes: tuple[tuple[int, int], ...], dev: Device) -> Made:
    src, dst, outs = _tables(sizes, dev)
    boxes = [(i, *at) for i, (h, w) in enumerate(sizes) for at in np.ndindex(-(-h // BOX[0]), -(-w // BOX[1]))]
    which = dev.array(np.array(boxes, np.int32).reshape(-1), ox.i32)
    return Made(launch=by_list[len(boxes)].bind(src, dst, which, 16), outputs=outs)


def _sums(sizes: tuple[tuple[int, int], ...], dev: Device) -> Made:
    src, dst, outs = _tables(sizes, dev, ox.i32)
    which = np.random.default_rng(7).integers(0, len(sizes), size=len(sizes) + 5).astype(np.int32)
    return Made(launch=by_sums[1].bind(src, dst, dev.array(which, ox.i32)), outputs=outs)


def _tiles(sizes: tuple[tuple[int, int], ...], dev: Device) -> Made:
    src, dst, outs = _tables(sizes, dev)
    queue = ox.TmaDescriptor.tiled(dev.zeros((BOX[0] * len(sizes), BOX[1]), ox.f32), box=BOX)
    return Made(launch=by_tile[3].bind(src, dst, queue), outputs=outs)


_MAKES: Final[dict[str, Callable[[tuple[tuple[int, int], ...], Device], Made]]] = {
    "plain ints": partial(_plain, by_number),
    "block index": _boxes,
    "loop counter": partial(_plain, by_counter),
    "its extents": _extents,
    "read from a list": _list,
    "sums, read from a list": _sums,
    "tiles of a counter": _tiles,
}
