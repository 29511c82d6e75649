"""A state that is put back is whole: what a class of the simulator gains, the snapshot must know."""

from __future__ import annotations

import inspect
import re

import pytest

from oxidecopy.engines.sim import snapshot
from oxidecopy.engines.sim.accesses import Access
from oxidecopy.engines.sim.agents import Agent, Cta, ThreadBarrier
from oxidecopy.engines.sim.clocks import AgentClock, BarrierClock
from oxidecopy.engines.sim.flight import Group, Load, Store
from oxidecopy.engines.sim.mbarrier import Mbarrier
from oxidecopy.fuzz.campaign import program
from oxidecopy.fuzz.judge import judge

# What never changes while a launch runs.
FIXED = {"Agent": {"code", "cta", "threads"}, "BarrierClock": {"counter"}, "Load": {"kinds"}, "Store": {"kinds"}}
SOURCE = inspect.getsource(snapshot)


@pytest.mark.parametrize("cls", [Access, Agent, AgentClock, BarrierClock, Cta, Group, Load, Mbarrier, Store, ThreadBarrier])
def test_each_attribute_is_kept_or_never_changes(cls: type) -> None:
    unknown = {name for name in cls.__slots__ if not re.search(rf"\.{name}\b", SOURCE)}  # type: ignore[attr-defined]
    assert unknown <= FIXED.get(cls.__name__, set())


@pytest.mark.parametrize("seed", [1_000_608, 1_003_328])
def test_an_announcement_beside_the_arrivals_is_put_back(seed: int) -> None:
    """The thread that says expect_tx arrives after it: right in every order, also in those that are tried after others."""
    verdict = judge(program(seed, 0), exhaustive=True)
    assert (verdict.accepted, verdict.problem) == (True, "")
