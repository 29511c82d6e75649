"""Bytes under-expected only for edge tiles.

A load reports its whole box, also where it reaches over the edge: announced by what lies inside, the phase of the last block ends early or
never.
"""

from __future__ import annotations

import numpy as np

import oxidecopy as ox

RULE = "OX3021"
SIMULATOR = ("OX4001",)


@ox.pipeline(threads=64)
def kernel(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], out: ox.GlobalArray[ox.f32, ox.D2]) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    x = cta.block_idx.x * 32
    inside = x + 32 <= src.shape[1]
    with cta.elect() as leader:
        with cta.when(inside):
            src.g2s(leader, tile, (0, x), full.arrive_expect_tx(leader, tile.nbytes))
        with cta.when(~inside):
            # broken: src.g2s(leader, tile, (0, x), full.arrive_expect_tx(leader, 8 * 4 * 4))
            src.g2s(leader, tile, (0, x), full.arrive_expect_tx(leader, tile.nbytes))
    full.wait_phase(0)
    cta.store(out, tile, (0, x))


def launch(dev: ox.Device) -> ox.Recipe:
    x = np.arange(8 * 100, dtype=np.float32).reshape(8, 100)
    out = dev.empty(x.shape, ox.f32)
    src = ox.TmaDescriptor.tiled(dev.array(x), box=(8, 32))
    return ox.Recipe(launch=kernel[4].bind(src, out), outputs={"out": out}, expected={"out": x})
