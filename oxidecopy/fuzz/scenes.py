"""Scenes of one CTA: usual patterns of copies, each with its freedoms drawn at random. A scene is drawn first, then called to record it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

import numpy as np

from oxidecopy.fuzz.case import Data, clip
from oxidecopy.fuzz.drafts import DTYPE_NAMES, Draft, Handles, send, wait_over
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.elem import FLOATS, INTEGERS
from oxidecopy.typed.reduce import ReduceOp

FOLD: Final = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "bit_and": np.bitwise_and,
    "bit_or": np.bitwise_or,
    "bit_xor": np.bitwise_xor,
}


class Rounds:
    """One barrier, one or two tiles a round, all threads take part."""

    def __init__(self, d: Draft) -> None:
        self.d, self.trips, self.guard = d, d.trips(), d.guard()
        total = d.blocks * self.trips.n
        self.pairs = [(d.source(total, shape), d.target(total, shape)) for shape in [d.shape() for _ in range(d.pick(1, 1, 2))]]
        self.arrival = d.pick("one", "all", "two") if d.threads > 1 else "one"
        self.waits = d.pick("token", "token", "phase", "parity")
        self.use = d.pick("plain", "plain", "bulk", "rewrite")
        self.by_mbarrier, self.split, self.inval, self.by = d.chance(0.3), d.chance(0.2), d.chance(0.3), d.rng.randrange(d.threads)
        self.first, self.step = d.pick((0, 1), (0, 1), (0, 1), (0, -1), (3, 2), (-5, 3))
        self.ahead, self.hints = d.chance(0.2), [(d.hint(), d.hint()) for _ in self.pairs]
        for src, dst in self.pairs:
            if self.use == "rewrite":
                d.fills(dst, self.done(), 3)
            else:
                d.moves(src, dst, self.done())

    def done(self) -> Iterator[int]:
        n = self.trips.n
        return (b * n + i for b in range(self.d.blocks) if self.guard.runs(b) for i in range(n))

    def __call__(self, cta: Any, h: Handles) -> None:
        d = self.d
        tiles = [cta.shared(h[src.name]) for src, _ in self.pairs]
        full = cta.barrier().init_by({"one": 1, "all": d.threads, "two": 2}[self.arrival], self.by)
        done = cta.barrier().init(d.threads) if self.by_mbarrier else None
        with self.guard.around(cta, d.block(cta)):
            for i in self.rounds(cta, h):
                t = d.block(cta) * self.trips.n + i
                token = self.load(cta, h, full, tiles, t)
                if self.waits == "token":
                    full.wait(token)
                else:
                    wait_over(full, i, parity=self.waits == "parity")
                for number, ((_, dst), tile) in enumerate(zip(self.pairs, tiles, strict=True)):
                    self.consume(cta, h, number, tile, dst.at(t))
                if done is not None:
                    done.wait(done.arrive())
                else:
                    cta.sync()
        if self.inval:
            full.inval()

    def rounds(self, cta: Any, h: Handles) -> Iterator[Any]:
        """0, 1, ... as a loop may have it: counting up, down, or in steps."""
        n, first, step = self.trips.of(h), self.first, self.step
        if (first, step) == (0, 1):
            yield from cta.range(n)
        elif step < 0:
            yield from (n - 1 - i for i in cta.range(n - 1, -1, step))
        else:
            yield from ((i - first) // step for i in cta.range(first, n * step + first, step))

    def load(self, cta: Any, h: Handles, full: Any, tiles: list[Any], t: Any) -> Any:
        with cta.elect() as leader:
            if self.ahead:
                for (src, _), (hint, _) in zip(self.pairs, self.hints, strict=True):
                    h[src.name].prefetch(leader, src.at(t), **hint)
            if self.split:
                full.expect_tx(leader, *tiles[1:])
            token = full.arrive_expect_tx(leader, *(tiles[:1] if self.split else tiles))
            for (src, _), tile, (hint, _) in zip(self.pairs, tiles, self.hints, strict=True):
                h[src.name].g2s(leader, tile, src.at(t), token, **hint)
        if self.arrival == "all":
            with cta.threads_except(0):
                full.arrive()
        if self.arrival == "two":
            with cta.thread(self.d.threads - 1):
                full.arrive()
        return token

    def consume(self, cta: Any, h: Handles, number: int, tile: Any, at: tuple[Any, ...]) -> None:
        dst = self.pairs[number][1]
        if self.use == "plain":
            cta.store(h[dst.plain], tile, at)
            return
        if self.use == "rewrite":
            cta.fill(tile, 3)
            cta.fence_proxy_async()
            cta.sync()
        with cta.elect() as leader:
            send(leader, h[dst.name], tile, at, **self.hints[number][1])
            leader.wait_group_read(0)


class Ring:
    """A producer warp and one or two consumer roles, full and empty barriers."""

    def __init__(self, d: Draft) -> None:
        self.d, self.trips, self.guard = d, d.trips(), d.guard()
        n, shape = self.trips.n, d.shape()
        self.src, self.dst = d.source(d.blocks * n, shape), d.target(d.blocks * n, shape)
        self.stages = d.rng.randrange(1, 5)
        groups = d.pick(1, 1, 2) if d.warps >= 3 else 1
        self.roles = list(pairwise([1, *sorted(d.rng.sample(range(2, d.warps), groups - 1)), d.warps]))
        self.use = d.pick("plain", "plain", "bulk", "stage")
        self.everyone = self.use == "plain" and d.chance(0.5)
        self.skip, self.parity, self.full_wait, self.after = d.chance(0.3), d.chance(0.5), d.chance(0.5), d.chance(0.5)
        self.pending = d.rng.randrange(self.stages)
        done = [t for b in range(d.blocks) if self.guard.runs(b) for t in range(b * n, b * n + n)]
        if self.use == "stage":
            d.fills(self.dst, iter(done), 5)
        else:
            d.moves(self.src, self.dst, iter(done))

    def __call__(self, cta: Any, h: Handles) -> None:
        self.tiles = cta.shared(h[self.src.name], stages=self.stages)
        self.staged = cta.shared(h[self.dst.name], stages=len(self.roles))
        sizes = [(hi - lo) * 32 if self.everyone else 1 for lo, hi in self.roles]
        self.full = cta.barriers(self.stages).init(1)
        self.empty = cta.barriers(self.stages).init(sum(sizes))
        first = self.d.block(cta) * self.trips.n
        with self.guard.around(cta, self.d.block(cta)):
            with cta.warps(0, 1) as producers, producers.elect() as leader:
                for i in cta.range(self.trips.of(h)):
                    self.produce(cta, h, leader, i, first + i)
            for number, (lo, hi) in enumerate(self.roles):
                with cta.warps(lo, hi) as group:
                    for i in cta.range(self.trips.of(h)):
                        wait_over(self.full[i % self.stages], i // self.stages, parity=self.parity)
                        {"plain": self.plain, "bulk": self.bulk, "stage": self.stage}[self.use](cta, h, group, number, i, first + i)
                    if self.use != "plain" and self.trips.n:
                        with group.elect() as leader:
                            leader.wait_group(0) if self.full_wait else leader.wait_group_read(0)
        if self.after:
            cta.sync()

    def produce(self, cta: Any, h: Handles, leader: Any, i: Any, t: Any) -> None:
        s = i % self.stages
        if self.skip:
            with cta.when(i >= self.stages):
                wait_over(self.empty[s], i // self.stages - 1, parity=self.parity)
        else:
            self.empty[s].wait_phase(i // self.stages - 1)
        token = self.full[s].arrive_expect_tx(leader, self.tiles[s])
        h[self.src.name].g2s(leader, self.tiles[s], self.src.at(t), token)

    def plain(self, cta: Any, h: Handles, group: Any, _number: int, i: Any, t: Any) -> None:
        cta.store(h[self.dst.plain], self.tiles[i % self.stages], self.dst.at(t))
        if self.everyone:
            self.empty[i % self.stages].arrive()
            return
        group.sync()
        with group.elect():
            self.empty[i % self.stages].arrive()

    def bulk(self, cta: Any, h: Handles, group: Any, _number: int, i: Any, t: Any) -> None:
        """A stage is released `pending` rounds after its store was committed."""
        group.sync()
        with group.elect() as leader:
            send(leader, h[self.dst.name], self.tiles[i % self.stages], self.dst.at(t))
            leader.wait_group_read(self.pending)
            with cta.when(i >= self.pending):
                self.empty[(i - self.pending) % self.stages].arrive()

    def stage(self, cta: Any, h: Handles, group: Any, number: int, i: Any, t: Any) -> None:
        out = self.staged[number]
        with group.elect() as leader, cta.when(i >= 1):
            leader.wait_group_read(0)
        group.sync()
        cta.fill(out, 5)
        cta.fence_proxy_async()
        group.sync()
        with group.elect() as leader:
            send(leader, h[self.dst.name], out, self.dst.at(t))
            self.empty[i % self.stages].arrive()


class Prefetch:
    """The tutorial's loop: all threads compute, one fetches `stages` tiles ahead."""

    def __init__(self, d: Draft) -> None:
        self.d, self.trips = d, d.trips()
        total, shape = d.blocks * self.trips.n, d.shape()
        self.src, self.dst = d.source(total, shape), d.target(total, shape)
        self.stages = d.rng.randrange(1, 5)
        self.bulk, self.parity, self.unrolled, self.two = d.chance(0.5), d.chance(0.5), d.chance(0.5), d.threads > 1 and d.chance(0.2)
        d.moves(self.src, self.dst, iter(range(total)))

    def __call__(self, cta: Any, h: Handles) -> None:
        stages, total = self.stages, self.trips.of(h)
        tiles = cta.shared(h[self.src.name], stages=stages)
        full = cta.barriers(stages).init(2 if self.two else 1)
        first, ahead = self.d.block(cta) * self.trips.n, min(stages, self.trips.n)

        def fetch(leader: Any, i: Any) -> None:
            token = full[i % stages].arrive_expect_tx(leader, tiles[i % stages])
            h[self.src.name].g2s(leader, tiles[i % stages], self.src.at(first + i), token)

        with cta.elect() as leader:
            for s in range(ahead) if self.unrolled else cta.range(ahead):
                fetch(leader, s)
        for i in cta.range(total):
            if self.two:
                with cta.thread(self.d.threads - 1):
                    full[i % stages].arrive()
            wait_over(full[i % stages], i // stages, parity=self.parity)
            self.consume(cta, h, tiles[i % stages], first + i)
            cta.sync()
            with cta.elect() as leader, cta.when(i + stages < total):
                fetch(leader, i + stages)

    def consume(self, cta: Any, h: Handles, tile: Any, t: Any) -> None:
        if not self.bulk:
            cta.store(h[self.dst.plain], tile, self.dst.at(t))
            return
        with cta.elect() as leader:
            send(leader, h[self.dst.name], tile, self.dst.at(t))
            leader.wait_group_read(0)


class Produce:
    """Tiles written by plain stores, then stored or reduced in bulk, several groups in flight."""

    def __init__(self, d: Draft) -> None:
        self.d, self.trips = d, d.trips()
        shape, n = d.shape(), self.trips.n
        legal = [] if DTYPES[shape[0]].is_float else sorted(DTYPES[shape[0]].reduce & FOLD.keys())
        self.op = d.rng.choice(legal) if legal and d.chance(0.6) else ""
        self.common = bool(self.op) and d.chance(0.5)  # all blocks reduce into the same tiles
        self.dst = d.target(n if self.common else d.blocks * n, shape)
        self.stages = d.rng.randrange(1, 5)
        self.who = d.pick("all", "all", "one", "roles") if d.threads >= 64 else d.pick("all", "one")
        self.number, self.late = d.rng.randrange(1, 9), d.chance(0.4)
        self.axis = d.rng.randrange(len(shape[1])) if d.chance(0.4) else None
        for b in range(d.blocks):
            for i in range(n):
                d.effects.append(lambda now, t=i if self.common else b * n + i: self.land(now, t))  # type: ignore[misc]  # binds t

    def land(self, now: dict[str, Data], t: int) -> None:
        data, box = now[self.dst.name], self.dst.box
        tile: Data = np.full(box, self.number, data.dtype)
        if self.axis is not None:
            along = np.arange(box[self.axis], dtype=np.int64).astype(data.dtype)
            tile = np.broadcast_to(along.reshape([-1 if i == self.axis else 1 for i in range(len(box))]), box)
        to, part = clip(data, self.dst.at(t), tile)
        to[...] = FOLD[self.op](to, part) if self.op else part

    def __call__(self, cta: Any, h: Handles) -> None:
        self.tiles = cta.shared(h[self.dst.name], stages=self.stages)
        {"all": self.all_threads, "one": self.one_thread, "roles": self.two_roles}[self.who](cta, h)

    def write(self, cta: Any, i: Any) -> None:
        if self.axis is not None:
            cta.iota(self.tiles[i % self.stages], self.axis)
        else:
            cta.fill(self.tiles[i % self.stages], self.number)
        cta.fence_proxy_async()

    def send(self, cta: Any, h: Handles, leader: Any, i: Any) -> None:
        desc, at = h[self.dst.name], self.dst.at(i if self.common else self.d.block(cta) * self.trips.n + i)
        if self.op:
            desc.reduce(ReduceOp(self.op), leader, self.tiles[i % self.stages], at)
        else:
            desc.s2g(leader, self.tiles[i % self.stages], at)
        leader.commit_group()

    def one_thread(self, cta: Any, h: Handles) -> None:
        with cta.thread(self.d.threads - 1) as leader:
            for i in cta.range(self.trips.of(h)):
                with cta.when(i >= self.stages):
                    leader.wait_group_read(self.stages - 1)
                self.write(cta, i)
                self.send(cta, h, leader, i)
            if self.trips.n:
                leader.wait_group(0)

    def all_threads(self, cta: Any, h: Handles) -> None:
        for i in cta.range(self.trips.of(h)):
            if not self.late:
                with cta.elect() as leader, cta.when(i >= self.stages):
                    leader.wait_group_read(self.stages - 1)
                cta.sync()
            self.write(cta, i)
            cta.sync()
            with cta.elect() as leader:
                self.send(cta, h, leader, i)
                if self.late:
                    leader.wait_group_read(self.stages - 1)
            if self.late:
                cta.sync()
        if self.trips.n:
            with cta.elect() as leader:
                leader.wait_group_read(0)

    def two_roles(self, cta: Any, h: Handles) -> None:
        ready = cta.barriers(self.stages).init(self.d.threads - 32)
        free = cta.barriers(self.stages).init(1)
        with cta.warps(1, self.d.warps):
            for i in cta.range(self.trips.of(h)):
                free[i % self.stages].wait_phase(i // self.stages - 1)
                self.write(cta, i)
                ready[i % self.stages].arrive()
        with cta.warps(0, 1) as group, group.elect() as leader:
            for i in cta.range(self.trips.of(h)):
                ready[i % self.stages].wait_phase(i // self.stages)
                self.send(cta, h, leader, i)
                leader.wait_group_read(0)
                free[i % self.stages].arrive()


class Handoff:
    """One group writes a tile, another one reads it; mbarriers in both directions, no copy at all. Then maybe a barrier loses members."""

    def __init__(self, d: Draft) -> None:
        self.d, self.trips = d, d.trips()
        total = d.blocks * self.trips.n
        self.dst = d.target(total, d.shape())
        self.edge, self.stages = d.rng.randrange(1, d.warps), d.rng.randrange(1, 4)
        self.dropping, self.number = d.chance(0.3), d.rng.randrange(1, 9)
        d.fills(self.dst, iter(range(total)), self.number)

    def __call__(self, cta: Any, h: Handles) -> None:
        stages = self.stages
        tiles = cta.shared(h[self.dst.name], stages=stages)
        ready = cta.barriers(stages).init(self.edge * 32)
        free = cta.barriers(stages).init(self.d.threads - self.edge * 32)
        with cta.warps(0, self.edge):
            for i in cta.range(self.trips.of(h)):
                free[i % stages].wait_phase(i // stages - 1)
                cta.fill(tiles[i % stages], self.number)
                ready[i % stages].arrive()
        with cta.warps(self.edge, self.d.warps):
            for i in cta.range(self.trips.of(h)):
                ready[i % stages].wait_phase(i // stages)
                cta.store(h[self.dst.plain], tiles[i % stages], self.dst.at(self.d.block(cta) * self.trips.n + i))
                free[i % stages].arrive()
        if self.dropping:
            self.drop(cta)

    def drop(self, cta: Any) -> None:
        gate = cta.barrier().init(self.d.threads)
        with cta.threads_except(0):
            gate.arrive_drop()
        with cta.thread(0):
            first = gate.arrive()
        gate.wait(first)
        cta.sync()
        with cta.thread(0):
            second = gate.arrive()
        gate.wait(second)


class Nested:
    """Two loops, phases counted over both; a test that gates an early look; software complete_tx."""

    def __init__(self, d: Draft) -> None:
        self.d, self.outer, self.inner = d, d.rng.randrange(4), d.rng.randrange(4)
        total, shape = d.blocks * self.outer * self.inner, d.shape()
        self.src, self.dst = d.source(total, shape), d.target(total, shape)
        self.peek, self.software = d.pick("", "token", "parity"), d.chance(0.4)
        d.moves(self.src, self.dst, iter(range(total)))

    def __call__(self, cta: Any, h: Handles) -> None:
        tile = cta.shared(h[self.src.name])
        full, extra = cta.barrier().init(1), cta.barrier().init(1)
        for o in cta.range(self.outer):
            for j in cta.range(self.inner):
                k = o * self.inner + j
                t = self.d.block(cta) * (self.outer * self.inner) + k
                with cta.elect() as leader:
                    token = full.arrive_expect_tx(leader, tile)
                    h[self.src.name].g2s(leader, tile, self.src.at(t), token)
                if self.peek:
                    over = full.test_wait(token) if self.peek == "token" else full.try_wait_parity(k % 2)
                    with cta.when(over):
                        cta.store(h[self.dst.plain], tile, self.dst.at(t))
                full.wait_phase(k)
                cta.store(h[self.dst.plain], tile, self.dst.at(t))
                if self.software:
                    with cta.elect() as leader:
                        extra.arrive_expect_tx(leader, 64)
                        extra.complete_tx(leader, 64)
                    extra.wait_phase(k)
                cta.sync()


class InPlace:
    """Tiles are loaded from where they are stored to afterwards, maybe several times over, maybe with twice their values."""

    def __init__(self, d: Draft) -> None:
        self.d, self.trips, self.passes = d, d.trips(5, 0.05), d.pick(1, 1, 2, 3)
        self.twice, self.parity = d.chance(0.5), d.chance(0.3)
        self.view = d.target(d.blocks * self.trips.n, d.shape(tuple(sorted(FLOATS | INTEGERS)) if self.twice else DTYPE_NAMES))
        d.effects.append(self.land)

    def land(self, now: dict[str, Data]) -> None:
        """Each tile as far as it is inside, once for every pass."""
        for _ in range(self.passes if self.twice else 0):
            for t in range(self.d.blocks * self.trips.n):
                to, _ = clip(now[self.view.name], self.view.at(t), np.zeros(self.view.box, now[self.view.name].dtype))
                to[...] = np.add(to, to)

    def __call__(self, cta: Any, h: Handles) -> None:
        n, desc = self.trips.of(h), h[self.view.name]
        tile, full = cta.shared(desc), cta.barrier().init(1)
        for number in range(self.passes):
            for i in cta.range(n):
                at = self.view.at(self.d.block(cta) * self.trips.n + i)
                with cta.elect() as leader:
                    token = full.arrive_expect_tx(leader, tile)
                    desc.g2s(leader, tile, at, token)
                wait_over(full, n * number + i, parity=self.parity)
                if self.twice:
                    cta.map(lambda v: v + v, tile, out=tile)
                    cta.fence_proxy_async()
                    cta.sync()
                with cta.elect() as leader:
                    send(leader, desc, tile, at)
                    leader.wait_group(0)
                cta.sync()
