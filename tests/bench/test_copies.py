from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.bench.copies import Copy, Schedule, box_of, shape_of


@pytest.mark.parametrize("rank", range(1, 6))
@pytest.mark.parametrize("nbytes", [1 << 10, 4 << 10, 64 << 10])
def test_boxes_hold_what_was_asked_for(rank: int, nbytes: int) -> None:
    box = box_of(nbytes, rank, 128 if rank > 1 else nbytes)
    if box is None:
        assert rank == 2  # 512 rows of 128 bytes: a box has at most 256
        return
    assert len(box) == rank
    assert 4 * prod(box) == nbytes
    shape = shape_of(1 << 24, box)
    assert 4 * prod(shape) == 1 << 24
    assert all(n % b == 0 for n, b in zip(shape, box, strict=True))


def test_a_row_longer_than_the_box_is_none() -> None:
    assert box_of(1 << 10, 2, 2 << 10) is None
    assert box_of(2 << 10, 1, 1 << 10) is None


@pytest.mark.parametrize("schedule", ["one-shot", "counter", "persistent"])
@pytest.mark.parametrize("rank", [1, 2, 5])
def test_every_schedule_copies(schedule: Schedule, rank: int) -> None:
    dev = ox.Device.open("sim-fast")
    box = box_of(1024, rank, 1024 if rank == 1 else 128)
    assert box is not None
    shape = shape_of(1 << 16, box)
    x = np.random.default_rng(rank).standard_normal(shape, np.float32)
    src: Any = dev.array(x)
    out: Any = dev.zeros(shape, ox.f32)
    copy = Copy(schedule=schedule, shape=shape, box=box, stages=3, per_sm=2)
    copy.bind(dev, src, out, 4)()
    assert (out.numpy() == x).all()
    assert (copy.nbytes, copy.box_bytes) == (1 << 16, 1024)


@pytest.mark.parametrize(("dtype", "size"), [(ox.f16, 2), (ox.u8, 1)])
@pytest.mark.parametrize("schedule", ["one-shot", "counter"])
def test_narrower_types(schedule: Schedule, dtype: type[ox.DType], size: int) -> None:
    dev = ox.Device.open("sim-fast")
    x = np.random.default_rng(size).integers(0, 255, (64, 256 // size), np.uint8 if size == 1 else np.uint16)
    copy = Copy(schedule=schedule, shape=x.shape, box=(16, 128 // size), stages=2, per_sm=2, dtype=dtype)
    src: Any = dev.array(x if size == 1 else x.view(np.float16), dtype)
    out: Any = dev.zeros(x.shape, dtype)
    copy.bind(dev, src, out, 4)()
    assert (out.numpy().view(x.dtype) == x).all()
    assert (copy.nbytes, copy.box_bytes) == (64 * 256, 16 * 128)
