from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from oxidecopy.conformance import descriptors
from oxidecopy.conformance.descriptors import Judged, Loaded, Result
from oxidecopy.maps.parameters import MapParameters
from oxidecopy.maps.validate import validate
from tests.helpers.command import command
from tests.helpers.descriptor_matrix import some

BROKEN = MapParameters(dtype=7, global_address=64, global_dim=(8, 8), global_strides=(32,), box_dim=(8, 7), element_strides=(1, 1))


def one(code: int | None, problem: str = "") -> Result:
    judged = (Judged(group="g", verdict=validate(BROKEN), code=code, data="5a"),)
    return Result(device="" if code is None else "cuda:0", sm=90, seed=1, judged=judged, loaded=(Loaded(name="a load", problem=problem),))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Answers in place of a driver: `result` is what it comes to."""
    from oxidecopy.cli import launch

    class Found:
        name, sm, why = "cuda:0", 90, "cuda:0 a GPU: asked for by name"

    answers: dict[str, Any] = {"result": one(1)}
    monkeypatch.setattr(launch, "open_device", lambda _: Found)
    monkeypatch.setattr(descriptors, "ask_all", lambda *arguments: answers.setdefault("asked", arguments) and answers["result"])
    return answers


def test_without_a_gpu_it_says_what_it_needs() -> None:
    result = command("conformance", "descriptors", "--device", "sim")
    assert result.exit_code == 2
    assert "OX6014" in result.output
    assert "only its driver knows what it encodes" in result.output
    assert "--no-driver" in result.output


def test_without_the_driver_the_sets_are_judged_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descriptors, "cases", lambda _: some())
    path = tmp_path / "r.json"
    result = command("conformance", "descriptors", "--no-driver", "--output", str(path))
    assert result.exit_code == 0, result.output
    assert "sets judged; no driver was asked" in result.output
    assert json.loads(path.read_text())["sets"] == len(some())


def test_agreement_ends_well(asked: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "bytes.json"
    result = command("conformance", "descriptors", "--seed", "5", "--map-bytes", str(path))
    assert result.exit_code == 0, result.output
    assert "1 of 1 sets: the validator agrees with the driver of cuda:0; 1 of 1 loads did what it says" in result.output
    assert (asked["asked"][0], asked["asked"][1], asked["asked"][3]) == ("cuda:0", 90, 5)
    assert json.loads(path.read_text())["maps"][0]["bytes"] == "5a"


@pytest.mark.parametrize(
    ("result", "words"), [(one(0), "the driver answers 0"), (one(1, "2 of 4 bytes differ"), "a load: 2 of 4 bytes differ")]
)
def test_any_difference_ends_with_1(asked: dict[str, Any], result: Result, words: str) -> None:
    asked["result"] = result
    shown = command("conformance", "descriptors")
    assert shown.exit_code == 1
    assert words in shown.output


def test_json(asked: dict[str, Any]) -> None:
    assert asked
    result = command("conformance", "descriptors", "--json")
    assert json.loads(result.stdout)["agree"] == 1


def test_the_programs_are_still_the_command_itself() -> None:
    assert command("conformance", "--device", "sim-fast", "--only", "ring keep").exit_code == 0
