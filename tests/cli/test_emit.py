"""`oxidecopy emit`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.helpers.command import TILES, TWIN, command, json_of


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "mine.py"
    path.write_text(TWIN)
    return path


def test_the_source_is_printed(file: Path) -> None:
    result = command("emit", file, "--cuda")
    assert result.exit_code == 0
    assert "__global__" in result.stdout
    assert "// mine.py:" in result.stdout


def test_it_goes_to_a_file(file: Path) -> None:
    result = command("emit", file, "-o", "mine.cu")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "kernel tiles" in result.stderr
    assert Path("mine.cu").read_text() == command("emit", file).stdout


def test_json_says_how_to_launch_it(file: Path) -> None:
    np.save("x.npy", np.ones(64, np.float32))
    data = json_of(command("emit", file, "--input", "x.npy", "--json"))
    assert (data["pipeline"], data["recipe"], data["kernel"], data["threads"]) == ("tiles", "whole", "tiles", 32)
    assert {p["kind"] for p in data["parameters"]} >= {"map", "array", "extent"}
    assert data["source"].startswith("// tiles")


def test_refused_programs_are_not_emitted(file: Path) -> None:
    result = command("emit", f"{file}:twin")
    assert result.exit_code == 1
    assert "[OX3" in result.stderr


def test_a_file_that_cannot_be_written(file: Path) -> None:
    assert "[OX5027]" in command("emit", file, "-o", "no/where.cu").stderr


def test_usage(file: Path) -> None:
    file.write_text(TILES)
    assert command("emit").exit_code == 2
    assert command("emit", "nowhere.py").exit_code == 2
