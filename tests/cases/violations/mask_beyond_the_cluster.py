"""A mask bit beyond the cluster.

There is no such CTA: the launch faults, and the context is lost.
"""

from __future__ import annotations

import numpy as np

import oxidecopy as ox

RULE = "OX3083"
SIMULATOR = ("OX4013",)


@ox.pipeline(threads=64, cluster=(2, 1))
def kernel(cta: ox.ClusterCta, src: ox.TmaDescriptor[ox.f32, ox.D2], out: ox.GlobalArray[ox.f32, ox.D2]) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    cta.cluster_sync()
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        with cta.when(cta.cta_rank == 0):
            # broken: src.g2s_multicast(leader, tile, (0, 0), token, cta_mask=0b111 + cta.cta_rank)
            src.g2s_multicast(leader, tile, (0, 0), token, cta_mask=0b11 + cta.cta_rank)
    full.wait_phase(0)
    cta.store(out, tile, (cta.block_idx.x * 8, 0))
    cta.cluster_sync()


def launch(dev: ox.Device) -> ox.Recipe:
    x = np.arange(8 * 32, dtype=np.float32).reshape(8, 32)
    out = dev.empty((16, 32), ox.f32)
    src = ox.TmaDescriptor.tiled(dev.array(x), box=(8, 32))
    return ox.Recipe(launch=kernel[2].bind(src, out), outputs={"out": out}, expected={"out": np.vstack([x, x])})
