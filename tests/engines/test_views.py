"""Which views of memory share bytes, held against numpy."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.engines import views
from oxidecopy.engines.base import Bindings, BoundArray
from oxidecopy.engines.views import View, shared_views, view
from oxidecopy.program.program import ArrayInfo

MEMORY = np.zeros(256, np.uint8)
KINDS: tuple[Any, ...] = (np.uint8, np.uint16, np.uint32)


def cut(rng: Random) -> np.ndarray[Any, Any]:
    """Some slices of the memory as an array of one to three dimensions, perhaps permuted or broadcast."""
    array = MEMORY.view(rng.choice(KINDS)).reshape(rng.choice([(-1,), (8, -1), (4, 4, -1)]))
    for axis, n in enumerate(array.shape):
        first = rng.randrange(n)
        part = slice(first, rng.randrange(first + 1, n + 1), rng.choice([1, 1, 2]))
        array = array[(*[slice(None)] * axis, part)]
    if rng.random() < 0.3:
        array = array.transpose(rng.sample(range(array.ndim), array.ndim))
    return np.broadcast_to(array[:1], array.shape) if rng.random() < 0.1 else array


def seen(array: np.ndarray[Any, Any]) -> View:
    start = MEMORY.ctypes.data
    return view(array.ctypes.data, array.shape, array.strides, array.itemsize, start + len(MEMORY))


@pytest.mark.parametrize("seed", range(400))
def test_two_views(seed: int) -> None:
    rng = Random(seed)
    one, other = cut(rng), cut(rng)
    same, pairs = shared_views([("one", seen(one)), ("other", seen(other))])
    assert bool(same or pairs) == np.shares_memory(one, other)


def columns(count: int, width: int) -> list[tuple[str, View]]:
    """Columns of one matrix, each of which reaches over all others."""
    end = 1 << 20
    return [(str(i), view(4 * i * 8, (64, width), (8 * 4 * count + 32, 4), 4, end)) for i in range(count)]


def test_views_on_one_grid_are_compared_without_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of entries of a table would take seconds."""

    def searched(*_: View) -> bool:
        raise AssertionError

    monkeypatch.setattr(views, "_share", searched)
    assert shared_views(columns(100, 8)) == ((), ())
    assert len(shared_views(columns(100, 9))[1]) == 99


def test_buffers_of_their_own_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    dev = ox.Device.open("sim")
    a, b = dev.zeros((4, 4), ox.f32), dev.zeros((4, 4), ox.f32)
    info = ArrayInfo(dtype="f32", shape=(4, 4), strides_bytes=(16, 4))

    def bound(*buffers: Any) -> Bindings:
        arrays = {str(n): BoundArray(info=info, buffer=buffer) for n, buffer in enumerate(buffers)}
        return Bindings(grid=(1, 1, 1), maps={}, arrays=arrays, idx={}, scalars={})

    assert bound(a.buffer, b.buffer, a.buffer).launch(90).same == (("0", "2"),)
    monkeypatch.setattr("oxidecopy.engines.base.shared_views", None)
    assert bound(a.buffer, b.buffer).launch(90).same == ()
