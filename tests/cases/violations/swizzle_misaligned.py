"""A shared tile at an address that its swizzle does not allow.

The pattern goes by the address: it begins in its middle, and whoever counts rows from the tile's start, as matrix instructions do, reads
others.
"""

from __future__ import annotations

from tests.helpers.programs import Builder, mul

RULE = "OX3061"
SIMULATOR = ("OX4130",)
EARLIER = "OX1010"


def builder() -> Builder:
    b = Builder(grid=(1, 1, 1), threads=32)
    b.map(box=(8, 32), dims=(8, 32), swizzle="128B")
    b.array(shape=(8, 32))
    # broken: b.tile(shape=(8, 32), swizzle="128B", offset=128)
    b.tile(shape=(8, 32), swizzle="128B", offset=1024)
    b.bar()
    b.init()
    with b.loop(1) as i:
        with b.elect():
            b.arm(1024)
            b.g2s((mul(i, 8), 0), stage=i)
        b.wait_phase(i)
        b.store((mul(i, 8), 0), stage=i)
        b.sync()
    return b
