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
def _stood_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of mypy, which the next test runs: what it costs with the plugin, a little more each time, and without."""
    asked: list[str] = []

    def cost(place: Path, config: str, *, cache: str) -> Cost:
        assert (place / f"{config}.ini").read_text().count("plugins") == (config == "plugged")
        asked.append(cache)
        assert ("EDIT: Final = 0" in (place / "pipelines.py").read_text()) == (len(asked) <= 4)  # compiled; cold; then edited
        return Cost(seconds=1.0 + 0.01 * (config == "plugged"), memory_mb=100.0)

    monkeypatch.setattr(plugin, "_mypy", cost)


@pytest.mark.usefixtures("_stood_in")
def test_all_rows_and_the_file(tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    result = command("bench", "plugin", "--runs", "1", "--output", path)
    assert result.exit_code == 0
    assert result.stdout.count("OK") == 5
    data = json.loads(path.read_text())
    assert [row["unit"] for row in data["rows"]] == ["%", "ms", "%", "MB", "MB"]
    assert data["command"] == "oxidecopy bench plugin --runs 1"
    assert all(data[key] for key in ("date", "cpu", "python", "mypy", "oxidecopy", "platform"))


def test_mypy_is_a_process_whose_cost_is_its_own(tmp_path: Path) -> None:
    (tmp_path / "pipelines.py").write_text("x: int = 1\n")
    (tmp_path / "plain.ini").write_text("[mypy]\n")
    cost = plugin._mypy(tmp_path, "plain", cache="c")
    assert 0.05 < cost.seconds < 60
    assert 10 < cost.memory_mb < 2000
    assert (tmp_path / "c").is_dir()


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
