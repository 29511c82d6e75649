"""What a CTA loads of what it stores itself, and the other way round; the simulator sees the first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from oxidecopy.verify import inspect
from tests.engines.sim.harness import Rig
from tests.helpers.programs import BX, Builder, E, add, least, mul


def scene() -> Builder:
    """Two blocks with a filled tile and one to load into, over columns of their own."""
    b = Builder(grid=(2, 1, 1), threads=64)
    b.map("dst", box=(4, 32), dims=(8, 64))
    b.array("arr", shape=(8, 64))
    b.tile(shape=(4, 32))
    b.tile("other", shape=(4, 32))
    b.bar()
    b.init()
    b.fill()
    b.fence()
    b.sync()
    return b


def store(b: Builder, wait: str = "", row: E = 0) -> None:
    b.s2g((row, mul(BX, 32)), name="dst")
    b.commit()
    if wait == "written":
        b.wait_group()
    elif wait == "read":
        b.wait_read()


def load(b: Builder, row: E = 0, *, wait: bool = True) -> int:
    token = b.arm(512)
    b.g2s((row, mul(BX, 32)), name="dst", tile=1)
    if wait:
        b.wait(token)
    return token


def rules(b: Builder) -> set[str]:
    """The verifier's, without warnings of holes; the simulator agrees about loads of what was stored."""
    report = inspect(b.program(), b.launch())
    found = {d.rule for d in (*report.violations, *report.warnings)} - {"OX3106"}
    seen = {d.rule for seed in range(3) for d in Rig(b).explore(seed=seed).findings}
    assert ("OX4118" in seen) <= bool(found)
    assert ("OX3203" in found) <= ("OX4118" in seen)
    return found


@pytest.mark.parametrize(("wait", "found"), [("written", set()), ("read", {"OX3203"}), ("", {"OX3203"})])
def test_one_thread_loads_what_it_stored(wait: str, found: set[str]) -> None:
    b = scene()
    with b.elect():
        store(b, wait)
        load(b)
        b.wait_group()
    assert rules(b) == found


@pytest.mark.parametrize("wait", [True, False])
def test_one_thread_stores_to_what_it_loads(wait: bool) -> None:
    b = scene()
    with b.elect():
        token = load(b, wait=wait)
        store(b, "written")
        if not wait:
            b.wait(token)
    assert rules(b) == (set() if wait else {"OX3206"})


@pytest.mark.parametrize(("step", "found"), [(4, set()), (0, {"OX3203"})])
def test_it_is_the_place_that_counts(step: int, found: set[str]) -> None:
    """Two rows of boxes: the loop loads the one that is not under way, or the same one."""
    b = scene()
    with b.elect():
        store(b, row=0)
        load(b, row=step)
        b.wait_group()
    assert rules(b) == found


@pytest.mark.parametrize("wait", ["written", "read"])
def test_a_loop_comes_back_to_what_it_stored(wait: str) -> None:
    b = scene()
    with b.elect(), b.loop(3) as i:
        b.arm(512)
        b.g2s((0, mul(BX, 32)), name="dst", tile=1)
        b.wait_phase(i)
        store(b, wait)
    with b.elect():
        b.wait_group()
    assert rules(b) == (set() if wait == "written" else {"OX3202", "OX3203"})


def test_a_plain_store_is_not_seen_by_a_copy() -> None:
    """Both in one thread: there is no fence for it."""
    b = scene()
    with b.elect():
        b.store((0, mul(BX, 32)), name="arr")
        load(b)
    launch = replace(b.launch(), same=(("arr", "dst"),))
    assert {d.rule for d in inspect(b.program(), launch).violations} == {"OX3203"}


def test_in_place_by_several_threads_is_accepted_where_the_load_comes_first() -> None:
    b = scene()
    with b.elect(32):
        token = load(b, wait=False)
    b.wait(token)
    b.sync()
    with b.elect():
        store(b, "written")
    assert rules(b) == set()


def test_where_the_store_comes_first_it_is_not_decided() -> None:
    b = scene()
    with b.elect():
        store(b, "written")
    b.sync()
    with b.elect(32):
        load(b)
    assert rules(b) == {"OX3107"}


def test_loads_of_other_rows_by_other_threads() -> None:
    """Not one box each: whether the thread that loads comes later is not looked at."""
    b = scene()
    with b.elect():
        store(b, "written")
    b.sync()
    with b.elect(32):
        load(b, least(add(mul(BX, 4), -2), 0))
    assert rules(b) == {"OX3107"}
