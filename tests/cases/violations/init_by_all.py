"""Double init: every thread initialises.

A slow thread's init wipes out what was counted since a fast one's.
"""

from __future__ import annotations

from oxidecopy.isa import ops
from oxidecopy.isa.expr import Const
from tests.helpers.programs import Builder

RULE = "OX3003"
SIMULATOR = ("OX4110",)


def builder() -> Builder:
    b = Builder(grid=(1, 1, 1), threads=32)
    b.bar()
    # broken: with b.scope((0, 32)):
    with b.elect():
        b.op(ops.MbarrierInit(bar=ops.BarrierRef(0, Const(0)), count=1))
    b.sync()
    with b.elect():
        b.wait(b.arrive())
    return b
