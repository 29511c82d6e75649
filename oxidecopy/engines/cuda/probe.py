"""Looks for an NVIDIA driver and its GPUs, without creating a context. It never raises: what is missing is a sentence in the answer.

`cuda.bindings` is imported when `probe` is called, never before. The driver is an argument, so that tests can hand in one of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, Protocol, SupportsInt, cast, final

MIN_SM: Final = 90  # tensor maps need compute capability 9.0 (CUDA driver API, cuTensorMapEncodeTiled)


class Driver(Protocol):
    """The calls of `cuda.bindings.driver` used here: each returns a result code, then its values."""

    CUdevice_attribute: Any

    def cuInit(self, Flags: int) -> tuple[SupportsInt]: ...
    def cuDriverGetVersion(self) -> tuple[SupportsInt, int]: ...
    def cuDeviceGetCount(self) -> tuple[SupportsInt, int]: ...
    def cuDeviceGet(self, ordinal: int) -> tuple[SupportsInt, Any]: ...
    def cuDeviceGetName(self, length: int, dev: Any) -> tuple[SupportsInt, bytes]: ...
    def cuDeviceGetAttribute(self, attrib: Any, dev: Any) -> tuple[SupportsInt, int]: ...
    def cuDeviceTotalMem(self, dev: Any) -> tuple[SupportsInt, int]: ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU: `ordinal` as in `cuda:0`, compute capability `sm` (90 for 9.0), memory in bytes."""

    ordinal: int
    name: str
    sm: int
    memory_bytes: int

    @property
    def usable(self) -> bool:
        """It has tensor maps."""
        return self.sm >= MIN_SM

    def __str__(self) -> str:
        return f"cuda:{self.ordinal} {self.name} (compute capability {self.sm // 10}.{self.sm % 10})"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CudaFacts:
    """What was found.

    Attributes:
        driver: CUDA version of the driver, such as "13.0"; empty without one.
        gpus: every GPU the driver shows.
        reason: why no GPU can be used; empty when one can.
    """

    driver: str = ""
    gpus: tuple[Gpu, ...] = ()
    reason: str = ""

    def __str__(self) -> str:
        """One line for messages."""
        gpus = ", ".join(map(str, self.gpus))
        return self.reason if not gpus else f"{gpus}, driver for CUDA {self.driver}"


class _DriverError(Exception):
    """A driver call answered something else than success."""


def load_driver() -> Driver:
    """NVIDIA's bindings."""
    return cast("Driver", import_module("cuda.bindings.driver"))


def probe(load: Callable[[], Driver] = load_driver) -> CudaFacts:
    """Asks the driver what there is."""
    try:
        driver = load()
    except ImportError as problem:
        return CudaFacts(reason=f"cuda-python is not installed ({problem})")
    except Exception as problem:  # a broken install may raise anything at import, and this must answer
        return CudaFacts(reason=f"cuda-python does not load ({_first_line(problem)})")
    try:
        return _ask(driver)
    except Exception as problem:  # without libcuda the bindings raise errors of several kinds, and this must answer
        return CudaFacts(reason=f"no NVIDIA driver answers ({_first_line(problem)})")


def _ask(driver: Driver) -> CudaFacts:
    _checked(driver.cuInit(0), "cuInit")
    version = int(_checked(driver.cuDriverGetVersion(), "cuDriverGetVersion"))
    count = int(_checked(driver.cuDeviceGetCount(), "cuDeviceGetCount"))
    gpus = tuple(_gpu(driver, ordinal) for ordinal in range(count))
    reason = ""
    if not gpus:
        reason = "the NVIDIA driver shows no GPU"
    elif not any(gpu.usable for gpu in gpus):
        reason = f"no GPU has compute capability {MIN_SM // 10}.{MIN_SM % 10}"
    return CudaFacts(driver=f"{version // 1000}.{version % 1000 // 10}", gpus=gpus, reason=reason)


def _gpu(driver: Driver, ordinal: int) -> Gpu:
    device = _checked(driver.cuDeviceGet(ordinal), "cuDeviceGet")
    name = _checked(driver.cuDeviceGetName(256, device), "cuDeviceGetName")
    attributes = driver.CUdevice_attribute
    major, minor = (
        int(_checked(driver.cuDeviceGetAttribute(attribute, device), "cuDeviceGetAttribute"))
        for attribute in (attributes.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, attributes.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
    )
    memory = int(_checked(driver.cuDeviceTotalMem(device), "cuDeviceTotalMem"))
    return Gpu(ordinal=ordinal, name=name.split(b"\0")[0].decode(errors="replace"), sm=major * 10 + minor, memory_bytes=memory)


def _checked(answer: tuple[Any, ...], call: str) -> Any:
    """The value of a driver call; raises when its result code is not success."""
    result = answer[0]
    if int(result) != 0:
        raise _DriverError(f"{call}: {getattr(result, 'name', None) or f'error {int(result)}'}")
    return answer[1] if len(answer) > 1 else None


def _first_line(problem: Exception) -> str:
    return (str(problem).splitlines() or [type(problem).__name__])[0]
