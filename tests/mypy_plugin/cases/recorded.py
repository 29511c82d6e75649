"""Recorded loops: tokens and owned handles stay on one side of them, and in one iteration."""

from __future__ import annotations

import oxidecopy as ox

R = ox.ManagedBarrier[ox.Ready, ox.TmaBarrier]
Src = ox.TmaDescriptor[ox.f32, ox.D2]


def make(cta: ox.Cta) -> R:
    return cta.barrier().init(1)


def same_iteration_ok(cta: ox.Cta) -> None:
    r = make(cta)
    for _ in cta.range(8):
        tok = r.arrive()
        r.wait(tok)


def into_bad(cta: ox.Cta) -> None:
    r = make(cta)
    tok = r.arrive()
    for _ in cta.range(8):
        r.wait(tok)  # E: [oxidecopy-moved]


def carried_round_bad(cta: ox.Cta) -> None:
    r = make(cta)
    prev = None
    for _ in cta.range(8):
        if prev is not None:
            r.wait(prev)  # E: [oxidecopy-moved]
        prev = r.arrive()


def carried_round_ok(cta: ox.Cta) -> None:
    r = make(cta)
    prev = None
    for _ in cta.range(8):
        if prev is not None:
            r.wait(prev)


def out_bad(cta: ox.Cta) -> None:
    r = make(cta)
    tok = r.arrive()
    for _ in cta.range(8):
        tok = r.arrive()
    r.wait(tok)  # E: [oxidecopy-moved]


def unrolled_ok(cta: ox.Cta) -> None:
    r = make(cta)
    for _ in cta.range(8):
        toks = [r.arrive() for _ in range(4)]
        for tok in toks:
            r.wait(tok)


def lent_bad(cta: ox.Cta) -> None:
    r = make(cta)
    tok = r.arrive()
    for _ in cta.range(8):
        r.try_wait(tok)  # E: [oxidecopy-moved]


def lent_ok(cta: ox.Cta) -> None:
    r = make(cta)
    for _ in cta.range(8):
        tok = r.arrive()
        r.try_wait(tok)


def lent_test_bad(cta: ox.Cta) -> None:
    r = make(cta)
    tok = r.arrive()
    for _ in cta.range(8):
        r.test_wait(tok)  # E: [oxidecopy-moved]


def lent_test_ok(cta: ox.Cta) -> None:
    r = make(cta)
    for _ in cta.range(8):
        tok = r.arrive()
        r.test_wait(tok)


def load_ok(cta: ox.Cta, src: Src) -> None:
    r = make(cta)
    tile = cta.shared(src)
    for i in cta.range(8):
        with cta.elect() as leader:
            tok = r.arrive_expect_tx(leader, tile)
            src.g2s(leader, tile, (i, 0), tok)
        r.wait(tok)


def load_bad(cta: ox.Cta, src: Src) -> None:
    r = make(cta)
    tile = cta.shared(src)
    with cta.elect() as leader:
        for _ in cta.range(8):
            tok = r.arrive_expect_tx(leader, tile)
        src.g2s(leader, tile, (0, 0), tok)  # E: [oxidecopy-moved]
        r.wait(tok)  # E: [oxidecopy-moved]


def load_each_ok(cta: ox.Cta, src: Src) -> None:
    r = make(cta)
    tile = cta.shared(src)
    with cta.elect() as leader:
        for _ in cta.range(8):
            tok = r.arrive_expect_tx(leader, tile)
            src.g2s(leader, tile, (0, 0), tok)
            r.wait(tok)


def load_inner_ok(cta: ox.Cta, src: Src) -> None:
    r = make(cta)
    tile = cta.shared(src)
    with cta.elect() as leader:
        tok = r.arrive_expect_tx(leader, 8 * tile.nbytes)
        for i in cta.range(8):
            src.g2s(leader, tile, (i, 0), tok)
    r.wait(tok)


def load_mended_ok(cta: ox.Cta, src: Src) -> None:
    r = make(cta)
    tile = cta.shared(src)
    with cta.elect() as leader:
        tok = r.arrive_expect_tx(leader, tile)
        for i in range(1):
            src.g2s(leader, tile, (i, 0), tok)
    r.wait(tok)


def multicast_bad(cta: ox.ClusterCta, src: Src) -> None:
    r = make(cta)
    tile = cta.shared(src)
    with cta.elect() as leader:
        for _ in cta.range(8):
            tok = r.arrive_expect_tx(leader, tile)
        src.g2s_multicast(leader, tile, (0, 0), tok, cta_mask=1)  # E: [oxidecopy-moved]
        r.wait(tok)  # E: [oxidecopy-moved]


def multicast_each_ok(cta: ox.ClusterCta, src: Src) -> None:
    r = make(cta)
    tile = cta.shared(src)
    with cta.elect() as leader:
        for _ in cta.range(8):
            tok = r.arrive_expect_tx(leader, tile)
            src.g2s_multicast(leader, tile, (0, 0), tok, cta_mask=1)
            r.wait(tok)


def multicast_ok(cta: ox.ClusterCta, src: Src) -> None:
    r = make(cta)
    tile = cta.shared(src)
    with cta.elect() as leader:
        tok = r.arrive_expect_tx(leader, tile)
        for i in range(1):
            src.g2s_multicast(leader, tile, (i, 0), tok, cta_mask=1)
    r.wait(tok)


def handle_bad(cta: ox.Cta) -> None:
    r = make(cta)
    for _ in cta.range(8):
        r.inval()  # E: [oxidecopy-moved]


def tiles_bad(cta: ox.Cta, src: Src) -> None:
    r = make(cta)
    tok = r.arrive()
    for _ in cta.tiles(src):
        r.try_wait(tok)  # E: [oxidecopy-moved]


def tiles_ok(cta: ox.Cta, src: Src) -> None:
    r = make(cta)
    for _ in cta.tiles(src):
        tok = r.arrive()
        r.try_wait(tok)


def tiles_of_an_order_ok(cta: ox.Cta, src: Src) -> None:
    r = make(cta)
    tok = r.arrive()
    for _ in cta.tiles(src, order=ox.order.once):
        r.wait(tok)
        tok = r.arrive()
    r.wait(tok)


def stages_bad(cta: ox.Cta, src: Src) -> None:
    ring = cta.ring(stages=2, tiles=(src,))
    work = cta.schedule(src)
    r = make(cta)
    tok = r.arrive()
    with cta.consumers() as group:
        for _ in ring.stages(group, work):
            r.try_wait(tok)  # E: [oxidecopy-moved]


def stages_ok(cta: ox.Cta, src: Src) -> None:
    ring = cta.ring(stages=2, tiles=(src,))
    work = cta.schedule(src)
    r = make(cta)
    with cta.consumers() as group:
        for _ in ring.stages(group, work):
            tok = r.arrive()
            r.try_wait(tok)


def generator_bad(cta: ox.Cta) -> None:
    r = make(cta)
    (tok,) = (r.arrive() for _ in cta.range(8))
    r.wait(tok)  # E: [oxidecopy-moved]


def generator_ok(cta: ox.Cta) -> None:
    r = make(cta)
    (tok,) = (r.arrive() for _ in range(1))
    r.wait(tok)
