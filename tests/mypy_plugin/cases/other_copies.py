"""Copies beside plain tiles: a token is lent to them as to `g2s`, inside and outside of recorded loops."""

from __future__ import annotations

from typing import Literal

import oxidecopy as ox

R = ox.ManagedBarrier[ox.Ready, ox.TmaBarrier]
Rows = ox.TmaDescriptor[ox.f32, ox.D2, ox.SwizzleNone, ox.Box2[Literal[1], Literal[32]]]
Four = ox.SharedArray[ox.f32, ox.Box2[Literal[4], Literal[32]], ox.A1024]
Conv = ox.Im2colDescriptor[ox.f16, ox.D4, ox.Swizzle128B, ox.Box2[Literal[32], Literal[64]]]
Pixels = ox.SharedArray[ox.f16, ox.Box2[Literal[32], Literal[64]], ox.A1024]
Array = ox.GlobalArray[ox.f32, ox.D2]


def make(cta: ox.Cta) -> R:
    return cta.barrier().init(1)


# ---- rows by index
def gather_bad(cta: ox.Cta, src: Rows, tile: Four) -> None:
    r = make(cta)
    with cta.elect() as leader:
        tok = r.arrive_expect_tx(leader, tile)
        for i in cta.range(8):
            src.gather4(leader, tile, (0, 1, 2, i), 0, tok)  # E: [oxidecopy-moved]
    r.wait(tok)


def gather_ok(cta: ox.Cta, src: Rows, tile: Four, r: R) -> None:
    with cta.elect() as leader:
        tok = r.arrive_expect_tx(leader, tile)
        src.gather4(leader, tile, (0, 1, 2, 3), 0, tok)  # whoever lent the barrier may wait by number


# ---- pixels
def pixels_bad(cta: ox.Cta, src: Conv, tile: Pixels) -> None:
    r = make(cta)
    with cta.elect() as leader:
        tok = r.arrive_expect_tx(leader, tile)
        for i in cta.range(8):
            src.g2s(leader, tile, (i, 0, 0, 0), tok, offsets=(0, 0))  # E: [oxidecopy-moved]
    r.wait(tok)


def pixels_ok(cta: ox.Cta, src: Conv, tile: Pixels, r: R) -> None:
    with cta.elect() as leader:
        tok = r.arrive_expect_tx(leader, tile)
        src.g2s(leader, tile, (0, 0, 0, 0), tok, offsets=(0, 0))


def pixels_to_many_bad(cta: ox.ClusterCta, src: Conv, tile: Pixels) -> None:
    r = make(cta)
    with cta.elect() as leader:
        tok = r.arrive_expect_tx(leader, tile)
        for i in cta.range(8):
            src.g2s_multicast(leader, tile, (i, 0, 0, 0), tok, offsets=(0, 0), cta_mask=1)  # E: [oxidecopy-moved]
    r.wait(tok)


def pixels_to_many_ok(cta: ox.ClusterCta, src: Conv, tile: Pixels, r: R) -> None:
    with cta.elect() as leader:
        tok = r.arrive_expect_tx(leader, tile)
        src.g2s_multicast(leader, tile, (0, 0, 0, 0), tok, offsets=(0, 0), cta_mask=3)


# ---- bytes in a row
def bulk_bad(cta: ox.Cta, src: Array, tile: Four) -> None:
    r = make(cta)
    with cta.elect() as leader:
        tok = r.arrive_expect_tx(leader, tile)
        for i in cta.range(8):
            ox.bulk_g2s(leader, tile, src, (i, 0), tok)  # E: [oxidecopy-moved]
    r.wait(tok)


def bulk_ok(cta: ox.Cta, src: Array, tile: Four, r: R) -> None:
    with cta.elect() as leader:
        tok = r.arrive_expect_tx(leader, tile)
        ox.bulk_g2s(leader, tile, src, (0, 0), tok)


def bulk_to_many_bad(cta: ox.ClusterCta, src: Array, tile: Four) -> None:
    r = make(cta)
    with cta.elect() as leader:
        tok = r.arrive_expect_tx(leader, tile)
        for i in cta.range(8):
            ox.bulk_g2s_multicast(leader, tile, src, (i, 0), tok, cta_mask=1)  # E: [oxidecopy-moved]
    r.wait(tok)


def bulk_to_many_ok(cta: ox.ClusterCta, src: Array, tile: Four, r: R) -> None:
    with cta.elect() as leader:
        tok = r.arrive_expect_tx(leader, tile)
        ox.bulk_g2s_multicast(leader, tile, src, (0, 0), tok, cta_mask=3)
