"""What the plugin costs: the file is plain and clean, rows and result are whole. Cost itself: docs/results."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from oxidecopy.bench import checked_file, plugin
from oxidecopy.bench.plugin import Cost, Pair
from oxidecopy.errors import ExecutionError
from tests.helpers.command import command


def test_the_file_is_as_long_as_asked() -> None:
    text = checked_file.text(2000)
    assert 2000 <= text.count("\n") < 2100
    names = [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    assert len(names) == len(set(names)) > 100
    assert text.count("EDIT: Final = 0") == 1


def test_differences() -> None:
    pair = Pair(plain=Cost(seconds=2.0, memory_mb=100.0), plugged=Cost(seconds=2.5, memory_mb=110.0))
    assert (pair.more_seconds, pair.more_percent, pair.more_mb) == (0.5, 25.0, 10.0)


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin, "_LINES", 60)
    for name in ("_COLD_PERCENT", "_EDITED_MS", "_UNCHANGED_PERCENT", "_MEMORY_MB"):
        monkeypatch.setattr(plugin, name, 1e9)


@pytest.mark.usefixtures("_small")
def test_all_rows_and_the_file(tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    result = command("bench", "plugin", "--runs", "1", "--output", path)
    assert result.exit_code == 0
    assert result.stdout.count("OK") == 5
    data = json.loads(path.read_text())
    assert [row["unit"] for row in data["rows"]] == ["%", "ms", "%", "MB", "MB"]
    assert data["command"] == "oxidecopy bench plugin --runs 1"
    assert all(data[key] for key in ("date", "cpu", "python", "mypy", "oxidecopy", "platform"))


def test_a_file_with_an_error_measures_nothing(tmp_path: Path) -> None:
    (tmp_path / "pipelines.py").write_text("x: int = ''\n")
    (tmp_path / "plain.ini").write_text("[mypy]\n")
    with pytest.raises(ExecutionError) as caught:
        plugin._mypy(tmp_path, "plain", cache="c")
    assert caught.value.rule == "OX6011"


def test_without_mypy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oxidecopy.cli.bench.find_spec", lambda _: None)
    result = command("bench", "plugin")
    assert result.exit_code == 2
    assert "pip install 'oxidecopy[mypy]'" in result.stderr
