"""States of a stage from who touched it when."""

from __future__ import annotations

from typing import Final

import pytest

from oxidecopy.trace.tiles import Access, Segment, State, segments

F: Final = "filling"
U: Final = "used"
S: Final = "stored"


def of(*accesses: tuple[State, float, float], end: float = 100) -> list[tuple[str, float, float]]:
    return [(s.state, s.start, s.end) for s in segments([Access(*a) for a in accesses], end)]


def test_a_load_is_full_until_its_last_use_and_free_until_it_is_filled_again() -> None:
    assert of((F, 0, 10), (U, 15, 20), (F, 30, 40), (U, 40, 50)) == [(F, 0, 10), ("full", 10, 15), (U, 15, 20), (F, 30, 40), (U, 40, 50)]


def test_between_two_uses_it_is_full() -> None:
    assert of((F, 0, 10), (U, 10, 20), (S, 25, 30)) == [(F, 0, 10), (U, 10, 20), ("full", 20, 25), (S, 25, 30)]


def test_what_nobody_uses_stays_full() -> None:
    assert of((F, 0, 10), end=50) == [(F, 0, 10), ("full", 10, 50)]


def test_parts_that_are_loaded_one_by_one_are_one_filling() -> None:
    assert of((F, 0, 10), (F, 4, 14), (U, 20, 21)) == [(F, 0, 14), ("full", 14, 20), (U, 20, 21)]


def test_threads_that_use_it_together_are_one_use() -> None:
    assert of((F, 0, 10), (U, 10, 20), (U, 12, 22), (U, 22, 24)) == [(F, 0, 10), (U, 10, 24)]


def test_uses_of_two_sorts_do_not_lie_above_each_other() -> None:
    assert of((F, 0, 1), (U, 5, 20), (S, 10, 30)) == [(F, 0, 1), ("full", 1, 5), (U, 5, 20), (S, 20, 30)]
    assert of((F, 0, 1), (S, 5, 30), (U, 10, 20)) == [(F, 0, 1), ("full", 1, 5), (S, 5, 30)]


def test_used_before_it_was_ever_filled() -> None:
    assert of((U, 5, 9), (F, 20, 30)) == [(U, 5, 9), (F, 20, 30), ("full", 30, 100)]


@pytest.mark.parametrize("accesses", [(), ((F, 5.0, 5.0),)])
def test_nothing(accesses: tuple[tuple[State, float, float], ...]) -> None:
    assert of(*accesses, end=5) == []
    assert Segment("full", 0, 1) == Segment("full", 0, 1)
