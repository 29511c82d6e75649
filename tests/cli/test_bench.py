"""`oxidecopy bench gpu` with a suite that measures nothing: the table with its bars, the files, the exit status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from oxidecopy.bench import gpu, row_files
from oxidecopy.bench.measure import Absent, Floor, Measured, Row
from tests.helpers.command import command

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

GOOD = Measured(what="near", unit="x", samples=(0.995,), target=0.9, better="higher", of="y", floor=Floor("a copy", 0.995))
BAD = Measured(what="far", unit="x", samples=(0.267,), target=0.9, better="higher", of="y", floor=Floor("a copy", 0.267))
PLAIN = Measured(what="plain", unit="us", samples=(4.0,), target=None, better="lower", of="y")
MISSING = Absent(what="other to ours", why="not installed", of="y")


def play(monkeypatch: pytest.MonkeyPatch, *rows: Row) -> None:
    data = {"device": "a GPU", "date": "today", "rows": [row.as_data() for row in rows]}
    monkeypatch.setattr(gpu, "open_bench", lambda: None)
    monkeypatch.setattr(gpu, "measure_all", lambda *_: (rows, []))
    monkeypatch.setattr(gpu, "as_data", lambda *_: data)


def test_bars_show_how_near_the_floor_is(monkeypatch: pytest.MonkeyPatch) -> None:
    play(monkeypatch, GOOD, BAD, PLAIN, MISSING)
    result = command("bench", "gpu")
    assert result.exit_code == 1
    lines = {line.split()[0]: line.rstrip() for line in result.stdout.splitlines()}
    assert lines["near"].endswith("OK      ███████████▉ 0.995")
    assert lines["far"].endswith("MISSED  ███▏         0.267")
    assert lines["plain"].split() == ["plain", "4.0", "us", "4.0", "to", "4.0"]
    assert lines["other"].split() == ["other", "to", "ours", "not", "installed", "-"]


def test_a_missing_peer_and_no_target_end_with_0(monkeypatch: pytest.MonkeyPatch) -> None:
    play(monkeypatch, PLAIN, MISSING)
    result = command("bench", "gpu")
    assert result.exit_code == 0
    assert "floor" not in result.stdout


def test_a_run_that_is_cut_short_leaves_what_it_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play(monkeypatch, GOOD, PLAIN)
    seen: list[bool] = []

    def measured(_bench: object, _runs: int, _say: object, keep: Callable[[list[Row], list[object]], None]) -> object:
        keep([GOOD], [])
        raise KeyboardInterrupt

    def data(_bench: object, rows: list[Row], _rates: object, _runs: int, *, complete: bool) -> dict[str, object]:
        seen.append(complete)
        return {"rows": [row.as_data() for row in rows]}

    monkeypatch.setattr(gpu, "measure_all", measured)
    monkeypatch.setattr(gpu, "as_data", data)
    command("bench", "gpu", "--output", tmp_path / "r.json")
    assert [row["what"] for row in json.loads((tmp_path / "r.json").read_text())["rows"]] == ["near"]
    assert seen == [False]


def test_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play(monkeypatch, GOOD)
    drawn: list[tuple[Path, str]] = []
    monkeypatch.setattr(row_files, "write_bars", lambda path, _, title: drawn.append((path, title)))
    made = tmp_path / "r.json", tmp_path / "r.csv", tmp_path / "r.png"
    assert command("bench", "gpu", "--output", made[0], "--csv", made[1], "--bars", made[2]).exit_code == 0
    assert json.loads(made[0].read_text())["rows"][0]["of_floor"] == 0.995
    assert made[1].read_text().startswith("what,unit,median")
    assert drawn == [(made[2], "a GPU, today")]
