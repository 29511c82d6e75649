"""The GPU for tests that need one: they are skipped, with the reason, where `Device.open("cuda:0")` fails."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import oxidecopy as ox
from oxidecopy.engines.cuda.engine import CudaEngine
from oxidecopy.errors import DeviceError
from oxidecopy.host.device import Device


@pytest.fixture(scope="session")
def opened() -> Device:
    try:
        return ox.Device.open("cuda:0")
    except DeviceError as problem:
        pytest.skip(f"no GPU: {problem.diagnostics[0].got}")


@pytest.fixture
def dev(opened: Device) -> Iterator[Device]:
    """The device; what a test has left in flight is waited for."""
    yield opened
    engine_of(opened).synchronize()


def engine_of(dev: Device) -> CudaEngine:
    assert isinstance(dev.engine, CudaEngine)
    return dev.engine


@pytest.fixture
def engine(dev: Device) -> CudaEngine:
    return engine_of(dev)
