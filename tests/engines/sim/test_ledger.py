"""Stores that meet in global memory, as the simulator sees them; each with its twin."""

from __future__ import annotations

import pytest

from oxidecopy.engines.sim import explore
from tests.engines.sim.harness import Rig
from tests.helpers.programs import BX, RANK, Builder, E, add, mul

MEET, LOADED = "OX4117", "OX4118"


def findings(b: Builder, seeds: int = 3) -> set[str]:
    return {d.rule for seed in range(seeds) for d in explore(b.program(), Rig(b).bindings(), seed=seed).findings}


def storing(grid: int = 1, cluster: int = 1) -> Builder:
    b = Builder(grid=(grid, 1, 1), cluster=(cluster, 1, 1), threads=64)
    b.map("dst", box=(4, 32), dims=(16, 32))
    b.tile(shape=(4, 32))
    b.fill()
    b.fence()
    b.sync()
    return b


def put(b: Builder, row: E = 0, thread: int = 0) -> None:
    with b.elect(thread):
        b.s2g((row, 0), name="dst")
        b.commit()


def drain(b: Builder, thread: int = 0) -> None:
    with b.elect(thread):
        b.wait_group()


@pytest.mark.parametrize("broken", [True, False])
def test_blocks(broken: bool) -> None:
    b = storing(grid=2)
    put(b, mul(BX, 0 if broken else 4))
    drain(b)
    assert findings(b) == ({MEET} if broken else set())


@pytest.mark.parametrize("broken", [True, False])
def test_one_thread(broken: bool) -> None:
    b = storing()
    put(b)
    with b.elect():
        b.wait_read() if broken else b.wait_group()
    put(b)
    drain(b)
    assert findings(b) == ({MEET} if broken else set())


@pytest.mark.parametrize("broken", [True, False])
def test_two_threads(broken: bool) -> None:
    """The other thread must know that the first store is written."""
    b = storing()
    put(b)
    drain(b)
    if not broken:
        b.sync()
    put(b, thread=32)
    drain(b, 32)
    assert findings(b) == ({MEET} if broken else set())


@pytest.mark.parametrize("broken", [True, False])
def test_ctas_of_a_cluster(broken: bool) -> None:
    b = storing(grid=2, cluster=2)
    put(b, mul(RANK, 0 if broken else 4))
    drain(b)
    b.cluster_sync()
    assert findings(b) == ({MEET} if broken else set())


@pytest.mark.parametrize("second", ["max", "add"])
def test_reductions_of_one_operation_may_meet(second: str) -> None:
    b = Builder(grid=(2, 1, 1), threads=64)
    b.map("dst", box=(4, 32), dims=(16, 32), dtype="i32")
    b.tile(shape=(4, 32), dtype="i32")
    b.fill()
    b.fence()
    b.sync()
    with b.elect():
        b.reduce("add", (0, 0), name="dst")
        b.commit()
        b.reduce(second, (0, 0), name="dst")
        b.commit()
        b.wait_group()
    assert findings(b) == (set() if second == "add" else {MEET})


@pytest.mark.parametrize("shift", [3, 4])
def test_plain_stores(shift: int) -> None:
    b = Builder(grid=(2, 1, 1), threads=64)
    b.array(shape=(16, 32), dtype="u8")
    b.tile(shape=(4, 32), dtype="u8")
    b.fill()
    b.sync()
    b.store((mul(BX, shift), 0))
    assert findings(b) == ({MEET} if shift == 3 else set())


@pytest.mark.parametrize("broken", [True, False])
def test_a_block_loads_what_another_one_stores(broken: bool) -> None:
    """Whichever block comes first here."""
    b = Builder(grid=(2, 1, 1), threads=64)
    b.map("buf", box=(4, 32), dims=(16, 32))
    b.tile(shape=(4, 32))
    b.bar()
    b.init()
    with b.elect():
        token = b.arm(4 * 32 * 4)
        b.g2s((0 if broken else mul(BX, 4), 0), name="buf")
        b.wait(token)
        b.s2g((mul(BX, 4), 0), name="buf")
        b.commit()
        b.wait_group()
    assert findings(b) == ({LOADED} if broken else set())


@pytest.mark.parametrize("broken", [True, False])
def test_a_cta_loads_what_another_one_of_its_cluster_has_stored(broken: bool) -> None:
    """One round each, with a sync of the cluster between them; without `wait_group` it orders nothing."""
    b = Builder(grid=(2, 1, 1), cluster=(2, 1, 1), threads=64)
    b.map("buf", box=(4, 32), dims=(16, 32))
    b.tile(shape=(4, 32))
    b.tile(shape=(4, 32), name="loaded")
    b.bar()
    b.init()
    b.fill()
    b.fence()
    b.sync()
    with b.elect():
        b.s2g((mul(RANK, 4), 0), name="buf")
        b.commit()
        b.wait_read() if broken else b.wait_group()
    b.cluster_sync()
    with b.elect():
        token = b.arm(4 * 32 * 4)
        b.g2s((add(4, mul(RANK, -4)), 0), name="buf", tile=1)
        b.wait(token)
        b.wait_group()
    b.cluster_sync()
    assert findings(b) == ({LOADED} if broken else set())
