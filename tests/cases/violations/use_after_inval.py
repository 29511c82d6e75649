"""Use after inval.

The object is gone: the arrival counts in memory that belongs to whatever comes next, and the wait never ends.
"""

from __future__ import annotations

from tests.helpers.programs import Builder

RULE = "OX3002"
SIMULATOR = ("OX4110",)
EARLIER = "OX1003"


def builder() -> Builder:
    b = Builder(grid=(1, 1, 1), threads=32)
    b.bar()
    b.init()
    with b.elect():
        b.wait(b.arrive())
    # broken: b.inval()
    b.sync()
    with b.elect():
        b.wait(b.arrive())
    return b
