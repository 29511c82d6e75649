"""Medians, targets, and what a result says of its machine."""

from __future__ import annotations

import os
from typing import Literal

import pytest

from oxidecopy.bench.measure import Measured, cpu_model, load, one_core, seconds


@pytest.mark.parametrize(
    ("better", "target", "passed"), [("lower", 2.0, True), ("lower", 1.9, False), ("higher", 2.0, True), ("higher", 2.1, False)]
)
def test_the_median_counts(better: Literal["lower", "higher"], target: float, passed: bool) -> None:
    row = Measured(what="x", unit="ms", samples=(9.0, 1.0, 2.0), target=target, better=better, of="y")
    assert (row.median, row.least, row.most) == (2.0, 1.0, 9.0)
    assert row.passed is passed
    assert row.as_data()["passed"] is passed
    assert row.target_words.endswith(f"{target:g} ms")


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
