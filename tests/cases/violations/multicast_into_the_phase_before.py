"""A peer's multicast bytes land in the receiver's previous phase: an empty barrier that counts its own consumers alone.

Rank 0 refills a stage when its own consumer has read it, whatever rank 1 has read. The bytes reach rank 1 before it has announced them,
or while the tile is still being read.
"""

from __future__ import annotations

import numpy as np

import oxidecopy as ox

RULE = "OX3042"
SIMULATOR = ("OX4103",)

STAGES = 2


@ox.pipeline(threads=64, cluster=(2, 1))
def kernel(cta: ox.ClusterCta, src: ox.TmaDescriptor[ox.f32, ox.D2], out: ox.GlobalArray[ox.f32, ox.D2], n: ox.Idx) -> None:
    full = cta.barriers(STAGES).init(1)
    # broken: readers = (0,)
    readers = (0, 1)  # the ranks whose consumer says so to rank 0
    empty = cta.barriers(STAGES).init(len(readers))
    tiles = cta.shared(src, stages=STAGES)
    cta.cluster_sync()
    with cta.thread(0) as leader:
        for i in cta.range(n):
            stage = i % STAGES
            full[stage].wait_phase(i // STAGES - 1)
            token = full[stage].arrive_expect_tx(leader, tiles[stage].nbytes)
            with cta.when(cta.cta_rank == 0):
                empty[stage].wait_phase(i // STAGES - 1)
                src.g2s_multicast(leader, tiles[stage], (i * 8, 0), token, cta_mask=0b11)
    with cta.thread(32):
        for i in cta.range(n):
            stage = i % STAGES
            full[stage].wait_phase(i // STAGES)
            cta.store(out, tiles[stage], (i * 8, cta.block_idx.x * 32))
            for rank in readers:
                with cta.when(cta.cta_rank == rank):
                    empty[stage].arrive_remote(0)
    cta.cluster_sync()


def launch(dev: ox.Device) -> ox.Recipe:
    x = np.arange(64 * 32, dtype=np.float32).reshape(64, 32)
    out = dev.empty((64, 64), ox.f32)
    src = ox.TmaDescriptor.tiled(dev.array(x), box=(8, 32))
    return ox.Recipe(launch=kernel[2].bind(src, out, 8), outputs={"out": out}, expected={"out": np.hstack([x, x])})
