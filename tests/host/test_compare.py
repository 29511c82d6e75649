"""Equality of results: bytes, NaN, shapes and types."""

from __future__ import annotations

import warnings

import ml_dtypes
import numpy as np
import pytest

from oxidecopy.host.compare import difference

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_equal() -> None:
    assert difference("x", X, X.copy()) is None
    assert difference("x", X.T, np.ascontiguousarray(X.T)) is None


def test_first_and_count() -> None:
    other = X.copy()
    other[0, 2] = other[1, 0] = -1
    found = difference("x", other, X)
    assert found is not None
    assert (found.index, found.count, found.size, found.got, found.required) == ((0, 2), 2, 6, "-1.0", "2.0")
    assert str(found) == "x differs in 2 of 6 elements, first at [0, 2]: got -1.0, expected 2.0"


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2])
def test_any_nan_equals_any_nan(dtype: type[np.generic]) -> None:
    plus = np.array([1, np.nan], dtype)
    minus = np.array([1, -np.nan], dtype)
    assert difference("x", plus, minus) is None
    with warnings.catch_warnings():  # ml_dtypes warns where it compares NaN
        warnings.simplefilter("error")
        assert difference("x", plus, np.array([1, 2], dtype)) is not None


def test_signed_zeros_differ() -> None:
    assert difference("x", np.array([0.0]), np.array([-0.0])) is not None


def test_shape_and_type() -> None:
    assert str(difference("x", X, X[:1])) == "x is float32 (2, 3), expected float32 (1, 3)"
    assert str(difference("x", X, X.astype(np.float64))) == "x is float32 (2, 3), expected float64 (2, 3)"


def test_raw_bytes_of_a_file_stand_for_the_type_of_the_output() -> None:
    x = np.array([1, 2, np.nan], ml_dtypes.bfloat16)
    assert difference("x", x, x.view("V2")) is None
    assert difference("x", x, x[::-1].copy().view("V2")) is not None


def test_integers() -> None:
    assert difference("x", np.array([1, 2]), np.array([1, 2])) is None
    assert difference("x", np.array([1, 2]), np.array([1, 3])) is not None


def test_numbers_may_be_as_far_apart_as_is_allowed() -> None:
    a, b = np.array([1.0, -0.0, np.nan], np.float16), np.array([1.001, 0.0, np.nan], np.float16)
    assert difference("x", a, b, 0.01) is None
    found = difference("x", a, b, 0.0001)
    assert found is not None
    assert found.count == 1
    assert difference("x", a, np.array([1, 0, 0], np.float16), 0.01) is not None  # a number is not near NaN
