"""`ox.reduce_into`, with numpy as the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import oxidecopy as ox
from oxidecopy.errors import ArgumentError, DTypeError, OxidecopyError, ShapeError
from oxidecopy.oneliners import reducing

Array = npt.NDArray[Any]
add, least, most, both, some, odd = np.add, np.minimum, np.maximum, np.bitwise_and, np.bitwise_or, np.bitwise_xor


@pytest.fixture(scope="module")
def dev() -> ox.Device:
    return ox.Device.open("sim")


def numbers(shape: tuple[int, ...], dtype: Any) -> Array:
    found: Array = np.random.default_rng(len(shape)).integers(1, 100, shape).astype(dtype)
    return found


def combined(out: Array, x: Array, how: np.ufunc) -> Array:
    added = x.ndim - out.ndim
    axes = tuple(k for k in range(x.ndim) if k < added or (out.shape[k - added] == 1 and x.shape[k] > 1))
    found: Array = how(out, how.reduce(x, axis=axes, keepdims=True).reshape(out.shape))
    return found


@pytest.mark.parametrize(
    ("op", "how", "dtype", "shape", "into"),
    [
        (ox.reduce.add, add, np.int32, (7, 20, 64), (20, 64)),
        (ox.reduce.max, most, np.int32, (7, 20, 64), (1, 20, 64)),
        (ox.reduce.min, least, np.int64, (5, 4, 6, 32), (4, 1, 32)),
        (ox.reduce.bit_xor, odd, np.uint32, (20, 64), (20, 64)),
        (ox.reduce.bit_or, some, np.uint32, (33, 72), (72,)),
        (ox.reduce.bit_and, both, np.uint32, (33, 71), (1, 71)),
        (ox.reduce.min, least, np.int32, (300, 32), (32,)),
        (ox.reduce.add, add, np.float16, (9, 64), (1, 64)),  # small integers: exact in any order
        (ox.reduce.add, add, np.float32, (12, 70), (12, 1)),
        (ox.reduce.add, add, np.float32, (70, 520), (70, 1)),
        (ox.reduce.add, add, np.int32, (6, 9), (1, 1)),
        (ox.reduce.max, most, np.int32, (2100,), (1,)),
        (ox.reduce.add, add, np.int32, (3, 5, 40), (1, 1, 1)),
    ],
)
def test_elements_are_combined(dev: ox.Device, op: Any, how: np.ufunc, dtype: Any, shape: Any, into: Any) -> None:
    x, y = numbers(shape, dtype), numbers(into, dtype)
    x, y = (x % 8, y % 8) if dtype == np.float16 else (x, y)
    out = dev.array(y)
    for _ in range(2):  # the second time as it was planned
        assert ox.reduce_into(out, dev.array(x), op) is out
        y = combined(y, x, how)
    assert (out.numpy() == y).all()


def test_only_the_outputs_own_elements_are_written(dev: ox.Device) -> None:
    x, y = numbers((6, 13), np.int32), numbers((3, 32), np.int32)
    whole = dev.array(y)
    said = ox.reduce_into(whole[1:2, 3:16], dev.array(x, pad=True), ox.reduce.add, explain=True)
    assert said.temporaries
    y[1, 3:16] += x.sum(axis=0)
    assert (whole.numpy() == y).all()


def test_a_transposed_source(dev: ox.Device) -> None:
    x = numbers((20, 12), np.int32)
    out = dev.zeros((1, 20), ox.i32)
    assert (ox.reduce_into(out, dev.array(x, ox.i32).T, ox.reduce.add).numpy() == x.sum(axis=1)).all()


@pytest.mark.parametrize("into", [(1, 4, 1, 6), (3, 1, 5, 1), (3, 4, 1, 1), (3, 1, 5, 6), (1, 1, 5, 6)])
def test_rows_off_the_grid_between_dimensions_that_are_combined(dev: ox.Device, into: tuple[int, ...]) -> None:
    x = numbers((3, 4, 5, 6), np.int32)
    axes = tuple(k for k, n in enumerate(into) if n == 1)
    assert (ox.reduce_into(dev.zeros(into, ox.i32), dev.array(x, ox.i32), ox.reduce.add).numpy() == x.sum(axes, keepdims=True)).all()
    turned = dev.zeros(into[::-1], ox.i32).T
    assert (ox.reduce_into(turned, dev.array(x, ox.i32), ox.reduce.add).numpy() == x.sum(axes, keepdims=True)).all()


def test_a_column_of_a_wider_array(dev: ox.Device) -> None:
    x, whole = numbers((9, 17), np.int32), dev.zeros((9, 2), ox.i32)
    ox.reduce_into(whole[:, :1], dev.array(x, ox.i32), ox.reduce.add)
    assert (whole.numpy() == np.stack([x.sum(axis=1), np.zeros(9, np.int32)], axis=1)).all()


def test_arrays_of_numpy() -> None:
    x, out = numbers((6, 16), np.int32), np.zeros(16, np.int32)
    assert ox.reduce_into(out, x, ox.reduce.add) is out
    assert (out == x.sum(axis=0)).all()


def refused(rule: str, error: type[OxidecopyError], *args: Any) -> None:
    with pytest.raises(error) as caught:
        ox.reduce_into(*args)
    assert rule in caught.value.rules


def test_what_is_refused(dev: ox.Device) -> None:
    x = dev.array(numbers((8, 64), np.int32))
    refused("OX1200", ShapeError, dev.zeros((8, 32), ox.i32), x, ox.reduce.add)
    refused("OX1200", ShapeError, dev.zeros((2, 8, 64), ox.i32), x, ox.reduce.add)
    with pytest.raises(ShapeError, match=r"an `out` of shape \(8, 1\)"):  # sums of rows, as numpy shapes them
        ox.reduce_into(dev.zeros((8,), ox.i32), dev.array(numbers((8, 64), np.int32), ox.i32), ox.reduce.add)
    refused("OX1201", DTypeError, dev.zeros((64,), ox.i64), x, ox.reduce.max)
    refused("OX1202", ArgumentError, x[:1], x, ox.reduce.add)
    refused("OX1206", ArgumentError, dev.zeros((64,), ox.u32), dev.zeros((64,), ox.u32), ox.reduce.inc)
    with pytest.raises(DTypeError):
        ox.reduce_into(dev.zeros((64,), ox.f32), dev.zeros((8, 64), ox.f32), ox.reduce.max)  # type: ignore[misc]  # no type variable solves it


@pytest.mark.parametrize(
    ("shape", "into"), [((300, 96), (1, 96)), ((300, 96), (300, 1)), ((10, 3, 20), (3, 1)), ((16_501,), (1,)), ((6, 4, 70), (4, 70))]
)
@pytest.mark.parametrize(("dtype", "kind"), [(ox.f16, np.float16), (ox.bf16, "bfloat16")], ids=["f16", "bf16"])
def test_sums_of_halves_are_rounded_once(
    dev: ox.Device, dtype: Any, kind: Any, shape: Any, into: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small integers, whose sums f32 holds and halves do not: in any order of additions, with one rounding, the bits are numpy's."""
    monkeypatch.setattr(reducing, "_PARTIAL", 64)
    kind = np.dtype(getattr(pytest.importorskip("ml_dtypes"), kind) if isinstance(kind, str) else kind)
    rng = np.random.default_rng(len(shape))
    x, y = (rng.integers(0, 2, n).astype(kind) for n in (shape, into))
    out = dev.array(y, dtype)
    ox.reduce_into(out, dev.array(x, dtype), ox.reduce.add)
    wanted = combined(y.astype(np.float32), x.astype(np.float32), add)
    assert (out.numpy().view(np.uint16) == wanted.astype(kind).view(np.uint16)).all()


def test_one_half_for_each_is_added_where_it_lies(dev: ox.Device) -> None:
    out, x = dev.array(np.ones((16, 64), np.float16)), dev.array(np.full((16, 64), 2, np.float16))
    said = ox.reduce_into(out, x, ox.reduce.add, explain=True)
    assert (len(said.launches), said.temporaries) == (1, ())
    assert (out.numpy() == 3).all()
