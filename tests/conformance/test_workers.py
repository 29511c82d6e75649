from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from oxidecopy.conformance import run, workers


def test_a_worker_that_dies_costs_one_case(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    killer = tmp_path / "python"
    killer.write_text(f'#!/bin/sh\n[ "$4" = 0 ] && exit 9\nexec {sys.executable} "$@"\n')
    killer.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(killer))
    verdicts = list(workers.run_all("sim-fast", "ring keep", lambda *_: None))
    assert [v.problem for v in verdicts] == ["the process ended with 9: no word", ""]


def test_workers_that_all_die_are_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    killer = tmp_path / "python"
    killer.write_text("#!/bin/sh\nexit 9\n")
    killer.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(killer))
    problems = [v.problem for v in workers.run_all("sim-fast", "chain", lambda *_: None)]
    assert [p.startswith("not run") for p in problems[:7]] == [False] * 5 + [True] * 2
    assert len(problems) == len(run.cases("chain"))


def test_a_worker_goes_on_behind_a_failure_that_costs_the_device(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The worker tells of case 0 and ends with the code for a lost device: case 1 is not blamed."""
    killer = tmp_path / "python"
    told = json.dumps({"name": "a", "group": "g", "problem": "lost", "seconds": 0})
    killer.write_text(f'#!/bin/sh\n[ "$4" = 0 ] && echo \'{told}\' && exit 3\nexec {sys.executable} "$@"\n')
    killer.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(killer))
    assert [v.problem for v in workers.run_all("sim-fast", "ring keep", lambda *_: None)] == ["lost", ""]


def test_shares_are_all_of_it() -> None:
    every = [case.name for case in run.cases("ring keep")]
    shares = [v.name for job in range(2) for v in workers._run_share("sim-fast", "ring keep", (job, 2), emitted=False)]
    assert sorted(shares) == sorted(every)


@pytest.mark.parametrize(
    ("cpus", "pattern", "wanted"), [(16, "ring keep", 1), (16, "maps: ", 3), (2, "maps: ", 2), (1, "", 1), (64, "", 8)]
)
def test_many_cases_are_shared_by_processes(monkeypatch: pytest.MonkeyPatch, cpus: int, pattern: str, wanted: int) -> None:
    shares = list[tuple[int, int]]()

    def one(_: str, __: str, share: tuple[int, int], *, emitted: bool) -> Iterator[run.Verdict]:
        assert not emitted
        shares.append(share)
        yield run.Verdict(name=str(share), group="g")

    monkeypatch.setattr(os, "cpu_count", lambda: cpus)
    monkeypatch.setattr(workers, "_run_share", one)
    told = [v.name for v in workers.run_all("sim-fast", pattern, lambda *_: None)]
    assert sorted(told) == sorted(map(str, shares)) == [str((job, wanted)) for job in range(wanted)]
