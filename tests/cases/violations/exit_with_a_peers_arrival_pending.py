"""CTA exit with a peer's traffic pending: an arrival.

The arrival goes to the memory of a CTA that is gone, or of the next one.
"""

from __future__ import annotations

import numpy as np

import oxidecopy as ox

RULE = "OX3052"
SIMULATOR = ("OX4116",)


@ox.pipeline(threads=64, cluster=(2, 1))
def kernel(cta: ox.ClusterCta, out: ox.GlobalArray[ox.f32, ox.D2]) -> None:
    bar = cta.barrier().init(1)
    tile = cta.shared(ox.f32, (8, 32), align=ox.A128)

    cta.cluster_sync()
    cta.iota(tile, axis=1)
    cta.sync()
    cta.store(out, tile, (cta.block_idx.x * 8, 0))
    with cta.elect():
        bar.arrive_remote(1 - cta.cta_rank)
    # broken: -
    cta.cluster_sync()


def launch(dev: ox.Device) -> ox.Recipe:
    out = dev.empty((16, 32), ox.f32)
    expected = np.broadcast_to(np.arange(32, dtype=np.float32), (16, 32))
    return ox.Recipe(launch=kernel[2].bind(out), outputs={"out": out}, expected={"out": expected})
