"""All schedules: the reduction loses no ending and no finding, and a search that gives up says so."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from oxidecopy.engines.sim import Schedules, explore_all, explore_seeds
from tests.engines.sim.harness import Rig
from tests.engines.sim.test_against_verifier import everyone, staged_stores
from tests.engines.sim.test_clocks import loading
from tests.engines.sim.test_lowering import ring
from tests.engines.sim.test_schedule import racy_load, racy_store
from tests.helpers.every_order import TooManyOrders, ending, every_order, named
from tests.helpers.programs import RANK, Builder, eq
from tests.helpers.small_programs import small_program

TILE = 64 * 64 * 4


def small(seed: int, steps: int) -> Rig:
    rig = Rig(small_program(seed, steps))
    rig.put("src", np.arange(32, dtype=np.float32).reshape(4, 8))
    return rig


def look(rig: Rig, *, reduce: bool = True, states: int = 20_000) -> Schedules:
    return explore_all(rig.builder.program(), rig.bindings(), states=states, seconds=60, max_steps=1000, reduce=reduce)


def seen(found: Schedules) -> tuple[set[tuple[object, ...]], set[tuple[object, ...]]]:
    return {ending(e.result, e.contents) for e in found.endings}, set(map(named, found.findings))


# ---- nothing is lost
@pytest.mark.parametrize("seed", [0, 15, 25, 52, 56, 69, 74, 84, 181, 194, 196, 204, 209, 252, 258])
def test_brute_force_finds_the_same(seed: int) -> None:
    """Each order is run from the start, without any state compared.

    The search is between two ways to do that: loads that land whole, and loads that land 16 bytes at a time. Portions show in what races
    leave in memory; of everything else the search finds what the smallest ones do.
    """
    rig = small(seed, 3)
    program, bindings = rig.builder.program(), rig.bindings()
    memory = next(iter(rig.buffers.values())).memory
    endings, findings = seen(look(rig))
    whole = every_order(program, bindings, memory, 100, granules=False)
    assert whole.endings <= endings
    assert whole.findings <= findings
    try:
        granules = every_order(program, bindings, memory, 100, granules=True)
    except TooManyOrders:
        return
    assert endings <= granules.endings
    assert {e[:3] for e in endings} == {e[:3] for e in granules.endings}
    assert findings == granules.findings


def test_the_reduction_loses_nothing() -> None:
    """Larger programs, against the search that tries every step in every state."""
    saved = 0
    for seed in (10, 29, 51, 76, 111):
        rig = small(seed, 9)
        found, whole = look(rig), look(rig, reduce=False, states=1_000)
        if not whole.complete:
            continue
        assert seen(found) == seen(whole), seed
        saved += whole.moves - found.moves
    assert saved > 100


def meeting(number: int) -> Builder:
    """A sync that the same threads do not always come to: who comes first may matter."""
    b = Builder(grid=(1, 1, 1), threads=3)
    b.bar()
    b.init()
    with b.elect(0):
        b.sync(threads=2, number=number)
    with b.elect(1):
        b.sync(threads=2, number=number)
        b.wait_phase(0)
    with b.elect(2):
        b.arrive()
        b.sync(threads=2, number=number)
    return b


@pytest.mark.parametrize("make", [racy_load, racy_store, lambda: meeting(1)], ids=["load", "store", "sync"])
def test_races_and_meetings(make: Callable[[], Builder]) -> None:
    """Endings by who came first are all there."""
    rig = Rig(make())
    if "src" in rig.builder.maps:
        rig.put("src", np.ones((256, 256), np.float32))
    found, whole = look(rig), look(rig, reduce=False)
    assert found.complete
    assert whole.complete
    assert {e[:3] for e in seen(found)[0]} == {e[:3] for e in seen(whole)[0]}
    assert seen(found)[1] == seen(whole)[1]
    assert len(found.endings) > 1


def test_an_early_end_of_a_phase_is_found() -> None:
    """Half of the bytes are announced: the phase may end when they are there, and what comes after is counted in the next one."""
    b = loading(nbytes=TILE // 2)
    b.store()
    found = look(Rig(b))
    assert found.complete
    assert found.outcomes == {"ok", "deadlock"}


def test_a_waiter_that_comes_too_late_is_found() -> None:
    """Two phases end one after the other: a thread that did not look in between waits for ever. Few schedules show it."""
    b = Builder(grid=(1, 1, 1), threads=2)
    b.bar()
    b.init()
    with b.elect(0):
        b.arrive()
        b.arrive()
    with b.elect(1):
        b.wait_phase(0)
    found = look(Rig(b))
    assert found.complete
    assert found.outcomes == {"ok", "deadlock"}
    twin = Builder(grid=(1, 1, 1), threads=2)
    twin.bar()
    twin.init()
    with twin.elect(0):
        twin.arrive()
    with twin.elect(1):
        twin.wait_phase(0)
    assert look(Rig(twin)).clean


def test_reductions_of_several_stores_come_in_any_order() -> None:
    """A store and a reduction to one place: each order leaves its own bytes."""
    b = Builder(grid=(1, 1, 1), threads=1)
    b.map(box=(1, 4), dims=(1, 4))
    b.tile(shape=(1, 4))
    b.fill()
    b.fence()
    b.s2g((0, 0))
    b.reduce("add", (0, 0))
    b.commit()
    b.wait_group()
    rig = Rig(b)
    rig.put("src", np.ones((1, 4), np.float32))
    found = look(rig)
    assert found.complete
    assert len({e.contents for e in found.endings}) == 1  # 0 + 0 either way
    assert "OX4117" in {d.rule for d in found.findings}


@pytest.mark.parametrize("before", [0, 2])
def test_what_a_fault_would_have_cut_off_is_found(before: int) -> None:
    """The thread that faults may be the last to run: what the other one does wrong shows then. It runs `before` other steps first."""
    b = Builder(grid=(1, 1, 1), threads=2)
    b.array(shape=(64, 64))
    b.tile()
    b.bar()
    b.bar("own")
    b.init(0, sync=False)
    b.init(1)
    with b.elect(0):
        b.arrive(1)
        b.store(tag="unwritten")
    with b.elect(1):
        for _ in range(before):
            b.complete(0)
        b.arm(16, bar=0)
        b.arrive(0)
    found = look(Rig(b))
    assert found.complete
    assert found.outcomes == {"fault"}
    assert {d.site.line for d in found.findings if d.rule == "OX4107" and d.site} == {b.tags["unwritten"]}


def test_what_two_faults_would_have_cut_off_is_found() -> None:
    """Two threads of which either faults first, and two that store to one place: nothing is wrong with those on their own."""
    b = Builder(grid=(1, 1, 1), threads=4)
    b.array(shape=(64, 64))
    b.tile()
    b.bar()
    b.init(sync=False)
    with b.elect(0):
        b.fill()
        b.arm(16)
    b.sync()
    for thread, tag in enumerate(("first", "second")):
        with b.elect(thread):
            b.store((0, 0), tag=tag)
    for thread in (2, 3):
        with b.elect(thread):
            b.arrive()
    found = look(Rig(b))
    assert found.complete
    assert found.outcomes == {"fault"}
    assert {d.site.line for d in found.findings if d.rule == "OX4117" and d.site} == {b.tags["first"], b.tags["second"]}


def test_any_of_three_arrivals_may_be_the_one_too_many() -> None:
    """Nobody waits: only the finding of the last one to come tells the orders apart."""
    b = Builder(grid=(1, 1, 1), threads=3)
    b.bar()
    b.init(count=2)
    for thread in range(3):
        with b.elect(thread):
            b.arrive(tag=str(thread))
    found = look(Rig(b))
    assert found.complete
    assert {d.site.line for d in found.findings if d.rule == "OX4109" and d.site} == {b.tags[str(thread)] for thread in range(3)}


def test_who_comes_too_much_may_be_anybody() -> None:
    """Three arrivals where two are counted: any of the three may be the one that waits for ever."""
    b = Builder(grid=(1, 1, 1), threads=3)
    b.bar()
    b.init(count=2)
    for thread in range(3):
        with b.elect(thread):
            b.wait(b.arrive())
    found = look(Rig(b))
    assert found.complete
    assert found.outcomes == {"deadlock"}
    assert len({d.site.line for d in found.diagnostics if d.site}) == 3


def test_memory_tells_states_apart() -> None:
    """Two loads of one phase land in one tile, in either order; what follows branches again, and the tile is stored at the end."""
    b = Builder(grid=(1, 1, 1), threads=2)
    b.map(box=(1, 4), dims=(2, 4))
    b.array(shape=(1, 4))
    b.tile(shape=(1, 4))
    b.tile("other", shape=(1, 4))
    b.bar()
    b.init()
    with b.elect(0):
        b.arm(32)
        b.g2s((0, 0))
        b.g2s((1, 0))
    b.wait_phase(0)
    with b.elect(0):
        b.fill(1)
    with b.elect(1):
        b.fill(1)
    b.sync()
    b.store((0, 0))
    rig = Rig(b)
    rig.put("src", np.arange(8, dtype=np.float32).reshape(2, 4))
    found = look(rig)
    assert found.complete
    assert len(found.endings) == 2


# ---- it is small
@pytest.mark.parametrize(
    "make", [lambda: ring(5, 1), lambda: ring(7, 3), everyone, staged_stores, loading], ids=["ring1", "ring3", "everyone", "stores", "load"]
)
def test_programs_that_are_right_have_few_schedules(make: Callable[[], Builder]) -> None:
    found = look(Rig(make()))
    assert found.complete
    assert found.clean
    assert len(found.endings) == 1
    assert found.schedules <= 16
    assert found.orders > found.schedules


# ---- it gives up loudly
def test_bounds() -> None:
    busy = Builder(grid=(1, 1, 1), threads=4)
    busy.bar()
    busy.init(count=3)
    for thread in range(4):
        with busy.elect(thread):
            busy.arrive()
            busy.wait_phase(0)
            busy.arrive()
    found = look(Rig(busy), states=3)
    assert (found.complete, found.bound) == (False, "3 states")
    endless = Builder(grid=(1, 1, 1), threads=1)
    with endless.loop(1 << 40):
        endless.sync()
    found = look(Rig(endless))
    assert not found.complete
    assert "loops written out" in found.bound
    late = explore_all(busy.program(), Rig(busy).bindings(), seconds=0)
    assert late.complete or late.bound == "0 seconds"


def test_what_the_launch_call_refuses_is_an_ending() -> None:
    b = loading()
    b.grid, b.cluster = (3, 1, 1), (2, 1, 1)
    found = look(Rig(b))
    assert found.complete
    assert found.outcomes == {"refused"}


def test_memory_is_as_before() -> None:
    for every in (True, False):
        rig = Rig(racy_store())
        rig.put("src", np.ones((64, 64), np.float32))
        found = look(rig) if every else explore_seeds(rig.builder.program(), rig.bindings(), 3)
        assert not found.clean
        assert (rig.get("src", "f32", (64, 64)) == 1).all()


def test_seeds_are_schedules_too() -> None:
    b = Builder(grid=(2, 1, 1), cluster=(2, 1, 1), threads=1)
    b.bar()
    b.init(sync=False)
    with b.when(eq(RANK, 0)):
        b.wait_phase(0)
    found = explore_seeds(b.program(), Rig(b).bindings(), 5)
    assert (found.schedules, found.complete, found.outcomes) == (5, False, frozenset({"deadlock"}))
    assert found.diagnostics
    assert not found.clean
