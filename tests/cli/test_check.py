"""`oxidecopy check`: recorder, verifier and mypy in one report."""

from __future__ import annotations

from pathlib import Path

import pytest

from oxidecopy.cli import mypy_run
from oxidecopy.cli.mypy_run import TypesChecked, parse
from tests.helpers.command import TILES, TWIN, another, command, json_of, line_of

SHORT = TILES.replace("tile.nbytes", "tile.nbytes - 16")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "mine.py"
    path.write_text(TILES)
    return path


def test_a_good_file(file: Path) -> None:
    result = command("check", file, "--no-types")
    assert result.exit_code == 0
    assert result.stdout == "mine.py: OK; 1 of 1 launches fine; mypy: left out by --no-types\n"


def test_a_refused_launch(file: Path) -> None:
    file.write_text(SHORT)
    result = command("check", file, "--no-types")
    assert result.exit_code == 1
    assert result.stdout.startswith(f"mine.py:{line_of(SHORT, 'src.g2s')}: ")
    assert "[OX3021]" in result.stdout
    assert "mine.py: 1 error; 0 of 1 launches fine" in result.stdout


def test_nothing_is_run(file: Path) -> None:
    file.write_text(TILES.replace('{"out": flat})', '{"out": flat + 1})'))
    assert command("check", file, "--no-types").exit_code == 0


def test_what_the_recorder_refuses(file: Path) -> None:
    source = TILES.replace("    full.inval()\n", "    full.inval()\n    full.inval()\n")
    file.write_text(source)
    result = command("check", file, "--no-types")
    assert result.exit_code == 1
    assert f"mine.py:{line_of(source, 'full.inval()', 1)}: " in result.stdout
    assert "[OX1003]" in result.stdout


def test_a_twin_is_right_when_it_is_refused(file: Path) -> None:
    file.write_text(TWIN)
    result = command("check", file, "--no-types")
    assert result.exit_code == 0
    assert "twin:twin_whole is refused, as declared: mine.py:" in result.stdout


@pytest.mark.parametrize(("wrong", "got"), [("tile.nbytes", "no error"), ("tile.nbytes + 16", "OX30")])
def test_a_twin_that_is_not_refused_by_its_rule_is_an_error(file: Path, wrong: str, got: str) -> None:
    file.write_text(TWIN.replace("tile.nbytes - 16", wrong))
    result = command("check", file, "--no-types")
    assert result.exit_code == 1
    assert "[OX6010]" in result.stdout
    assert f"got: {got}" in result.stdout


def test_one_launch_by_name(file: Path) -> None:
    file.write_text(SHORT + another("good"))
    assert command("check", file, "--no-types").exit_code == 1
    assert command("check", f"{file}:good", "--no-types").exit_code == 0


def test_a_pipeline_without_a_recipe_is_named(file: Path) -> None:
    file.write_text(TWIN.replace('@twin.recipe(refused="OX3021")', ""))
    result = command("check", file, "--no-types")
    assert result.exit_code == 0
    assert "twin: has no recipe, so it was not recorded" in result.stdout


def test_json(file: Path) -> None:
    file.write_text(SHORT)
    data = json_of(command("check", file, "--no-types", "--json"))
    assert data["ok"] is False
    assert data["launches"] == [{"name": "tiles:whole", "ok": False, "refused_as_declared": None, "warnings": []}]
    (error,) = data["errors"]
    assert (error["rule"], error["line"], error["gate"]) == ("OX3021", line_of(SHORT, "src.g2s"), "program")


@pytest.mark.parametrize(("source", "rule"), [("x = 1\n", "OX6003"), ("def (\n", "OX6002")])
def test_usage(file: Path, source: str, rule: str) -> None:
    file.write_text(source)
    result = command("check", file)
    assert result.exit_code == 2
    assert f"[{rule}]" in result.stderr


# ---- types
def test_mypy_is_merged_by_line(file: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setenv("MYPYPATH", str(Path(__file__).parents[2]))
    early = "count: int = 'one'\n"
    late = "total: str = 1\n"
    source = SHORT.replace("\n\n@ox.pipeline", early + "\n\n@ox.pipeline", 1) + late
    file.write_text(source)
    data = json_of(command("check", file, "--json"))
    assert data["mypy"] == "ran"
    assert [(e["line"], e["gate"]) for e in data["errors"]] == [
        (line_of(source, early.strip()), "types"),
        (line_of(source, "src.g2s"), "program"),
        (line_of(source, late.strip()), "types"),
    ]
    assert data["errors"][0]["rule"] == "assignment"
    assert [p.name for p in file.parent.iterdir()] == ["mine.py"]


def test_without_mypy_it_says_so(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mypy_run, "installed", lambda: False)
    result = command("check", file)
    assert result.exit_code == 0
    assert "mypy: not installed: pip install 'oxidecopy[mypy]'" in result.stdout


def test_a_broken_mypy_is_an_error(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mypy_run, "check_types", lambda _: TypesChecked(diagnostics=parse("", "INTERNAL ERROR\n", 2)))
    result = command("check", file)
    assert result.exit_code == 1
    assert "[OX6011]" in result.stdout
    assert "got: INTERNAL ERROR" in result.stdout


@pytest.mark.parametrize(("stdout", "status", "got"), [("nonsense\n", 1, "nonsense"), ("", 2, "exit status 2"), ("{}\n", 1, "{}")])
def test_an_answer_that_is_none_fails(stdout: str, status: int, got: str) -> None:
    (diagnostic,) = parse(stdout, "", status)
    assert (diagnostic.rule, diagnostic.got) == ("OX6011", got)


def test_notes_are_no_errors() -> None:
    note = '{"file": "x.py", "line": 1, "column": 0, "message": "see", "hint": null, "code": null, "severity": "note"}\n'
    assert parse(note, "", 0) == ()


def test_a_mypy_that_hangs_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mypy_run, "_TIMEOUT_SECONDS", 0)
    (diagnostic,) = mypy_run.check_types(tmp_path / "x.py").diagnostics
    assert diagnostic.rule == "OX6011"
