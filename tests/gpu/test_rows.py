"""Rows loaded by number on a GPU: an index that is out of range, wherever it stands among a warp's, is the one that is reported."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.engines.cuda.code import encode
from oxidecopy.errors import OxidecopyError

pytestmark = pytest.mark.gpu
ROWS = 40
Map = ox.TmaDescriptor[ox.f32, ox.D2]


@ox.pipeline(threads=32)
def gathered(cta: ox.Cta, table: Map, numbers: ox.GlobalArray[ox.i32, ox.D1], out: Map) -> None:
    tile, full = cta.shared(out), cta.barrier().init(1)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        for r in cta.range(ROWS):
            row = cta.load_index(numbers, cta.block_idx.x * ROWS + r, below=table.shape[0])
            table.g2s(leader, tile.part(r, of=ROWS), (row, 0), token)
        full.wait(token)
        out.s2g(leader, tile, (cta.block_idx.x * ROWS, 0))
        leader.commit_group()
        leader.wait_group(0)


def launched(dev: ox.Device, at: np.ndarray[Any, np.dtype[np.int32]]) -> bool:
    """Two blocks of rows; whether they are right."""
    x = np.random.default_rng(1).standard_normal((64, 32), dtype=np.float32)
    table, out = dev.array(x), dev.zeros((2 * ROWS, 32), ox.f32)
    bound = gathered[2].bind(ox.TmaDescriptor.tiled(table, box=(1, 32)), dev.array(at, ox.i32), ox.TmaDescriptor.tiled(out, box=(ROWS, 32)))
    assert [note.fused for note in encode(bound.verify()).loops] == ["load_rows"]
    bound()
    return bool((out.numpy() == x[at[: 2 * ROWS]]).all())


def numbers() -> np.ndarray[Any, np.dtype[np.int32]]:
    return np.random.default_rng(2).integers(0, 64, 2 * ROWS).astype(np.int32)


def test_right_ones(dev: ox.Device) -> None:
    assert launched(dev, numbers())


@pytest.mark.parametrize("place", [0, 21, 31, 32, 39, 45, 79])
@pytest.mark.parametrize("value", [-1, 64, 1 << 30, -(1 << 31)])
def test_the_one_that_is_out_of_range(dev: ox.Device, place: int, value: int) -> None:
    at = numbers()
    at[place] = value
    with pytest.raises(OxidecopyError) as caught:
        launched(dev, at)
    (problem,) = caught.value.diagnostics
    assert (problem.rule, problem.got, problem.required) == ("OX5332", str(value), "0 to 63")
    assert f"({place // ROWS}, 0, 0)" in problem.what
    assert launched(dev, numbers())  # the device lives on


def test_the_first_of_several(dev: ox.Device) -> None:
    at = numbers()
    at[[7, 12, 39]] = 77, 78, 79
    with pytest.raises(OxidecopyError) as caught:
        launched(dev, at)
    assert [problem.got for problem in caught.value.diagnostics] == ["77"]
