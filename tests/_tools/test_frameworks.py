"""Tests with torch itself: what is installed where, what is run, and what is said where there is no torch."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from oxidecopy._tools import frameworks
from oxidecopy._tools.check import SKIPPED
from oxidecopy._tools.environments import ROOT
from tests.helpers.tool_runs import Recorder

MPICH, OPEN_MPI = frameworks.MPIS


def test_each_is_installed_apart_and_all_are_tested_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "mine")
    run = Recorder()
    assert frameworks.main([], run) == 0
    *installs, look, test = run.commands
    assert [command[-1] for command in installs] == [frameworks.TORCH, MPICH, OPEN_MPI]
    assert ["--no-deps" in command for command in installs] == [False, True, True]
    rooms = [command[command.index("--prefix") + 1] for command in installs]
    *found, mine = run.paths[-1].split(os.pathsep)
    assert mine == "mine"
    assert [path.startswith(room) for path, room in zip(found, rooms, strict=True)] == [True] * 3
    assert str(Path(rooms[0]).parent) in look[-1]
    assert not Path(rooms[0]).parent.exists()
    assert (ROOT / test[-1]).is_dir()


def test_without_torch_it_says_that_nothing_was_tested(capsys: pytest.CaptureFixture[str]) -> None:
    run = Recorder("torch==")
    assert frameworks.main([], run) == SKIPPED
    assert not any("pytest" in command for command in run.commands)
    assert capsys.readouterr().out.startswith(f"SKIPPED: {frameworks.TORCH} cannot be installed here")


def test_without_an_mpi_the_rest_is_tested(capsys: pytest.CaptureFixture[str]) -> None:
    run = Recorder(MPICH)
    assert frameworks.main([], run) == 0
    assert "mpich" not in run.paths[-1]
    assert capsys.readouterr().out == f"SKIPPED: {MPICH} cannot be installed here, so no ranks are started by it\n"


@pytest.mark.parametrize("failing", ["import torch", "pytest"])
def test_what_fails_fails(failing: str) -> None:
    assert frameworks.main([], Recorder(failing)) == 1


def test_it_takes_no_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    assert frameworks.main(["2.13"], Recorder()) == 2
    assert "no arguments" in capsys.readouterr().err
