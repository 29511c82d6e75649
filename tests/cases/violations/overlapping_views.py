"""Load and store of overlapping memory in one launch: through two views.

The same element has other coordinates in the two: what is loaded may be old or new.
"""

from __future__ import annotations

import numpy as np

import oxidecopy as ox

RULE = "OX3204"
SIMULATOR = ("OX4118",)


@ox.pipeline(threads=64)
def kernel(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], out: ox.GlobalArray[ox.f32, ox.D2]) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    y = cta.block_idx.x * 8
    with cta.elect() as leader:
        src.g2s(leader, tile, (y, 0), full.arrive_expect_tx(leader, tile.nbytes))
    full.wait_phase(0)
    cta.store(out, tile, (y, 0))


def launch(dev: ox.Device) -> ox.Recipe:
    x = np.arange(40 * 32, dtype=np.float32).reshape(40, 32)
    a, b = dev.array(x), dev.array(x)
    # broken: out = a[8:]
    out = b[8:]
    src = ox.TmaDescriptor.tiled(a[:32], box=(8, 32))
    return ox.Recipe(launch=kernel[4].bind(src, out), outputs={"out": out}, expected={"out": x[:32]})
