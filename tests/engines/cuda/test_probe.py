"""The probe against a driver that is missing, broken, old, empty or fine."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Any

import pytest

from oxidecopy.engines.cuda.probe import CudaFacts, Driver, Gpu, load_driver, probe


class _Result(IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_NO_DEVICE = 100


class _Attribute(Enum):
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76


@dataclass
class _FakeDriver:
    """GPUs as (name, compute capability); `failing` names a call that answers an error."""

    gpus: list[tuple[bytes, tuple[int, int]]] = field(default_factory=list)
    failing: str = ""
    CUdevice_attribute: Any = _Attribute

    def _answer(self, call: str, *values: Any) -> Any:
        if call == self.failing:
            return (_Result.CUDA_ERROR_NO_DEVICE, *(None for _ in values))
        return (_Result.CUDA_SUCCESS, *values)

    def cuInit(self, Flags: int) -> Any:
        return self._answer("cuInit")

    def cuDriverGetVersion(self) -> Any:
        return self._answer("cuDriverGetVersion", 12090)

    def cuDeviceGetCount(self) -> Any:
        return self._answer("cuDeviceGetCount", len(self.gpus))

    def cuDeviceGet(self, ordinal: int) -> Any:
        return self._answer("cuDeviceGet", ordinal)

    def cuDeviceGetName(self, length: int, dev: Any) -> Any:
        return self._answer("cuDeviceGetName", self.gpus[dev][0].ljust(length, b"\0"))

    def cuDeviceGetAttribute(self, attrib: Any, dev: Any) -> Any:
        return self._answer("cuDeviceGetAttribute", self.gpus[dev][1][attrib.value - 75])

    def cuDeviceTotalMem(self, dev: Any) -> Any:
        return self._answer("cuDeviceTotalMem", 1 << 37)


def test_usable_gpu() -> None:
    driver = _FakeDriver([(b"Old", (8, 6)), (b"NVIDIA H200", (9, 0))])
    facts = probe(lambda: driver)
    assert facts == CudaFacts(
        driver="12.9",
        gpus=(Gpu(ordinal=0, name="Old", sm=86, memory_bytes=1 << 37), Gpu(ordinal=1, name="NVIDIA H200", sm=90, memory_bytes=1 << 37)),
    )
    assert [gpu.usable for gpu in facts.gpus] == [False, True]
    assert str(facts) == "cuda:0 Old (compute capability 8.6), cuda:1 NVIDIA H200 (compute capability 9.0), driver for CUDA 12.9"


def test_only_old_gpus() -> None:
    assert probe(lambda: _FakeDriver([(b"Old", (8, 6))])).reason == "no GPU has compute capability 9.0"


def test_no_gpu() -> None:
    assert str(probe(_FakeDriver)) == "the NVIDIA driver shows no GPU"


@pytest.mark.parametrize(
    "call",
    ["cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName", "cuDeviceGetAttribute", "cuDeviceTotalMem"],
)
def test_a_failing_call_is_named(call: str) -> None:
    facts = probe(lambda: _FakeDriver([(b"NVIDIA H200", (9, 0))], failing=call))
    assert facts.gpus == ()
    assert facts.reason == f"no NVIDIA driver answers ({call}: CUDA_ERROR_NO_DEVICE)"


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (ImportError("No module named 'cuda'"), "cuda-python is not installed (No module named 'cuda')"),
        (RuntimeError("first\nsecond"), "cuda-python does not load (first)"),
        (OSError(), "cuda-python does not load (OSError)"),
    ],
)
def test_bindings_that_do_not_load(problem: Exception, reason: str) -> None:
    def load() -> Driver:
        raise problem

    assert probe(load) == CudaFacts(reason=reason)


def test_this_machine_gets_an_answer() -> None:
    facts = probe()
    assert bool(facts.reason) != any(gpu.usable for gpu in facts.gpus)
    assert str(facts)


def test_driver_calls_exist_in_the_bindings() -> None:
    pytest.importorskip("cuda.bindings.driver")
    driver = load_driver()
    for name in (name for name in dir(Driver) if name.startswith("cu")):
        assert callable(getattr(driver, name)), name
    assert driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR.value == 75
    assert driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR.value == 76
