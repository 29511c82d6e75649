"""Arrays of numba: they speak the CUDA array interface alone, and name their stream in it."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.errors import ArgumentError, InputError
from tests.helpers.fake_engine import fake_device
from tests.helpers.launching import copy_pipeline, descriptor, numbers


class NumbaStream:
    """A stream as numba has them: a pointer of ctypes inside, and a number by int()."""

    def __init__(self, handle: int) -> None:
        self.handle = ctypes.c_void_p(handle)

    def __int__(self) -> int:
        return self.handle.value or 0


class DeviceNDArray:
    """What numba's array says of itself; one that is bound to a stream says which."""

    dtype = np.dtype(np.float32)
    ndim = 2

    def __init__(self, address: int, shape: tuple[int, ...], stream: Any = 0) -> None:
        self.address, self.shape, self.stream = address, shape, stream

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        stream = int(self.stream) if self.stream != 0 else None
        return {
            "shape": self.shape, "strides": None, "data": (self.address, False), "typestr": self.dtype.str, "stream": stream, "version": 3,
        }  # fmt: skip


def handle(stream: ox.Stream) -> int:
    return stream.__cuda_stream__()[1]


def test_in_on_their_stream_and_out_again(tmp_path: Path) -> None:
    dev, engine, driver = fake_device(tmp_path)
    theirs, mine = ox.Stream(dev), ox.Stream(dev)
    at, out = driver.foreign_allocation(4096), dev.zeros((32, 32), ox.f32)
    driver.hold(handle(theirs))
    with engine.context:
        driver.give(handle(theirs), lambda: driver.poke(at, numbers(4).tobytes()))
    x: Any = DeviceNDArray(at, (32, 32), NumbaStream(handle(theirs)))
    a = dev.borrow(x, ox.f32, rank=2, stream=int(NumbaStream(handle(mine))))
    assert a.buffer.address == at
    seen: list[bytes] = []
    driver.on_launch = lambda _: seen.append(driver.bytes_at(at, 4096))
    copy_pipeline()[2, 2].on(mine)(descriptor(a), out)
    assert seen == []  # what fills the array has not run
    driver.finish()
    assert seen == [numbers(4).tobytes()]
    said = out.__cuda_array_interface__  # what numba.cuda.as_cuda_array reads; it waits for the stream that is named
    assert (said["data"], said["shape"], said["typestr"], said["strides"], said["stream"]) == (
        (out.buffer.address, False),
        (32, 32),
        "<f4",
        None,
        1,
    )


def test_its_default_stream_has_no_word_in_the_interface(tmp_path: Path) -> None:
    dev, _, driver = fake_device(tmp_path)
    x: Any = DeviceNDArray(driver.foreign_allocation(4096), (32, 32), NumbaStream(0))
    with pytest.raises(InputError) as caught:
        dev.borrow(x, ox.f32, rank=2)
    (said,) = caught.value.diagnostics
    assert (said.rule, said.fix) == ("OX5035", "x.bind(0) of numba, and stream= for where its work runs")


def test_its_streams_are_numbers(tmp_path: Path) -> None:
    dev, _, _ = fake_device(tmp_path)
    out, stream = dev.zeros((32, 32), ox.f32), ox.Stream(dev)
    launch: Any = copy_pipeline()[2, 2].on
    with pytest.raises(ArgumentError) as caught:
        launch(NumbaStream(handle(stream)))(descriptor(out), out)
    (said,) = caught.value.diagnostics
    assert (said.rule, said.fix) == ("OX1051", "pass int(stream)")
