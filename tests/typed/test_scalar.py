"""Scalars are values: they are no condition, no number and no index while a pipeline is recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import oxidecopy as ox
from oxidecopy.errors import SymbolicError
from oxidecopy.typed.scalar import ScalarValue
from tests.helpers.recordings import refused

ALPHA: ScalarValue[Any] = ScalarValue("alpha", "i32", object())


def refuses(rule: str, use: Callable[[Any], object]) -> None:
    with pytest.raises(SymbolicError) as caught:
        use(ALPHA)
    assert caught.value.rules == (rule,)
    assert "alpha" in str(caught.value)


@pytest.mark.parametrize("use", [bool, lambda a: not a, lambda a: a and 1])
def test_no_truth(use: Callable[[Any], object]) -> None:
    refuses("OX1020", use)


@pytest.mark.parametrize("use", [int, float, complex, range, [1].__getitem__])
def test_no_number(use: Callable[[Any], object]) -> None:
    refuses("OX1021", use)


@pytest.mark.parametrize(
    "use",
    [
        lambda a: a + 1, lambda a: 1 + a, lambda a: a - 1, lambda a: 1 - a, lambda a: a * 2, lambda a: 2 * a,
        lambda a: a // 2, lambda a: 2 // a, lambda a: a % 2, lambda a: 2 % a, lambda a: a < 1, lambda a: a >= 1, lambda a: ox.minimum(a, 1),
    ],
)  # fmt: skip
def test_no_index(use: Callable[[Any], object]) -> None:
    refuses("OX1024", use)


def test_no_coordinate() -> None:
    def coordinate(cta: ox.Cta, out: Any, count: Any) -> None:
        cta.store(out, cta.shared(ox.f32, (4, 4), align=ox.A16), (count, 0))  # here

    def index(cta: ox.Cta, count: Any) -> None:
        cta.barriers(2).init(1)[count]  # here

    def product(cta: ox.Cta, count: Any) -> None:
        cta.block_idx.x * count  # here

    for pipe in (coordinate, index, product):
        refused(pipe, "OX1024")
