"""`check --schedules`: what is said of some and of all schedules, and that giving up is no success."""

from __future__ import annotations

from pathlib import Path

import pytest

from oxidecopy.cli import schedules
from oxidecopy.errors import UsageError
from tests.helpers.command import TILES, TWIN, command, json_of

LONG = TILES.replace("    full.wait(token)", "    for _ in cta.range(9000):\n        cta.sync()\n    full.wait(token)")
# Stores of all blocks to one place: the verifier is told nothing of it by a recipe that declares the refusal.
RACE = TILES.replace("cta.store(out, tile, (cta.block_idx.x * 64,))", "cta.store(out, tile, (0,))")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "mine.py"
    path.write_text(TILES)
    return path


@pytest.mark.parametrize(("text", "given"), [("all", "all"), ("1", 1), ("100000", 100_000), (None, None)])
def test_what_may_be_asked_for(text: str | None, given: object) -> None:
    assert schedules.wanted(text) == given


@pytest.mark.parametrize("text", ["0", "-1", "many", "100001", "1.5", "", "All"])
def test_what_may_not(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        schedules.wanted(text)
    assert caught.value.rule == "OX6025"


def test_a_wrong_number_is_a_wrong_command_line(file: Path) -> None:
    assert command("check", file, "--no-types", "--schedules", "none").exit_code == 2


def test_all_schedules_of_a_good_file(file: Path) -> None:
    result = command("check", file, "--no-types", "--schedules", "all")
    assert result.exit_code == 0
    assert "tiles:whole, run: all schedules: " in result.stdout
    assert "after reduction, of about 10^" in result.stdout
    assert result.stdout.count("nothing wrong") == 1


def test_some_schedules(file: Path) -> None:
    result = command("check", file, "--no-types", "--schedules", "3")
    assert result.exit_code == 0
    assert "3 schedules drawn by seed: nothing wrong" in result.stdout


def test_a_declared_twin_shows_what_would_have_happened(file: Path) -> None:
    file.write_text(TWIN)
    result = command("check", file, "--no-types", "--schedules", "all")
    assert result.exit_code == 0
    assert "is refused, as declared" in result.stdout
    assert "twin:twin_whole, had it run: all schedules: " in result.stdout
    assert "deadlock (OX4001, " in result.stdout
    rows = json_of(command("check", file, "--no-types", "--schedules", "all", "--json"))["launches"]
    good, twin = (row["schedules"] for row in rows)
    assert (good["complete"], good["clean"], good["outcomes"], good["bound"]) == (True, True, ["ok"], None)
    assert (twin["complete"], twin["clean"], twin["outcomes"]) == (True, False, ["deadlock", "ok"])
    assert [row["ok"] for row in rows] == [True, True]


def test_giving_up_is_an_error(file: Path) -> None:
    file.write_text(LONG)
    result = command("check", file, "--no-types", "--schedules", "all")
    assert result.exit_code == 1
    assert "[OX6026]" in result.stdout
    assert "gave up after 5,000 steps of one cluster, loops written out" in result.stdout
    assert "0 of 1 launches fine" in result.stdout
    assert command("check", file, "--no-types", "--schedules", "1").exit_code == 0


def test_nothing_is_run_that_is_refused(file: Path) -> None:
    file.write_text(RACE)
    result = command("check", file, "--no-types", "--schedules", "all")
    assert result.exit_code == 1
    assert "[OX3201]" in result.stdout
    assert "run: " not in result.stdout
