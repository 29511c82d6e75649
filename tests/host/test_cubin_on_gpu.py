"""Own kernels through the CUDA engine: on the fake driver what reaches it, on a GPU what comes out."""

from __future__ import annotations

import importlib.util
import struct
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.errors import OxidecopyError
from oxidecopy.host.recipe import Recipe
from tests.helpers.cubin_files import LESSON
from tests.helpers.fake_driver import FakeDriver, FakeImage, FakeKernel
from tests.helpers.fake_engine import fake_engine

Map = ox.TmaDescriptor[ox.f32, ox.D2]
Out = ox.GlobalArray[ox.f32, ox.D2]
CUBIN = ox.Cubin(LESSON)
INFO = CUBIN.kernels["scale"]


@CUBIN.kernel("scale", threads=128, shared_bytes=65_536)
def scale(src: Map, out: Out, rows: ox.Idx, cols: ox.Idx, alpha: ox.Scalar[ox.f32]) -> None: ...


def opened(tmp_path: Path) -> tuple[ox.Device, FakeDriver]:
    """A device on a driver that knows the lesson's cubin as the driver would: by the table in it."""
    engine, driver = fake_engine(tmp_path)
    kernel = FakeKernel("scale", tuple((p.offset, p.size) for p in INFO.parameters), {"MAX_THREADS_PER_BLOCK": INFO.max_threads})
    driver.images.append(FakeImage(LESSON.read_bytes(), (kernel,)))
    return ox.Device("cuda:0", engine), driver


def arrays(dev: ox.Device) -> tuple[Map, Out]:
    return ox.TmaDescriptor.tiled(dev.zeros((150, 200), ox.f32), box=(64, 64)), dev.empty((150, 200), ox.f32)


def test_the_driver_gets_the_launch(tmp_path: Path) -> None:
    dev, driver = opened(tmp_path)
    src, out = arrays(dev)
    scale[4, 3](src, out, 150, 200, 2.0)
    (launch,) = driver.launches
    assert (launch.grid, launch.block, launch.cluster, launch.shared_bytes) == ((4, 3, 1), (128, 1, 1), (1, 1, 1), 65_536)
    encoded, pointer, *numbers = launch.parameters
    assert len(encoded) == 128
    assert int.from_bytes(encoded[:8], "little") == src.array.buffer.address
    assert int.from_bytes(pointer, "little") == out.buffer.address
    assert numbers == [struct.pack("<i", 150), struct.pack("<i", 200), struct.pack("<f", 2.0)]


def test_a_prepared_launch_is_packed_once(tmp_path: Path) -> None:
    dev, driver = opened(tmp_path)
    ready = scale[4, 3].prepare(*arrays(dev), 150, 200, 2.0)
    ready()
    packed = driver.calls["cuTensorMapEncodeTiled"], driver.calls["cuModuleLoadData"]
    ready()
    assert (driver.calls["cuTensorMapEncodeTiled"], driver.calls["cuModuleLoadData"]) == packed
    first, second = driver.launches
    assert first.parameters == second.parameters


def test_what_the_driver_would_refuse_does_not_reach_it(tmp_path: Path) -> None:
    dev, driver = opened(tmp_path)
    src, out = arrays(dev)
    with pytest.raises(OxidecopyError):
        scale[4, 3](src, out, 1 << 31, 200, 2.0)
    with pytest.raises(OxidecopyError):
        scale[4, 70_000](src, out, 150, 200, 2.0)
    assert driver.launches == []
    assert driver.calls["cuLaunchKernelEx"] == 0


# ---- on a GPU
def lesson() -> ModuleType:
    spec = importlib.util.spec_from_file_location("lesson_16", LESSON.parents[1] / "16_own_kernel.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(150, 200), (64, 64), (1, 1), (300, 3), (65, 257)])
def test_an_own_kernel_scales(shape: tuple[int, int]) -> None:
    dev = ox.Device.open("cuda:0")
    x = np.random.default_rng(1).standard_normal(shape, dtype=np.float32)
    made: Recipe = lesson().scale_recipe(dev, x)
    assert list(made.outputs) == ["out", "own"]
    made.launch()
    for name, array in made.outputs.items():
        assert array.numpy().tobytes() == np.asarray(made.expected[name]).tobytes(), name


@pytest.mark.gpu
def test_a_prepared_own_kernel_on_a_stream() -> None:
    class Default:
        def __cuda_stream__(self) -> tuple[int, int]:
            return 0, 2  # the per-thread default stream

    dev = ox.Device.open("cuda:0")
    x = np.arange(128 * 128, dtype=np.float32).reshape(128, 128)
    src, out = ox.TmaDescriptor.tiled(dev.array(x), box=(64, 64)), dev.zeros((128, 128), ox.f32)
    ready = scale[2, 2].on(Default()).prepare(src, out, 128, 128, 0.5)
    for _ in range(3):
        ready()
    assert np.array_equal(out.numpy(), x * np.float32(0.5))
