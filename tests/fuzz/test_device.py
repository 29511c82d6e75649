"""Programs on a device, in batches: what differs is noticed, and what takes its process with it is found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

import pytest

from oxidecopy.engines.base import Engine
from oxidecopy.engines.sim import SimEngine
from oxidecopy.errors import DeviceCodeError, Diagnostic, ExecutionError
from oxidecopy.fuzz import device
from oxidecopy.fuzz.campaign import program, programs
from oxidecopy.fuzz.case import Case, run
from oxidecopy.fuzz.device import Batches, Id, Went, by_engine, compare, compare_all, ids_from
from oxidecopy.fuzz.judge import judge
from oxidecopy.fuzz.pipelines import pipeline
from oxidecopy.isa import ops
from oxidecopy.isa.expr import Const
from oxidecopy.program.verified import VerifiedProgram
from oxidecopy.verify import inspect
from tests.helpers.edits import changed, edited

FAST = SimEngine(hazards=False)


def went(seed: int, number: int, how: str, problem: str = "") -> Went:
    return Went(seed=seed, number=number, how=how, problem=problem)


# ---- one program
def test_a_program_on_a_device() -> None:
    found = {compare(case, seed, number, FAST, by_engine).how for seed in range(12) for number, case in programs(seed, 2)}
    assert found >= {"equal", "refused"}
    assert not found & {"differs", "failed"}


def test_other_bytes_are_noticed() -> None:
    def lying(case: Case, engine: Engine, proof: VerifiedProgram) -> dict[str, bytes]:
        return {name: raw[:-1] + b"!" for name, raw in by_engine(case, engine, proof).items()}

    assert compare(program(0, 0), 0, 0, FAST, lying).problem.startswith("the device leaves other bytes in ")


@pytest.mark.parametrize(("error", "how"), [(DeviceCodeError, "no_code"), (ExecutionError, "failed")])
def test_a_refusal_of_the_engine_is_no_failure(error: type[DeviceCodeError | ExecutionError], how: str) -> None:
    def failing(case: Case, engine: Engine, proof: VerifiedProgram) -> dict[str, bytes]:
        raise error(Diagnostic(rule="OX5511", what="no"))

    assert compare(program(0, 0), 0, 0, FAST, failing).how == how


def below_one(whole: Case) -> Case:
    """The same with indices that are to be below 1."""
    program = edited(whole.program, lambda op: isinstance(op, ops.LoadIndex), changed(below=lambda _: Const(1)))
    return replace(whole, program=program, expected={})


def test_an_index_out_of_its_bounds_is_to_be_noticed_on_both() -> None:
    reading = (below_one(whole) for whole in map(pipeline, count()) if whole.scenes == ("Indexed",))
    case = next(case for case in reading if not run(case, 0).clean)
    assert not inspect(case.program, case.launch()).violations
    assert judge(case).stopped
    assert compare(case, 0, 0, FAST, by_engine).how == "stopped"
    assert compare(case, 0, 0, FAST, lambda c, e, _: c.contents(e, c.on(e)[1])).how == "differs"


# ---- batches
def worker(faulty: set[Id], needs: set[Id]) -> object:
    """Stands for a process: it dies at a program of `faulty` once one of `needs` has run before it, or at once if there are none."""

    def run(_: Batches, ids: Sequence[Id]) -> list[Went]:
        found: list[Went] = []
        armed = not needs
        for each in ids:
            if each in faulty and armed:
                return [*found, went(*each, "failed", "the process ended with 1")]
            armed = armed or each in needs
            found.append(went(*each, "equal"))
        return found

    return run


def test_a_program_that_fails_alone_is_said_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Batches, "run", worker({(0, 3)}, set()))
    ids = [(0, n) for n in range(6)]
    found = Batches("gpu").run_all(ids)
    assert [(each.seed, each.number) for each in found] == ids
    assert [each.problem for each in found if each.how == "failed"] == ["alone: the process ended with 1"]


def test_what_fails_only_after_others_is_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Batches, "run", worker({(0, 9)}, {(0, 6)}))
    (failed,) = [each for each in Batches("gpu").run_all([(0, n) for n in range(12)]) if each.problem]
    assert failed.number == 9
    assert failed.problem.startswith("only after ")
    assert "0.6" in failed.problem
    assert "0.0" not in failed.problem


def test_a_worker_is_a_process_of_its_own() -> None:
    tally = compare_all("sim-fast", [(seed, number) for seed in range(2) for number in range(3)], 100, 1e6, jobs=1)
    assert tally.numbers["equal"] >= 2
    assert not tally.problems
    (dead,) = Batches("no such device").run([(0, 0)])
    assert dead.how == "failed"
    assert "OX5012" in dead.problem


def test_it_stops_when_enough_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Batches, "run", worker(set(), set()))
    monkeypatch.setitem(device.BATCH, "engine", 2)
    asked: list[int] = []
    tally = compare_all("gpu", (id_ for id_ in ids_from(0) if id_[1] == 0), 3, 1e6, jobs=2, told=asked.append)
    assert (tally.numbers["equal"], asked) == (4, [4])
    assert not compare_all("gpu", ids_from(0), 3, -1).numbers
