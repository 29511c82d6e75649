"""Scenes of what is known only while the program runs: indices read from memory, tables of maps; and of maps of elements, gathers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from oxidecopy.fuzz.case import Data, clip, read_box
from oxidecopy.fuzz.drafts import Draft, Handles, element
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.program.program import entry_name
from oxidecopy.typed.geometry import A1024

_LISTS: Final = ("u8", "u16", "u32", "i32", "u64", "i64")


class Indexed:
    """Which tile is loaded is read from a list."""

    def __init__(self, d: Draft) -> None:
        self.d, self.trips = d, d.trips(6, 0.08)
        total, shape = max(1, d.blocks * self.trips.n), d.shape()
        self.count = d.rng.randrange(1, 6)
        self.src, self.dst = d.source(self.count, shape), d.target(total, shape)
        self.chosen = [d.rng.randrange(self.count) for _ in range(total)]
        self.which = d.indices(self.chosen, d.rng.choice(_LISTS))
        self.bulk = d.chance(0.4)
        d.foretold(self.src, self.dst)
        for t in range(d.blocks * self.trips.n):
            d.stores(self.dst, t, lambda t=t: d.loaded(self.src, self.chosen[t]))  # type: ignore[misc]  # a default binds t

    def __call__(self, cta: Any, h: Handles) -> None:
        tile, full = cta.shared(h[self.src.name]), cta.barrier().init(1)
        for i in cta.range(self.trips.of(h)):
            t = self.d.block(cta) * self.trips.n + i
            with cta.elect() as leader:
                chosen = cta.load_index(h[self.which], t, below=self.count)
                token = full.arrive_expect_tx(leader, tile)
                h[self.src.name].g2s(leader, tile, self.src.at(chosen), token)
            full.wait(token)
            if self.bulk:
                with cta.elect() as leader:
                    h[self.dst.name].s2g(leader, tile, self.dst.at(t))
                    leader.commit_group()
                    leader.wait_group_read(0)
            else:
                cta.store(h[self.dst.plain], tile, self.dst.at(t))
            cta.sync()


class Tables:
    """Entries of two tables of maps, by the loop's counter, a list, or the block."""

    def __init__(self, d: Draft) -> None:
        self.d, shape = d, d.shape()
        self.box, self.entries = shape[1], d.rng.randrange(1, 5)
        counts = tuple(d.rng.randrange(1, 3) for _ in range(self.entries))
        self.src, self.dst = d.table("t", counts, shape), d.table("u", counts, shape)
        self.by = d.pick("counter", "list", "block", "number")
        self.order = list(range(self.entries))
        d.rng.shuffle(self.order)
        self.which = d.indices(self.order, d.rng.choice(_LISTS))
        d.effects.append(self.land)

    def land(self, now: dict[str, Data]) -> None:
        """The first box of every entry, or of those that the blocks reach."""
        reached = range(min(self.d.blocks, self.entries)) if self.by == "block" else self.order
        for i in reached:
            source, target = now[entry_name(self.src, i)], now[entry_name(self.dst, i)]
            at = (0,) * len(self.box)
            to, part = clip(target, at, read_box(source, at, self.box))
            to[...] = part

    def __call__(self, cta: Any, h: Handles) -> None:
        src, dst, block = h[self.src], h[self.dst], self.d.block(cta)
        tile, full = cta.shared(src[0]), cta.barrier().init(1)
        with cta.elect() as leader:
            if self.by == "block":
                with cta.when(block < self.entries):
                    self.move(leader, src[block % self.entries], dst[block % self.entries], tile, full, 0)
                return
            with cta.when(block == 0):
                if self.by == "number":
                    for i in range(self.entries):
                        self.move(leader, src[i], dst[i], tile, full, i)
                    return
                for k in cta.range(self.entries):
                    i = cta.load_index(h[self.which], k, below=self.entries) if self.by == "list" else self.entries - 1 - k
                    self.move(leader, src[i], dst[i], tile, full, k)

    def move(self, leader: Any, src: Any, dst: Any, tile: Any, full: Any, k: Any) -> None:
        """One box from a map to another."""
        at = (0,) * len(self.box)
        token = full.arrive_expect_tx(leader, tile)
        src.g2s(leader, tile, at, token)
        full.wait_phase(k)
        dst.s2g(leader, tile, at)
        leader.commit_group()
        leader.wait_group(0)


_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "twice": lambda a, _: a + a,
    "mixed": lambda a, b: a * 2 - b,
    "square": lambda a, b: a * b + a,
    "negative": lambda a, b: -a + b,
    "scaled": lambda a, _: a,
}
_FACTOR: Final = 3  # of the scaled one


