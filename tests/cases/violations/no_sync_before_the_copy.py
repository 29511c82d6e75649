"""Missing sync between the writers and the issuing thread.

The copy may read before the others have written.
"""

from __future__ import annotations

import numpy as np

import oxidecopy as ox

RULE = "OX3045"
SIMULATOR = ("OX4106", "OX4104")


@ox.pipeline(threads=64)
def kernel(cta: ox.Cta, dst: ox.TmaDescriptor[ox.f32, ox.D2]) -> None:
    tile = cta.shared(dst)
    cta.iota(tile, axis=1)
    cta.fence_proxy_async()
    # broken: -
    cta.sync()

    with cta.elect() as leader:
        dst.s2g(leader, tile, (0, 0))
        leader.commit_group()
        leader.wait_group(0)


def launch(dev: ox.Device) -> ox.Recipe:
    out = dev.empty((8, 32), ox.f32)
    expected = np.broadcast_to(np.arange(32, dtype=np.float32), (8, 32))
    return ox.Recipe(launch=kernel[1].bind(ox.TmaDescriptor.tiled(out, box=(8, 32))), outputs={"out": out}, expected={"out": expected})
