"""What the fake driver knows and how it does work in stream order; the calls are in `fake_driver`."""

from __future__ import annotations

import ctypes
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Final, TypeVar, cast

from tests.helpers.fake_gpu import (
    ENUMS,
    Allocation,
    FakeAccessDesc,
    FakeContext,
    FakeEvent,
    FakeGpu,
    FakeImage,
    FakeKernel,
    FakeKernelNodeParams,
    FakeLaunchAttribute,
    FakeLaunchConfig,
    FakeStream,
    FakeTensorMap,
    Handle,
    Launch,
)

LEGACY, PER_THREAD = 1, 2
OK: Final = ENUMS["CUresult"](0)


F = TypeVar("F", bound=Callable[..., Any])


def driver_call(context: bool = True, lost: bool = True, values: int = 0) -> Callable[[F], F]:
    """A driver call: counts it, answers an ordered failure, refuses without a current context or in a lost one; adds the result code."""

    def wrap(body: F) -> F:
        @wraps(body)
        def call(self: FakeState, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
            name = body.__name__
            self.calls[name] += 1
            self.trace.append(name)
            nothing = (None,) * values
            if name in self.fail:
                return (self.result(self.fail.pop(name)), *nothing)
            if name in self.broken:
                return (self.result(self.broken[name]), *nothing)
            if context and self.current is None:
                return (self.result("CUDA_ERROR_INVALID_CONTEXT"), *nothing)
            if lost and self.current is not None and self.contexts[self.current].lost:
                return (self.result(self.contexts[self.current].lost), *nothing)
            try:
                answer = body(self, *args, **kwargs)
            except Refused as refused:
                return (self.result(refused.name), *nothing)
            return (OK, *(answer if isinstance(answer, tuple) else () if values == 0 else (answer,)))

        return cast("F", call)

    return wrap


class Refused(Exception):
    """The driver answers this code (the name after `CUDA_ERROR_` will do)."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(name)


class FakeState:
    """The state. Its attributes are for tests, too.

    Attributes:
        memory: live and freed allocations by address.
        launches: every launch that was executed, in order.
        calls: how often each call was made; `trace`: their names in order.
        fail: call name -> result for its next call only; `broken`: for every call.
        on_launch: called with each launch when it is executed.
    """

    CU_MEMHOSTALLOC_PORTABLE = 1
    CU_MEMHOSTALLOC_DEVICEMAP = 2
    CUresult: Any = ENUMS["CUresult"]
    CUdevice_attribute: Any = ENUMS["CUdevice_attribute"]
    CUpointer_attribute: Any = ENUMS["CUpointer_attribute"]
    CUmemorytype: Any = ENUMS["CUmemorytype"]
    CUmemLocationType: Any = ENUMS["CUmemLocationType"]
    CUmemAccess_flags: Any = ENUMS["CUmemAccess_flags"]
    CUstream_flags: Any = ENUMS["CUstream_flags"]
    CUevent_flags: Any = ENUMS["CUevent_flags"]
    CUstreamCaptureStatus: Any = ENUMS["CUstreamCaptureStatus"]
    CUstreamCaptureMode: Any = ENUMS["CUstreamCaptureMode"]
    CUlaunchAttributeID: Any = ENUMS["CUlaunchAttributeID"]
    CUfunction_attribute: Any = ENUMS["CUfunction_attribute"]
    CUtensorMapDataType: Any = ENUMS["CUtensorMapDataType"]
    CUtensorMapInterleave: Any = ENUMS["CUtensorMapInterleave"]
    CUtensorMapSwizzle: Any = ENUMS["CUtensorMapSwizzle"]
    CUtensorMapL2promotion: Any = ENUMS["CUtensorMapL2promotion"]
    CUtensorMapIm2ColWideMode: Any = ENUMS["CUtensorMapIm2ColWideMode"]
    CUtensorMapFloatOOBfill: Any = ENUMS["CUtensorMapFloatOOBfill"]
    CUgraphNodeType: Any = ENUMS["CUgraphNodeType"]
    CUstream: Any = Handle
    cuuint32_t: Any = Handle
    cuuint64_t: Any = Handle
    CUtensorMap: Any = FakeTensorMap
    CUlaunchConfig: Any = FakeLaunchConfig
    CUlaunchAttribute: Any = FakeLaunchAttribute
    CUmemoryPool: Any = Handle
    CUmemAccessDesc: Any = FakeAccessDesc
    CUDA_KERNEL_NODE_PARAMS: Any = FakeKernelNodeParams

    def __init__(self, gpus: Sequence[FakeGpu] = (FakeGpu(),), *, version: int = 12090, images: Sequence[FakeImage] = ()) -> None:
        self.gpus = list(gpus)
        self.version = version
        self.images = list(images)
        self.on_launch: Callable[[Launch], None] | None = None
        self.fail: dict[str, str] = {}
        self.broken: dict[str, str] = {}
        self.calls: Counter[str] = Counter()
        self.trace: list[str] = []
        self.launches: list[Launch] = []
        self.memory: dict[int, Allocation] = {}
        self.host: dict[int, Any] = {}
        self.contexts: dict[int, FakeContext] = {}
        self.streams: dict[int, FakeStream] = {}
        self.destroyed: list[FakeStream] = []  # what they were given is still done
        self.events: dict[int, FakeEvent] = {}
        self.libraries: dict[int, FakeImage] = {}
        self.kernels: dict[int, FakeKernel] = {}
        self.function_attributes: dict[int, dict[int, int]] = {}
        self.graphs: dict[int, list[Launch]] = {}
        self.graph_execs: dict[int, list[Launch]] = {}
        self.nodes: dict[int, Launch] = {}
        self.node_parameters: list[object] = []
        self.no_path: set[tuple[int, int]] = set()  # pairs of GPUs that do not reach each other's memory
        self.reached: set[tuple[int, int]] = set()  # (context, context whose allocations it may use)
        self.pools_reached: set[tuple[int, int]] = set()  # (GPU, GPU whose pool it may use)
        self.initialised = False
        self.thread = threading.local()
        self._next = 0x5500_0000_0000
        self._next_address = 0x7F00_0000_0000
        self.clock = 0.0

    # ---- for tests
    @property
    def stack(self) -> list[int]:
        """This thread's context stack."""
        if not hasattr(self.thread, "stack"):
            self.thread.stack = []
        return cast("list[int]", self.thread.stack)

    @property
    def current(self) -> int | None:
        return self.stack[-1] if self.stack else None

    @property
    def live(self) -> list[Allocation]:
        """Allocations that were not freed."""
        return [allocation for allocation in self.memory.values() if allocation.alive]

    def result(self, name: str) -> Any:
        return self.CUresult[name if name.startswith("CUDA_") else f"CUDA_ERROR_{name}"]

    def fault(self, name: str = "CUDA_ERROR_ILLEGAL_ADDRESS", ordinal: int = 0) -> None:
        """The primary context of a GPU is lost, as after a kernel that faulted."""
        for context in self.contexts.values():
            if context.device == ordinal:
                context.lost = name

    def hold(self, stream: int) -> None:
        """Work given to the stream from now on stays in flight until `finish`."""
        self.stream_of(stream).held = True

    def finish(self, stream: int | None = None) -> None:
        """Does the work in flight (of one stream, or of all) and holds no more."""
        for each in [self.stream_of(stream)] if stream is not None else self.all_streams:
            each.held = False
        self.progress()

    @property
    def all_streams(self) -> list[FakeStream]:
        """The destroyed ones, too."""
        return [*self.streams.values(), *self.destroyed]

    def bytes_at(self, address: int, nbytes: int) -> bytes:
        """What device memory holds."""
        allocation = self.allocation_of(address, nbytes)
        at = address - allocation.address
        return bytes(allocation.data[at : at + nbytes])

    def poke(self, address: int, data: bytes) -> None:
        """Writes device memory (or mapped host memory), as a kernel would."""
        if address in self.host or any(base <= address < base + len(raw) for base, raw in self.host.items()):
            ctypes.memmove(address, data, len(data))
            return
        allocation = self.allocation_of(address, len(data))
        at = address - allocation.address
        allocation.data[at : at + len(data)] = data

    def foreign_allocation(self, nbytes: int, device: int = 0, context: int | None = None) -> int:
        """Memory that another library allocated: in the primary context, or in one of its own."""
        address = self.new_allocation(nbytes, device, pooled=False)
        primary = next((handle for handle, each in self.contexts.items() if each.device == device), 0)
        self.memory[address].context = primary if context is None else context
        return address

    def mapped_allocation(self, *pieces: tuple[int, int]) -> int:
        """Memory that another library mapped piece by piece (bytes, device), one behind the other."""
        start = self._next_address
        for nbytes, device in pieces:
            self.memory[self._next_address] = Allocation(self._next_address, bytearray(nbytes), device, pooled=False)
            self._next_address += nbytes
        self._next_address += 512
        return start

    # ---- inside
    def new_handle(self) -> int:
        self._next += 0x100
        return self._next

    def new_allocation(self, nbytes: int, device: int, *, pooled: bool) -> int:
        used = sum(len(allocation.data) for allocation in self.live if allocation.device == device)
        if used + nbytes > self.gpus[device].memory_bytes or nbytes > 1 << 32:
            raise Refused("OUT_OF_MEMORY")
        address = self._next_address
        self._next_address += -(-nbytes // 512) * 512 + 512
        self.memory[address] = Allocation(address, bytearray(b"\xcd" * nbytes), device, pooled, 0 if pooled else self.current or 0)
        return address

    def allocation_of(self, address: int, nbytes: int) -> Allocation:
        for allocation in self.live:
            if allocation.address <= address and address + nbytes <= allocation.address + len(allocation.data):
                return allocation
        raise Refused("INVALID_VALUE")

    def gpu_of(self, device: Any) -> FakeGpu:
        if not 0 <= int(device) < len(self.gpus):
            raise Refused("INVALID_DEVICE")
        return self.gpus[int(device)]

    def here(self) -> FakeContext:
        return self.contexts[cast("int", self.current)]

    def stream_of(self, handle: Any) -> FakeStream:
        number = int(handle)
        if number in (0, LEGACY, PER_THREAD):
            context = self.current if self.current is not None else next(iter(self.contexts))
            number = context + 1  # the default stream of each context
            self.streams.setdefault(number, FakeStream(context))
        if number not in self.streams:
            raise Refused("INVALID_HANDLE")
        return self.streams[number]

    def event_of(self, handle: Any) -> FakeEvent:
        if int(handle) not in self.events:
            raise Refused("INVALID_HANDLE")
        return self.events[int(handle)]

    def give(self, handle: Any, work: Callable[[], None]) -> None:
        """Work in stream order: now, unless the stream is held or waits for an event."""
        stream = self.stream_of(handle)
        if stream.context != self.current:
            raise Refused("INVALID_HANDLE")
        if stream.graph is not None:
            raise Refused("STREAM_CAPTURE_UNSUPPORTED")
        stream.pending.append(work)
        self.progress()

    def progress(self) -> None:
        moved = True
        while moved:
            moved = False
            for stream in self.all_streams:
                while stream.pending and not stream.held and all(event.passed for event in stream.blocked_by):
                    stream.blocked_by.clear()
                    stream.pending.pop(0)()
                    moved = True

    def busy(self, stream: FakeStream) -> bool:
        self.progress()
        return bool(stream.pending)

    def settle(self, stream: FakeStream) -> None:
        """The host waits: what a test holds back runs to its end now, as it would on a device."""
        for other in self.all_streams:
            if other is stream or any(not event.passed for event in stream.blocked_by):
                other.held = False
        self.progress()
        if stream.pending:
            for other in self.all_streams:
                other.held = False
            self.progress()

    def no_capture(self) -> None:
        if any(stream.graph is not None and not stream.non_blocking for stream in self.streams.values()):
            raise Refused("STREAM_CAPTURE_IMPLICIT")

    def no_unsafe_call(self) -> None:
        """Calls that may wait are refused in a thread that captures, unless it said that it knows (mode RELAXED)."""
        relaxed = 2
        if int(getattr(self.thread, "capture_mode", 0)) == relaxed:
            return
        for stream in self.streams.values():
            mine = stream.capture_mode == 0 or stream.captured_by == threading.get_ident()
            if stream.graph is not None and stream.capture_mode != relaxed and mine:
                raise Refused("STREAM_CAPTURE_UNSUPPORTED")

    def sync_copy(self) -> None:
        self.no_capture()
        self.no_unsafe_call()
        for stream in self.streams.values():  # the default stream waits for the blocking ones
            if stream.context == self.current and not stream.non_blocking:
                self.settle(stream)
