"""Mistakes of operation, type, rank and mode in copies are type errors in plain mypy; their right twins are none."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "copies"
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[int]]:
    """Lines with an error, by file, without our plugin."""
    cache = tmp_path_factory.mktemp("mypy")
    command = [sys.executable, "-m", "mypy", "--config-file=", "--strict", f"--cache-dir={cache}", *map(str, sorted(FOLDER.glob("*.py")))]
    environment = {**os.environ, "MYPYPATH": str(ROOT)}
    made = subprocess.run(command, capture_output=True, text=True, check=False, cwd=FOLDER, env=environment, timeout=300)
    assert made.returncode in (0, 1), made.stderr
    lines: dict[str, set[int]] = {}
    for match in re.finditer(r"^(\w+)\.py:(\d+): error:", made.stdout, re.MULTILINE):
        lines.setdefault(match[1], set()).add(int(match[2]))
    return lines


def test_mistakes_are_errors_and_nothing_else_is(found: dict[str, set[int]]) -> None:
    wanted = {i for i, line in enumerate((FOLDER / "copies_bad.py").read_text().splitlines(), 1) if "# E" in line}
    assert len(wanted) > 25
    assert found == {"copies_bad": wanted}
