"""Clusters: multicast, slices, remote arrivals and announcements, shapes in all three directions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Final

import numpy as np

import oxidecopy as ox
from oxidecopy.conformance.case import Case, Made, random_bits
from oxidecopy.conformance.copies import Pipe

if TYPE_CHECKING:
    from oxidecopy.host.device import Device

BOX = (16, 32)
N = 5
Shape = tuple[int, int, int]
# More than 8 CTAs are not portable: launches ask for them by an attribute of the kernel.
_SHAPES: Final[tuple[Shape, ...]] = (
    (2, 1, 1), (1, 2, 1), (1, 1, 2), (4, 1, 1), (2, 2, 1), (2, 2, 2), (8, 1, 1), (3, 1, 1), (16, 1, 1), (4, 2, 2),
)  # fmt: skip
Out = ox.GlobalArray[ox.f32, ox.D3]
Src = ox.TmaDescriptor[ox.f32, ox.D3]


def linear(cta: ox.Cta) -> ox.SymIdx:
    """This block among all, x fastest."""
    block, grid = cta.block_idx, cta.grid_dim
    return block.x + grid.x * (block.y + grid.y * block.z)


def broadcast(shape: Shape) -> Pipe:
    """Rank 0 loads each tile into all; everybody tells it when a stage is free."""
    size = prod(shape)

    @ox.pipeline(threads=64, cluster=shape)
    def run(cta: ox.ClusterCta, src: Src, out: Out, n: ox.Idx) -> None:
        tiles = cta.shared(src, stages=2)
        full = cta.barriers(2).init(1)
        empty = cta.barriers(2).init(size)
        cta.cluster_sync()
        for i in cta.range(n):
            with cta.elect() as leader:
                token = full[i % 2].arrive_expect_tx(leader, tiles[i % 2].nbytes)
                with cta.when(cta.cta_rank == 0):
                    empty[i % 2].wait_phase(i // 2 - 1)
                    src.g2s_multicast(leader, tiles[i % 2], (0, 0, i * BOX[1]), token, cta_mask=(1 << size) - 1)
            full[i % 2].wait_phase(i // 2)
            cta.store(out, tiles[i % 2], (linear(cta), 0, i * BOX[1]))
            cta.sync()
            with cta.elect():
                empty[i % 2].arrive_remote(0)
        cta.cluster_sync()

    return run


def ranked(shape: Shape) -> Pipe:
    """Each rank loads one tile into one other, by a mask that it computes; the announcement comes from the sender."""
    size = prod(shape)

    @ox.pipeline(threads=32, cluster=shape)
    def run(cta: ox.ClusterCta, src: Src, out: Out, n: ox.Idx) -> None:
        tile = cta.shared(src)
        full = cta.barrier().init(1)
        cta.cluster_sync()
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile.nbytes)
            for rank in range(size):
                with cta.when(cta.cta_rank == rank):
                    src.g2s_multicast(leader, tile, (0, 0, rank % N * BOX[1]), token, cta_mask=1 << (rank + 1) % size)
        full.wait(token)
        cta.store(out, tile, (linear(cta), 0, cta.cta_rank * BOX[1]))
        cta.cluster_sync()

    return run


def announced(shape: Shape) -> Pipe:
    """Each rank announces on the next one's barrier what it sends there."""
    size = prod(shape)

    @ox.pipeline(threads=32, cluster=shape)
    def run(cta: ox.ClusterCta, src: Src, out: Out, n: ox.Idx) -> None:
        tile = cta.shared(src)
        full = cta.barrier().init(2)
        cta.cluster_sync()
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, 0)
            for rank in range(size):
                to = (rank + 1) % size
                with cta.when(cta.cta_rank == rank):
                    full.arrive_expect_tx_remote(leader, tile.nbytes, cta_rank=to)
                    src.g2s_multicast(leader, tile, (0, 0, rank % N * BOX[1]), token, cta_mask=1 << to)
        full.wait_phase(0)
        cta.store(out, tile, (linear(cta), 0, cta.cta_rank * BOX[1]))
        cta.cluster_sync()

    return run


def sliced(shape: Shape, groups: tuple[int, ...]) -> Pipe:
    """A multicast ring: each CTA loads a slice of each tile into all."""
    size = prod(shape)

    @ox.pipeline(warps=ox.roles(producer=1, consumers=groups), cluster=shape)
    def run(cta: ox.ClusterCta, src: Src, out: Out, n: ox.Idx) -> None:
        ring = cta.multicast_ring(stages=3, tiles=(src,))
        with cta.producer() as leader:
            for i in cta.range(n):
                with ring.produce(leader) as (slot,):
                    slot.load(src, (0, 0, i * BOX[1]))
        for number in range(len(groups)):
            with cta.consumers(number) as group:
                for i in cta.range(n):
                    with ring.consume(group) as (tile,), cta.when(i % len(groups) == number):
                        cta.store(out, tile, (linear(cta) * size, 0, i * BOX[1]))

    return run


def cases() -> Iterator[Case]:
    """All of this module."""
    for shape in _SHAPES:
        words = "x".join(map(str, shape))
        yield Case(name=f"broadcast {words}", group="clusters", make=partial(_made, broadcast(shape), shape, 1))
        yield Case(name=f"ranked {words}", group="clusters", make=partial(_made, ranked(shape), shape, 1))
        yield Case(name=f"announced {words}", group="clusters", make=partial(_made, announced(shape), shape, 1))
        if prod(shape) <= 4:
            for groups in ((1,), (2, 1)):
                made = partial(_made, sliced(shape, groups), shape, prod(shape))
                yield Case(name=f"multicast ring {words} {groups}", group="clusters", make=made)


def _made(pipeline: Pipe, shape: Shape, slices: int, dev: Device) -> Made:
    x, y, z = shape
    grid = (2 * x, y, 2 * z)
    src = dev.array(random_bits(ox.f32, (slices, BOX[0], N * BOX[1] - 9), 7).view(np.float32), pad=True)
    out = dev.zeros((slices * prod(grid), BOX[0], max(N, prod(shape)) * BOX[1]), ox.f32)
    source = ox.TmaDescriptor.tiled(src, box=(1, *BOX), swizzle=ox.Swizzle128B)
    return Made(launch=pipeline[grid].bind(source, out, N), outputs={"out": out})
