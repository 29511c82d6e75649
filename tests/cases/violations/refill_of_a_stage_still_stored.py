"""Refill of a stage still being stored: wait_group_read off by one for the number of stages.

With as many stores pending as there are stages, the oldest still reads the tile that is written next: it sends what it finds.
"""

from __future__ import annotations

import numpy as np

import oxidecopy as ox

RULE = "OX3043"
SIMULATOR = ("OX4104",)

STAGES, ROUNDS = 2, 6


@ox.pipeline(threads=64)
def kernel(cta: ox.Cta, dst: ox.TmaDescriptor[ox.f32, ox.D2]) -> None:
    tiles = cta.shared(dst, stages=STAGES)
    for i in range(ROUNDS):
        with cta.elect() as leader:
            # broken: leader.wait_group_read(STAGES)
            leader.wait_group_read(STAGES - 1)
        cta.sync()
        cta.fill(tiles[i % STAGES], float(i))
        cta.fence_proxy_async()
        cta.sync()
        with cta.elect() as leader:
            dst.s2g(leader, tiles[i % STAGES], (i * 8, 0))
            leader.commit_group()
    with cta.elect() as leader:
        leader.wait_group(0)


def launch(dev: ox.Device) -> ox.Recipe:
    out = dev.empty((ROUNDS * 8, 32), ox.f32)
    expected = np.repeat(np.arange(ROUNDS, dtype=np.float32), 8)[:, None].repeat(32, axis=1)
    return ox.Recipe(launch=kernel[1].bind(ox.TmaDescriptor.tiled(out, box=(8, 32))), outputs={"out": out}, expected={"out": expected})
