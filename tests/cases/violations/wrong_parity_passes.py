"""A wait on the wrong parity from a fresh barrier: the consumer's.

The wait passes at once, and the tile is read before its load has landed.
"""

from __future__ import annotations

import numpy as np

import oxidecopy as ox

RULE = "OX3040"
SIMULATOR = ("OX4102", "OX4107", "OX4108")


@ox.pipeline(threads=64)
def kernel(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], out: ox.GlobalArray[ox.f32, ox.D2], n: ox.Idx) -> None:
    full, empty = cta.barrier().init(1), cta.barrier().init(1)
    tile = cta.shared(src)
    with cta.thread(0) as leader:
        for i in cta.range(n):
            empty.wait_parity((i + 1) % 2)
            src.g2s(leader, tile, (i * 8, 0), full.arrive_expect_tx(leader, tile.nbytes))
    with cta.thread(32):
        for i in cta.range(n):
            # broken: full.wait_parity((i + 1) % 2)
            full.wait_parity(i % 2)
            cta.store(out, tile, (i * 8, 0))
            empty.arrive()


def launch(dev: ox.Device) -> ox.Recipe:
    x = np.arange(64 * 32, dtype=np.float32).reshape(64, 32)
    out = dev.empty(x.shape, ox.f32)
    src = ox.TmaDescriptor.tiled(dev.array(x), box=(8, 32))
    return ox.Recipe(launch=kernel[1].bind(src, out, 8), outputs={"out": out}, expected={"out": x})
