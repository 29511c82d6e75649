"""Medians, targets, and what a result says of its machine."""

from __future__ import annotations

import os
from typing import Literal

import pytest

from oxidecopy.bench.measure import Absent, Floor, Measured, cpu_model, load, one_core, seconds


@pytest.mark.parametrize(
    ("better", "target", "passed"), [("lower", 2.0, True), ("lower", 1.9, False), ("higher", 2.0, True), ("higher", 2.1, False)]
)
def test_the_median_counts(better: Literal["lower", "higher"], target: float, passed: bool) -> None:
    row = Measured(what="x", unit="ms", samples=(9.0, 1.0, 2.0), target=target, better=better, of="y")
    assert (row.median, row.least, row.most) == (2.0, 1.0, 9.0)
    assert row.passed is passed
    assert row.as_data()["passed"] is passed
    assert row.verdict == ("OK" if passed else "MISSED")
    assert row.cells == ("2.0 ms", "1.0 to 9.0", f"{'<=' if better == 'lower' else '>='} {target:g} ms")
    assert row.share is None


def test_where_nothing_is_asked_nothing_is_missed() -> None:
    row = Measured(what="x", unit="x", samples=(0.5,), target=None, better="higher", of="y", floor=Floor("a copy", 0.25))
    assert (row.passed, row.verdict, row.share, row.cells[2]) == (True, "", 0.25, "")
    assert {"target": None, "floor": "a copy", "of_floor": 0.25}.items() <= row.as_data().items()


def test_a_row_that_could_not_be_measured_says_why() -> None:
    row = Absent(what="x", why="not installed", of="y")
    assert (row.passed, row.verdict, row.share, row.cells) == (True, "-", None, ("not installed", "", ""))
    assert row.as_data() == {"what": "x", "of": "y", "absent": "not installed", "passed": True}


def test_one_core_is_given_back() -> None:
    if not hasattr(os, "sched_getaffinity"):
        pytest.skip("the system pins no processes")
    before = os.sched_getaffinity(0)
    with one_core():
        assert len(os.sched_getaffinity(0)) == 1
    assert os.sched_getaffinity(0) == before


def test_where_processes_cannot_be_pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_setaffinity", raising=False)
    with one_core():
        pass


def test_seconds_and_cpu() -> None:
    assert seconds(lambda: None) >= 0
    assert cpu_model()


def test_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (1.234, 0.0, 0.0), raising=False)
    assert load() == 1.23
    monkeypatch.delattr(os, "getloadavg")
    assert load() is None
