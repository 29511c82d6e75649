"""Beside torch, cupy and jax in one process: their context is theirs, their memory can be borrowed, their streams are waited for."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.engines.cuda.context import PrimaryContext
from oxidecopy.engines.cuda.driver import check, load_driver
from oxidecopy.engines.cuda.memory import CudaBuffer, copy, read, write
from oxidecopy.engines.cuda.stream import Stream
from tests.helpers.launching import copy_pipeline, descriptor, numbers

pytestmark = pytest.mark.gpu
N = 1 << 16


def torch_sum() -> Callable[[], float]:
    torch: Any = pytest.importorskip("torch")
    x = torch.arange(N, device="cuda:0", dtype=torch.float64)
    return lambda: float((x + 1).sum())


def cupy_sum() -> Callable[[], float]:
    cupy: Any = pytest.importorskip("cupy")
    x = cupy.arange(N, dtype=cupy.float64)
    return lambda: float((x + 1).sum())


def jax_sum() -> Callable[[], float]:
    jax: Any = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    if not any(device.platform == "gpu" for device in jax.devices()):
        pytest.skip("jax has no GPU here")
    x = jax.numpy.arange(N, dtype="float64")
    return lambda: float((x + 1).sum())


@pytest.mark.parametrize("library", [torch_sum, cupy_sum, jax_sum], ids=["torch", "cupy", "jax"])
def test_both_go_on(library: Callable[[], Callable[[], float]]) -> None:
    total = library()
    wanted = N * (N + 1) / 2
    assert total() == wanted
    driver = load_driver()
    before = int(check(driver.cuCtxGetCurrent(), "cuCtxGetCurrent"))
    dev = ox.Device.open("cuda:0")
    out = dev.zeros((32, 32), ox.f32)
    copy_pipeline()[2, 2](descriptor(dev.array(numbers(3))), out)
    assert (out.numpy() == numbers(3)).all()
    assert int(check(driver.cuCtxGetCurrent(), "cuCtxGetCurrent")) == before
    assert total() == wanted
    del out, dev
    gc.collect()
    assert total() == wanted


def test_a_tensor_of_torch_is_borrowed() -> None:
    torch: Any = pytest.importorskip("torch")
    x = torch.arange(N, device="cuda:0", dtype=torch.int32)
    context = PrimaryContext(load_driver(), 0)
    theirs = CudaBuffer.borrow(context, x.data_ptr(), 4 * N, keep=x)
    assert read(theirs, 4, 4) == (1).to_bytes(4, "little")
    write(theirs, 0, np.full(N, 7, np.int32).data)
    assert int(x.sum()) == 7 * N
    ours = CudaBuffer.allocate(context, 4 * N)
    stream = torch.cuda.Stream()
    on = Stream.of(context, stream.cuda_stream)
    with torch.cuda.stream(stream):
        x += 1
    with context:
        theirs.used_on(on)
    del x
    gc.collect()
    copy(ours, 0, theirs, 0, 4 * N)
    assert read(ours, 4 * N - 4, 4) == (8).to_bytes(4, "little")
    context.close()
