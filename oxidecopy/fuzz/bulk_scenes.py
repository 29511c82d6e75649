"""Scenes of plain bulk copies: runs between an array and a tile, and between the CTAs of a cluster."""

from __future__ import annotations

from typing import Any

import numpy as np

from oxidecopy.fuzz.case import Data
from oxidecopy.fuzz.drafts import DTYPE_NAMES, INTEGERS, Draft, Handles, element
from oxidecopy.fuzz.scenes import FOLD
from oxidecopy.isa.bulk import REDUCES_IN_GLOBAL, REDUCES_IN_SHARED
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.typed import bulk
from oxidecopy.typed.geometry import A16, A128
from oxidecopy.typed.reduce import ReduceOp


class Runs:
    """Runs of elements from row to row, each through a tile; stored, or reduced into what is there; maybe in two halves."""

    def __init__(self, d: Draft) -> None:
        self.d, self.trips = d, d.trips(6, 0.05)
        self.op = d.pick("", "", "add", "max", "bit_xor", "min", "bit_or")
        legal = [t for t in INTEGERS if self.op in REDUCES_IN_GLOBAL[t]] if self.op else DTYPE_NAMES
        self.dtype = d.rng.choice(legal)
        item = DTYPES[self.dtype].nbytes
        self.run = d.pick(16, 32, 48, 112) // item
        self.skip = d.pick(0, 0, 16 // item)  # elements in front of each run that nothing touches
        rows, width = d.blocks * self.trips.n, self.run + self.skip + d.pick(0, 3)
        self.src, self.dst = (d.array(stem, self.dtype, (max(1, rows), width)) for stem in "pq")
        self.halves = self.run * item >= 32 and self.run * item % 32 == 0 and d.chance(0.4)
        self.ahead, self.wait_read, self.number = d.chance(0.5), d.chance(0.5), d.rng.randrange(d.threads)
        self.hints = [d.hint() for _ in range(3)]
        self.stages = d.rng.randrange(1, 3)
        d.effects.append(self.land)

    def land(self, now: dict[str, Data]) -> None:
        """What numpy makes of it."""
        n = self.d.blocks * self.trips.n
        part = np.s_[:n, self.skip : self.skip + self.run]
        made = now[self.src][part]
        now[self.dst][part] = FOLD[self.op](now[self.dst][part], made) if self.op else made

    def __call__(self, cta: Any, h: Handles) -> None:
        d, stages = self.d, self.stages
        tile = cta.shared(element(self.dtype), (self.run,), align=A128)
        full = cta.barriers(stages).init(1)
        with cta.thread(self.number) as leader:
            for i in cta.range(self.trips.of(h)):
                at = (d.block(cta) * self.trips.n + i, self.skip)
                s = i % stages
                if self.ahead:
                    bulk.bulk_prefetch(leader, h[self.src], at, nbytes=tile.nbytes, **self.hints[0])
                token = full[s].arrive_expect_tx(leader, tile)
                self.load(leader, h, tile, at, token)
                full[s].wait_phase(i // stages)
                self.store(leader, h, tile, at)
            if self.trips.n:
                leader.wait_group(0)

    def load(self, leader: Any, h: Handles, tile: Any, at: tuple[Any, ...], token: Any) -> None:
        if not self.halves:
            bulk.bulk_g2s(leader, tile, h[self.src], at, token, **self.hints[1])
            return
        for part in range(2):
            bulk.bulk_g2s(leader, tile.part(part, of=2), h[self.src], (at[0], at[1] + part * (self.run // 2)), token, **self.hints[1])

    def store(self, leader: Any, h: Handles, tile: Any, at: tuple[Any, ...]) -> None:
        if self.op:
            bulk.bulk_reduce(ReduceOp(self.op), leader, tile, h[self.dst], at, **self.hints[2])
        else:
            bulk.bulk_s2g(leader, tile, h[self.dst], at, **self.hints[2])
        leader.commit_group()
        leader.wait_group_read(0) if self.wait_read else leader.wait_group(0)


class PassedOn:
    """Every CTA of a cluster hands its tile to the next rank, round after round (distributed shared memory)."""

    def __init__(self, d: Draft) -> None:
        self.d = d
        self.dtype = d.rng.choice(DTYPE_NAMES)
        self.run = d.pick(16, 48, 64) // DTYPES[self.dtype].nbytes
        self.rounds, self.shift = d.rng.randrange(1, 4), d.rng.randrange(d.size)
        self.src, self.dst = (d.array(stem, self.dtype, (d.blocks, self.run)) for stem in "pq")
        self.announced = d.chance(0.4)
        d.effects.append(self.land)

    def land(self, now: dict[str, Data]) -> None:
        """Each block gets the row of the block that began `rounds` hops away."""
        blocks = {(cluster, rank): b for b, cluster, rank in self.d.ranks()}
        for b, cluster, rank in self.d.ranks():
            now[self.dst][b] = now[self.src][blocks[cluster, (rank - self.rounds * self.shift) % self.d.size]]

    def __call__(self, cta: Any, h: Handles) -> None:
        d, rounds = self.d, self.rounds
        tiles = [cta.shared(element(self.dtype), (self.run,), align=A16) for _ in range(rounds + 1)]
        full = cta.barriers(rounds + 1).init(1)
        cta.cluster_sync()
        to = (cta.cta_rank + self.shift) % d.size
        with cta.elect() as leader:
            for i, tile in enumerate(tiles):
                if i and self.announced:
                    full[i].wait_phase(0)
                else:
                    token = full[i].arrive_expect_tx(leader, tile)
                    if not i:
                        bulk.bulk_g2s(leader, tile, h[self.src], (d.block(cta), 0), token)
                    full[i].wait(token)
                if i < rounds:
                    if self.announced:
                        full[i + 1].arrive_expect_tx_remote(leader, tile, cta_rank=to)
                    bulk.bulk_s2s(leader, tile, tiles[i + 1], full[i + 1], cta_rank=to)
            bulk.bulk_s2g(leader, tiles[rounds], h[self.dst], (d.block(cta), 0))
            leader.commit_group()
            leader.wait_group(0)
        cta.cluster_sync()


class Gathered:
    """All CTAs of a cluster combine their tiles into that of rank 0, which is told the bytes by the senders."""

    def __init__(self, d: Draft) -> None:
        self.d = d
        self.dtype = d.rng.choice(INTEGERS)
        self.op = d.rng.choice(sorted(REDUCES_IN_SHARED[self.dtype] & FOLD.keys()))
        self.run = d.pick(16, 48) // DTYPES[self.dtype].nbytes
        self.src = d.array("p", self.dtype, (d.blocks, 2 * self.run))
        self.dst = d.array("q", self.dtype, (d.blocks, self.run))
        d.effects.append(self.land)

    def land(self, now: dict[str, Data]) -> None:
        """Rank 0 of each cluster has all of them."""
        zero = {cluster: b for b, cluster, rank in self.d.ranks() if rank == 0}
        src, dst = now[self.src], now[self.dst]
        for b in zero.values():
            dst[b] = src[b, self.run :]
        for b, cluster, _ in self.d.ranks():
            dst[zero[cluster]] = FOLD[self.op](dst[zero[cluster]], src[b, : self.run])

    def __call__(self, cta: Any, h: Handles) -> None:
        d = self.d
        mine, total = (cta.shared(element(self.dtype), (self.run,), align=A16) for _ in range(2))
        full, done = cta.barrier().init(1), cta.barrier().init(d.size)
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, mine, total)
            bulk.bulk_g2s(leader, mine, h[self.src], (d.block(cta), 0), token)
            bulk.bulk_g2s(leader, total, h[self.src], (d.block(cta), self.run), token)
            full.wait(token)
        cta.cluster_sync()
        with cta.elect() as leader:
            done.arrive_expect_tx_remote(leader, mine, cta_rank=0)
            combine: Any = bulk.bulk_reduce_s2s  # its overloads name one element type each
            combine(ReduceOp(self.op), leader, mine, total, done, cta_rank=0)
            with cta.when(cta.cta_rank == 0):
                done.wait_phase(0)
                bulk.bulk_s2g(leader, total, h[self.dst], (d.block(cta), 0))
                leader.commit_group()
                leader.wait_group(0)
        cta.cluster_sync()


class Spread:
    """One rank copies a run into the CTAs of a mask; the others load for themselves."""

    def __init__(self, d: Draft) -> None:
        self.d = d
        self.dtype = d.rng.choice(DTYPE_NAMES)
        self.run = d.pick(16, 80) // DTYPES[self.dtype].nbytes
        self.issuer, self.mask, self.hint = d.rng.randrange(d.size), d.rng.randrange(1, 1 << d.size), d.hint()
        self.src, self.dst = (d.array(stem, self.dtype, (d.blocks, self.run)) for stem in "pq")
        d.effects.append(self.land)

    def land(self, now: dict[str, Data]) -> None:
        """The masked blocks get the issuer's row."""
        first = {cluster: b for b, cluster, rank in self.d.ranks() if rank == self.issuer}
        for b, cluster, rank in self.d.ranks():
            now[self.dst][b] = now[self.src][first[cluster] if self.mask >> rank & 1 else b]

    def __call__(self, cta: Any, h: Handles) -> None:
        d = self.d
        tile = cta.shared(element(self.dtype), (self.run,), align=A16)
        full = cta.barrier().init(1)
        cta.cluster_sync()
        at = (d.block(cta), 0)
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile)
            with cta.when(cta.cta_rank == self.issuer):
                bulk.bulk_g2s_multicast(leader, tile, h[self.src], at, token, cta_mask=self.mask, **self.hint)
            for rank in range(d.size):
                if not self.mask >> rank & 1:
                    with cta.when(cta.cta_rank == rank):
                        bulk.bulk_g2s(leader, tile, h[self.src], at, token, **self.hint)
            full.wait(token)
            bulk.bulk_s2g(leader, tile, h[self.dst], at, **self.hint)
            leader.commit_group()
            leader.wait_group(0)
        cta.cluster_sync()
