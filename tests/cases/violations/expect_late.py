"""An expect_tx that no arrival of its phase has to follow.

The phase may end on the arrival before it: the tile is read before it has landed, and the bytes are announced in the next phase, which
never ends.
"""

from __future__ import annotations

from tests.helpers.programs import Builder

RULE = "OX3022"
SIMULATOR = ("OX4109",)


def builder() -> Builder:
    b = Builder(grid=(1, 1, 1), threads=32)
    b.map(box=(8, 32), dims=(8, 32))
    b.tile(shape=(8, 32))
    b.bar()
    b.array(shape=(8, 32))
    b.init()
    with b.elect(1):
        b.expect(1024)
    # broken: -
    b.sync()
    with b.elect(0):
        b.arrive()
    with b.elect(1):
        b.g2s()
    b.wait_phase(0)
    b.store((0, 0))
    return b
