"""Which numbers fit which element types."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.typed.values import misfit, plain_number
from tests.helpers.recordings import refused

INTEGERS = {name: info for name, info in DTYPES.items() if not info.is_float and name not in ("e4m3", "e5m2")}
FLOATS = [name for name in DTYPES if name not in INTEGERS]


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_are_whole_and_in_range(name: str) -> None:
    bits = INTEGERS[name].bits
    low, high = (0, (1 << bits) - 1) if name.startswith("u") else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    for good in (low, high, 1):
        assert not misfit(good, name)
    for bad in (low - 1, high + 1, 1.0, math.inf, True):
        assert misfit(bad, name) == f"a whole number from {low} to {high}"
    assert "NaN" in misfit(math.nan, name)


@pytest.mark.parametrize("name", FLOATS)
def test_floats_take_any_number(name: str) -> None:
    for good in (0, -1, 0.1, math.nan, -math.inf, 1e300, (1 << 64) - 1, -(1 << 63)):
        assert not misfit(good, name)
    for bad in (True, 1 << 64, "1", None, 1j):
        assert misfit(bad, name)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (np.float32(0.5), 0.5),
        (np.int8(-3), -3),
        (np.uint64(1 << 63), 1 << 63),
        (np.array(2.5), 2.5),
        (ml_dtypes.bfloat16(1.5), 1.5),
        (np.bool_(True), None),
        (np.complex64(1), None),
        (np.zeros(1), None),
        (np.zeros(3), None),
        (np.str_("1"), None),
        ("1", None),
    ],
)
def test_numpys_numbers(value: Any, number: float | None) -> None:
    assert plain_number(value) == number


@pytest.mark.parametrize(("dtype", "value"), [(ox.i32, 0.5), (ox.u8, -1), (ox.u8, 256), (ox.i64, math.nan), (ox.f32, "1"), (ox.f16, None)])
def test_a_fill_value_that_does_not_fit(dtype: Any, value: Any) -> None:
    def pipe(cta: ox.Cta) -> None:
        cta.fill(cta.shared(dtype, (8,), align=ox.A16), value)  # here

    assert dtype.info.name in refused(pipe, "OX1066").what
