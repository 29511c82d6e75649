"""`oxidecopy trace`: forms by the ending of a file, and stalls in words."""

from __future__ import annotations

import builtins
import json
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.command import TILES, TWIN, command, json_of


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "mine.py"
    path.write_text(TWIN)
    return path


def test_forms(file: Path) -> None:
    result = command("trace", f"{file}:tiles", "-o", "a.html", "-o", "a.json", "-o", "a.svg")
    assert result.exit_code == 0, result.output
    assert "tiles, grid 4, 32 threads" in result.stdout
    assert "of the time for" in result.stdout
    assert Path("a.html").read_text().startswith("<!doctype html>")
    assert json.loads(Path("a.json").read_text())["displayTimeUnit"] == "ns"
    assert Path("a.svg").read_text().startswith("<svg")


def test_png(file: Path) -> None:
    pytest.importorskip("matplotlib")
    assert command("trace", f"{file}:tiles", "-o", "a.PNG", "--ctas", "1").exit_code == 0
    assert Path("a.PNG").read_bytes().startswith(b"\x89PNG")


def test_png_without_matplotlib(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return known(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    result = command("trace", f"{file}:tiles", "-o", "a.png")
    assert result.exit_code == 2
    assert "OX6022" in result.output
    assert not Path("a.png").exists()


def test_a_launch_that_hangs_is_shown_and_is_no_success(file: Path) -> None:
    file.write_text(TILES.replace("tile.nbytes", "tile.nbytes + 16"))
    result = command("trace", file, "-o", "a.html")
    assert result.exit_code == 1
    assert "did not end well (deadlock)" in result.stdout
    assert "OX4001" in result.stdout
    assert "its waits say nothing about speed" in " ".join(result.stdout.split())
    assert "waited" not in result.stdout  # no advice that fits a launch that ends
    assert "stages" not in result.stdout
    assert Path("a.html").exists()


def test_json(file: Path) -> None:
    data = json_of(command("trace", f"{file}:tiles", "--cta", "3", "--json"))
    assert (data["ok"], data["pipeline"], data["outputs"]) == (True, "tiles", [])
    assert "1 of 4 CTAs are shown" in data["notes"]
    assert data["stalls"][0]["text"].startswith(f"{data['stalls'][0]['role']} waited ")


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        (("-o", "a.txt"), "OX6050"),
        (("-o", "trace"), "OX6050"),
        (("--cta", "4"), "OX6051"),
        (("--cta", "0,1"), "OX6051"),
        (("--cta", "x"), "OX6051"),
        (("--cta", "0,0,0,0"), "OX6051"),
    ],
)
def test_what_may_not_be_asked_for(file: Path, options: tuple[str, ...], rule: str) -> None:
    result = command("trace", f"{file}:tiles", *options)
    assert result.exit_code == 2
    assert rule in result.output


def test_long_launches_are_cut_off(file: Path) -> None:
    result = command("trace", f"{file}:tiles", "--ops", "9")
    assert result.exit_code == 0
    assert "cut off after 9 ops" in " ".join(result.stdout.split())
