"""Load and store of overlapping memory in one launch.

A block that loads a neighbour's row may get it before or after the neighbour has stored it.
"""

from __future__ import annotations

import numpy as np

import oxidecopy as ox

RULE = "OX3203"
SIMULATOR = ("OX4118",)


@ox.pipeline(threads=64)
def kernel(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2]) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    y = cta.block_idx.x * 8
    with cta.elect() as leader:
        # broken: src.g2s(leader, tile, (y + 1, 0), full.arrive_expect_tx(leader, tile.nbytes))
        src.g2s(leader, tile, (y, 0), full.arrive_expect_tx(leader, tile.nbytes))
        full.wait_phase(0)
        src.s2g(leader, tile, (y, 0))
        leader.commit_group()
        leader.wait_group(0)


def launch(dev: ox.Device) -> ox.Recipe:
    x = np.arange(32 * 32, dtype=np.float32).reshape(32, 32)
    out = dev.array(x)
    return ox.Recipe(launch=kernel[4].bind(ox.TmaDescriptor.tiled(out, box=(8, 32))), outputs={"out": out}, expected={"out": x})
