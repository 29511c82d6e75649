"""A wait two phases behind.

The thread may look when the next phase is over, too: the parity then says that nothing is done, and it waits for a phase that may never
come.
"""

from __future__ import annotations

import numpy as np

import oxidecopy as ox

RULE = "OX3014"
SIMULATOR = ("OX4108",)


@ox.pipeline(threads=64)
def kernel(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D2], out: ox.GlobalArray[ox.f32, ox.D2]) -> None:
    full = cta.barrier().init(1)
    tiles = cta.shared(src, stages=2)
    for i in range(2):
        with cta.elect() as leader:
            src.g2s(leader, tiles[i], (i * 8, 0), full.arrive_expect_tx(leader, tiles[i].nbytes))
            full.wait_phase(i)
        with cta.thread(32):
            full.wait_phase(i)
            cta.store(out, tiles[i], (i * 8, 0))
        # broken: -
        cta.sync()


def launch(dev: ox.Device) -> ox.Recipe:
    x = np.arange(16 * 32, dtype=np.float32).reshape(16, 32)
    out = dev.empty(x.shape, ox.f32)
    src = ox.TmaDescriptor.tiled(dev.array(x), box=(8, 32))
    return ox.Recipe(launch=kernel[1].bind(src, out), outputs={"out": out}, expected={"out": x})
