"""Products on tensor cores in the simulator: exact sums rounded once, both majors, and what an epilogue reads beyond an array."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import oxidecopy as ox
from oxidecopy.isa import mma

Op = ox.TmaDescriptor[Any, ox.D2, ox.Swizzle128B]
Single = ox.TmaDescriptor[ox.f32, ox.D2, ox.Swizzle128B]
Array = npt.NDArray[Any]


@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def one_tile(
    cta: ox.Cta, a: Op, b: Op, c: Single, row: ox.GlobalArray[ox.f32, ox.D1], whole: ox.GlobalArray[ox.f32, ox.D2], turned: bool
) -> None:
    ring: Any = cta.ring(stages=2, tiles=(a, b))
    outs = cta.store_ring(c, stages=1)
    with cta.producer() as leader, ring.produce(leader) as (left, right):
        left.load(a, (0, 0))
        right.load(b, (0, 0))
    with cta.consumers() as group:
        group.contract(
            ring,
            outs,
            (0, 0),
            steps=1,
            majors=("k", "mn" if turned else "k"),
            epilogue=lambda s, r, w: s + r + w,
            reads=(ox.per_row(row), whole),
        )


def run(x: Array, y: Array, dtype: Any, *, row: Array | None = None, whole: Array | None = None, turned: bool = False) -> Array:
    """x (64, K) times the transpose of y (64, K), which lies as (K, 64) when it is turned; with what an epilogue adds."""
    dev = ox.Device.open("sim")
    a, b = dev.array(x, dtype), dev.array(np.ascontiguousarray(y.T) if turned else y, dtype)
    out = dev.zeros((64, 64), ox.f32)
    left, right = (ox.TmaDescriptor.tiled(v, box=v.shape, swizzle=ox.Swizzle128B) for v in (a, b))
    c = ox.TmaDescriptor.tiled(out, box=(64, 32), swizzle=ox.Swizzle128B)
    r = dev.array((np.zeros(64) if row is None else row).astype(np.float32), ox.f32)
    w = dev.array((np.zeros((64, 64)) if whole is None else whole).astype(np.float32), ox.f32)
    one_tile[1](left, right, c, r, w, turned=turned)
    return out.numpy()


@pytest.mark.parametrize(
    ("dtype", "numpy"), [(ox.bf16, ml_dtypes.bfloat16), (ox.f16, np.float16), (ox.e5m2, ml_dtypes.float8_e5m2), (ox.tf32, np.float32)]
)
def test_sums_are_rounded_once(dtype: Any, numpy: Any) -> None:
    rng = np.random.default_rng(1)
    depth = mma.depth_of(dtype.info.name)
    x, y = (rng.standard_normal((64, depth)).astype(numpy) for _ in range(2))
    if dtype is ox.tf32:  # as a tensor copy rounds them
        x, y = ((v.view(np.uint32) & 0xFFFFE000).view(np.float32) for v in (x, y))
    wanted = (x.astype(np.float64) @ y.astype(np.float64).T).astype(np.float32)
    assert (run(x, y, dtype) == wanted).all()
    bound = mma.error_bound(dtype.info.name, depth, 1.0) * (np.abs(x.astype(np.float64)) @ np.abs(y.astype(np.float64)).T)
    assert (np.abs(wanted - x.astype(np.float64) @ y.astype(np.float64).T) <= bound).all()


def test_an_mn_major_operand_is_its_transpose() -> None:
    x, y = (np.random.default_rng(seed).integers(-3, 4, (64, 64)).astype(np.float16) for seed in (1, 2))
    assert (run(x, y, ox.f16, turned=True) == run(x, y, ox.f16)).all()


def test_infinities_and_nan_come_through() -> None:
    x, y = np.zeros((64, 64), np.float16), np.ones((64, 64), np.float16)
    x[0, 0], x[1, :2], x[2, 0] = np.inf, (np.inf, -np.inf), np.nan
    out = run(x, y, ox.f16)
    assert np.isposinf(out[0]).all()
    assert np.isnan(out[1:3]).all()
    assert (out[3:] == 0).all()


def test_outside_of_an_array_an_epilogue_reads_zeros() -> None:
    x = y = np.zeros((64, 64), np.float16)
    row, whole = np.arange(5.0) + 1, np.arange(12.0).reshape(4, 3)
    wanted = np.zeros((64, 64))
    wanted[:5] += row[:, None]
    wanted[:4, :3] += whole
    assert (run(x, y, ox.f16, row=row, whole=whole) == wanted).all()
