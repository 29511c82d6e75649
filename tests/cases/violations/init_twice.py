"""Double init: a second one while the barrier is live.

The barrier starts again: the arrival that was there is forgotten, and those who wait for its phase wait for ever.
"""

from __future__ import annotations

from tests.helpers.programs import Builder

RULE = "OX3003"
SIMULATOR = ("OX4110",)
EARLIER = "OX1003"


def builder() -> Builder:
    b = Builder(grid=(1, 1, 1), threads=32)
    b.bar()
    b.init(count=2)
    with b.elect():
        first = b.arrive()
    # broken: b.init(count=2)
    b.sync()
    with b.elect(1):
        b.arrive()
    with b.elect():
        b.wait(first)
    return b
