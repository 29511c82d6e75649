"""User code under four type checkers: wrong lines get an error, others none, and docs/checkers.md says who catches what.

Each checker runs once, on all files. The page is made by `python -m oxidecopy._tools.checker_table`.
"""

from __future__ import annotations

import pytest

from oxidecopy._tools.checker_table import CHECKERS, PAGE, Checker, column, differences, marks, run, sources, tables


@pytest.mark.parametrize("checker", CHECKERS, ids=lambda checker: checker.name)
def test_what_a_checker_catches(checker: Checker) -> None:
    files = sources()
    wanted = marks(files)
    found = run(checker)
    if checker.name == "mypy":
        assert differences(wanted, found, files) == []
    page = PAGE.read_text()
    rows = [[cell.strip() for cell in line.strip("|\n ").split("|")] for line in page.splitlines() if line.startswith("|")]
    header, *cells = rows[: rows.index(next(row for row in rows if row[0] == "**all**")) + 1]
    assert [row[header.index(checker.name)] for row in cells[1:]] == column(wanted, found)
    noted = [line.removeprefix(f"- {checker.name} ") for line in page.splitlines() if line.startswith(f"- {checker.name} ")]
    assert noted == differences(wanted, found, files)


def test_the_page_has_all_kinds_of_mistakes() -> None:
    everything = {(mark.file, mark.line) for mark in marks(sources())}
    perfect = {file: {line for other, line in everything if other == file} for file in sources()}
    made = [line.split("|")[1:3] for line in tables({"mypy": perfect}).splitlines() if line.startswith("|")]
    page = [line.split("|")[1:3] for line in PAGE.read_text().splitlines() if line.startswith("|")]
    assert page[: len(made)] == made


def test_there_is_code_of_every_kind() -> None:
    wanted = marks(sources())
    assert len(wanted) > 1000
    assert {mark.file for mark in wanted} == {
        "types_bad",
        "host",
        "level1",
        "rings",
        "rings_bad",
        "cubins",
        "tables",
        "interop",
        "matrix",
        "oneliners",
    }
