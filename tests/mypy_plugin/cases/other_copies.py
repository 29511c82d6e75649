"""Tokens of copies of every kind: on one side of recorded loops, and lent to whoever waits for their barrier by number."""

from __future__ import annotations

from typing import Literal as L

import oxidecopy as ox

R = ox.ManagedBarrier[ox.Ready, ox.TmaBarrier]
Rows = ox.TmaDescriptor[ox.f32, ox.D2, ox.SwizzleNone, ox.Box2[L[1], L[32]]]
Pixels = ox.Im2colDescriptor[ox.f32, ox.D4, ox.SwizzleNone, ox.Box2[L[64], L[32]]]
Flat = ox.GlobalArray[ox.f32, ox.D1]
Four = ox.SharedArray[ox.f32, ox.Box2[L[4], L[32]], ox.A1024]
Many = ox.SharedArray[ox.f32, ox.Box2[L[64], L[32]], ox.A1024]


def gather_bad(cta: ox.Cta, bar: R, src: Rows, tile: Four) -> None:
    with cta.elect() as leader:
        for _ in cta.range(8):
            token = bar.arrive_expect_tx(leader, tile)
        src.gather4(leader, tile, (0, 0, 0, 0), 0, token)  # E: [oxidecopy-moved]


def gather_each_ok(cta: ox.Cta, bar: R, src: Rows, tile: Four) -> None:
    with cta.elect() as leader:
        for _ in cta.range(8):
            token = bar.arrive_expect_tx(leader, tile)
            src.gather4(leader, tile, (0, 0, 0, 0), 0, token)


def gather_ok(cta: ox.Cta, bar: R, src: Rows, tile: Four) -> None:
    with cta.elect() as leader:
        token = bar.arrive_expect_tx(leader, tile)
        for i in cta.range(8):
            src.gather4(leader, tile, (i, i, i, i), 0, token)


def pixels_bad(cta: ox.Cta, bar: R, src: Pixels, tile: Many) -> None:
    with cta.elect() as leader:
        for _ in cta.range(8):
            token = bar.arrive_expect_tx(leader, tile)
        src.g2s(leader, tile, (0, 0, 0, 0), token, offsets=(0, 0))  # E: [oxidecopy-moved]


def pixels_each_ok(cta: ox.Cta, bar: R, src: Pixels, tile: Many) -> None:
    with cta.elect() as leader:
        for _ in cta.range(8):
            token = bar.arrive_expect_tx(leader, tile)
            src.g2s(leader, tile, (0, 0, 0, 0), token, offsets=(0, 0))


def pixels_ok(cta: ox.Cta, bar: R, src: Pixels, tile: Many) -> None:
    with cta.elect() as leader:
        token = bar.arrive_expect_tx(leader, tile)
        for i in cta.range(8):
            src.g2s(leader, tile, (i, 0, 0, 0), token, offsets=(0, 0))


def pixels_multicast_bad(cta: ox.ClusterCta, bar: R, src: Pixels, tile: Many) -> None:
    with cta.elect() as leader:
        for _ in cta.range(8):
            token = bar.arrive_expect_tx(leader, tile)
        src.g2s_multicast(leader, tile, (0, 0, 0, 0), token, offsets=(0, 0), cta_mask=1)  # E: [oxidecopy-moved]


def pixels_multicast_each_ok(cta: ox.ClusterCta, bar: R, src: Pixels, tile: Many) -> None:
    with cta.elect() as leader:
        for _ in cta.range(8):
            token = bar.arrive_expect_tx(leader, tile)
            src.g2s_multicast(leader, tile, (0, 0, 0, 0), token, offsets=(0, 0), cta_mask=1)


def pixels_multicast_ok(cta: ox.ClusterCta, bar: R, src: Pixels, tile: Many) -> None:
    with cta.elect() as leader:
        token = bar.arrive_expect_tx(leader, tile)
        for i in cta.range(8):
            src.g2s_multicast(leader, tile, (i, 0, 0, 0), token, offsets=(0, 0), cta_mask=1)


def bulk_bad(cta: ox.Cta, bar: R, src: Flat, tile: Many) -> None:
    with cta.elect() as leader:
        for _ in cta.range(8):
            token = bar.arrive_expect_tx(leader, tile)
        ox.bulk_g2s(leader, tile, src, (0,), token)  # E: [oxidecopy-moved]


def bulk_each_ok(cta: ox.Cta, bar: R, src: Flat, tile: Many) -> None:
    with cta.elect() as leader:
        for _ in cta.range(8):
            token = bar.arrive_expect_tx(leader, tile)
            ox.bulk_g2s(leader, tile, src, (0,), token)


def bulk_ok(cta: ox.Cta, bar: R, src: Flat, tile: Many) -> None:
    with cta.elect() as leader:
        token = bar.arrive_expect_tx(leader, tile)
        for i in cta.range(8):
            ox.bulk_g2s(leader, tile, src, (i,), token)


def bulk_multicast_bad(cta: ox.ClusterCta, bar: R, src: Flat, tile: Many) -> None:
    with cta.elect() as leader:
        for _ in cta.range(8):
            token = bar.arrive_expect_tx(leader, tile)
        ox.bulk_g2s_multicast(leader, tile, src, (0,), token, cta_mask=1)  # E: [oxidecopy-moved]


def bulk_multicast_each_ok(cta: ox.ClusterCta, bar: R, src: Flat, tile: Many) -> None:
    with cta.elect() as leader:
        for _ in cta.range(8):
            token = bar.arrive_expect_tx(leader, tile)
            ox.bulk_g2s_multicast(leader, tile, src, (0,), token, cta_mask=1)


def bulk_multicast_ok(cta: ox.ClusterCta, bar: R, src: Flat, tile: Many) -> None:
    with cta.elect() as leader:
        token = bar.arrive_expect_tx(leader, tile)
        for i in cta.range(8):
            ox.bulk_g2s_multicast(leader, tile, src, (i,), token, cta_mask=1)
