"""A file of pipelines of a given length, for measuring what type checking costs: plain code, free of errors under mypy's strict settings.

Every block of it has what pipelines have: a class that owns barriers, helpers that borrow and take, loops, branches, tiles and copies.
"""

from __future__ import annotations

from typing import Final

_HEAD: Final = '''\
"""Generated: pipelines of the kinds that users write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import oxidecopy as ox

EDIT: Final = 0
Source = ox.TmaDescriptor[ox.f32, ox.D2, ox.Swizzle128B, ox.Box2[Literal[64], Literal[32]]]
Tile = ox.SharedArray[ox.f32, ox.Box2[Literal[64], Literal[32]], ox.A1024]
Ready = ox.ManagedBarrier[ox.Ready, ox.TmaBarrier]
Array = ox.GlobalArray[ox.f32, ox.D2]
'''

_BLOCK: Final = '''

@dataclass
class Stage{n}:
    """Two barriers and a tile."""

    full: Ready
    done: Ready
    tile: Tile

    def load(self, leader: ox.Leader, src: Source, row: ox.Idx, col: ox.Idx) -> ox.TxToken[ox.TmaBarrier]:
        token = self.full.arrive_expect_tx(leader, self.tile.nbytes)
        src.g2s(leader, self.tile, (row, col), token)
        return token

    def close(self: ox.Owned[Stage{n}]) -> None:
        self.full.inval()
        self.done.inval()


def stage_{n}(cta: ox.Cta, src: Source) -> Stage{n}:
    return Stage{n}(full=cta.barrier().init(1), done=cta.barrier().init(cta.threads), tile=cta.shared(src))


@ox.pipeline(threads=128)
def walk_{n}(cta: ox.Cta, src: Source, out: Array, n: ox.Idx) -> None:
    tiles, row = cta.shared(src, stages=4), cta.block_idx.x * 64
    full = cta.barriers(4).init(1)
    for fetch in cta.range(ox.minimum(n, 4)):
        with cta.elect() as leader:
            first = full[fetch].arrive_expect_tx(leader, tiles[fetch].nbytes)
            src.g2s(leader, tiles[fetch], (row, fetch * 32), first)
    for compute in cta.range(n):
        at = compute % 4
        full[at].wait_phase(compute // 4)
        cta.store(out, tiles[at], (row, compute * 32))
        cta.sync()
        with cta.elect() as leader, cta.when(compute + 4 < n):
            token = full[at].arrive_expect_tx(leader, tiles[at].nbytes)
            src.g2s(leader, tiles[at], (row, (compute + 4) * 32), token)
    full.inval()


@ox.pipeline(threads=64)
def twice_{n}(cta: ox.Cta, src: Source, out: Array, wide: bool) -> None:
    stages = [stage_{n}(cta, src) for _ in range(2)]
    single = cta.barrier().init(1)
    scratch = cta.shared(ox.f32, (64, 32), align=ox.A1024)
    for i, stage in enumerate(stages):
        if wide and i:
            cta.fill(scratch, {n}.5)
            cta.store(out, scratch, (cta.block_idx.x * 64, i * 32))
        else:
            with cta.elect() as leader:
                token = single.arrive_expect_tx(leader, 64 * 32 * 4)
                src.g2s(leader, stage.tile, (cta.block_idx.x * 64, i * 32), token)
            single.wait(token)
            cta.store(out, stage.tile, (cta.block_idx.x * 64, i * 32))
        cta.sync()
    single.inval()
    for stage in stages:
        stage.close()
'''


def text(lines: int) -> str:
    """At least this many lines; the constant `EDIT` is there to be changed."""
    blocks: list[str] = []
    length = _HEAD.count("\n")
    while length < lines:
        blocks.append(_BLOCK.replace("{n}", str(len(blocks))))
        length += blocks[-1].count("\n")
    return _HEAD + "".join(blocks)
