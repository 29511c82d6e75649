"""The pieces of `fake_driver`: enums from the stub, structures, GPUs, cubins, and what a context holds."""

from __future__ import annotations

import ast
import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any, Final, cast

STUB: Final = Path(__file__).parents[2] / "stubs" / "cuda" / "bindings" / "driver.pyi"


# ---- enums and structures
def _enums() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for node in ast.parse(STUB.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef) and any(isinstance(base, ast.Name) and base.id == "IntEnum" for base in node.bases):
            members = {
                item.targets[0].id: item.value.value
                for item in node.body
                if isinstance(item, ast.Assign) and isinstance(item.targets[0], ast.Name) and isinstance(item.value, ast.Constant)
            }
            found[node.name] = IntEnum(node.name, cast("dict[str, int]", members))
    return found


ENUMS: Final = _enums()
OK: Final = ENUMS["CUresult"](0)


class Handle:
    """A number that is not an int, as the bindings' handles are not."""

    def __init__(self, init_value: int = 0, _ptr: int = 0) -> None:
        self.value = init_value

    def __int__(self) -> int:
        return self.value

    def __repr__(self) -> str:
        return f"<Handle {self.value:#x}>"


class FakeStructure:
    """Filled in by the caller; lives at an address, as the bindings' structures do."""

    def __init__(self, _ptr: int = 0) -> None:
        self.raw = (ctypes.c_ubyte * 128)()

    def getPtr(self) -> int:
        return ctypes.addressof(self.raw)


class FakeTensorMap(FakeStructure):
    """128 bytes: the arguments it was encoded from are kept in `arguments`, the address in its first 8 bytes."""

    arguments: tuple[Any, ...] = ()

    @property
    def address(self) -> int:
        return int.from_bytes(bytes(self.raw[:8]), "little")

    @address.setter
    def address(self, value: int) -> None:
        self.raw[:8] = list(value.to_bytes(8, "little"))


@dataclass
class FakeDim3:
    x: int = 0
    y: int = 0
    z: int = 0


@dataclass
class FakeAttributeValue:
    clusterDim: FakeDim3 = field(default_factory=FakeDim3)
    cooperative: int = 0
    programmaticStreamSerializationAllowed: int = 0


class FakeLaunchAttribute(FakeStructure):
    def __init__(self, _ptr: int = 0) -> None:
        super().__init__()
        self.id: int = 0
        self.value = FakeAttributeValue()


class FakeLaunchConfig(FakeStructure):
    def __init__(self, _ptr: int = 0) -> None:
        super().__init__()
        self.gridDimX = self.gridDimY = self.gridDimZ = 0
        self.blockDimX = self.blockDimY = self.blockDimZ = 0
        self.sharedMemBytes = 0
        self.hStream: Any = 0
        self.attrs: Sequence[FakeLaunchAttribute] = []
        self.numAttrs = 0


@dataclass
class FakeMemLocation:
    type: int = 0
    id: int = 0


class FakeAccessDesc(FakeStructure):
    def __init__(self, _ptr: int = 0) -> None:
        super().__init__()
        self.location = FakeMemLocation()
        self.flags = 0


class FakeKernelNodeParams(FakeStructure):
    def __init__(self, _ptr: int = 0) -> None:
        super().__init__()
        self.func: Any = 0
        self.gridDimX = self.gridDimY = self.gridDimZ = 0
        self.blockDimX = self.blockDimY = self.blockDimZ = 0
        self.sharedMemBytes = 0
        self.kernelParams: Any = 0
        self.extra = 0


# ---- what there is
@dataclass
class FakeGpu:
    """A GPU; its numbers are an H200's unless said otherwise. `attributes` overrides by the name after `CU_DEVICE_ATTRIBUTE_`."""

    name: str = "NVIDIA H200"
    sm: int = 90
    memory_bytes: int = 150_000_000_000
    attributes: dict[str, int] = field(default_factory=dict)
    unknown: frozenset[str] = frozenset()  # attributes that came after the driver

    def attribute(self, name: str) -> int:
        known = {
            "MULTIPROCESSOR_COUNT": 132,
            "COMPUTE_MODE": 0,
            "PCI_BUS_ID": 0x1B,
            "PCI_DEVICE_ID": 0,
            "PCI_DOMAIN_ID": 0,
            "L2_CACHE_SIZE": 62_914_560,
            "MAX_THREADS_PER_MULTIPROCESSOR": 2048,
            "COMPUTE_CAPABILITY_MAJOR": self.sm // 10,
            "COMPUTE_CAPABILITY_MINOR": self.sm % 10,
            "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": 233_472,
            "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 232_448,
            "MEMORY_POOLS_SUPPORTED": 1,
            "CLUSTER_LAUNCH": int(self.sm >= 90),
            "TENSOR_MAP_ACCESS_SUPPORTED": int(self.sm >= 90),
        }
        return {**known, **self.attributes}[name]


@dataclass
class FakeKernel:
    """A kernel of a cubin. `parameters` are (offset, size) in bytes; `attributes` by the name after `CU_FUNC_ATTRIBUTE_`."""

    name: str
    parameters: tuple[tuple[int, int], ...] = ()
    attributes: dict[str, int] = field(default_factory=dict)
    max_cluster: int = 16


@dataclass
class FakeImage:
    """A cubin: what `cuModuleLoadData` finds in bytes that start with its `code`."""

    code: bytes
    kernels: tuple[FakeKernel, ...]
    sm: int = 90


@dataclass
class Allocation:
    """Device memory. `data` stays after a free, for tests to look at."""

    address: int
    data: bytearray = field(repr=False)
    device: int
    pooled: bool
    context: int = 0
    alive: bool = True


@dataclass
class Launch:
    """A recorded launch. `parameters` are the bytes of each kernel parameter, where the kernel's parameter sizes are known."""

    kernel: FakeKernel
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    shared_bytes: int
    stream: int
    attributes: dict[str, int]
    parameters: tuple[bytes, ...]


@dataclass
class FakeContext:
    device: int
    retained: int = 0
    lost: str = ""


@dataclass
class FakeStream:
    """Work given to it waits while it is held; captured work goes to `graph`."""

    context: int
    non_blocking: bool = False
    held: bool = False
    pending: list[Callable[[], None]] = field(default_factory=list)
    graph: list[Launch] | None = None
    capture_mode: int = 0
    captured_by: int = 0
    blocked_by: list[FakeEvent] = field(default_factory=list)


@dataclass
class FakeEvent:
    context: int
    timing: bool
    recorded: bool = False
    on: FakeStream | None = None  # where it was recorded last
    passed: bool = True
    time: float = 0.0
    version: int = 0


def cluster_of(config: Any) -> tuple[int, int, int]:
    for each in list(config.attrs)[: config.numAttrs]:
        if int(each.id) == 4:
            return (each.value.clusterDim.x, each.value.clusterDim.y, each.value.clusterDim.z)
    return (1, 1, 1)


def parameters_of(kernel: FakeKernel, given: Any) -> tuple[bytes, ...]:
    """The bytes behind `void **kernelParams`, which is an address, or a buffer of addresses."""
    if given is None or not kernel.parameters:
        return ()
    where = given if isinstance(given, int) else ctypes.addressof((ctypes.c_ubyte * len(memoryview(given).cast("B"))).from_buffer(given))
    if not where:
        return ()
    pointers = (ctypes.c_void_p * len(kernel.parameters)).from_address(where)
    return tuple(ctypes.string_at(pointers[i] or 0, size) for i, (_, size) in enumerate(kernel.parameters))
