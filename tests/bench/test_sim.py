"""The benchmark on small arrays: its programs are right and its files whole. Speed itself is for a quiet machine: see docs/results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oxidecopy.bench import results, sim
from oxidecopy.errors import ExecutionError, UsageError
from oxidecopy.host.npy import write_json
from tests.helpers.command import TWIN, command, json_of


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sim, "_SIDE", {"sim-fast": 512, "sim": 320})


@pytest.fixture
def _easy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, bound in (("_IMPORT_MS", 1e9), ("_PROOF_MS", 1e9), ("_FAST_MB_S", 0.0), ("_HAZARDS_MB_S", 0.0)):
        monkeypatch.setattr(sim, name, bound)


@pytest.mark.usefixtures("_easy")
def test_all_rows_and_the_file(tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    result = command("bench", "sim", "--runs", "3", "--output", path)
    assert result.exit_code == 0
    assert result.stdout.count("OK") == 9
    data = json.loads(path.read_text())
    assert [row["what"] for row in data["rows"]] == [
        "import oxidecopy", "record and verify prefetch", "record and verify producer_consumers",
        "record and verify a 4-stage cluster ring", "record and verify a 4-stage GEMM-like cluster ring",
        "one-shot, without hazard clocks", "prefetch, without hazard clocks",
        "one-shot, with hazard clocks", "prefetch, with hazard clocks",
    ]  # fmt: skip
    assert data["command"] == "oxidecopy bench sim --runs 3"
    assert all(data[key] for key in ("date", "cpu", "python", "numpy", "oxidecopy", "platform"))
    assert [p.name for p in tmp_path.iterdir()] == ["bench.json"]


@pytest.mark.usefixtures("_easy")
@pytest.mark.parametrize(("busy", "said"), [(1.2, False), (7.5, True), (None, False)])
def test_a_busy_machine_is_said_to_be_one(busy: float | None, said: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "load", lambda: busy)
    monkeypatch.setattr(sim, "measure_all", lambda *_: [])
    assert ("this machine is busy" in command("bench", "sim", "--runs", "3").stderr) is said


def test_a_missed_target_ends_with_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sim, "_PROOF_MS", 0.0)
    result = command("bench", "sim", "--runs", "3", "--json")
    assert result.exit_code == 1
    data = json_of(result)
    assert data["passed"] is False
    assert "MISSED" in command("bench", "sim", "--runs", "3").stdout


@pytest.mark.parametrize("device", ["sim", "sim-fast"])
@pytest.mark.parametrize("name", ["one-shot", "prefetch"])
def test_the_measured_programs_copy(name: str, device: str) -> None:
    assert len(sim.throughput(name, device, 0.0, 3).samples) == 3


def test_a_copy_that_differs_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np, "array_equal", lambda *_: False)
    with pytest.raises(ExecutionError) as caught:
        sim.throughput("one-shot", "sim-fast", 0.0, 3)
    assert caught.value.rule == "OX6007"


def test_without_the_lesson(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        sim.proof_times(3, (tmp_path,))
    assert caught.value.rule == "OX6012"


def test_only_launches_that_must_run_are_proved(tmp_path: Path) -> None:
    (tmp_path / "06_prefetch.py").write_text(TWIN)
    (row,) = sim.proof_times(3, (tmp_path,))
    assert row.what == "record and verify tiles"
    assert all(ms > 0 for ms in row.samples)


def test_an_import_that_loads_numpy_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def loads_numpy(*_: object, **__: object) -> Any:
        return type("Done", (), {"stdout": "0.01 numpy\n"})

    monkeypatch.setattr("subprocess.run", loads_numpy)
    with pytest.raises(ExecutionError) as caught:
        sim.import_time(3)
    assert caught.value.rule == "OX6013"
    assert caught.value.diagnostics[0].got == "numpy"


@pytest.mark.parametrize("place", ["nowhere/bench.json", "."])
def test_a_result_that_cannot_be_written(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as caught:
        write_json(Path(place), {})
    assert caught.value.rule == "OX5027"
    assert list(tmp_path.iterdir()) == []
