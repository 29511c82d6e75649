"""A CUDA engine on the fake driver, and a device on it."""

from __future__ import annotations

from pathlib import Path

from oxidecopy.engines.cuda.engine import CudaEngine
from oxidecopy.host.device import Device
from tests.helpers.fake_driver import FakeDriver, FakeGpu
from tests.helpers.fake_kernels import interpreter_image, write_kernels


def fake_engine(folder: Path, *, gpu: FakeGpu | None = None, gpus: int = 1, checked: bool = False) -> tuple[CudaEngine, FakeDriver]:
    """An engine on the first of some equal GPUs, whose kernels lie in `folder`; a launch does what `driver.on_launch` does."""
    driver = FakeDriver([FakeGpu() if gpu is None else gpu] * gpus, images=[interpreter_image()])
    return CudaEngine(0, driver=driver, checked=checked, kernels=write_kernels(folder)), driver


def fake_device(folder: Path, *, gpus: int = 1) -> tuple[Device, CudaEngine, FakeDriver]:
    """A device on such an engine."""
    engine, driver = fake_engine(folder, gpus=gpus)
    return Device("cuda:0", engine), engine, driver
