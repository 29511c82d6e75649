"""CTA exit with a peer's traffic pending: a copy out of its own shared memory.

The copy still reads the tile of a CTA that is gone.
"""

from __future__ import annotations

import numpy as np

import oxidecopy as ox

RULE = "OX3058"
SIMULATOR = ("OX4119",)


@ox.pipeline(threads=64, cluster=(2, 1))
def kernel(cta: ox.ClusterCta, out: ox.GlobalArray[ox.f32, ox.D2]) -> None:
    mine = cta.shared(ox.f32, (8, 32), align=ox.A128)
    theirs = cta.shared(ox.f32, (8, 32), align=ox.A128)
    full = cta.barrier().init(1)
    cta.cluster_sync()
    cta.iota(mine, axis=1)
    cta.fence_proxy_async()
    cta.sync()
    with cta.elect() as leader:
        full.arrive_expect_tx(leader, theirs.nbytes)
    cta.cluster_sync()
    with cta.elect() as leader:
        ox.bulk_s2s(leader, mine, theirs, full, cta_rank=1 - cta.cta_rank)
    full.wait_phase(0)
    cta.store(out, theirs, (cta.block_idx.x * 8, 0))
    # broken: -
    cta.cluster_sync()


def launch(dev: ox.Device) -> ox.Recipe:
    out = dev.empty((16, 32), ox.f32)
    expected = np.broadcast_to(np.arange(32, dtype=np.float32), (16, 32))
    return ox.Recipe(launch=kernel[2].bind(out), outputs={"out": out}, expected={"out": expected})
