"""Expect without arrive, in a loop of one iteration.

The bytes come and go, but the phase still waits for its arrival: all who wait for it hang.
"""

from __future__ import annotations

from tests.helpers.programs import Builder, mul

RULE = "OX3012"
SIMULATOR = ("OX4001",)
EARLIER = "OX1005"


def builder() -> Builder:
    b = Builder(grid=(1, 1, 1), threads=32)
    b.map(box=(8, 32), dims=(8, 32))
    b.tile(shape=(8, 32))
    b.bar()
    b.array(shape=(8, 32))
    b.init()
    with b.loop(b.index("n", 1)) as i:
        with b.elect():
            # broken: b.expect(1024)
            b.arm(1024)
            b.g2s((mul(i, 8), 0))
        b.wait_phase(i)
        b.store((mul(i, 8), 0))
        b.sync()
    return b
