"""Arrays in the hands of other libraries: the same memory, for as long as they hold it, ordered after the launches that use it."""

from __future__ import annotations

import gc
import pickle
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.errors import ExportError, LifetimeError, UsageError
from tests.helpers.fake_engine import fake_device
from tests.helpers.foreign import opened
from tests.helpers.launching import copy_pipeline, descriptor, numbers

DEV = ox.Device.open("sim")


def refused(use: Any) -> str:
    with pytest.raises(ExportError) as caught:
        use()
    (said,) = caught.value.diagnostics
    assert said.rule == "OX5039"
    assert said.site is not None
    assert said.site.file == __file__
    assert isinstance(caught.value, BufferError)  # what the protocol asks for
    return str(caught.value)


# ---- numpy takes the simulator's
def test_numpy_sees_the_same_memory() -> None:
    a = DEV.array(numbers())
    x = np.from_dlpack(a)
    assert np.array_equal(x, numbers())
    copy_pipeline()[2, 2](descriptor(DEV.array(numbers(5))), a)
    assert np.array_equal(x, numbers(5))
    x[0, 0] = -1
    assert a.numpy()[0, 0] == -1


def test_views_keep_their_strides() -> None:
    a = DEV.array(numbers())
    for view in (a.T, a[1:, ::2], a.select(1, 3), a.broadcast_to((2, 32, 32)), a[:1].T):
        x = np.from_dlpack(view)
        assert np.array_equal(x, view.numpy())
        assert np.shares_memory(x, np.from_dlpack(a))


def test_memory_lives_until_the_last_one_lets_go() -> None:
    a = DEV.array(numbers())
    seen = weakref.ref(a.buffer)
    x = np.from_dlpack(a)
    capsule = a.__dlpack__()
    del a
    gc.collect()
    assert seen() is not None
    assert np.array_equal(x, numbers())
    del x
    gc.collect()
    assert seen() is not None
    del capsule  # which nobody took
    gc.collect()
    assert seen() is None


def test_a_consumer_that_fails_leaves_nothing_and_its_error_is_seen() -> None:
    a = DEV.zeros((4, 8), ox.bf16)
    seen = weakref.ref(a.buffer)
    with pytest.raises((RuntimeError, BufferError, TypeError)):  # numpy has no bf16
        np.from_dlpack(a)
    del a
    gc.collect()
    assert seen() is None


def test_the_way_there_and_back() -> None:
    x = np.zeros((4, 8), np.float32)
    y = np.from_dlpack(DEV.borrow(x, ox.f32).T)
    assert y.ctypes.data == x.ctypes.data
    seen = weakref.ref(x)
    del x
    gc.collect()
    assert seen() is not None
    assert not y.any()
    del y
    gc.collect()
    assert seen() is None


def test_read_only_memory_stays_read_only() -> None:
    x = numbers()
    x.flags.writeable = False
    a = DEV.borrow(x, ox.f32)
    assert not np.from_dlpack(a).flags.writeable
    assert "read-only" in refused(a.__dlpack__)
    assert "read-only" in refused(lambda: a.__dlpack__(max_version=(0, 8)))


@pytest.mark.parametrize(
    ("dtype", "code"),
    [(ox.bf16, (4, 16)), (ox.e4m3, (10, 8)), (ox.e5m2, (12, 8)), (ox.tf32, (2, 32)), (ox.u8, (1, 8)), (ox.i64, (0, 64)), (ox.f64, (2, 64))],
)
def test_what_a_capsule_says(dtype: Any, code: tuple[int, int]) -> None:
    a: Any = DEV.zeros((4, 8), dtype).permute(1, 0)
    for version in (None, (1, 0), (1, 9)):
        capsule = a.__dlpack__(max_version=version)
        tensor, versioned = opened(capsule)
        assert (versioned is None) == (version is None)
        assert (tensor.code, tensor.bits, tensor.lanes, tensor.ndim) == (*code, 1, 2)
        assert ([tensor.shape[i] for i in range(2)], [tensor.strides[i] for i in range(2)]) == ([8, 4], [1, 8])
        assert (tensor.device_type, tensor.device_id, tensor.byte_offset) == (1, 0, 0)
        if versioned is not None:
            assert (versioned.major, versioned.flags) == (1, 0)
            assert versioned.minor >= int(code[0] >= 10)  # fp8 came with 1.1


def test_what_is_asked_for_in_vain() -> None:
    a = DEV.array(numbers())
    assert a.__dlpack_device__() == (1, 0)
    a.__dlpack__(dl_device=(1, 0), copy=False, stream=None)
    refused(lambda: a.__dlpack__(copy=True))
    refused(lambda: a.__dlpack__(dl_device=(2, 0)))
    assert not hasattr(a, "__cuda_array_interface__")


