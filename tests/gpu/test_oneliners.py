"""One-liners on a GPU, against numpy, and with arrays of torch where it is installed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import oxidecopy as ox
from oxidecopy.errors import OxidecopyError
from oxidecopy.host.device import Device
from oxidecopy.oneliners import tuning

pytestmark = pytest.mark.gpu
Array = npt.NDArray[Any]


def numbers(shape: tuple[int, ...], dtype: Any = np.float32) -> Array:
    found: Array = np.random.default_rng(len(shape)).integers(0, 200, shape).astype(dtype)
    return found


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32, np.int64])
@pytest.mark.parametrize("pad", [False, True])
def test_views_are_copied(dev: Device, dtype: Any, pad: bool) -> None:
    x = numbers((5, 37, 3, 130), dtype)
    a = dev.array(x, pad=pad)
    for view, wanted in (
        (a, x),
        (a.permute(0, 2, 1, 3), x.transpose(0, 2, 1, 3)),
        (a.T, x.T),
        (a[1:, 3:, :, 5:-1], x[1:, 3:, :, 5:-1]),
        (a[:, ::2, :, ::2], x[:, ::2, :, ::2]),
        (a[:1].broadcast_to((4, 37, 3, 130)), np.broadcast_to(x[:1], (4, 37, 3, 130))),
    ):
        assert (ox.copy(None, view).numpy() == wanted).all(), (view, wanted.shape)
        out = dev.zeros(wanted.shape, a.dtype)
        assert (ox.copy(out, view).numpy() == wanted).all(), (view, wanted.shape)
    y = numbers((4, 34, 3, 124), dtype) + 1
    ox.copy(a[1:, 3:, :, 5:-1], dev.array(y))
    x[1:, 3:, :, 5:-1] = y
    assert (a.numpy() == x).all()  # and nothing around the part is written


def test_long_rows_and_types(dev: Device) -> None:
    x = np.random.default_rng(0).standard_normal(3_000_001).astype(np.float32)
    a = dev.array(x)
    assert (ox.copy(None, a).numpy() == x).all()
    assert (ox.copy(ox.f16, a).numpy() == x.astype(np.float16)).all()
    assert (ox.copy(ox.bf16, a[1:]).numpy() == x[1:].astype(ml_dtypes.bfloat16)).all()


def test_functions_of_elements(dev: Device) -> None:
    rng = np.random.default_rng(1)
    x, y, row, column = (rng.standard_normal(s).astype(np.float32) for s in ((900, 515), (900, 515), (515,), (900, 1)))
    given = [dev.array(each) for each in (x, y, row, column)]
    out = ox.transform(lambda a, b, r, c: ((a - b) * c + r).maximum(0).cast(ox.f16), *given)
    assert (out.numpy() == np.maximum((x - y) * column + row, 0).astype(np.float16)).all()
    whole = dev.empty((900, 515), ox.f32)
    for number in (2.5, -1.0, -1.0):
        assert (ox.transform(lambda a, s: a * s, given[0], ox.value(number, ox.f32), out=whole).numpy() == x * np.float32(number)).all()
    assert (ox.transform(lambda a: a + a, whole, out=whole).numpy() == x * -2).all()


@pytest.mark.parametrize(
    ("shape", "into"), [((70, 300), (1, 300)), ((70, 300), (70, 1)), ((6, 50, 64), (50, 64)), ((2000, 96), (96,)), ((5000,), (1,))]
)
def test_reductions(dev: Device, shape: tuple[int, ...], into: tuple[int, ...]) -> None:
    x = numbers(shape, np.int32)
    added = x.ndim - len(into)
    axes = tuple(k for k in range(x.ndim) if k < added or into[k - added] == 1)
    out, most = dev.zeros(into, ox.i32), dev.zeros(into, ox.i32)
    for _ in range(2):
        ox.reduce_into(out, dev.array(x, ox.i32), ox.reduce.add)
        ox.reduce_into(most, dev.array(x, ox.i32), ox.reduce.max)
    assert (out.numpy() == 2 * x.sum(axis=axes, keepdims=True, dtype=np.int32).reshape(into)).all()
    assert (most.numpy() == x.max(axis=axes, keepdims=True).reshape(into)).all()
    floats = dev.zeros(into, ox.f32)
    ox.reduce_into(floats, dev.array(x.astype(np.float32), ox.f32), ox.reduce.add)  # small integers: exact in any order
    assert (floats.numpy() == x.sum(axis=axes, keepdims=True).reshape(into)).all()


def test_gathered_rows(dev: Device) -> None:
    x, at = numbers((300, 700)), np.random.default_rng(2).integers(0, 300, 1001).astype(np.int32)
    assert (ox.gather_rows(dev.array(x), dev.array(at, ox.i32)).numpy() == x[at]).all()
    with pytest.raises(OxidecopyError) as caught:
        ox.gather_rows(dev.array(x), dev.array(at + 300, ox.i32))
    assert "OX5332" in caught.value.rules


def test_streams_and_other_memory(dev: Device) -> None:
    stream = ox.Stream(dev)
    arrays = [dev.array(numbers((200, 300)) + k) for k in range(4)]
    outs = [dev.zeros((200, 300), ox.f32) for _ in arrays]
    for _ in range(3):
        for a, out in zip(arrays, outs, strict=True):
            ox.copy(out, a, stream=stream)
    stream.synchronize()
    for k, out in enumerate(outs):
        assert (out.numpy() == numbers((200, 300)) + k).all()


@pytest.fixture
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(tuning.FOLDER_VARIABLE, str(tmp_path))
    tuning.forget()
    yield
    tuning.forget()


@pytest.mark.usefixtures("_own_cache")
def test_tuning_keeps_what_is_fastest(dev: Device) -> None:
    x = numbers((512, 1024))
    a, out = dev.array(x), dev.empty((512, 1024), ox.f32)
    first = ox.copy(out, a, tune=True, explain=True)
    assert (out.numpy() == x).all()
    assert "measured now" in first.text
    tuning.forget()
    again = ox.copy(out, a, tune=True, explain=True)
    assert "as measured before" in again.text
    total = dev.zeros((1024,), ox.f32)
    ox.reduce_into(total, a, ox.reduce.add, tune=True)
    assert (total.numpy() == x.sum(axis=0)).all()  # once, whatever was measured


def test_tensors_of_torch(dev: Device) -> None:
    torch: Any = pytest.importorskip("torch")
    x = torch.arange(60 * 70, device="cuda:0", dtype=torch.float32).reshape(60, 70)
    y = torch.zeros((70, 60), device="cuda:0", dtype=torch.bfloat16)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    ox.copy(y, x.T, stream=stream.cuda_stream)
    stream.synchronize()
    assert bool((y == x.T.to(torch.bfloat16)).all())
    part = x.flatten()[3:1000]  # begins between multiples of 16 bytes
    z = torch.zeros_like(part)
    ox.copy(z, part)
    assert bool((z == part).all())
    assert dev.name == "cuda:0"


@pytest.mark.parametrize("dtype", [np.float32, np.uint16])
def test_large_dense_rows_off_the_grid_have_a_launch_for_each_place(dev: Device, dtype: Any) -> None:
    x = numbers((4_500, 1_001), dtype)
    a = dev.array(x)
    padded = dev.empty(x.shape, a.dtype, pad=True)
    said = ox.copy(padded, a, explain=True)
    assert len(said.launches) == 16 // np.dtype(dtype).itemsize
    assert (padded.numpy() == x).all()
    back = dev.zeros(x.shape, a.dtype)
    assert (ox.copy(back, padded).numpy() == x).all()
    assert (ox.copy(dev.zeros((4_500, 1_000), a.dtype), a[:, 1:]).numpy() == x[:, 1:]).all()


@pytest.mark.parametrize("columns", [128, 512, 1_024, 4_096])
@pytest.mark.parametrize("rows", [256, 999])
def test_rows_of_any_width_are_gathered(dev: Device, columns: int, rows: int) -> None:
    x, at = numbers((300, columns)), np.random.default_rng(rows).integers(0, 300, rows)
    assert (ox.gather_rows(dev.array(x), dev.array(at, ox.i64)).numpy() == x[at]).all()


@pytest.mark.parametrize(("shape", "into"), [((700, 520), (1, 520)), ((700, 520), (700, 1)), ((300_000,), (1,)), ((6, 50, 64), (50, 64))])
def test_sums_of_halves_are_rounded_once(dev: Device, shape: tuple[int, ...], into: tuple[int, ...]) -> None:
    x = np.random.default_rng(3).integers(0, 2, shape).astype(ml_dtypes.bfloat16)
    added = x.ndim - len(into)
    axes = tuple(k for k in range(x.ndim) if k < added or into[k - added] == 1)
    out = dev.zeros(into, ox.bf16)
    ox.reduce_into(out, dev.array(x, ox.bf16), ox.reduce.add)
    wanted = x.astype(np.float32).sum(axis=axes).reshape(into).astype(ml_dtypes.bfloat16)
    assert (out.numpy() == wanted).all()


def test_other_memory_at_each_call_without_waiting(dev: Device) -> None:
    """Three maps: one of them lies in a table, which each call overwrites behind the launches that read it."""
    stream = ox.Stream(dev)
    given = [dev.array(np.full((256, 256), k, np.float32)) for k in range(5)]
    outs = [dev.empty((256, 256), ox.f32) for _ in range(40)]
    for k, out in enumerate(outs):
        ox.transform(lambda v, w: v * 2 + w, given[k % 5], given[k * 3 % 5], out=out, stream=stream)
    stream.synchronize()
    assert all((out.numpy() == 2 * (k % 5) + k * 3 % 5).all() for k, out in enumerate(outs))


def test_tensors_again_and_again(dev: Device) -> None:
    torch: Any = pytest.importorskip("torch")
    x, y = (torch.zeros((64, 256), device="cuda:0") for _ in range(2))
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for number in range(20):
            x.fill_(number)
            ox.copy(y, x, stream=stream)
            z = torch.full((64, 256), -1.0, device="cuda:0")
            ox.copy(z, y, stream=stream)
            assert bool((z == number).all())
        x.resize_((32, 256)).fill_(7)  # the same object over other memory
        ox.copy(y[:32], x, stream=stream)
        assert bool((y[:32] == 7).all())
    assert dev.name == "cuda:0"
