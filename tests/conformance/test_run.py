from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import oxidecopy as ox
from oxidecopy.conformance import run
from oxidecopy.conformance.case import Case, Made
from oxidecopy.isa import ops
from oxidecopy.program.expansion import expanded

if TYPE_CHECKING:
    import pytest


def test_every_case_is_verified_and_equal_to_itself() -> None:
    device = ox.Device.open("sim-fast")
    for case in run.cases()[::17]:
        verdict = run.run_case(case, device, device)
        assert verdict.problem == "", verdict


def test_names_are_their_own() -> None:
    names = [(case.group, case.name) for case in run.cases()]
    assert len(names) == len(set(names)) > 1000


def test_cases_hold_every_op() -> None:
    device = ox.Device.open("sim-fast")
    held = set()
    for group in ("barriers", "indices", "fill", "maps: map f32", "clusters", "counters", "reduce add f32", "plain stores: unload f32"):
        for case in run.cases(group):
            held |= {type(step.op) for step in expanded(case.make(device).launch.program).walk()}
    assert set(ops.OPS) - set(ops.STAGES) == held


def _wrong(case: Case) -> Case:
    calls = []

    def make(dev: ox.Device) -> Made:
        made = case.make(dev)
        calls.append(dev)
        if len(calls) % 2:
            return made
        return Made(launch=made.launch, outputs={name: dev.zeros(a.shape, a.dtype) for name, a in made.outputs.items()})

    return Case(name=case.name, group=case.group, make=make)


def test_a_difference_is_told() -> None:
    device = ox.Device.open("sim-fast")
    verdict = run.run_case(_wrong(run.cases("gathered")[0]), device, device)
    assert "bytes differ, first at" in verdict.problem


def test_a_worker_that_dies_costs_one_case(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    killer = tmp_path / "python"
    killer.write_text(f'#!/bin/sh\n[ "$4" = 0 ] && exit 9\nexec {sys.executable} "$@"\n')
    killer.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(killer))
    verdicts = list(run.run_all("sim-fast", "ring keep", lambda *_: None))
    assert [v.problem for v in verdicts] == ["the process ended with 9: no word", ""]


def test_workers_that_all_die_are_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    killer = tmp_path / "python"
    killer.write_text("#!/bin/sh\nexit 9\n")
    killer.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(killer))
    problems = [v.problem for v in run.run_all("sim-fast", "chain", lambda *_: None)]
    assert [p.startswith("not run") for p in problems[:7]] == [False] * 5 + [True] * 2
    assert len(problems) == len(run.cases("chain"))


def test_a_worker_goes_on_behind_a_failure_that_costs_the_device(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The worker tells of case 0 and ends with the code for a lost device: case 1 is not blamed."""
    killer = tmp_path / "python"
    told = json.dumps({"name": "a", "group": "g", "problem": "lost", "seconds": 0})
    killer.write_text(f'#!/bin/sh\n[ "$4" = 0 ] && echo \'{told}\' && exit 3\nexec {sys.executable} "$@"\n')
    killer.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(killer))
    assert [v.problem for v in run.run_all("sim-fast", "ring keep", lambda *_: None)] == ["lost", ""]


def test_the_result_is_written_whole(tmp_path: Path) -> None:
    verdicts = [run.Verdict(name="a", group="g"), run.Verdict(name="b", group="g", problem="out: differs")]
    data = run.as_data("sim-fast", "g", verdicts)
    run.write(tmp_path / "r.json", data)
    read = json.loads((tmp_path / "r.json").read_text())
    assert (read["cases"], read["equal"], read["groups"]["g"]) == (2, 1, {"cases": 2, "equal": 1})
    assert read["failures"] == [{"name": "b", "group": "g", "problem": "out: differs"}]
