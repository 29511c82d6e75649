"""A CUDA driver without a GPU: the calls of `oxidecopy.engines.cuda.bindings.Driver`, with memory in bytearrays at made-up addresses.

    driver = FakeDriver()                      # one H200
    context = PrimaryContext(driver, 0)

It refuses what the real driver refuses (no current context, unknown handles, frees twice, copies outside an allocation, launches beyond the
device's limits), keeps a context stack per thread, and does work in stream order when it is asked to (`hold`, `finish`), so that tests see
launches in flight. Failures are ordered: `driver.fail["cuMemAlloc"] = "CUDA_ERROR_OUT_OF_MEMORY"` for the next call, `driver.fault(...)`
for a context that is lost. A launch runs `driver.on_launch(launch)` if that is set, which may read and write `driver.memory`.

Enums come from the stub, which is held against the real module elsewhere: nothing here needs cuda-python.
"""

from __future__ import annotations

from typing import Any, cast

from tests.helpers.fake_code import FakeCode
from tests.helpers.fake_gpu import (
    Allocation,
    FakeContext,
    FakeEvent,
    FakeGpu,
    FakeImage,
    FakeKernel,
    FakeStream,
    FakeTensorMap,
    Handle,
    Launch,
)
from tests.helpers.fake_memory import FakeMemory
from tests.helpers.fake_state import LEGACY, Refused, driver_call

__all__ = ["Allocation", "FakeDriver", "FakeGpu", "FakeImage", "FakeKernel", "FakeTensorMap", "Handle", "Launch", "Refused"]


