"""How values look in errors, and what counts as an integer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.errors import RecordError, StateError
from oxidecopy.typed.refusal import described, refuse, require, whole


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (3, 3),
        (-1, -1),
        (np.int8(3), 3),
        (np.uint64(1 << 63), 1 << 63),
        (True, None),
        (np.bool_(True), None),
        (3.0, None),
        ("3", None),
        (None, None),
    ],
)
def test_whole(value: Any, number: int | None) -> None:
    assert whole(value) == number


def test_whole_of_a_symbol_refuses_by_itself() -> None:
    with pytest.raises(ox.errors.SymbolicError):
        whole(ox.minimum(1, 2))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (3, "3 (int)"),
        ("a", "'a' (str)"),
        (None, "None (NoneType)"),
        ((1, 2), "(1, 2) (tuple)"),
        (ox.f32, "the class f32"),
        ([1], "list"),
        (np.zeros(1000), "ndarray"),
    ],
)
def test_described(value: Any, words: str) -> None:
    assert described(value) == words


def test_require() -> None:
    assert require(3, int, "`f`", "pass one") == 3
    with pytest.raises(RecordError) as caught:
        require("3", int, "`f`", "pass one")
    assert str(caught.value.diagnostics[0]).endswith("`f` takes a int [OX1009]\n  got: '3' (str)\n  required: int\n  fix: pass one")


def test_long_values_are_cut() -> None:
    with pytest.raises(StateError) as caught:
        refuse(StateError, "OX1001", "x", got="y" * 10_000)
    assert len(caught.value.diagnostics[0].got) == 200
