"""An inner coordinate off the 16-byte rule.

The hardware faults, inside and outside of the tensor.
"""

from __future__ import annotations

import numpy as np

import oxidecopy as ox

RULE = "OX3080"
SIMULATOR = ("OX4011",)


@ox.pipeline(threads=64)
def kernel(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], out: ox.GlobalArray[ox.f32, ox.D2]) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    # broken: x = cta.block_idx.x * 31
    x = cta.block_idx.x * 32
    with cta.elect() as leader:
        src.g2s(leader, tile, (0, x), full.arrive_expect_tx(leader, tile.nbytes))
    full.wait_phase(0)
    cta.store(out, tile, (0, x))


def launch(dev: ox.Device) -> ox.Recipe:
    x = np.arange(8 * 64, dtype=np.float32).reshape(8, 64)
    out = dev.empty(x.shape, ox.f32)
    src = ox.TmaDescriptor.tiled(dev.array(x), box=(8, 32))
    return ox.Recipe(launch=kernel[2].bind(src, out), outputs={"out": out}, expected={"out": x})
