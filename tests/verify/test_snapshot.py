"""States that differ where no op looks are the same, and those that differ anywhere else are not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from oxidecopy.program.program import Step
from oxidecopy.verify.build import build, cluster_box, compile_program
from oxidecopy.verify.report import Collector
from oxidecopy.verify.snapshot import Snapshot, snapshot
from oxidecopy.verify.state import Access, Life, Machine, Mark, Way
from tests.helpers.programs import Builder


@pytest.fixture
def machine() -> Machine:
    """Two threads, a barrier in its tenth phase, a tile with a plain write of time 20 and a load of the phase that made five."""
    b = Builder(threads=2)
    b.map()
    b.tile()
    b.bar()
    b.init()
    with b.elect(0):
        b.fence()
    program, launch = b.program(), b.launch()
    out = Collector()
    made = build(launch, compile_program(program, launch, out), cluster_box(program, launch), out)
    step: Step = program.steps[0]
    bar, stage = made.bars[0], made.stages[0]
    bar.life, bar.phase, bar.born = Life.LIVE, 10, Mark(0, 1, step)
    stage.accesses = [Access(Way.WRITE, Mark(0, 20, step), 0, 64), Access(Way.LOAD, Mark(1, 3, step), 64, 128, bar=0, until=5)]
    for agent in made.agents:
        agent.time = 40
    return made


def know(machine: Machine, at: int, value: int) -> Snapshot:
    machine.agents[1].known[at] = value
    return snapshot(machine, {}, parity=False)


def order(_machine: Machine) -> int:
    return 0


def fence(machine: Machine) -> int:
    return machine.fences


def over(machine: Machine) -> int:
    return machine.overs


def ended(machine: Machine) -> int:
    return machine.ends


def ran(machine: Machine) -> int:
    return machine.rans


@pytest.mark.parametrize("place", [order, fence, ran])
@pytest.mark.parametrize(("first", "second", "same"), [(2, 19, True), (19, 20, False), (20, 40, True), (0, 1, False)])
def test_what_is_known_counts_by_the_marks_it_reaches(
    machine: Machine, place: Callable[[Machine], int], first: int, second: int, same: bool
) -> None:
    assert (know(machine, place(machine), first) == know(machine, place(machine), second)) is same


@pytest.mark.parametrize("place", [over, ended])
@pytest.mark.parametrize(
    ("first", "second", "same"), [(1, 4, True), (4, 5, False), (5, 8, True), (8, 9, False), (9, 10, False)]
)  # the last two: phases that a wait may ask for
def test_phases_known_to_be_over_count_by_the_loads_they_cover(
    machine: Machine, place: Callable[[Machine], int], first: int, second: int, same: bool
) -> None:
    assert (know(machine, place(machine), first) == know(machine, place(machine), second)) is same


def test_a_wait_by_parity_reads_more(machine: Machine) -> None:
    """It takes what is known for what is asked: the order of all that is known counts."""
    at = machine.ends
    machine.agents[0].known[at] = 3

    def state(value: int) -> Snapshot:
        machine.agents[1].known[at] = value
        return snapshot(machine, {}, parity=True)

    assert state(2) != state(3)
    assert state(2) == state(1)


def test_a_phase_that_an_answer_names_will_be_learnt(machine: Machine) -> None:
    """Behind the answer its phase is known to be over: whether that covers the load of the next one counts."""
    agent = machine.agents[1]

    def state(phase: int) -> Snapshot:
        agent.answers = {0: (0, phase)}
        return snapshot(machine, {}, parity=False)

    assert state(2) == state(3)
    assert state(3) != state(4)  # 4 phases over, or 5


def test_times_of_marks_count_by_order(machine: Machine) -> None:
    write, load = machine.stages[0].accesses
    load.mark.agent = 0
    before = snapshot(machine, {}, parity=False)
    write.mark.time = 21
    assert snapshot(machine, {}, parity=False) == before
    load.mark.time = 21
    assert snapshot(machine, {}, parity=False) != before


def test_a_fence_counts_by_the_marks_it_follows(machine: Machine) -> None:
    def state(time: int) -> Snapshot:
        machine.agents[0].fence = time
        return snapshot(machine, {}, parity=False)

    assert state(5) == state(19)
    assert state(19) != state(20)


def test_a_store_that_nobody_waited_for_is_told_from_one_that_was_read_long_ago(machine: Machine) -> None:
    store = Access(Way.STORE, Mark(0, 20, machine.program.steps[0]), 0, 64)
    machine.stages[0].accesses.append(store)
    for agent in machine.agents:
        agent.known[0] = 30

    def state(done: int) -> Snapshot:
        store.done = done
        return snapshot(machine, {}, parity=False)

    assert state(21) == state(22)
    assert state(22) != state(-1)
