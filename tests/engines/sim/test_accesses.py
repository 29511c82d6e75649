"""Which accesses count as parts of one cooperative access."""

from __future__ import annotations

import pytest

from tests.engines.sim.harness import check
from tests.helpers.programs import Builder


def test_a_joint_write_is_one_write_whatever_loops_ran_before() -> None:
    """One thread comes from a loop that the others did not run: its counters are no part of the write's instance."""
    b = Builder(grid=(1, 1, 1), threads=64)
    b.tile(shape=(8, 8))
    with b.elect(), b.loop(2):
        b.fence()
    b.fill(tag="fill")
    check(b, set())


@pytest.mark.parametrize("sync", [True, False])
def test_two_turns_of_a_joint_write_are_two_writes(sync: bool) -> None:
    b = Builder(grid=(1, 1, 1), threads=64)
    b.tile(shape=(8, 8))
    with b.elect():
        b.fence()
    with b.loop(2):
        b.fill(tag="fill")
        if sync:
            b.sync()
    check(b, set() if sync else {("OX4101", b.tags["fill"])})
