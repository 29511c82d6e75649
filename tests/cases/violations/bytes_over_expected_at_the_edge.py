"""Bytes over-expected only for edge tiles.

The load is left out for the box that reaches over the edge, but announced: the blocks inside end well, the last one hangs.
"""

from __future__ import annotations

import numpy as np

import oxidecopy as ox

RULE = "OX3020"
SIMULATOR = ("OX4001",)


@ox.pipeline(threads=64)
def kernel(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], out: ox.GlobalArray[ox.f32, ox.D2]) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    x = cta.block_idx.x * 32
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        # broken: with cta.when(x + 32 <= src.shape[1]):
        with cta.when(x < src.shape[1]):
            src.g2s(leader, tile, (0, x), token)
    full.wait(token)
    cta.store(out, tile, (0, x))


def launch(dev: ox.Device) -> ox.Recipe:
    x = np.arange(8 * 100, dtype=np.float32).reshape(8, 100)
    out = dev.empty(x.shape, ox.f32)
    src = ox.TmaDescriptor.tiled(dev.array(x), box=(8, 32))
    return ox.Recipe(launch=kernel[4].bind(src, out), outputs={"out": out}, expected={"out": x})
