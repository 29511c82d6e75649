"""`ox.matmul` on a GPU: small integers exactly as numpy, random numbers within what a tensor core may be off."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.host.device import Device
from oxidecopy.isa import mma

pytestmark = pytest.mark.gpu
NUMPY: dict[Any, Any] = {ox.bf16: ml_dtypes.bfloat16, ox.f16: np.float16, ox.tf32: np.float32, ox.e4m3: ml_dtypes.float8_e4m3fn}
# M, N and K of small, uneven and larger products; several turns for each CTA, with and without clusters, K of one slab and of many.
SHAPES = [(5, 24, 8), (200, 168, 136), (1000, 520, 1000), (3000, 2048, 256), (128, 128, 5000)]


@pytest.fixture(autouse=True)
def hopper(dev: Device) -> None:
    if dev.sm != mma.SM:
        pytest.skip(f"compute capability {dev.sm}")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("turned", [False, True])  # whether K is dense in b, as in the weights of a linear layer
@pytest.mark.parametrize("dtype", list(NUMPY), ids=lambda t: t.__name__)
def test_small_integers(dev: Device, dtype: Any, turned: bool, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    rng = np.random.default_rng(m)
    x, y = rng.integers(-2, 3, (m, k)).astype(np.float32), rng.integers(-2, 3, (k, n)).astype(np.float32)
    a = dev.array(x.astype(NUMPY[dtype]), dtype)
    b = dev.array(np.ascontiguousarray(y.T if turned else y).astype(NUMPY[dtype]), dtype)
    out = dev.empty((m, n), ox.f32, pad=True)
    for _ in range(2):
        ox.matmul(a, b.T if turned else b, out=out)
        assert (out.numpy() == x @ y).all()


@pytest.mark.parametrize("dtype", list(NUMPY), ids=lambda t: t.__name__)
def test_random_numbers(dev: Device, dtype: Any) -> None:
    rng = np.random.default_rng(7)
    x, y = (rng.standard_normal((300, 700)).astype(NUMPY[dtype]) for _ in range(2))
    if dtype is ox.tf32:  # as copies round it
        x, y = ((v.view(np.uint32) & 0xFFFFE000).view(np.float32) for v in (x, y))
    out = ox.matmul(dev.array(x, dtype), dev.array(y, dtype).T, out=dev.empty((300, 300), ox.f32))
    exact, sizes = x.astype(np.float64) @ y.astype(np.float64).T, np.abs(x.astype(np.float64)) @ np.abs(y.astype(np.float64)).T
    assert (np.abs(out.numpy() - exact) <= mma.error_bound(dtype.info.name, 700, 1.0) * sizes).all()


def test_a_batch_with_an_epilogue(dev: Device) -> None:
    rng = np.random.default_rng(3)
    x, y = rng.integers(-2, 3, (5, 140, 72)).astype(np.float32), rng.integers(-2, 3, (5, 72, 200)).astype(np.float32)
    column, row, r = (rng.integers(-9, 9, shape).astype(np.float32) for shape in ((200,), (140, 1), (5, 140, 200)))
    a, b = (dev.array(v.astype(ml_dtypes.bfloat16), ox.bf16) for v in (x, y))
    reads: Any = tuple(dev.array(v, ox.f32) for v in (column, row, r))
    out = ox.matmul(a, b, epilogue=lambda s, c, d, e: (s * d + c).relu() + e, reads=reads)
    assert (out.numpy() == np.maximum(x @ y * row + column, 0) + r).all()
