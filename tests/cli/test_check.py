"""`oxidecopy check`: recorder, verifier and mypy in one report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from oxidecopy.cli import mypy_run
from oxidecopy.cli.findings import Region
from oxidecopy.cli.mypy_run import TypesChecked, parse
from oxidecopy.rules import all_rules
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


LOOPED = TILES.replace("    full.inval()\n", "    full.inval()\n    for _ in cta.range(100):\n        cta.sync()\n")


def test_what_a_proof_did_not_run_is_said_when_asked_for(file: Path) -> None:
    file.write_text(LOOPED)
    assert "iterations" not in command("check", file, "--no-types").stdout
    said = command("check", file, "--no-types", "-v").stdout
    assert f"line {line_of(LOOPED, 'for _ in cta.range')}: iterations " in said
    assert "blocks 1 is run" in said or "blocks 2 are run" in said
    (launch,) = json_of(command("check", file, "--no-types", "--json"))["launches"]
    assert any(bound["line"] == line_of(LOOPED, "for _ in cta.range") for bound in launch["bounds"])


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
    (launch,) = data["launches"]
    assert launch == {
        "file": str(file),
        "name": "tiles:whole",
        "ok": False,
        "refused_as_declared": None,
        "warnings": [],
        "bounds": [],
        "schedules": None,
    }
    (error,) = data["errors"]
    assert (error["rule"], error["line"], error["gate"]) == ("OX3021", line_of(SHORT, "src.g2s"), "program")


@pytest.mark.parametrize(("source", "rule"), [("x = 1\n", "OX6003"), ("def (\n", "OX6002")])
def test_usage(file: Path, source: str, rule: str) -> None:
    file.write_text(source)
    result = command("check", file)
    assert result.exit_code == 2
    assert f"[{rule}]" in result.stderr


# ---- types
@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for all runs of mypy here: the first takes numpy's stubs, the others seconds."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def typed(file: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file, in a folder without a configuration above it or at home."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setenv("MYPYPATH", str(Path(__file__).parents[2]))
    monkeypatch.setenv("HOME", str(file.parent))
    return file


def test_mypy_is_merged_by_line(typed: Path) -> None:
    file = typed
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


def test_the_plugin_runs_without_any_configuration(typed: Path) -> None:
    source = TILES.replace("    full.inval()\n", "    full.inval()\n    full.inval()\n")
    typed.write_text(source)
    data = json_of(command("check", typed, "--json"))
    line = line_of(source, "full.inval()", 1)
    assert [(e["rule"], e["line"], e["gate"]) for e in data["errors"]] == [
        ("OX1003", line, "program"),
        ("oxidecopy-moved", line, "types"),
    ]
    assert data["mypy_plugin"] is True
    assert data["errors"][1]["column"] == 5
    assert "oxidecopy explain OX1003 says why" in command("check", typed).stdout


def test_without_mypy_it_says_so(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mypy_run, "installed", lambda: False)
    result = command("check", file)
    assert result.exit_code == 0
    assert "mypy: not installed: pip install 'oxidecopy[mypy]'" in result.stdout


def test_a_broken_mypy_is_an_error(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mypy_run, "check_types", lambda _: TypesChecked(findings=parse("", "INTERNAL ERROR\n", 2)))
    result = command("check", file)
    assert result.exit_code == 1
    assert "[OX6011]" in result.stdout
    assert "got: INTERNAL ERROR" in result.stdout


@pytest.mark.parametrize(("stdout", "status", "got"), [("nonsense\n", 1, "nonsense"), ("", 2, "exit status 2"), ("{}\n", 1, "{}")])
def test_an_answer_that_is_none_fails(stdout: str, status: int, got: str) -> None:
    (finding,) = parse(stdout, "", status)
    assert (finding.diagnostic.rule, finding.diagnostic.got) == ("OX6011", got)


NOTE = '{"file": "x.py", "line": 1, "column": 0, "message": "see", "hint": null, "code": null, "severity": "note"}\n'


def test_what_stops_mypy_is_said_in_its_words() -> None:
    (finding,) = parse("", NOTE.replace('"note"', '"error"'), 2)
    assert finding.diagnostic.got == "see"


def test_notes_of_mypy_are_no_findings() -> None:
    assert parse(NOTE, "", 0) == ()


def test_notes_of_the_plugin_are_findings_but_no_errors() -> None:
    (finding,) = parse(NOTE.replace('"code": null', '"code": "oxidecopy-leak"'), "", 0)
    assert (finding.level, finding.diagnostic.rule) == ("note", "oxidecopy-leak")


def test_regions_are_one_based() -> None:
    ends = '"column": 4, "end_line": 2, "end_column": 7'
    (finding,) = parse(NOTE.replace('"column": 0', ends).replace('"note"', '"error"'), "", 1)
    assert finding.region == Region(column=5, end_line=2, end_column=8)


def test_a_configuration_of_the_user_is_respected(typed: Path) -> None:
    """What is made of each kind of file: test_mypy_config.py."""
    typed.write_text(TILES + "\n\ndef loose(x):\n    return x\n")
    strict = json_of(command("check", typed, "--json"))
    assert [e["rule"] for e in strict["errors"]] == ["no-untyped-def"]
    assert strict["mypy_config"] is None
    config = typed.with_name("setup.cfg")
    config.write_text("[mypy]\n[mypy-mine]\nignore_errors = True\n")
    loose = json_of(command("check", typed, "--json"))
    assert (loose["errors"], loose["mypy_config"]) == ([], str(config))


def test_a_broken_configuration_is_an_error(typed: Path) -> None:
    (typed.parent / "mypy.ini").write_text("nonsense\n")
    result = command("check", typed)
    assert result.exit_code == 1
    assert "[OX6011]" in result.stdout


# ---- several files
def test_several_files_make_one_report(typed: Path) -> None:
    other = typed.with_name("later.py")
    other.write_text(SHORT + "total: str = 1\n")
    typed.write_text(TILES + "count: int = 'one'\n")
    result = command("check", other, typed)
    assert result.exit_code == 1
    places = [line.partition(": ")[0] for line in result.stdout.splitlines() if line.endswith("]")]
    assert places == [
        f"later.py:{line_of(SHORT, 'src.g2s')}",
        f"later.py:{len(SHORT.splitlines()) + 1}",
        f"mine.py:{len(TILES.splitlines()) + 1}",
    ]
    assert result.stdout.splitlines()[-1] == "2 files: 3 errors; 1 of 2 launches fine; mypy: 2 errors"


def test_files_of_one_name_are_checked_apart(typed: Path) -> None:
    folder = typed.parent / "more"
    folder.mkdir()
    (folder / "mine.py").write_text(TILES + "count: int = 'one'\n")
    data = json_of(command("check", typed, folder / "mine.py", "--json"))
    assert [(e["file"], e["rule"]) for e in data["errors"]] == [(str(folder / "mine.py"), "assignment")]
    assert data["files"] == [str(typed), str(folder / "mine.py")]


def test_helpers_without_a_pipeline_may_be_among_them(file: Path) -> None:
    file.with_name("helpers.py").write_text("N = 1\n")
    result = command("check", file, "helpers.py", "--no-types")
    assert result.exit_code == 0
    assert "helpers.py: has no pipeline, so only its types were checked" in result.stdout


def test_a_file_that_does_not_load_keeps_no_other_from_being_checked(file: Path) -> None:
    file.write_text(SHORT)
    file.with_name("broken.py").write_text("def (\n")
    result = command("check", "broken.py", file, "missing.py", "--no-types")
    assert result.exit_code == 2
    assert [line.rpartition(" ")[2] for line in result.stdout.splitlines() if line.endswith("]")] == ["[OX6002]", "[OX3021]", "[OX6001]"]


def test_a_file_that_is_no_python_keeps_mypy_from_no_other(typed: Path) -> None:
    typed.with_name("broken.py").write_text("def f(:\n")
    typed.write_text(TILES.replace("    full.inval()\n", "    full.inval()\n    full.inval()\n"))
    result = command("check", typed, typed.with_name("broken.py"))
    assert result.exit_code == 2
    assert "[OX6002]" in result.stdout
    assert "[oxidecopy-moved]" in result.stdout
    assert "[syntax]" not in result.stdout, "it is said already"


def test_a_path_that_goes_up_is_one_file_for_all(typed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    typed.write_text(TILES.replace("    full.inval()\n", "    full.inval()\n    full.inval()\n"))
    (typed.parent / "below").mkdir()
    monkeypatch.chdir(typed.parent / "below")
    result = command("check", "../mine.py", "--json")
    data = json_of(result)
    assert result.exit_code == 1
    assert {row["file"] for row in data["errors"]} == {str(typed)}
    assert {row["gate"] for row in data["errors"]} == {"types", "program"}


def test_one_file_by_two_names(file: Path) -> None:
    file.write_text(TILES + another("good"))
    data = json_of(command("check", f"{file}:good", f"{file}:tiles", f"{file}:good", "--no-types", "--json"))
    assert [launch["name"] for launch in data["launches"]] == ["good:good_whole", "tiles:whole"]


# ---- SARIF
def test_sarif(file: Path) -> None:
    file.write_text(SHORT)
    assert command("check", file, "--no-types", "--sarif", "out.sarif").exit_code == 1
    data = json.loads((file.parent / "out.sarif").read_text())
    assert data["version"] == "2.1.0"
    (run,) = data["runs"]
    (result,) = run["results"]
    (rule,) = run["tool"]["driver"]["rules"]
    assert (rule["id"], rule["shortDescription"]["text"]) == ("OX3021", all_rules()["OX3021"].title)
    assert (result["ruleId"], result["ruleIndex"], result["level"]) == ("OX3021", 0, "error")
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "mine.py", "uriBaseId": "SRCROOT"}
    assert place["region"] == {"startLine": line_of(SHORT, "src.g2s")}


@pytest.mark.parametrize(("source", "code", "results"), [(TILES, 0, 0), ("def (\n", 2, 1)])
def test_sarif_is_written_whatever_was_found(file: Path, source: str, code: int, results: int) -> None:
    file.write_text(source)
    assert command("check", file, "--no-types", "--sarif", "out.sarif").exit_code == code
    assert len(json.loads((file.parent / "out.sarif").read_text())["runs"][0]["results"]) == results


def test_sarif_where_nothing_can_be_written(file: Path) -> None:
    result = command("check", file, "--no-types", "--sarif", "nowhere/out.sarif")
    assert result.exit_code == 2
    assert "[OX5027]" in result.stderr


def test_a_mypy_that_hangs_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mypy_run, "_TIMEOUT_SECONDS", 0)
    (finding,) = mypy_run.check_types([tmp_path / "x.py"]).findings
    assert finding.diagnostic.rule == "OX6011"
