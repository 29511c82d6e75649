"""Deadlocks end, and their reports name who waits for what and what is missing."""

from __future__ import annotations

import pytest

from oxidecopy.errors import DeadlockError, Diagnostic, ExecutionError
from tests.engines.sim.harness import Rig
from tests.helpers.programs import RANK, Builder, eq

TILE = 64 * 64 * 4


def stuck(b: Builder, *, hazards: bool = True) -> tuple[Diagnostic, ...]:
    result = Rig(b).explore(hazards=hazards)
    assert result.outcome == "deadlock"
    with pytest.raises(DeadlockError):
        result.check()
    return result.diagnostics


def loading(nbytes: int) -> Builder:
    b = Builder(grid=(1, 1, 1))
    b.map()
    b.tile()
    b.bar("full")
    b.init()
    with b.elect():
        token = b.arm(nbytes, tag="arm")
        b.g2s(tag="load")
    b.wait(token, tag="wait")
    return b


@pytest.mark.parametrize("hazards", [True, False])
def test_too_many_bytes_announced(hazards: bool) -> None:
    b = loading(TILE + 16)
    reports = stuck(b, hazards=hazards)
    assert {d.rule for d in reports} == {"OX4001"}
    assert len(reports) == 2  # thread 0, and the others
    first = reports[0]
    assert first.site is not None
    assert first.site.line == b.tags["wait"]
    assert "thread 0 (elect)" in first.what
    assert "phase 0 of `full`" in first.what
    assert first.got == "16 announced bytes not landed"
    assert b.tags["load"] in [c.site.line for c in first.causes if c.site]


def test_too_few_bytes_announced() -> None:
    b = Builder(grid=(1, 1, 1), threads=1)
    b.bar("full")
    b.init(sync=False, count=2)
    b.complete(48)
    b.arrive()
    b.wait(b.arrive(), tag="wait")
    (report,) = stuck(b)
    assert report.got == "48 bytes landed that were never announced"


def test_missing_arrivals_name_the_line_and_the_threads() -> None:
    b = Builder(grid=(1, 1, 1), threads=64)
    b.bar("ready", stages=2)
    b.init(count=2)
    with b.elect():
        token = b.arrive(i=1, tag="arrive")
    with b.scope((32, 64)):
        b.wait(token, i=1, tag="wait")
    (report,) = stuck(b)
    assert report.got == "1 of 2 arrivals missing"
    assert "`ready[1]`" in report.what
    assert "threads 32-63 (warps)" in report.what
    assert next(c.site.line for c in report.causes if c.site) == b.tags["arrive"]
    assert "thread 0 (elect) ended" in [c.what for c in report.causes]


def test_an_arrive_that_never_runs() -> None:
    b = Builder(grid=(1, 1, 1), threads=1)
    b.bar()
    b.init(sync=False)
    with b.when(eq(0, 1)):
        token = b.arrive(tag="arrive")
    b.wait(token)
    (report,) = stuck(b)
    assert [c.site.line for c in report.causes if c.site] == [b.tags["arrive"]]


def test_a_wait_two_phases_late() -> None:
    b = Builder(grid=(1, 1, 1), threads=1)
    b.bar()
    b.init(sync=False)
    b.arrive()
    b.arrive()
    b.wait_phase(0)
    (report,) = stuck(b)
    assert "it is in phase 2" in report.got
    assert "two phases late" in report.fix


@pytest.mark.parametrize("number", [0, 3])
def test_a_sync_that_not_all_reach(number: int) -> None:
    b = Builder(grid=(1, 1, 1), threads=64)
    with b.scope((0, 32)):
        b.sync(threads=64, number=number, tag="sync")
    (report,) = stuck(b)
    assert report.site is not None
    assert report.site.line == b.tags["sync"]
    assert report.got == "32 of 64 threads are there"
    assert "threads 32-63 ended" in report.causes[0].what


def test_a_cluster_sync_that_a_waiting_cta_does_not_reach() -> None:
    b = Builder(grid=(2, 1, 1), cluster=(2, 1, 1), threads=1)
    b.bar()
    b.init(sync=False)
    with b.when(eq(RANK, 0)):
        b.wait_phase(0, tag="wait")
    b.cluster_sync(tag="sync")
    reports = stuck(b)
    assert {d.site.line for d in reports if d.site} == {b.tags["wait"], b.tags["sync"]}


def test_exited_threads_do_not_hold_up_the_cluster() -> None:
    b = Builder(grid=(2, 1, 1), cluster=(2, 1, 1), threads=2)
    with b.when(eq(RANK, 0)), b.elect():
        b.cluster_sync()
    assert Rig(b).explore().outcome == "ok"


def test_two_roles_that_wait_for_each_other() -> None:
    b = Builder(grid=(1, 1, 1), threads=2)
    b.bar("full")
    b.bar("empty")
    b.init(0)
    b.init(1)
    with b.elect(0):
        b.wait_phase(0, bar=1)
        b.arrive(bar=0)
    with b.elect(1):
        b.wait_phase(0, bar=0)
        b.arrive(bar=1)
    reports = stuck(b)
    assert len(reports) == 2
    assert any("waits here" in c.what for d in reports for c in d.causes)


def test_loops_have_a_bound() -> None:
    b = Builder(grid=(1, 1, 1), threads=1)
    with b.loop(1 << 40, tag="loop"):
        b.sync()
    result = Rig(b).explore(max_steps=100)
    assert result.outcome == "steps"
    assert result.diagnostics[0].rule == "OX4002"
    with pytest.raises(ExecutionError):
        result.check()


def test_a_loop_with_a_step_of_zero_runs_nothing() -> None:
    b = Builder(grid=(1, 1, 1), threads=1)
    with b.loop(4, step=0):
        b.sync()
    assert Rig(b).explore(max_steps=100, hazards=False).outcome == "ok"


def test_a_barrier_that_never_was() -> None:
    b = Builder(grid=(1, 1, 1), threads=1)
    b.bar()
    b.tile(shape=(1,), dtype="u64", offset=0)
    b.fill(0)
    b.wait_phase(0)
    (report,) = stuck(b)
    assert "not a live object" in report.got
