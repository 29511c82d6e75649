"""Rings: stages, orders, groups, kept stages, several tiles, chains, counters; and the lessons."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

import oxidecopy as ox
from oxidecopy.conformance.case import Case, Made, random_bits
from oxidecopy.conformance.copies import Pipe

if TYPE_CHECKING:
    from oxidecopy.host.device import Device
    from oxidecopy.tiles.schedule import Order

BOX = (16, 32)
SHAPE = (133, 150)
Map = ox.TmaDescriptor[ox.f32, ox.D2]
Out = ox.GlobalArray[ox.f32, ox.D2]

ORDERS: dict[str, Order] = {
    "linear": ox.order.linear,
    "grouped 3": ox.order.grouped(3),
    "grouped 100": ox.order.grouped(100),
}


def ring(stages: int, groups: tuple[int, ...], order: Order | None, keep: int = 0) -> Pipe:
    """One producer; the groups take turns at storing what all of them consume."""

    @ox.pipeline(warps=ox.roles(producer=1, consumers=groups))
    def run(cta: ox.Cta, src: Map, out: Out) -> None:
        made = cta.ring(stages=stages, tiles=(src,))
        with cta.producer() as leader:
            for at in cta.tiles(src, order=order):
                with made.produce(leader) as (slot,):
                    slot.load(src, at)
        for number in range(len(groups)):
            with cta.consumers(number) as group:
                for at in cta.tiles(src, order=order):
                    with made.consume(group, keep=keep) as (tile,):
                        cta.store(out, tile.part(number, of=len(groups)), (at[0] + number * BOX[0] // len(groups), at[1]))

    return run


def two_tiles(cta: ox.Cta, src: Map, other: Map, out: Out) -> None:
    """Two tiles of one stage, combined."""
    made = cta.ring(stages=2, tiles=(src, other))
    with cta.producer() as leader:
        for at in cta.tiles(src):
            with made.produce(leader) as (a, b):
                a.load(src, at)
                b.load(other, at)
    with cta.consumers() as group:
        for at in cta.tiles(src):
            with made.consume(group) as (a, b):
                group.map(lambda x, y: x + y, a, b, out=a)
                group.sync()
                cta.store(out, a, at)


def chain(stages: int, pending: int) -> Pipe:
    """Loads that feed stores; no thread touches a tile."""

    @ox.pipeline(warps=ox.roles(producer=1, consumers=(), store=1))
    def run(cta: ox.Cta, src: Map, dst: Map) -> None:
        made = cta.ring(stages=stages, tiles=(src,))
        with cta.producer() as leader:
            for at in cta.tiles(src):
                with made.produce(leader) as (slot,):
                    slot.load(src, at)
        with cta.storer() as leader:
            for at in cta.tiles(src):
                made.forward(leader, dst, at, pending=pending)

    return run


def counted(stages: int) -> Pipe:
    """A schedule by a counter; the stages bring where they come from."""

    @ox.pipeline(warps=ox.roles(producer=1, consumers=2))
    def run(cta: ox.Cta, src: Map, out: Out) -> None:
        made = cta.ring(stages=stages, tiles=(src,))
        work = cta.schedule(src, order=ox.order.counter())
        with cta.producer() as leader:
            for at in work:
                with made.produce(leader) as (slot,):
                    slot.load(src, at)
        with cta.consumers() as group:
            for stage in made.stages(group, work):
                cta.store(out, stage.tiles[0], stage.at)

    return run


def counted_chain(stages: int) -> Pipe:
    """The same with a store role."""

    @ox.pipeline(warps=ox.roles(producer=1, consumers=(), store=1))
    def run(cta: ox.Cta, src: Map, dst: Map) -> None:
        made = cta.ring(stages=stages, tiles=(src,))
        work = cta.schedule(src, order=ox.order.counter())
        with cta.producer() as leader:
            for at in work:
                with made.produce(leader) as (slot,):
                    slot.load(src, at)
        with cta.storer() as leader:
            for at in made.visits(leader, work):
                made.forward(leader, dst, at, pending=1)

    return run


def once(cta: ox.Cta, src: Map, dst: Map) -> None:
    """One box for each block."""
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    for at in cta.tiles(src, order=ox.order.once):
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile.nbytes)
            src.g2s(leader, tile, at, token)
            full.wait(token)
            dst.s2g(leader, tile, at)
            leader.commit_group()
            leader.wait_group(0)


def cases() -> Iterator[Case]:
    """All of this module."""
    yield from _ring_cases()
    two = ox.pipeline(warps=ox.roles(producer=1, consumers=2))(two_tiles)
    yield Case(name="two tiles", group="rings", make=partial(_two, two))
    for stages, pending in ((2, 1), (4, 1), (4, 3), (16, 15), (3, 0)):
        for grid in (1, 7, 200):
            made = partial(_stored, chain(stages, pending), grid)
            yield Case(name=f"chain stages={stages} pending={pending} grid={grid}", group="rings", make=made)
    for stages in (1, 2, 4, 9):
        for grid in (1, 5, 60, 200):
            yield Case(name=f"counter stages={stages} grid={grid}", group="counters", make=partial(_plain, counted(stages), grid))
            if stages > 1:
                made = partial(_stored, counted_chain(stages), grid)
                yield Case(name=f"counter chain stages={stages} grid={grid}", group="counters", make=made)
    yield Case(name="once", group="rings", make=partial(_stored, ox.pipeline(threads=64)(once), 45))


def _ring_cases() -> Iterator[Case]:
    for (word, order), stages, groups, grid in product(ORDERS.items(), (1, 2, 5), ((1,), (3,), (2, 1)), (1, 7, 200)):
        name = f"ring {word} stages={stages} groups={groups} grid={grid}"
        yield Case(name=name, group="rings", make=partial(_plain, ring(stages, groups, order), grid))
    for keep in (1, 2):
        yield Case(name=f"ring keep={keep}", group="rings", make=partial(_plain, ring(4, (2,), None, keep), 3))


def _source(dev: Device, seed: int = 8) -> ox.GlobalArray[ox.f32, ox.D2]:
    return dev.array(random_bits(ox.f32, SHAPE, seed).view(np.float32), pad=True)


def _map(a: ox.GlobalArray[ox.f32, ox.D2]) -> Any:
    return ox.TmaDescriptor.tiled(a, box=BOX, swizzle=ox.Swizzle128B)


def _plain(pipeline: Pipe, grid: int, dev: Device) -> Made:
    out = dev.zeros(SHAPE, ox.f32)
    return Made(launch=pipeline[grid].bind(_map(_source(dev)), out), outputs={"out": out})


def _two(pipeline: Pipe, dev: Device) -> Made:
    out = dev.zeros(SHAPE, ox.f32)
    return Made(launch=pipeline[4].bind(_map(_source(dev)), _map(_source(dev, 9)), out), outputs={"out": out})


def _stored(pipeline: Pipe, grid: int, dev: Device) -> Made:
    out = dev.zeros(SHAPE, ox.f32, pad=True)
    return Made(launch=pipeline[grid].bind(_map(_source(dev)), _map(out)), outputs={"out": out})
