"""A peer's barrier is used whose init was not fenced for the cluster.

The cluster sync orders the threads, but the init need not be visible to the copy engine of the other CTA.
"""

from __future__ import annotations

from tests.helpers.programs import RANK, Builder, add, mul

RULE = "OX3006"
SIMULATOR = ("OX4110",)


def builder() -> Builder:
    b = Builder(grid=(2, 1, 1), cluster=(2, 1, 1), threads=32)
    b.bar()
    # broken: b.init(fence=False)
    b.init()
    b.cluster_sync()
    with b.elect():
        b.arrive_remote(add(1, mul(RANK, -1)))
    b.wait_phase(0)
    b.cluster_sync()
    return b