# ---- a GPU's
def test_a_gpus_array(tmp_path: Path) -> None:
    dev, _, driver = fake_device(tmp_path)
    a = dev.array(numbers())
    assert a.__dlpack_device__() == (2, 0)
    tensor, _ = opened(capsule := a[1:].T.__dlpack__(max_version=(1, 0)))
    assert (tensor.data, tensor.device_type, tensor.device_id) == (a.buffer.address + 128, 2, 0)
    assert ([tensor.shape[i] for i in range(2)], [tensor.strides[i] for i in range(2)]) == ([32, 31], [1, 32])
    said = a.__cuda_array_interface__
    assert said == {
        "shape": (32, 32),
        "typestr": "<f4",
        "data": (a.buffer.address, False),
        "strides": None,
        "version": 3,
        "stream": 1,
    }
    assert a.T.__cuda_array_interface__["strides"] == (4, 128)
    assert not hasattr(dev.zeros((4, 8), ox.bf16), "__cuda_array_interface__")
    address = a.buffer.address
    del a, said
    gc.collect()
    assert driver.memory[address].alive
    del capsule
    gc.collect()
    dev.synchronize()
    assert not driver.memory[address].alive


@pytest.mark.parametrize("stream", [None, 1, 2, "other", -1, "cuda array"])
def test_the_borrowers_stream_waits_for_our_launches(tmp_path: Path, stream: Any) -> None:
    dev, engine, driver = fake_device(tmp_path)
    mine, other = ox.Stream(dev), ox.Stream(dev)
    src, out = dev.array(numbers(9)), dev.zeros((32, 32), ox.f32)
    driver.hold(mine.handle)
    driver.on_launch = lambda _: driver.poke(out.buffer.address, numbers(9).tobytes())
    copy_pipeline()[2, 2].on(mine)(descriptor(src), out)
    handle = {"other": other.handle, "cuda array": 1, None: 1, -1: other.handle}.get(stream, stream)
    capsule = (
        out.__cuda_array_interface__ if stream == "cuda array" else out.__dlpack__(stream=other.handle if stream == "other" else stream)
    )
    seen: list[bytes] = []
    with engine.context:
        driver.give(handle, lambda: seen.append(driver.bytes_at(out.buffer.address, 4096)))
    assert (seen == []) == (stream != -1)
    driver.finish()
    assert seen[-1] == (bytes(4096) if stream == -1 else numbers(9).tobytes())
    del capsule
    dev.synchronize()


def test_streams_that_mean_nothing(tmp_path: Path) -> None:
    dev, _, _ = fake_device(tmp_path)
    a = dev.array(numbers())
    for stream in (0, -2, "main", 1.0, True):
        refused(lambda stream=stream: a.__dlpack__(stream=stream))


def test_memory_that_a_capture_uses_is_not_handed_out(tmp_path: Path) -> None:
    dev, _, _ = fake_device(tmp_path)
    src, out = dev.array(numbers()), dev.zeros((32, 32), ox.f32)
    graph = ox.Graph(dev)
    with graph.capture():
        graph.add(copy_pipeline()[2, 2].prepare(descriptor(src), out))
        with pytest.raises(UsageError) as caught:
            out.__dlpack__()
        assert caught.value.rules == ("OX5314",)
    graph.replay()
    out.__dlpack__()


def test_what_was_handed_back_lives_until_the_default_stream_is_done(tmp_path: Path) -> None:
    dev, engine, driver = fake_device(tmp_path)
    a = dev.array(numbers())
    address, capsule = a.buffer.address, a.__dlpack__()
    with engine.context:
        driver.hold(1)
        driver.give(1, lambda: None)  # the borrower's kernel
    del a, capsule
    gc.collect()
    assert driver.memory[address].alive
    with engine.context:
        driver.finish()
    dev.synchronize()
    assert not driver.memory[address].alive


def test_freed_memory_is_not_handed_out(tmp_path: Path) -> None:
    dev, _, _ = fake_device(tmp_path)
    a = dev.array(numbers())
    dev.free(a)
    for use in (a.__dlpack__, lambda: a.__cuda_array_interface__):
        with pytest.raises(LifetimeError) as caught:
            use()
        assert caught.value.rules == ("OX5310",)


def test_two_devices_on_one_gpu_share_an_array(tmp_path: Path) -> None:
    dev, engine, driver = fake_device(tmp_path)
    from oxidecopy.engines.cuda.engine import CudaEngine
    from oxidecopy.host.device import Device

    second = Device("cuda:0", CudaEngine(0, driver=driver, kernels=tmp_path))
    a = dev.array(numbers())
    b = second.borrow(a, ox.f32, rank=2)
    assert np.array_equal(b.numpy(), numbers())
    del a
    gc.collect()
    assert np.array_equal(b.numpy(), numbers())
    engine.synchronize()


def test_what_is_no_pair_is_refused() -> None:
    a = DEV.zeros((4, 8), ox.f32)
    assert "no pair" in refused(lambda: a.__dlpack__(max_version=1))  # type: ignore[arg-type]  # that is refused
    assert "no pair" in refused(lambda: a.__dlpack__(dl_device="cpu"))  # type: ignore[arg-type]  # as above
    assert "no pair" in refused(lambda: a.__dlpack__(dl_device=(1, 0, 0)))  # type: ignore[arg-type]  # as above


def test_a_device_is_not_copied() -> None:
    assert "Device.open('sim')" in refused(lambda: pickle.dumps(DEV))
