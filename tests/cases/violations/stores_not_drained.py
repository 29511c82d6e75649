"""Undrained stores.

The block may end, and its shared memory go to the next one, before the store has read it.
"""

from __future__ import annotations

import numpy as np

import oxidecopy as ox

RULE = "OX3050"
SIMULATOR = ("OX4112",)


@ox.pipeline(threads=64)
def kernel(cta: ox.Cta, dst: ox.TmaDescriptor[ox.f32, ox.D2]) -> None:
    tile = cta.shared(dst)
    cta.iota(tile, axis=1)
    cta.fence_proxy_async()
    cta.sync()
    with cta.elect() as leader:
        dst.s2g(leader, tile, (0, 0))
        leader.commit_group()
        # broken: -
        leader.wait_group_read(0)


def launch(dev: ox.Device) -> ox.Recipe:
    out = dev.empty((8, 32), ox.f32)
    expected = np.broadcast_to(np.arange(32, dtype=np.float32), (8, 32))
    return ox.Recipe(launch=kernel[1].bind(ox.TmaDescriptor.tiled(out, box=(8, 32))), outputs={"out": out}, expected={"out": expected})
