"""Scenes of a cluster: one tile for several CTAs, rings that peers release, meetings by remote arrivals."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np

from oxidecopy.fuzz.case import Data, clip
from oxidecopy.fuzz.drafts import Draft, Handles, View


def lands(d: Draft, src: View, dst: View, n: int, parts: int) -> None:
    """Tile i of a cluster, maybe in parts, becomes tile i of each of its blocks."""

    def effect(now: dict[str, Data]) -> None:
        for b, cluster in d.clusters():
            for i in range(n):
                t = (cluster * n + i) * parts
                whole = np.concatenate([d.loaded(src, t + r) for r in range(parts)])
                to, part = clip(now[dst.name], dst.at(b * n + i), whole)
                to[...] = part

    d.foretold(src, dst)
    d.effects.append(effect)


class SharedLoad:
    """One tile for all CTAs of a cluster: multicast by one of them, or in parts by each."""

    def __init__(self, d: Draft) -> None:
        self.d, self.trips = d, d.trips()
        clusters, n = d.blocks // d.size, self.trips.n
        self.parts = d.size if d.chance(0.5) else 1
        dtype, box, swizzle = d.shape()
        if self.parts > 1:  # each part must start at a multiple of 128 bytes
            dtype, box, swizzle = "i32", (d.size * d.pick(4, 8), 8), d.pick("none", "32B")
        piece = (dtype, (box[0] // self.parts, *box[1:]), swizzle)
        self.src = d.source(clusters * n * self.parts, piece)
        self.dst = d.target(d.blocks * n, (dtype, box, swizzle))
        self.issuer = d.rng.randrange(d.size)
        self.mode = d.pick("sync", "remote", "armed") if self.parts == 1 else "sync"
        self.every, self.end = d.chance(0.5), d.chance(0.5)
        lands(d, self.src, self.dst, n, self.parts)

    def __call__(self, cta: Any, h: Handles) -> None:
        d = self.d
        self.tile = cta.shared(h[self.dst.name])
        self.full = cta.barrier().init(1)
        # All consumers of all CTAs release the tile to the issuer.
        self.empty = cta.barrier().init(d.size * (d.threads if self.every else 1))
        cta.cluster_sync()
        cluster = d.cluster_of(cta.block_idx.x, cta.block_idx.y, cta.block_idx.z)
        for i in cta.range(self.trips.of(h)):
            with cta.elect() as leader:
                {"sync": self.load, "remote": self.load, "armed": self.arm_all}[self.mode](cta, h, leader, cluster * self.trips.n + i, i)
            self.full.wait_phase(i)
            cta.store(h[self.dst.plain], self.tile, self.dst.at(d.block(cta) * self.trips.n + i))
            self.release(cta)
        if self.end or self.mode == "remote":
            cta.cluster_sync()

    def arm_all(self, cta: Any, h: Handles, leader: Any, t: Any, _i: Any) -> None:
        """The issuer announces the bytes in every CTA."""
        size = self.d.size
        with cta.when(cta.cta_rank == self.issuer):
            for r in range(size):
                if r != self.issuer:
                    self.full.arrive_expect_tx_remote(leader, self.tile, cta_rank=r)
            token = self.full.arrive_expect_tx(leader, self.tile)
            h[self.src.name].g2s_multicast(leader, self.tile, self.src.at(t), token, cta_mask=(1 << size) - 1)

    def load(self, cta: Any, h: Handles, leader: Any, t: Any, i: Any) -> None:
        size = self.d.size
        if self.mode == "remote":
            with cta.when(cta.cta_rank == self.issuer):
                self.empty.wait_phase(i - 1)
        token = self.full.arrive_expect_tx(leader, self.tile)
        with ExitStack() as stack:
            tile = self.tile
            if self.parts > 1:
                tile, t = self.tile.part(cta.cta_rank, of=size), t * size + cta.cta_rank
            else:
                stack.enter_context(cta.when(cta.cta_rank == self.issuer))
            h[self.src.name].g2s_multicast(leader, tile, self.src.at(t), token, cta_mask=(1 << size) - 1)

    def release(self, cta: Any) -> None:
        if self.mode != "remote":
            cta.cluster_sync()
        elif self.every:
            self.empty.arrive_remote(self.issuer)
        else:
            cta.sync()
            with cta.elect():
                self.empty.arrive_remote(self.issuer)


class ClusterRing:
    """The main loop of a GEMM: rank 0's producer multicasts into a ring of stages, consumers of all CTAs release to it."""

    def __init__(self, d: Draft) -> None:
        self.d, self.trips = d, d.trips()
        n, shape = self.trips.n, d.shape()
        self.src, self.dst = d.source(d.blocks // d.size * n, shape), d.target(d.blocks * n, shape)
        self.stages, self.every = d.rng.randrange(1, 4), d.chance(0.5)
        lands(d, self.src, self.dst, n, 1)

    def __call__(self, cta: Any, h: Handles) -> None:
        d, stages = self.d, self.stages
        tiles = cta.shared(h[self.src.name], stages=stages)
        full = cta.barriers(stages).init(1)
        empty = cta.barriers(stages).init(d.size * (d.threads - 32 if self.every else 1))
        cta.cluster_sync()
        first = d.cluster_of(cta.block_idx.x, cta.block_idx.y, cta.block_idx.z) * self.trips.n
        with cta.warps(0, 1) as group, group.elect() as leader:
            for i in cta.range(self.trips.of(h)):
                s = i % stages
                with cta.when(cta.cta_rank == 0):
                    empty[s].wait_phase(i // stages - 1)
                with cta.when((cta.cta_rank != 0) & (i >= stages)):
                    full[s].wait_phase(i // stages - 1)
                token = full[s].arrive_expect_tx(leader, tiles[s])
                with cta.when(cta.cta_rank == 0):
                    h[self.src.name].g2s_multicast(leader, tiles[s], self.src.at(first + i), token, cta_mask=(1 << d.size) - 1)
        with cta.warps(1, d.warps) as consumers:
            for i in cta.range(self.trips.of(h)):
                full[i % stages].wait_phase(i // stages)
                cta.store(h[self.dst.plain], tiles[i % stages], self.dst.at(d.block(cta) * self.trips.n + i))
                if self.every:
                    empty[i % stages].arrive_remote(0)
                else:
                    consumers.sync()
                    with consumers.elect():
                        empty[i % stages].arrive_remote(0)
        cta.cluster_sync()


class Gate:
    """CTAs of a cluster meet at rank 0 by remote arrivals instead of cluster syncs, and load for themselves in between."""

    def __init__(self, d: Draft) -> None:
        self.d, self.trips = d, d.trips()
        total, shape = d.blocks * self.trips.n, d.shape()
        self.src, self.dst = d.source(total, shape), d.target(total, shape)
        d.moves(self.src, self.dst, iter(range(total)))

    def __call__(self, cta: Any, h: Handles) -> None:
        tile = cta.shared(h[self.src.name])
        full, here, go = cta.barrier().init(1), cta.barrier().init(self.d.size), cta.barrier().init(1)
        cta.cluster_sync()
        for i in cta.range(self.trips.of(h)):
            t = self.d.block(cta) * self.trips.n + i
            with cta.elect() as leader:
                token = full.arrive_expect_tx(leader, tile)
                h[self.src.name].g2s(leader, tile, self.src.at(t), token)
            full.wait(token)
            cta.store(h[self.dst.plain], tile, self.dst.at(t))
            cta.sync()
            with cta.elect():
                here.arrive_remote(0)
                with cta.when(cta.cta_rank == 0):
                    here.wait_phase(i)
                    for r in range(self.d.size):
                        go.arrive_remote(r)
            go.wait_phase(i)
        cta.cluster_sync()
