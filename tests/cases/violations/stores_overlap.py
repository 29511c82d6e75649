"""Stores of two CTAs overlap.

Blocks run in any order: which of the two values stays is left to chance.
"""

from __future__ import annotations

import numpy as np

import oxidecopy as ox

RULE = "OX3201"
SIMULATOR = ("OX4117",)


@ox.pipeline(threads=64)
def kernel(cta: ox.Cta, dst: ox.TmaDescriptor[ox.f32, ox.D2]) -> None:
    tile = cta.shared(dst)
    cta.iota(tile, axis=1)
    cta.fence_proxy_async()
    cta.sync()
    with cta.elect() as leader:
        # broken: dst.s2g(leader, tile, (cta.block_idx.x * 4, 0))
        dst.s2g(leader, tile, (cta.block_idx.x * 8, 0))
        leader.commit_group()
        leader.wait_group(0)


def launch(dev: ox.Device) -> ox.Recipe:
    out = dev.empty((32, 32), ox.f32)
    expected = np.broadcast_to(np.arange(32, dtype=np.float32), (32, 32))
    return ox.Recipe(launch=kernel[4].bind(ox.TmaDescriptor.tiled(out, box=(8, 32))), outputs={"out": out}, expected={"out": expected})
