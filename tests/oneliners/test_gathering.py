"""`ox.gather_rows`, with numpy as the oracle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.errors import ArgumentError, DTypeError, OxidecopyError, ShapeError


@pytest.fixture(scope="module")
def dev() -> ox.Device:
    return ox.Device.open("sim")


@pytest.mark.parametrize(
    ("shape", "dtype", "count", "index"),
    [
        ((30, 68), np.float32, 45, np.int32),
        ((7, 640), np.float32, 9, np.int32),
        ((5, 5000), np.uint8, 9, np.int32),
        ((30, 67), np.float16, 1, np.int64),
        ((9, 3, 208), np.uint8, 20, np.uint32),
    ],
)
def test_rows_by_number(dev: ox.Device, shape: Any, dtype: Any, count: int, index: Any) -> None:
    rng = np.random.default_rng(1)
    x, at = rng.integers(0, 100, shape).astype(dtype), rng.integers(0, shape[0], count).astype(index)
    table = dev.array(x.reshape(shape[0], -1), pad=True)
    wanted = x.reshape(shape[0], -1)[at]
    for _ in range(2):
        assert (ox.gather_rows(table, dev.array(at)).numpy() == wanted).all()
    if len(shape) == 3:
        assert (ox.gather_rows(dev.array(x), dev.array(at)).numpy() == x[at]).all()


def test_an_output_that_no_map_can_be_made_of(dev: ox.Device) -> None:
    x, at = np.arange(12 * 20, dtype=np.float32).reshape(12, 20), np.array([3, 3, 11, 0, 7], np.int32)
    whole = dev.zeros((7, 31), ox.f32)
    said = ox.gather_rows(dev.array(x), dev.array(at), out=whole[1:6, 5:25], explain=True)
    assert said.temporaries
    assert (whole.numpy() == np.pad(x[at], ((1, 1), (5, 6)))).all()


def test_rows_whose_dimensions_lie_in_another_order(dev: ox.Device) -> None:
    x, at = np.arange(5 * 16 * 12, dtype=np.float32).reshape(5, 16, 12), np.array([4, 4, 0], np.int32)
    turned, numbers = dev.array(x).permute(0, 2, 1), dev.array(at)
    assert (ox.gather_rows(turned, numbers).numpy() == x.transpose(0, 2, 1)[at]).all()
    out = dev.empty((3, 16, 12), ox.f32)
    said = ox.gather_rows(turned, numbers, out=out.permute(0, 2, 1), explain=True)
    assert not said.temporaries
    assert (out.numpy() == x[at]).all()


def test_a_number_beyond_the_table_is_reported(dev: ox.Device) -> None:
    with pytest.raises(OxidecopyError) as caught:
        ox.gather_rows(dev.zeros((4, 64), ox.f32), dev.array(np.array([1, 4], np.int32), ox.i32))
    assert "OX4015" in caught.value.rules


@pytest.mark.parametrize("before", [0, 1, 3])  # calls: a plan is made, is kept, and its arrays are known
def test_the_line_is_that_of_the_call_that_failed(dev: ox.Device, before: int) -> None:
    """Not that of the call which the plan was made for."""
    table, numbers, out = dev.zeros((4, 96), ox.f32), dev.array(np.array([1, 9], np.int32), ox.i32), dev.empty((2, 96), ox.f32)
    fine = dev.array(np.array([1, 2], np.int32), ox.i32)
    for _ in range(before):
        ox.gather_rows(table, fine, out=out)
    for _ in range(2):
        with pytest.raises(OxidecopyError) as caught:
            ox.gather_rows(table, numbers, out=out)  # here
        lines = Path(__file__).read_text().splitlines()
        for site in (caught.value.diagnostics[0].site, *(cause.site for cause in caught.value.diagnostics[0].causes)):
            assert site is not None
            assert lines[site.line - 1].endswith("# here")


def refused(rule: str, error: type[OxidecopyError], *args: Any, **options: Any) -> None:
    with pytest.raises(error) as caught:
        ox.gather_rows(*args, **options)
    assert rule in caught.value.rules


def test_what_is_refused(dev: ox.Device) -> None:
    table, at = dev.zeros((8, 64), ox.f32), dev.array(np.array([1, 2], np.int32))
    refused("OX1200", ShapeError, table, dev.array(np.array([[1, 2]], np.int32)))
    refused("OX1200", ShapeError, table, at, out=dev.empty((3, 64), ox.f32))
    refused("OX1201", DTypeError, table, dev.zeros((4,), ox.f32))
    refused("OX1201", DTypeError, table, at, out=dev.empty((2, 64), ox.f16))
    refused("OX1202", ArgumentError, table, at, out=table[:2])
    refused("OX1207", ArgumentError, dev.zeros((8, 63), ox.f32), at)
    refused("OX1207", ArgumentError, table[:, ::2], at)
