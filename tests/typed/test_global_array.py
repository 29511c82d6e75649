"""`GlobalArray`: what it says of itself, and its copy to numpy under any strides and offset."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oxidecopy.errors import ExportError
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.typed import dtypes
from oxidecopy.typed.global_array import GlobalArray, storage_dtype
from tests.helpers.memory_engine import memory_device


def _array(
    shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0
) -> tuple[GlobalArray[dtypes.f32, Any], np.ndarray[Any, np.dtype[np.float32]]]:
    """An f32 array over a buffer that holds 0, 1, 2, ... in 256 elements."""
    dev, engine = memory_device()
    buffer = engine.allocate(1024)
    numbers = np.arange(256, dtype=np.float32)
    engine.write(buffer, 0, numbers.view(np.uint8).data)
    return GlobalArray(dtype=dtypes.f32, shape=shape, strides_bytes=strides, buffer=buffer, device=dev, offset_bytes=offset), numbers


@pytest.mark.parametrize(
    ("shape", "strides", "offset"),
    [
        ((4, 8), (32, 4), 0),
        ((3, 5), (32, 4), 16),
        ((3, 5), (0, 4), 0),
        ((5, 6), (16, 4), 4),
        ((8, 4), (4, 64), 0),
        ((16, 16), (64, 4), 0),
        ((1,), (4,), 1020),
    ],
)
def test_numpy_follows_strides_and_offset(shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> None:
    a, numbers = _array(shape, strides, offset)
    index = offset // 4 + sum(np.indices(shape)[i] * (s // 4) for i, s in enumerate(strides))
    out = a.numpy()
    assert (out == numbers[index]).all()
    assert out.flags.c_contiguous
    assert out.flags.writeable


def test_it_says_what_it_is() -> None:
    a, _ = _array((3, 5), (32, 4))
    assert (a.dtype, a.shape, a.strides_bytes, a.offset_bytes, a.sm) == (dtypes.f32, (3, 5), (32, 4), 0, 90)
    assert repr(a) == "GlobalArray(f32, shape=(3, 5), strides_bytes=(32, 4), device='memory')"


@pytest.mark.parametrize("name", [name for name, row in DTYPES.items() if row.bits % 8 == 0])
def test_storage_has_the_size_of_the_element(name: str) -> None:
    storage = storage_dtype(DTYPES[name])
    assert storage.name == DTYPES[name].numpy
    assert storage.itemsize == DTYPES[name].nbytes


@pytest.mark.parametrize("use", [copy.copy, copy.deepcopy, pickle.dumps, np.asarray, np.array])
def test_nothing_copies_an_array_unseen(use: Callable[[object], object]) -> None:
    a, _ = _array((4, 8), (32, 4))
    with pytest.raises(ExportError, match=r"OX5039(.|\n)*a\.numpy\(\)"):
        use(a)
