"""A shared tile at an address that its swizzle does not allow, only from the second stage on.

The first stage is right, so a loop of one iteration is: in the others the pattern begins in its middle.
"""

from __future__ import annotations

from tests.helpers.programs import Builder, mul

RULE = "OX3061"
SIMULATOR = ("OX4130",)


def builder() -> Builder:
    b = Builder(grid=(1, 1, 1), threads=32)
    b.map(box=(8, 32), dims=(24, 32), swizzle="128B")
    b.array(shape=(24, 32))
    # broken: b.tile(shape=(8, 32), swizzle="128B", stages=3, stage_bytes=1024 + 128)
    b.tile(shape=(8, 32), swizzle="128B", stages=3, stage_bytes=2048)
    b.bar()
    b.init()
    with b.loop(3) as i:
        with b.elect():
            b.arm(1024)
            b.g2s((mul(i, 8), 0), stage=i)
        b.wait_phase(i)
        b.store((mul(i, 8), 0), stage=i)
        b.sync()
    return b