class FakeDriver(FakeMemory, FakeCode):
    """The fake, see above; its attributes are those of `FakeState`."""

    # ---- driver, devices
    @driver_call(context=False, lost=False)
    def cuInit(self, Flags: int) -> Any:
        self.initialised = True

    @driver_call(context=False, lost=False, values=1)
    def cuDriverGetVersion(self) -> Any:
        return self.version

    @driver_call(context=False, lost=False, values=1)
    def cuDeviceGetCount(self) -> Any:
        if not self.initialised:
            raise Refused("NOT_INITIALIZED")
        return len(self.gpus)

    @driver_call(context=False, lost=False, values=1)
    def cuDeviceGet(self, ordinal: int) -> Any:
        self.gpu_of(ordinal)
        return Handle(ordinal)

    @driver_call(context=False, lost=False, values=1)
    def cuDeviceGetName(self, length: int, dev: Any) -> Any:
        return self.gpu_of(dev).name.encode().ljust(length, b"\0")

    @driver_call(context=False, lost=False, values=1)
    def cuDeviceGetAttribute(self, attrib: Any, dev: Any) -> Any:
        gpu, name = self.gpu_of(dev), attrib.name.removeprefix("CU_DEVICE_ATTRIBUTE_")
        if name in gpu.unknown:
            raise Refused("INVALID_VALUE")
        return gpu.attribute(name)

    @driver_call(context=False, lost=False, values=1)
    def cuDeviceTotalMem(self, dev: Any) -> Any:
        return self.gpu_of(dev).memory_bytes

    @driver_call(context=False, lost=False, values=1)
    def cuDeviceCanAccessPeer(self, dev: Any, peerDev: Any) -> Any:
        self.gpu_of(dev), self.gpu_of(peerDev)
        return int(int(dev) != int(peerDev) and (int(dev), int(peerDev)) not in self.no_path)

    # ---- contexts
    @driver_call(context=False, lost=False, values=1)
    def cuDevicePrimaryCtxRetain(self, dev: Any) -> Any:
        gpu = self.gpu_of(dev)
        if gpu.attribute("COMPUTE_MODE") == 2:
            raise Refused("DEVICE_UNAVAILABLE")
        for handle, context in self.contexts.items():
            if context.device == int(dev):
                context.retained += 1
                return Handle(handle)
        handle = self.new_handle()
        self.contexts[handle] = FakeContext(int(dev), 1)
        return Handle(handle)

    @driver_call(context=False, lost=False)
    def cuDevicePrimaryCtxRelease(self, dev: Any) -> Any:
        for handle, context in list(self.contexts.items()):
            if context.device == int(dev):
                context.retained -= 1
                if context.retained == 0:
                    del self.contexts[handle]
                    for allocation in self.live:
                        allocation.alive = allocation.device != int(dev)
                return
        raise Refused("INVALID_CONTEXT")

    @driver_call(context=False, lost=False, values=2)
    def cuDevicePrimaryCtxGetState(self, dev: Any) -> Any:
        self.gpu_of(dev)
        return 0, int(any(context.device == int(dev) for context in self.contexts.values()))

    @driver_call(context=False, lost=False)
    def cuCtxPushCurrent(self, ctx: Any) -> Any:
        if int(ctx) not in self.contexts:
            raise Refused("INVALID_CONTEXT")
        self.stack.append(int(ctx))

    @driver_call(context=False, lost=False, values=1)
    def cuCtxPopCurrent(self) -> Any:
        if not self.stack:
            raise Refused("INVALID_CONTEXT")
        return Handle(self.stack.pop())

    @driver_call(context=False, lost=False, values=1)
    def cuCtxGetCurrent(self) -> Any:
        return Handle(self.current or 0)

    @driver_call()
    def cuCtxEnablePeerAccess(self, peerContext: Any, Flags: int) -> Any:
        if int(peerContext) not in self.contexts or int(peerContext) == self.current:
            raise Refused("INVALID_DEVICE" if int(peerContext) == self.current else "INVALID_CONTEXT")
        pair = cast("int", self.current), int(peerContext)
        if pair in self.reached:
            raise Refused("PEER_ACCESS_ALREADY_ENABLED")
        self.reached.add(pair)

    @driver_call()
    def cuCtxSynchronize(self) -> Any:
        self.no_capture()
        for stream in self.all_streams:
            if stream.context == self.current:
                self.settle(stream)

    # ---- streams, events
    @driver_call(values=1)
    def cuStreamCreate(self, Flags: int) -> Any:
        handle = self.new_handle()
        self.streams[handle] = FakeStream(cast("int", self.current), non_blocking=bool(Flags & 1))
        return Handle(handle)

    @driver_call()
    def cuStreamDestroy(self, hStream: Any) -> Any:
        stream = self.stream_of(hStream)
        self.destroyed.append(stream)
        del self.streams[int(hStream)]

    @driver_call()
    def cuStreamSynchronize(self, hStream: Any) -> Any:
        stream = self.stream_of(hStream)
        if stream.graph is not None:
            raise Refused("STREAM_CAPTURE_UNSUPPORTED")
        self.settle(stream)

    @driver_call()
    def cuStreamQuery(self, hStream: Any) -> Any:
        stream = self.stream_of(hStream)
        if stream.graph is not None:
            raise Refused("STREAM_CAPTURE_UNSUPPORTED")
        if self.busy(stream):
            raise Refused("NOT_READY")

    @driver_call(context=False, lost=False, values=1)
    def cuStreamGetCtx(self, hStream: Any) -> Any:
        return Handle(self.stream_of(hStream).context)

    @driver_call()
    def cuStreamWaitEvent(self, hStream: Any, hEvent: Any, Flags: int) -> Any:
        stream, event = self.stream_of(hStream), self.event_of(hEvent)
        if not event.passed and event.on is not stream:  # else it comes behind it anyway
            stream.blocked_by.append(event)

    @driver_call(lost=False, values=1)  # measured: refused without a current context
    def cuStreamIsCapturing(self, hStream: Any) -> Any:
        if int(hStream) in (0, LEGACY):
            self.no_capture()
        return self.CUstreamCaptureStatus(int(self.stream_of(hStream).graph is not None))

    @driver_call(context=False, lost=False, values=1)
    def cuThreadExchangeStreamCaptureMode(self, mode: Any) -> Any:
        before = getattr(self.thread, "capture_mode", self.CUstreamCaptureMode(0))
        self.thread.capture_mode = mode
        return before

    @driver_call(values=1)
    def cuEventCreate(self, Flags: int) -> Any:
        handle = self.new_handle()
        self.events[handle] = FakeEvent(cast("int", self.current), timing=not Flags & 2)
        return Handle(handle)

    @driver_call()
    def cuEventDestroy(self, hEvent: Any) -> Any:
        self.event_of(hEvent)
        del self.events[int(hEvent)]

    @driver_call()
    def cuEventRecord(self, hEvent: Any, hStream: Any) -> Any:
        event, stream = self.event_of(hEvent), self.stream_of(hStream)
        if event.context != stream.context:
            raise Refused("INVALID_HANDLE")
        event.recorded, event.on = True, stream
        if stream.graph is None:
            event.passed = False
            self.give(hStream, lambda: self.let_pass(event))

    def let_pass(self, event: FakeEvent) -> None:
        self.clock += 0.25
        event.passed, event.time = True, self.clock

    @driver_call()
    def cuEventQuery(self, hEvent: Any) -> Any:
        self.progress()
        if not self.event_of(hEvent).passed:
            raise Refused("NOT_READY")

    @driver_call()
    def cuEventSynchronize(self, hEvent: Any) -> Any:
        if not self.event_of(hEvent).passed:
            self.finish()

    @driver_call(values=1)
    def cuEventElapsedTime(self, hStart: Any, hEnd: Any) -> Any:
        start, end = self.event_of(hStart), self.event_of(hEnd)
        if not (start.timing and end.timing and start.recorded and end.recorded):
            raise Refused("INVALID_HANDLE")
        if not (start.passed and end.passed):
            raise Refused("NOT_READY")
        return end.time - start.time
