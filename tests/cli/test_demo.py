"""`oxidecopy demo`: the tour over lessons of the tests' own; the real lessons are run by tests/test_examples.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from oxidecopy.cli import lessons
from oxidecopy.errors import UsageError
from tests.helpers.command import TILES, TWIN, command, json_of


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two lessons; the second has a twin."""
    (tmp_path / "01_copy.py").write_text('"""A copy, tile by tile.\n\nAnd more.\n"""\n' + TILES)
    (tmp_path / "02_twin.py").write_text('"""A copy that expects too little."""\n' + TWIN)
    (tmp_path / "helper.py").write_text("raise RuntimeError\n")
    monkeypatch.setattr(lessons, "find", lambda: sorted(tmp_path.glob("[0-9]*.py")))
    return tmp_path


def test_the_tour(folder: Path) -> None:
    result = command("demo")
    assert result.exit_code == 0
    assert "01_copy" in result.stdout
    assert "A copy, tile by tile" in result.stdout
    assert "float32 256" in result.stdout
    assert "refused" in result.stdout
    assert "02_twin.py:" in result.stdout
    assert "[OX3021]" in result.stdout
    assert "3 of 3 launches as they should be on sim, 1 of them refused on purpose" in result.stdout
    assert str(folder) in result.stdout


def test_json(folder: Path) -> None:
    data = json_of(command("demo", "--json", "--device", "sim-fast"))
    assert data["ok"] is True
    assert data["device"] == "sim-fast"
    assert [(row["lesson"], row["launch"], row["broken_twin"], row["ok"]) for row in data["lessons"]] == [
        ("01_copy", "tiles", False, True),
        ("02_twin", "tiles", False, True),
        ("02_twin", "twin", True, True),
    ]
    assert data["lessons"][0]["shows"] == "A copy, tile by tile"


def test_recipes_of_one_pipeline_are_told_apart(folder: Path) -> None:
    (folder / "02_twin.py").write_text(TILES + TILES.partition("@tiles.recipe")[2].replace("def whole", "@tiles.recipe\ndef again"))
    data = json_of(command("demo", "--json"))
    assert [row["launch"] for row in data["lessons"]] == ["tiles", "tiles:whole", "tiles:again"]


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        (TILES.replace("tile.nbytes", "tile.nbytes - 16"), "OX3021"),
        (TILES.replace('{"out": flat})', '{"out": flat + 1})'), "OX6007"),
        (TWIN.replace("tile.nbytes - 16", "tile.nbytes"), "OX6010"),
        (TWIN.replace("OX3021", "OX3001"), "OX6010"),
        ("x = 1\n", "OX6003"),
        ("def (\n", "OX6002"),
    ],
)
def test_a_lesson_that_fails_fails_the_tour_and_the_others_still_run(folder: Path, source: str, rule: str) -> None:
    (folder / "00_wrong.py").write_text(source)
    result = command("demo")
    assert result.exit_code == 1
    assert "FAILED" in result.stdout
    assert f"[{rule}]" in result.stderr
    assert "A copy, tile by tile" in result.stdout
    data = json_of(command("demo", "--json"))
    assert data["ok"] is False
    assert rule in [e["rule"] for row in data["lessons"] for e in row["errors"]]


def test_an_unknown_device_is_usage(folder: Path) -> None:
    assert command("demo", "--device", "gpu").exit_code == 2


def test_lessons_are_found_in_the_first_place_that_has_any(tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    for name in ("02_b.py", "01_a.py", "helper.py"):
        (full / name).touch()
    assert [p.name for p in lessons.find((tmp_path / "none", full))] == ["01_a.py", "02_b.py"]


def test_no_lessons(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        lessons.find((tmp_path,))
    assert caught.value.rule == "OX6012"
