"""Every marked line of the contract is an error in four type checkers, no other line is; the page that says so is up to date."""

from __future__ import annotations

from functools import cache

import pytest

from oxidecopy._tools import checkers
from oxidecopy._tools.checkers import CHECKERS, FILES, PAGE, Verdict, marked, page


@cache
def verdicts(checker: str) -> dict[str, Verdict]:
    return checkers.verdicts(checker)


@pytest.mark.parametrize("checker", CHECKERS)
@pytest.mark.parametrize("file", FILES)
@pytest.mark.xdist_group("checkers")
def test_marked_lines_and_no_others(checker: str, file: str) -> None:
    verdict = verdicts(checker)[file]
    known = marked(file)
    assert {n: known[n] for n in sorted(verdict.missed)} == {}
    assert sorted(verdict.unexpected) == []


@pytest.mark.xdist_group("checkers")
def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page({checker: verdicts(checker) for checker in CHECKERS})


def test_a_difference_is_told() -> None:
    nothing = Verdict(frozenset(), frozenset(), frozenset())
    results = {"mypy": dict.fromkeys(FILES, nothing) | {"types_bad": Verdict(frozenset({23}), frozenset({19}), frozenset({1}))}}
    text = page(results)
    assert "1 of 2, 1 false" in text
    assert "- mypy misses `types_bad.py` line 19: cta.barrier().arrive_expect_tx(leader, 8192)" in text
    assert "- mypy flags `types_bad.py` line 1, which is right" in text


def test_a_page_that_is_out_of_date(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(checkers, "verdicts", lambda _: dict.fromkeys(FILES, Verdict(frozenset(), frozenset(), frozenset({9}))))
    assert checkers.main(["--check"]) == 1
    assert "out of date" in capsys.readouterr().out


def test_a_checker_that_fails_is_no_verdict() -> None:
    with pytest.raises(RuntimeError):
        checkers._output(["sh", "-c", "exit 3"])
