"""Use before init.

The memory holds no mbarrier yet: an arrival faults, or counts in whatever the block before left there.
"""

from __future__ import annotations

from tests.helpers.programs import Builder

RULE = "OX3001"
SIMULATOR = ("OX4110", "OX4013")
EARLIER = "OX1001"


def builder() -> Builder:
    b = Builder(grid=(1, 1, 1), threads=32)
    b.bar()
    # broken: b.sync()
    b.init()
    with b.elect():
        b.wait(b.arrive())
    return b
