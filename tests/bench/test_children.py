"""Scripts in fresh interpreters: what they print, what they say when they fail, where their compiled files go."""

from __future__ import annotations

from pathlib import Path

import pytest

from oxidecopy.bench import children
from oxidecopy.bench.children import ChildError, child


def test_words_and_compiled_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert child("import colorsys; print(1, 'two')", compiled=tmp_path) == ("1", "two")
    assert list(tmp_path.rglob("colorsys.*.pyc"))


def test_the_last_line_of_what_went_wrong() -> None:
    with pytest.raises(ChildError, match=r"^ModuleNotFoundError: No module named 'no_such_library'$"):
        child("import no_such_library")
    with pytest.raises(ChildError, match="it ended with 3"):
        child("raise SystemExit(3)")


def test_children_that_hang_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "_SECONDS", 0.2)
    with pytest.raises(ChildError, match="not done after"):
        child("import time; time.sleep(60)")
