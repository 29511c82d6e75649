"""Rows as files: what the table of a benchmark says, to be read and drawn elsewhere."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from oxidecopy.bench import row_files
from oxidecopy.bench.measure import Absent, Floor, Measured

ROWS = (
    Measured(
        what="a, of a copy", unit="x", samples=(0.5, 0.25, 1.0), target=0.9, better="higher", of="all of it", floor=Floor("a copy", 0.5)
    ),
    Measured(what="b", unit="us", samples=(3.0,), target=None, better="lower", of="a launch"),
    Absent(what="c to ours", why="not installed", of="c"),
)


def test_csv(tmp_path: Path) -> None:
    row_files.write_csv(tmp_path / "r.csv", ROWS)
    first, second, third = csv.DictReader((tmp_path / "r.csv").read_text().splitlines())
    assert first == {
        "what": "a, of a copy", "unit": "x", "median": "0.5", "min": "0.25", "max": "1.0", "target": "0.9", "better": "higher",
        "passed": "False", "floor": "a copy", "of_floor": "0.5", "absent": "", "of": "all of it",
    }  # fmt: skip
    assert (second["target"], second["passed"], second["floor"]) == ("", "True", "")
    assert (third["absent"], third["median"]) == ("not installed", "")


def test_bars(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    row_files.write_bars(tmp_path / "r.png", ROWS, "a GPU")
    assert (tmp_path / "r.png").read_bytes().startswith(b"\x89PNG")


def test_a_result_is_drawn_where_it_was_not_measured(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    result = {"device": "a GPU", "date": "today", "rows": [row.as_data() for row in ROWS]}
    assert [row.as_data() for row in row_files.read_rows(result)] == result["rows"]
    source, table, bars = tmp_path / "r.json", tmp_path / "r.csv", tmp_path / "r.png"
    source.write_text(json.dumps(result))
    assert row_files.main([str(source), str(table), str(bars)]) == 0
    assert table.read_text().splitlines()[3].startswith("c to ours,,")
    assert bars.read_bytes().startswith(b"\x89PNG")
