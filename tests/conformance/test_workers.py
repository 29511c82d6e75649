from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from oxidecopy.conformance import run, workers

if TYPE_CHECKING:
    import pytest


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
