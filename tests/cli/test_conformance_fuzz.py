from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from oxidecopy.fuzz import campaign, device
from oxidecopy.fuzz.tally import Tally
from tests.helpers.command import command


def judged(jobs: int, first: int, most: int, seconds: float, *, mutants: int, shrink: bool) -> Tally:
    """In this process instead of in several."""
    assert (jobs, seconds) == (3, 100.0)
    return campaign.judge_seeds([first], most, seconds, mutants=mutants, shrink=shrink)


def wrong(*_: Any, **__: Any) -> Tally:
    tally = Tally()
    tally.problem(campaign.program(4, 0), "accepted, but seed 1 ends in deadlock", 4, 0, ("OX4001",), "who waits")
    return tally


def test_agreement_is_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(campaign, "run_jobs", judged)
    path = tmp_path / "r.json"
    options = ("--count", "3", "--seed", "5", "--mutants", "2", "--jobs", "3", "--seconds", "100")
    result = command("conformance", "fuzz", *options, "--output", str(path))
    assert result.exit_code == 0, result.output
    assert "no disagreements of verifier and simulator" in result.output
    assert "3 programs" in result.output
    data = json.loads(path.read_text())
    assert data["command"] == "oxidecopy conformance fuzz --count 3 --seed 5 --mutants 2 --jobs 3"
    assert (data["disagreements"], data["numbers"]["programs"], data["device"]) == (0, 3, "none")


def test_a_disagreement_is_shown_and_ends_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "run_jobs", wrong)
    result = command("conformance", "fuzz")
    assert result.exit_code == 1
    assert "accepted, but seed 1 ends in deadlock OX4001" in result.output
    assert "who waits" in result.output
    assert "program body" in result.output
    assert json.loads(command("conformance", "fuzz", "--json").stdout)["problems"][0]["seed"] == 4


@pytest.mark.parametrize("how", ["equal", "differs"])
def test_on_a_device(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    def ran(batches: device.Batches, ids: list[device.Id]) -> list[device.Went]:
        assert (batches.device, batches.way) == ("sim-fast", "engine")
        return [device.Went(seed=s, number=n, how=how, problem="" if how == "equal" else "other bytes") for s, n in ids]

    monkeypatch.setattr(device.Batches, "run", ran)
    monkeypatch.setitem(device.BATCH, "engine", 2)
    result = command("conformance", "fuzz", "--device", "sim-fast", "--count", "2", "--mutants", "0")
    assert result.exit_code == (how == "differs")
    assert f"2 {how}" in result.output


@pytest.mark.parametrize("device", [("--device", "sim-fast"), ()])
def test_emitted_code_needs_a_gpu(device: tuple[str, ...]) -> None:
    result = command("conformance", "fuzz", *device, "--emitted")
    assert result.exit_code == 2
    assert "OX6014" in result.output
