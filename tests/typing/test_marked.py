"""Mistakes in copies, factories of descriptors and what is validated are type errors in plain mypy; their right twins are none."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FOLDERS = ("copies", "descriptors", "products")
LEAST = {"copies": 26, "descriptors": 26, "products": 17}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[int]]:
    """Lines with an error, by file, without our plugin."""
    cache = tmp_path_factory.mktemp("mypy")
    files = [str(path) for folder in FOLDERS for path in sorted((HERE / folder).glob("*.py"))]
    command = [sys.executable, "-m", "mypy", "--config-file=", "--strict", f"--cache-dir={cache}", *files]
    environment = {**os.environ, "MYPYPATH": str(ROOT)}
    made = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cache, env=environment, timeout=300)
    assert made.returncode in (0, 1), made.stderr
    lines: dict[str, set[int]] = {}
    for match in re.finditer(r"^\S*?(\w+)\.py:(\d+): error:", made.stdout, re.MULTILINE):
        lines.setdefault(match[1], set()).add(int(match[2]))
    return lines


@pytest.mark.parametrize("folder", FOLDERS)
def test_mistakes_are_errors_and_nothing_else_is(found: dict[str, set[int]], folder: str) -> None:
    bad = (HERE / folder / f"{folder}_bad.py").read_text()
    wanted = {i for i, line in enumerate(bad.splitlines(), 1) if "# E" in line}
    assert len(wanted) >= LEAST[folder]
    assert {name: lines for name, lines in found.items() if name.startswith(folder)} == {f"{folder}_bad": wanted}
    assert all(name.startswith(FOLDERS) for name in found)
