"""Bytes over-expected.

The phase is owed bytes that nobody sends: it never ends, and all who wait for it hang.
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
    with cta.elect() as leader:
        # broken: token = full.arrive_expect_tx(leader, 2 * tile.nbytes)
        token = full.arrive_expect_tx(leader, tile.nbytes)
        src.g2s(leader, tile, (0, 0), token)
    full.wait(token)
    cta.store(out, tile, (0, 0))


def launch(dev: ox.Device) -> ox.Recipe:
    x = np.arange(8 * 32, dtype=np.float32).reshape(8, 32)
    out = dev.empty(x.shape, ox.f32)
    src = ox.TmaDescriptor.tiled(dev.array(x), box=(8, 32))
    return ox.Recipe(launch=kernel[1].bind(src, out), outputs={"out": out}, expected={"out": x})
