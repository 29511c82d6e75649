"""Where the time goes, in words: the same program under costs that make one thing after the other its limit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from oxidecopy.engines.sim.costs import Costs
from oxidecopy.trace.follow import shown
from oxidecopy.trace.stalls import Stall, Summary
from tests.helpers.timelines import computation, followed, two_loads


def said(costs: Costs, stages: int = 2, rows: int = 64) -> Summary:
    return shown(followed(computation(stages, rows=rows), costs=costs)).summary


def of(summary: Summary, role: str, what: str) -> Stall:
    [found] = [s for s in summary.stalls if s.role == role and s.what == what]
    return found


def test_latency_with_too_few_stages_asks_for_more() -> None:
    found = said(Costs(load=5000))
    stall = of(found, "consumers", "ring0_full[*]")
    assert stall.share > 0.8
    assert "add stages" in stall.advice
    assert str(stall).startswith(f"consumers waited {stall.share:.0%} of the time for ring0_full[*]: later loads could not begin")
    assert of(said(Costs(load=5000), 8), "consumers", "ring0_full[*]").share < stall.share, "and more do help"


def test_memory_that_is_busy_all_the_time_is_the_limit() -> None:
    found = said(Costs(sm=2), 4)
    stall = of(found, "consumers", "its stores to be read")
    assert found.moving > 0.95
    assert found.rate == pytest.approx(2, rel=0.1)
    assert "memory sets the pace" in stall.why
    assert "fewer bytes" in stall.advice
    assert not any("add stages" in s.advice for s in found.stalls)


def test_threads_that_compute_all_the_time_are_the_limit() -> None:
    found = said(Costs(lanes=2), 4)
    assert found.computing > 0.9
    assert "the computing threads are busy" in of(found, "producer", "ring0_empty[*]").advice
    assert not any(s.what == "ring0_full[*]" for s in found.stalls)


def test_staging_tiles_that_are_read_late() -> None:
    found = said(Costs(store_read=4000), 8)
    assert "add stages to what is stored from" in of(found, "consumers", "its stores to be read").advice


def test_a_wait_for_somebody_who_waits_is_put_down_to_what_he_waits_for() -> None:
    """All consumers but the elected one wait at a sync while that one waits for its stores: no work is shared unevenly."""
    found = said(Costs(store_read=4000), 8)
    assert of(found, "consumers", "its stores to be read").share > 0.5
    assert sum(s.share for s in found.stalls if "syncs" in s.what) < 0.1


def test_loads_of_one_thread_that_waits_for_them_itself_are_latency() -> None:
    made = shown(followed(two_loads()))
    stall = of(made.summary, "elected thread", "full0")
    assert "it is latency" in stall.why
    assert "more of them in flight" in stall.advice


def test_loads_that_are_issued_late() -> None:
    """Nothing is in flight while others wait: the one who loads does something else."""
    run = followed(two_loads(), costs=Costs(op=5000, load=10))
    assert any("issued late" in s.why for s in shown(run).summary.stalls)


def test_little_waiting_is_not_worth_a_word() -> None:
    quick = replace(said(Costs()), stalls=())
    assert quick.lines[1:] == ["no role waited more than 5% of the time"]


def test_an_empty_run_has_no_stalls() -> None:
    run = replace(followed(two_loads()), stamps=(), flights=())
    assert shown(run).summary.stalls == ()
