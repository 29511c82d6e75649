"""A role that never runs, and nobody waits for it.

The launch ends well, but what the role was to do is not done.
"""

from __future__ import annotations

import numpy as np

import oxidecopy as ox

RULE = "OX3102"
SIMULATOR = ("OX4133",)


@ox.pipeline(threads=64)
def kernel(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], out: ox.GlobalArray[ox.f32, ox.D2], n: ox.Idx) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    with cta.elect() as leader:
        src.g2s(leader, tile, (0, 0), full.arrive_expect_tx(leader, tile.nbytes))
    full.wait_phase(0)
    # broken: with cta.warps(1, 2), cta.when(n > 8):
    with cta.warps(1, 2), cta.when(n > 4):
        cta.store(out, tile, (0, 0))


def launch(dev: ox.Device) -> ox.Recipe:
    x = np.arange(8 * 32, dtype=np.float32).reshape(8, 32)
    out = dev.empty(x.shape, ox.f32)
    src = ox.TmaDescriptor.tiled(dev.array(x), box=(8, 32))
    return ox.Recipe(launch=kernel[1].bind(src, out, 8), outputs={"out": out}, expected={"out": x})
