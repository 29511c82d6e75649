"""The tool that writes who catches what: marks, columns, notes, and what it does when a checker fails."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from oxidecopy._tools import checker_table
from oxidecopy._tools.checker_table import BrokenCheckerError, Checker, Mark, column, differences, main, marks, run, sources, tables

CODE = {"a": "def one__x() -> None:\n    f()  # E\n    g()\n\ndef two() -> None:\n    h()  # E why\n    i()  # E\n"}


def fake(answer: str, name: str = "mypy") -> Checker:
    """A checker that gives one answer: Python, printing it."""
    return Checker(name=name, arguments=(), read=lambda _: checker_table._lines(answer))


def test_marks() -> None:
    assert marks(CODE) == [
        Mark(file="a", line=2, kind="one", code="f()"),
        Mark(file="a", line=6, kind="two", code="h()"),
        Mark(file="a", line=7, kind="two", code="i()"),
    ]


def test_columns_and_notes() -> None:
    wanted = marks(CODE)
    assert column(wanted, {"a": {2, 6, 7}}) == ["all", "all", "**3**"]
    assert column(wanted, {"a": {3, 6}}) == ["0 of 1", "1 of 2", "**1**"]
    assert column(wanted, {}) == ["0 of 1", "0 of 2", "**0**"]
    assert differences(wanted, {"a": {3, 6}}, CODE) == ["misses `f()` (one)", "misses `i()` (two)", "reports `g()` (a.py)"]
    assert differences(wanted, {"a": {2, 6, 7}}, CODE) == []


def test_answers_are_read() -> None:
    concise = "a.py:3:5: error[no-overload] No\nb.py:4: error: x  [misc]\nb.py:5: note: y\nb.py:6:1: warning[z] y\n"
    assert list(checker_table._lines(concise)) == [("a", 3), ("b", 4)]
    pyright = '{"generalDiagnostics": [{"file": "/x/a.py", "severity": "SEVERITY", "range": {"start": {"line": 2}}}]}'
    assert list(checker_table._pyright(pyright.replace("SEVERITY", "error"))) == [("a", 3)]
    assert list(checker_table._pyright(pyright.replace("SEVERITY", "warning"))) == []
    pyrefly = '{"errors": [{"path": "a.py", "line": 7, "severity": "SEVERITY"}]}'
    assert list(checker_table._pyrefly(pyrefly.replace("SEVERITY", "error"))) == [("a", 7)]
    assert list(checker_table._pyrefly(pyrefly.replace("SEVERITY", "warning"))) == []


def test_a_checker_that_is_not_there() -> None:
    with pytest.raises(BrokenCheckerError, match="no_such_checker"):
        run(Checker(name="no_such_checker", arguments=(), read=checker_table._lines))
    with pytest.raises(BrokenCheckerError, match="usage"):
        run(Checker(name="mypy", arguments=("--no-such-option",), read=checker_table._lines))


@pytest.fixture(name="page")
def _page(tmp_path: Path) -> Path:
    path = tmp_path / "checkers.md"
    path.write_text("before\n<!-- checkers -->\nold\n<!-- /checkers -->\nafter\n")
    return path


def test_the_page_is_written_and_checked(page: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    everything = {file: {m.line for m in marks(sources()) if m.file == file} for file in sources()}
    monkeypatch.setattr(checker_table, "run", lambda _: everything)
    checkers = [fake("")]
    assert main(["--check"], checkers, page) == 1
    assert "-old" in capsys.readouterr().err
    assert main([], checkers, page) == 0
    assert main(["--check"], checkers, page) == 0
    text = page.read_text()
    assert text.startswith("before\n<!-- checkers -->\n| kind of mistake | lines | mypy |\n| --- | --- | --- |\n")
    assert text.endswith("No checker misses a marked line, and none reports a line without a mark.\n<!-- /checkers -->\nafter\n")


def test_a_checker_without_an_answer_ends_the_run(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = page.read_text()
    assert main([], [Checker(name="no_such_checker", arguments=(), read=checker_table._lines)], page) == 2
    assert "no_such_checker gives no answer" in capsys.readouterr().err
    assert page.read_text() == old


def test_missed_lines_are_listed() -> None:
    assert "- ty misses `cta.barrier().arrive_expect_tx(leader, 8192)` (before init)\n" in tables({"ty": {}})


def test_checkers_run_in_this_environment() -> None:
    assert {checker.name for checker in checker_table.CHECKERS} == {"mypy", "pyright", "ty", "pyrefly"}
    assert any(sys.executable in checker.arguments for checker in checker_table.CHECKERS)
