"""`python -m oxidecopy.trace.lessons`: every program is followed, right, and written down."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from oxidecopy.trace.lessons import LESSONS, main

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_in_simulated_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "timelines.json"
    assert main(["--device", "sim", "--output", str(file)]) == 0
    made = json.loads(file.read_text())
    assert [row["program"] for row in made["rows"][:-1]] == [f"{lesson}, {name}" for lesson, name in LESSONS]
    assert made["rows"][-1]["program"].startswith("copy of 1 MiB")
    assert all(row["right"] and row["outcome"] == "ok" and row["ops"] and row["stalls"] for row in made["rows"])
    assert capsys.readouterr().out.count(": ok;") == len(LESSONS) + 1
