from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from oxidecopy.cli import conformance
from oxidecopy.conformance import run, workers
from tests.helpers.command import command

if TYPE_CHECKING:
    import pytest


def test_prints_a_row_for_each_group(tmp_path: Path) -> None:
    result = command("conformance", "--device", "sim-fast", "--only", "ring keep", "--output", str(tmp_path / "r.json"))
    assert result.exit_code == 0, result.output
    assert "2 of 2 cases equal on sim-fast" in result.output
    assert json.loads((tmp_path / "r.json").read_text())["command"] == "oxidecopy conformance --device sim-fast --only 'ring keep'"


def test_shows_what_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = run.Verdict(name="a", group="g", problem="out: 3 of 4 bytes differ")
    monkeypatch.setattr(workers, "run_all", lambda *_, **__: iter((failed,)))
    result = command("conformance", "--device", "sim-fast")
    assert result.exit_code == 1
    assert "g: a" in result.output
    assert "3 of 4 bytes differ" in result.output


def test_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "run_all", lambda *_, **__: iter((run.Verdict(name="a", group="g"),)))
    result = command("conformance", "--device", "sim-fast", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["equal"] == 1


def test_a_run_that_is_cut_leaves_what_it_has(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path, seen = tmp_path / "r.json", list[tuple[int, int]]()

    def three(_: str, __: str, starting: Callable[[str, int, int], None], **___: object) -> Iterator[run.Verdict]:
        for done in (1, 2, 3):
            starting("a", done, 3)
            yield run.Verdict(name="a", group="g")
            read = json.loads(path.read_text()) if path.exists() else {}
            seen.append((read.get("cases", 0), read.get("left", 0)))

    monkeypatch.setattr(workers, "run_all", three)
    monkeypatch.setattr(conformance, "_WRITTEN_S", 0.0)
    assert command("conformance", "--device", "sim-fast", "--output", str(path)).exit_code == 0
    assert seen == [(1, 2), (2, 1), (2, 1)]
    assert json.loads(path.read_text())["cases"] == 3


def test_no_case_is_no_success() -> None:
    assert command("conformance", "--device", "sim-fast", "--only", "no such case").exit_code == 1


def test_emitted_code_needs_a_gpu() -> None:
    result = command("conformance", "--device", "sim-fast", "--emitted")
    assert result.exit_code == 2
    assert result.output.count("OX6014") == 2  # once, and where it is explained
