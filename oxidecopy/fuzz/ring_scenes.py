"""Scenes of level 2: rings with roles, their store rings, forwarding, schedules and counters, multicast rings."""

from __future__ import annotations

from random import Random
from typing import Any, Final

import numpy as np

from oxidecopy.fuzz.case import Data
from oxidecopy.fuzz.drafts import Draft, Handles
from oxidecopy.isa.elem import FLOATS, INTEGERS
from oxidecopy.tiles import order
from oxidecopy.tiles.roles import RoleName, Roles, roles

_REGISTERS: Final[dict[RoleName, int]] = {"producer": 40, "consumers": 96}
_ORDERS: Final = (None, order.linear, order.grouped(2))


def drawn_roles(rng: Random, *, cluster: bool) -> Roles:
    """A producer, and groups of consumers or a store role."""
    groups = rng.choice(((1,), (1,), (2,), (1, 1), (2, 1)))
    if not cluster and rng.random() < 0.3:
        return roles(producer=1, consumers=(), store=1)
    return roles(producer=1, consumers=groups, registers=_REGISTERS if rng.random() < 0.2 else None)


class TileRing:
    """A ring over all boxes of an array: groups store plainly, by a store ring or a map, or a store role forwards."""

    def __init__(self, d: Draft) -> None:
        assert d.roles is not None  # this scene's pipelines declare them
        self.d, self.groups, self.storer = d, len(d.roles.of("consumers")), bool(d.roles.of("storer"))
        shape = d.shape()
        self.src, self.dst = d.twins(d.rng.randrange(1, 7), shape)
        self.stages = d.rng.randrange(1, 5)
        uses = ["plain", "plain", "store ring", *(["map"] if shape[0] in FLOATS | INTEGERS else [])]
        self.use = "forward" if self.storer else d.rng.choice(uses) if self.groups == 1 else "plain"
        self.pending = d.rng.randrange(self.stages)
        self.keep = d.rng.randrange(self.stages) if d.chance(0.25) else 0
        self.counted = self.groups < 2 and d.chance(0.4)
        self.order = d.rng.choice(_ORDERS if len(self.src.box) > 1 else _ORDERS[:2])  # groups are of rows
        self.hints = d.hint(), d.hint()
        d.effects.append(self.land)

    def land(self, now: dict[str, Data]) -> None:
        """The whole array, twice its values where they are mapped."""
        data = now[self.src.name]
        now[self.dst.name][...] = np.add(data, data) if self.use == "map" else data

    def __call__(self, cta: Any, h: Handles) -> None:
        src, dst = h[self.src.name], h[self.dst.name]
        ring = cta.ring(stages=self.stages, tiles=(src,))
        outs = cta.store_ring(dst, stages=2) if self.use in ("store ring", "map") else None
        work = cta.schedule(src, order=order.counter()) if self.counted else None
        with cta.producer() as leader:
            for at in self.visited(cta, src, work):
                with ring.produce(leader) as (slot,):
                    slot.load(src, at, **self.hints[0])
        if self.storer:
            with cta.storer() as leader:
                for at in ring.visits(leader, work) if work is not None else self.visited(cta, src, None):
                    ring.forward(leader, dst, at, pending=self.pending, **self.hints[1])
        for number in range(self.groups):
            with cta.consumers(number) as group:
                if work is not None:
                    for stage in ring.stages(group, work, keep=self.keep):
                        self.consume(cta, h, group, number, stage.tiles[0], stage.at, outs)
                    continue
                for at in self.visited(cta, src, None):
                    with ring.consume(group, keep=self.keep) as (tile,):
                        self.consume(cta, h, group, number, tile, at, outs)

    def visited(self, cta: Any, src: Any, work: Any) -> Any:
        """Where the boxes of this CTA lie."""
        return work if work is not None else cta.tiles(src, order=self.order)

    def consume(self, cta: Any, h: Handles, group: Any, number: int, tile: Any, at: tuple[Any, ...], outs: Any) -> None:
        """What a group does with a landed tile; of several the first alone stores."""
        if self.use == "plain":
            if number == 0:
                cta.store(h[self.dst.plain], tile, at)
            return
        with outs.put(group, at, **self.hints[1]) as out:
            group.map((lambda v: v + v) if self.use == "map" else (lambda v: v), tile, out=out)


class MulticastRing:
    """Each CTA of a cluster loads a slice of each tile into all; consumers store what is theirs."""

    def __init__(self, d: Draft) -> None:
        assert d.roles is not None  # this scene's pipelines declare them
        self.d, self.groups = d, len(d.roles.of("consumers"))
        rows, dtype = d.pick(4, 8), d.pick("i32", "f32", "u16", "f64")
        inner, swizzle = {"i32": 8, "f32": 8, "u16": 16, "f64": 4}[dtype], d.pick("none", "32B")  # slices start at multiples of 128 bytes
        self.tile = (rows * d.size, inner)
        self.src = d.source(d.size * d.rng.randrange(1, 3), (dtype, (rows, inner), swizzle))
        self.clusters, self.stages = d.blocks // d.size, d.rng.randrange(1, 4)
        self.trips = d.trips(4, 0.05)
        self.dst = d.target(d.blocks * self.trips.n, (dtype, self.tile, "none"))
        d.unknown.add(self.dst.name)

    def __call__(self, cta: Any, h: Handles) -> None:
        ring = cta.multicast_ring(stages=self.stages, tiles=(h[self.src.name],))
        with cta.producer() as leader:
            for i in cta.range(self.trips.of(h)):
                with ring.produce(leader) as (slot,):
                    slot.load(h[self.src.name], (i * self.tile[0], *self.src.inner))
        for number in range(self.groups):
            with cta.consumers(number) as group:
                for i in cta.range(self.trips.of(h)):
                    with ring.consume(group) as (tile,), cta.when(i % self.groups == number):
                        cta.store(h[self.dst.plain], tile, self.dst.at(self.d.block(cta) * self.trips.n + i))
