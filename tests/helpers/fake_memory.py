"""The fake driver's calls about memory."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

from tests.helpers.fake_gpu import Handle
from tests.helpers.fake_state import FakeState, Refused, driver_call


class FakeMemory(FakeState):
    """Allocations and copies."""

    # ---- memory
    @driver_call(values=2)
    def cuMemGetInfo(self) -> Any:
        device = self.here().device
        total = self.gpus[device].memory_bytes
        return total - sum(len(allocation.data) for allocation in self.live if allocation.device == device), total

    @driver_call(values=1)
    def cuMemAlloc(self, bytesize: int) -> Any:
        if bytesize < 1:
            raise Refused("INVALID_VALUE")
        return Handle(self.new_allocation(bytesize, self.here().device, pooled=False))

    @driver_call()
    def cuMemFree(self, dptr: Any) -> Any:
        self.free_now(int(dptr))

    @driver_call(values=1)
    def cuMemAllocAsync(self, bytesize: int, hStream: Any) -> Any:
        if bytesize < 1:
            raise Refused("INVALID_VALUE")
        self.stream_of(hStream)
        if not self.gpus[self.here().device].attribute("MEMORY_POOLS_SUPPORTED"):
            raise Refused("NOT_SUPPORTED")
        return Handle(self.new_allocation(bytesize, self.here().device, pooled=True))

    @driver_call()
    def cuMemFreeAsync(self, dptr: Any, hStream: Any) -> Any:
        address = int(dptr)
        if address not in self.memory or not self.memory[address].alive:
            raise Refused("INVALID_VALUE")
        self.give(hStream, lambda: self.free_now(address))

    @driver_call(values=1)
    def cuDeviceGetDefaultMemPool(self, dev: Any) -> Any:
        if not self.gpu_of(dev).attribute("MEMORY_POOLS_SUPPORTED"):
            raise Refused("NOT_SUPPORTED")
        return Handle(0x9000 + int(dev))

    @driver_call()
    def cuMemPoolSetAccess(self, pool: Any, map: Any, count: int) -> Any:  # noqa: A002
        for desc in map[:count]:
            self.pools_reached.add((desc.location.id, int(pool) - 0x9000))

    def free_now(self, address: int) -> None:
        allocation = self.memory.get(address)
        if allocation is None or not allocation.alive:
            raise Refused("INVALID_VALUE")
        allocation.alive = False

    @driver_call(values=1)
    def cuMemHostAlloc(self, bytesize: int, Flags: int) -> Any:
        raw = (ctypes.c_ubyte * bytesize)(*b"\xcd" * bytesize)
        address = ctypes.addressof(raw)
        self.host[address] = raw
        return address

    @driver_call()
    def cuMemFreeHost(self, p: Any) -> Any:
        if self.host.pop(int(p), None) is None:
            raise Refused("INVALID_VALUE")

    @driver_call(values=1)
    def cuMemHostGetDevicePointer(self, p: Any, Flags: int) -> Any:
        if int(p) not in self.host:
            raise Refused("INVALID_VALUE")
        return Handle(int(p))  # unified addressing: the same number

    @driver_call()
    def cuMemcpyPeerAsync(self, dstDevice: Any, dstContext: Any, srcDevice: Any, srcContext: Any, ByteCount: int, hStream: Any) -> Any:
        source, target = self.allocation_of(int(srcDevice), ByteCount), self.allocation_of(int(dstDevice), ByteCount)

        def work() -> None:
            start, at = int(srcDevice) - source.address, int(dstDevice) - target.address
            target.data[at : at + ByteCount] = source.data[start : start + ByteCount]

        self.give(hStream, work)

    @driver_call()
    def cuMemcpyHtoD(self, dstDevice: Any, srcHost: Any, ByteCount: int) -> Any:
        self.sync_copy()
        data = self.from_host(srcHost, ByteCount)
        allocation = self.allocation_of(int(dstDevice), ByteCount)
        at = int(dstDevice) - allocation.address
        allocation.data[at : at + ByteCount] = data

    @driver_call()
    def cuMemcpyDtoH(self, dstHost: Any, srcDevice: Any, ByteCount: int) -> Any:
        self.sync_copy()
        self.to_host(dstHost, self.bytes_at(int(srcDevice), ByteCount))

    @driver_call()
    def cuMemcpyDtoD(self, dstDevice: Any, srcDevice: Any, ByteCount: int) -> Any:
        self.sync_copy()
        self.poke(int(dstDevice), self.bytes_at(int(srcDevice), ByteCount))

    @driver_call()
    def cuMemcpyHtoDAsync(self, dstDevice: Any, srcHost: Any, ByteCount: int, hStream: Any) -> Any:
        self.allocation_of(int(dstDevice), ByteCount)
        self.give(hStream, lambda: self.poke(int(dstDevice), self.from_host(srcHost, ByteCount)))

    @driver_call()
    def cuMemcpyDtoDAsync(self, dstDevice: Any, srcDevice: Any, ByteCount: int, hStream: Any) -> Any:
        self.allocation_of(int(srcDevice), ByteCount)
        self.allocation_of(int(dstDevice), ByteCount)
        self.give(hStream, lambda: self.poke(int(dstDevice), self.bytes_at(int(srcDevice), ByteCount)))

    @driver_call()
    def cuMemsetD8(self, dstDevice: Any, uc: int, N: int) -> Any:
        self.sync_copy()
        self.allocation_of(int(dstDevice), N)
        self.poke(int(dstDevice), bytes([uc]) * N)

    @driver_call()
    def cuMemsetD32(self, dstDevice: Any, ui: int, N: int) -> Any:
        self.sync_copy()
        self.allocation_of(int(dstDevice), 4 * N)
        self.poke(int(dstDevice), struct.pack("<I", ui) * N)

    @driver_call()
    def cuMemsetD8Async(self, dstDevice: Any, uc: int, N: int, hStream: Any) -> Any:
        self.allocation_of(int(dstDevice), N)
        self.give(hStream, lambda: self.poke(int(dstDevice), bytes([uc]) * N))

    @driver_call()
    def cuMemsetD32Async(self, dstDevice: Any, ui: int, N: int, hStream: Any) -> Any:
        self.allocation_of(int(dstDevice), 4 * N)
        self.give(hStream, lambda: self.poke(int(dstDevice), struct.pack("<I", ui) * N))

    @staticmethod
    def from_host(source: Any, nbytes: int) -> bytes:
        if isinstance(source, int):
            return ctypes.string_at(source, nbytes)
        view = memoryview(source).cast("B")
        if len(view) < nbytes:
            raise Refused("INVALID_VALUE")
        return bytes(view[:nbytes])

    @staticmethod
    def to_host(target: Any, data: bytes) -> None:
        if isinstance(target, int):
            ctypes.memmove(target, data, len(data))
        else:
            memoryview(target).cast("B")[: len(data)] = data

    @driver_call(values=1)
    def cuPointerGetAttribute(self, attribute: Any, ptr: Any) -> Any:
        address, name = int(ptr), attribute.name.removeprefix("CU_POINTER_ATTRIBUTE_")
        for allocation in self.live:
            if allocation.address <= address < allocation.address + len(allocation.data):
                return {
                    "CONTEXT": allocation.context,
                    "MEMORY_TYPE": 2,
                    "IS_MANAGED": 0,
                    "DEVICE_ORDINAL": allocation.device,
                    "RANGE_START_ADDR": allocation.address,
                    "RANGE_SIZE": len(allocation.data),
                    "MEMPOOL_HANDLE": Handle(0x9001 if allocation.pooled else 0),
                }[name]
        if any(base <= address < base + len(raw) for base, raw in self.host.items()) and name in ("MEMORY_TYPE", "IS_MANAGED"):
            return {"MEMORY_TYPE": 1, "IS_MANAGED": 0}[name]
        raise Refused("INVALID_VALUE")
