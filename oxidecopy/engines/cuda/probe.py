"""Looks for an NVIDIA driver and its GPUs, without creating a context. `probe` never raises: what is missing is a sentence in the answer.

`cuda.bindings` is imported when `probe` is called, never before. The driver is an argument, so that tests can hand in one of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

from oxidecopy.engines.cuda.driver import Driver, check, first_line, load_driver, start, version_of
from oxidecopy.errors import OxidecopyError

MIN_SM: Final = 90  # tensor maps need compute capability 9.0 (CUDA driver API, cuTensorMapEncodeTiled)
MIN_DRIVER: Final = (12, 0)  # the first that knows compute capability 9.0's tensor maps and clusters (CUDA 12.0 release notes)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU.

    Attributes:
        ordinal: as in `cuda:0`.
        name: the product's.
        sm: compute capability, 90 for 9.0.
        memory_bytes: global memory.
        sms: number of multiprocessors.
        threads_per_sm: threads a multiprocessor holds at once.
        shared_bytes_block: dynamic shared memory one block may ask for (the opt-in limit).
        shared_bytes_sm: shared memory of a multiprocessor.
        l2_bytes: second-level cache.
        clusters: it launches clusters.
        pools: it allocates in stream order.
        bus_id: where it sits, as nvidia-smi writes it.
        in_use: its primary context already exists in this process: another library uses it too.
        exclusive: how its compute mode keeps processes apart: empty, "one process" or "none allowed".
    """

    ordinal: int
    name: str
    sm: int
    memory_bytes: int
    sms: int = 0
    threads_per_sm: int = 0
    shared_bytes_block: int = 0
    shared_bytes_sm: int = 0
    l2_bytes: int = 0
    clusters: bool = False
    pools: bool = False
    bus_id: str = ""
    in_use: bool = False
    exclusive: str = ""

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
        if not gpus:
            return self.reason
        return f"{gpus}, driver for CUDA {self.driver}"


def probe(load: Callable[[], Driver] = load_driver) -> CudaFacts:
    """Asks the driver what there is."""
    try:
        driver = load()
        start(driver)
        return _ask(driver)
    except OxidecopyError as problem:
        return CudaFacts(reason=problem.diagnostics[0].got)
    except Exception as problem:  # drivers and bindings break in many ways, and this must answer
        return CudaFacts(reason=f"no NVIDIA driver answers ({first_line(problem)})")


def _ask(driver: Driver) -> CudaFacts:
    version = version_of(driver)
    count = check(driver.cuDeviceGetCount(), "cuDeviceGetCount")
    gpus = tuple(describe(driver, ordinal) for ordinal in range(count))
    reason = ""
    if not gpus:
        reason = "the NVIDIA driver shows no GPU"
    elif version < MIN_DRIVER:
        reason = f"the driver is for CUDA {version[0]}.{version[1]}, older than {MIN_DRIVER[0]}.{MIN_DRIVER[1]}"
    elif not any(gpu.usable for gpu in gpus):
        reason = f"no GPU has compute capability {MIN_SM // 10}.{MIN_SM % 10}"
    return CudaFacts(driver=f"{version[0]}.{version[1]}", gpus=gpus, reason=reason)


def describe(driver: Driver, ordinal: int) -> Gpu:
    """What the driver says of one GPU; it must have been initialised."""
    device = int(check(driver.cuDeviceGet(ordinal), "cuDeviceGet", f"cuda:{ordinal}"))
    attribute = driver.CUdevice_attribute

    def value(of: str, *, needed: bool = False) -> int:
        answer = driver.cuDeviceGetAttribute(getattr(attribute, f"CU_DEVICE_ATTRIBUTE_{of}"), device)
        if answer[0] and not needed:  # drivers refuse attributes that came after them
            return 0
        return check(answer, "cuDeviceGetAttribute", of)

    modes = {3: "one process", 2: "none allowed"}  # CUcomputemode
    state = driver.cuDevicePrimaryCtxGetState(device)
    return Gpu(
        ordinal=ordinal,
        name=check(driver.cuDeviceGetName(256, device), "cuDeviceGetName").split(b"\0")[0].decode(errors="replace"),
        sm=value("COMPUTE_CAPABILITY_MAJOR", needed=True) * 10 + value("COMPUTE_CAPABILITY_MINOR", needed=True),
        memory_bytes=check(driver.cuDeviceTotalMem(device), "cuDeviceTotalMem"),
        sms=value("MULTIPROCESSOR_COUNT"),
        threads_per_sm=value("MAX_THREADS_PER_MULTIPROCESSOR"),
        shared_bytes_block=value("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
        shared_bytes_sm=value("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"),
        l2_bytes=value("L2_CACHE_SIZE"),
        clusters=bool(value("CLUSTER_LAUNCH")),
        pools=bool(value("MEMORY_POOLS_SUPPORTED")),
        bus_id=f"{value('PCI_DOMAIN_ID'):04x}:{value('PCI_BUS_ID'):02x}:{value('PCI_DEVICE_ID'):02x}",
        in_use=not state[0] and bool(state[2]),
        exclusive=modes.get(value("COMPUTE_MODE"), ""),
    )
