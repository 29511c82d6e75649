"""Leaders, groups, slots and tiles end with their block; stages that a loop walks over end with their iteration."""

from __future__ import annotations

import oxidecopy as ox

Src = ox.TmaDescriptor[ox.f32, ox.D2]


def leader_ok(cta: ox.Cta) -> None:
    with cta.elect() as leader:
        leader.commit_group()
        leader.wait_group(0)


def leader_bad(cta: ox.Cta) -> None:
    with cta.elect() as leader:
        leader.commit_group()
    leader.wait_group(0)  # E: [oxidecopy-scope]


def leader_maybe_bad(cta: ox.Cta, c: bool) -> None:
    with cta.elect() as outer:
        leader = outer
        if c:
            with cta.elect() as inner:
                leader = inner
        leader.commit_group()  # E: [oxidecopy-scope]


def leader_maybe_ok(cta: ox.Cta, c: bool) -> None:
    with cta.elect() as outer:
        leader = outer
        leader.commit_group()
        if c:
            with cta.elect() as inner:
                leader = inner


def group_ok(cta: ox.Cta) -> None:
    with cta.warps(0, 2) as group:
        group.sync()


def group_bad(cta: ox.Cta) -> None:
    with cta.warps(0, 2) as group:
        pass
    group.sync()  # E: [oxidecopy-scope]


def tile_ok(cta: ox.Cta, src: Src, out: ox.GlobalArray[ox.f32, ox.D2]) -> None:
    ring = cta.ring(stages=2, tiles=(src,))
    with cta.consumers() as group:
        for at in cta.tiles(src):
            with ring.consume(group) as (tile,):
                cta.store(out, tile, at)


def tile_bad(cta: ox.Cta, src: Src, out: ox.GlobalArray[ox.f32, ox.D2]) -> None:
    ring = cta.ring(stages=2, tiles=(src,))
    with cta.consumers() as group:
        for at in cta.tiles(src):
            with ring.consume(group) as (tile,):
                pass
            cta.store(out, tile, at)  # E: [oxidecopy-scope]


def slot_bad(cta: ox.Cta, src: Src) -> None:
    ring = cta.ring(stages=2, tiles=(src,))
    with cta.producer() as leader:
        for at in cta.tiles(src):
            with ring.produce(leader) as slots:
                pass
            slots[0].load(src, at)  # E: [oxidecopy-scope]


def slot_ok(cta: ox.Cta, src: Src) -> None:
    ring = cta.ring(stages=2, tiles=(src,))
    with cta.producer() as leader:
        for at in cta.tiles(src):
            with ring.produce(leader) as slots:
                pass
                slots[0].load(src, at)


def put_bad(cta: ox.Cta, dst: Src) -> None:
    outs = cta.store_ring(dst, stages=2)
    with cta.warps(0, 4) as group:
        for at in cta.tiles(dst):
            with outs.put(group, at) as tile:
                cta.iota(tile, axis=0)
            cta.iota(tile, axis=1)  # E: [oxidecopy-scope]


def put_ok(cta: ox.Cta, dst: Src) -> None:
    outs = cta.store_ring(dst, stages=2)
    with cta.warps(0, 4) as group:
        for at in cta.tiles(dst):
            with outs.put(group, at) as tile:
                cta.iota(tile, axis=0)
                cta.iota(tile, axis=1)


def stages_ok(cta: ox.Cta, src: Src, out: ox.GlobalArray[ox.f32, ox.D2]) -> None:
    ring = cta.ring(stages=2, tiles=(src,))
    work = cta.schedule(src)
    with cta.consumers() as group:
        for stage in ring.stages(group, work):
            cta.store(out, stage.tiles[0], stage.at)


def stages_bad(cta: ox.Cta, src: Src, out: ox.GlobalArray[ox.f32, ox.D2]) -> None:
    ring = cta.ring(stages=2, tiles=(src,))
    work = cta.schedule(src)
    with cta.consumers() as group:
        for stage in ring.stages(group, work):
            pass
        cta.store(out, stage.tiles[0], stage.at)  # E: [oxidecopy-scope]


Op = ox.TmaDescriptor[ox.bf16, ox.D2, ox.Swizzle128B]


def products_ok(cta: ox.Cta, a: Op, b: Op, c: Op) -> None:
    ring, outs = cta.ring(stages=4, tiles=(a, b)), cta.store_ring(c, stages=2)
    with cta.producer() as leader:
        for row, column in cta.tiles(c):
            with ring.produce(leader) as (left, right):
                left.load(a, (row, 0))
                right.load(b, (column, 0))
    for me in range(2):
        with cta.consumers(me) as group:
            for at in cta.tiles(c):
                group.contract(ring, outs, at, steps=1, part=(me, 2))


def products_behind_ok(cta: ox.Cta, a: Op, b: Op, c: Op) -> None:
    ring, outs = cta.ring(stages=4, tiles=(a, b)), cta.store_ring(c, stages=2)
    with cta.consumers() as group:
        group.sync()
        for at in cta.tiles(c):
            group.contract(ring, outs, at, steps=1)


def products_behind_bad(cta: ox.Cta, a: Op, b: Op, c: Op) -> None:
    ring, outs = cta.ring(stages=4, tiles=(a, b)), cta.store_ring(c, stages=2)
    with cta.consumers() as group:
        group.sync()
    for at in cta.tiles(c):
        group.contract(ring, outs, at, steps=1)  # E: [oxidecopy-scope]