class Mapped:
    """All threads compute a tile from one or two landed ones, in place or into another, maybe of another type; a scalar may take part."""

    def __init__(self, d: Draft) -> None:
        self.d, self.trips = d, d.trips(4, 0.05)
        total, n = d.blocks * self.trips.n, self.trips.n
        dtype, box, swizzle = d.shape(("u8", "u16", "u32", "u64", "i32", "i64", "f16", "bf16", "f32", "f64"))
        self.target = (
            dtype if d.chance(0.6) else d.rng.choice([t for t, i in DTYPES.items() if i.bits == DTYPES[dtype].bits and "x16" not in t])
        )
        self.a, self.b = d.source(total, (dtype, box, swizzle)), d.source(total, (dtype, box, d.pick("none", swizzle)))
        self.dst = d.target(total, (self.target, box, swizzle))
        self.name = d.rng.choice(sorted(_FUNCTIONS))
        self.scalar = d.scalar(dtype, _FACTOR) if self.name == "scaled" else ""
        self.in_place = self.target == dtype and d.chance(0.5)
        if self.target != dtype or dtype in ("f16", "bf16"):  # casts and short floats have rules of their own
            d.unknown.add(self.dst.name)
        d.foretold(self.a, self.dst)
        d.foretold(self.b, self.dst)
        for t in range(d.blocks * n):
            d.stores(self.dst, t, lambda t=t: self.made(t))  # type: ignore[misc]  # a default binds t

    def made(self, t: int) -> Data:
        """What numpy makes of tile `t`."""
        a, b = self.d.loaded(self.a, t), self.d.loaded(self.b, t)
        with np.errstate(all="ignore"):
            found: Data = np.multiply(a, np.asarray(_FACTOR, a.dtype)) if self.scalar else _FUNCTIONS[self.name](a, b)
        return found.astype(self.d.memory[self.dst.name].data.dtype)

    def __call__(self, cta: Any, h: Handles) -> None:
        d = self.d
        a, b = cta.shared(h[self.a.name]), cta.shared(h[self.b.name])
        made = a if self.in_place else cta.shared(h[self.dst.name])
        full = cta.barrier().init(1)
        for i in cta.range(self.trips.of(h)):
            t = d.block(cta) * self.trips.n + i
            with cta.elect() as leader:
                token = full.arrive_expect_tx(leader, a, b)
                h[self.a.name].g2s(leader, a, self.a.at(t), token)
                h[self.b.name].g2s(leader, b, self.b.at(t), token)
            full.wait(token)
            cta.map(lambda x, y: self.function(x, y, h), a, b, out=made)
            cta.fence_proxy_async()
            cta.sync()
            with cta.elect() as leader:
                h[self.dst.name].s2g(leader, made, self.dst.at(t))
                leader.commit_group()
                leader.wait_group_read(0)
            cta.sync()

    def function(self, x: Any, y: Any, h: Handles) -> Any:
        """As the recording has it."""
        result = x * h[self.scalar] if self.scalar else _FUNCTIONS[self.name](x, y)
        return result if self.target == self.a.dtype else result.cast(element(self.target))


class Rows:
    """Four rows that are anywhere, to four others (compute capability 10.0)."""

    def __init__(self, d: Draft) -> None:
        self.d, self.dtype = d, d.rng.choice(("i32", "f32", "u16", "u8", "f64"))
        self.n, total = d.pick(16, 32, 64) // DTYPES[self.dtype].nbytes, 4 * d.blocks
        self.src, self.dst = d.twins(total, (self.dtype, (1, self.n), "none"))
        self.picked = [d.rng.randrange(-1, total + 1) for _ in range(4)]
        self.places = d.rng.sample(range(4), 4)
        for b in range(d.blocks):
            for p, row in zip(self.picked, self.places, strict=True):
                d.stores(self.dst, 4 * b + row, lambda p=p: d.loaded(self.src, p))  # type: ignore[misc]  # a default binds p

    def __call__(self, cta: Any, h: Handles) -> None:
        tile = cta.shared(element(self.dtype), (4, self.n), align=A1024)
        full = cta.barrier().init(1)
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile)
            h[self.src.name].gather4(leader, tile, tuple(self.picked), 0, token)
            full.wait(token)
            h[self.dst.name].scatter4(leader, tile, tuple(4 * self.d.block(cta) + r for r in self.places), 0)
            leader.commit_group()
            leader.wait_group(0)
