"""Which parameters a program writes to; every op with a map or an array is known to read or to write."""

from __future__ import annotations

import oxidecopy as ox
from oxidecopy.isa import ops
from oxidecopy.program.destinations import READS, REDUCES, STORES, destinations

D = ox.TmaDescriptor[ox.f32, ox.D2]


def test_every_op_that_touches_global_memory_is_named() -> None:
    touching = {op for op in ops.OPS if any(kind in (ops.MAP, ops.ARRAY, ops.ARRAYS) for _, kind in ops.operands(op))}
    assert touching == {*STORES, *REDUCES, *READS}
    assert len(touching) == len(STORES) + len(REDUCES) + len(READS)


@ox.pipeline(threads=32)
def mixed(cta: ox.Cta, src: D, dst: D, total: D, out: ox.GlobalArray[ox.f32, ox.D2]) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile)
        src.g2s(leader, tile, (0, 0), token)
    full.wait(token)
    with cta.elect() as leader:
        dst.s2g(leader, tile, (0, 0))
        total.reduce(ox.reduce.add, leader, tile, (0, 0))
        leader.commit_group()
        leader.wait_group(0)
    cta.store(out, tile, (0, 0))
    full.inval()


def test_of_a_program() -> None:
    dev = ox.Device.open("sim")
    arrays = [dev.zeros((16, 16), ox.f32) for _ in range(4)]
    a, b, c = (ox.TmaDescriptor.tiled(a, box=(16, 16)) for a in arrays[:3])
    found = destinations(mixed[1].bind(a, b, c, arrays[3]).program)
    assert {name: list(how) for name, how in found.items()} == {"dst": ["store"], "total": ["reduce"], "out": ["store"]}
    site = found["dst"]["store"]
    assert site is not None
    assert site.file == __file__
