"""Not every element of an output is covered.

What no store reaches keeps what it held before, which in new memory is anything.
"""

from __future__ import annotations

import numpy as np

import oxidecopy as ox

RULE = "OX3106"
SIMULATOR = ("OX4132",)


@ox.pipeline(threads=64)
def kernel(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], out: ox.GlobalArray[ox.f32, ox.D2], n: ox.Idx) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    # broken: for i in cta.range(n - 1):
    for i in cta.range(n):
        with cta.elect() as leader:
            src.g2s(leader, tile, (i * 8, 0), full.arrive_expect_tx(leader, tile.nbytes))
        full.wait_phase(i)
        cta.store(out, tile, (i * 8, 0))
        cta.sync()


def launch(dev: ox.Device) -> ox.Recipe:
    x = np.arange(64 * 32, dtype=np.float32).reshape(64, 32)
    out = dev.empty(x.shape, ox.f32)
    src = ox.TmaDescriptor.tiled(dev.array(x), box=(8, 32))
    return ox.Recipe(launch=kernel[1].bind(src, out, 8), outputs={"out": out}, expected={"out": x})
