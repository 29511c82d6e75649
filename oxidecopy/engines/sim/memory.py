"""Global memory as buffers at addresses, and the shared-memory window of one CTA. Both start poisoned.

An address that no live buffer covers is unmapped: touching it is fault 700. Buffers lie far apart, so a stray access never lands in a
neighbour by accident. Freshly allocated memory holds the same bytes on every run: a pattern that is a signalling NaN as f32 and bf16.
"""

from __future__ import annotations

import ctypes
from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from threading import RLock
from typing import Any, Final, TypeAlias, final
from weakref import WeakSet, WeakValueDictionary

import numpy as np
import numpy.typing as npt

from oxidecopy.engines.sim.faults import ILLEGAL_ADDRESS, Fault
from oxidecopy.isa.limits import SHARED_BASE

Bytes: TypeAlias = npt.NDArray[np.uint8]
Array: TypeAlias = npt.NDArray[Any]  # units or elements; their type is only known at run time

POISON: Final = (0xA5, 0xA5, 0xB5, 0xFF)  # 0xFFB5A5A5 little endian
GRANULE: Final = 16  # bytes; what tensor copies move and swizzles permute
FIRST_ADDRESS: Final = 0x7F00_0000_0000
PAGE: Final = 4096  # buffers start at a multiple of it, at least one unmapped page apart
MAPPED_STEP: Final = 512  # a buffer's mapped bytes are a multiple of it, as with the driver's allocator
ALIGNED: Final = 128  # bytes: what a borrowed buffer's address keeps of the machine's; more than any rule asks for
UNIT: Final = np.dtype("V16")
BYTE: Final = np.dtype("u1")
# (Any: the bits of an element, whose size is only known at run time.)
ELEMENT: Final[dict[int, np.dtype[Any]]] = {1: BYTE, 2: np.dtype("<u2"), 4: np.dtype("<u4"), 8: np.dtype("<u8"), 16: UNIT}


def poisoned(nbytes: int) -> Bytes:
    """`nbytes` (rounded up to 4) bytes of poison, aligned to 64 so that wide views are fast."""
    words = -(-nbytes // 4)
    raw = np.empty(words * 4 + 64, np.uint8)
    start = -raw.ctypes.data % 64
    out = raw[start : start + words * 4]
    out.reshape(-1, 4)[:] = POISON
    return out


@final
class SimBuffer:
    """`nbytes` bytes at `address`; `data` also holds the mapped tail up to a multiple of 512.

    Borrowed memory lies where `keep`, its owner, has it, without a tail: what is behind it is somebody else's.
    """

    __slots__ = ("__weakref__", "address", "alive", "data", "keep", "memory", "nbytes", "peers")

    def __init__(self, address: int, nbytes: int, memory: GlobalMemory, borrowed: Bytes | None = None, keep: object = None) -> None:
        self.address = address
        self.nbytes = nbytes
        self.memory = memory
        self.alive = True
        self.keep = keep
        self.peers: WeakSet[SimBuffer] = WeakSet()  # of other simulators, which reach this memory
        self.data = poisoned(max(-(-nbytes // MAPPED_STEP) * MAPPED_STEP, MAPPED_STEP)) if borrowed is None else borrowed

    @property
    def mapped_bytes(self) -> int:
        return len(self.data)

    def __repr__(self) -> str:
        return f"SimBuffer(address={self.address:#x}, nbytes={self.nbytes})"


@final
@dataclass(frozen=True, slots=True)
class ForeignBuffer:
    """An address that the simulator never handed out: null, unmapped, another process's."""

    address: int
    nbytes: int = 0


@final
class GlobalMemory:
    """All live buffers of one engine, found by address. A buffer nobody holds any more is unmapped.

    Attributes:
        lock: held while a launch runs and while buffers come and go: threads share a device.
    """

    def __init__(self) -> None:
        self.lock = RLock()
        self._live: WeakValueDictionary[int, SimBuffer] = WeakValueDictionary()
        self._bases: list[int] = []
        self._next = FIRST_ADDRESS

    def allocate(self, nbytes: int) -> SimBuffer:
        with self.lock:
            return self._add(SimBuffer(self._next, nbytes, self))

    def _add(self, buffer: SimBuffer) -> SimBuffer:
        self._next = -(-(buffer.address + buffer.mapped_bytes) // PAGE) * PAGE + PAGE
        self._live[buffer.address] = buffer
        if len(self._bases) > 2 * len(self._live) + 64:  # mostly buffers that nobody holds any more
            self._bases = sorted(self._live)
        else:
            insort(self._bases, buffer.address)
        return buffer

    def borrow(self, where: int, nbytes: int, *, keep: object, readonly: bool) -> tuple[SimBuffer, int]:
        """Host memory at the machine's address `where`: a buffer that covers it, and the offset in it.

        Memory that is borrowed already, or lent, is the same buffer, so that the simulator knows what is one memory. The address has the
        last bits of the machine's: what is not aligned there is not aligned here.
        """
        with self.lock:
            for known in list(self._live.values()):
                start = known.data.ctypes.data
                usable = known.data.flags.writeable or readonly
                if usable and start <= where and where + nbytes <= start + known.nbytes:
                    return known, where - start
            data = np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(where))
            data.flags.writeable = not readonly
            return self._add(SimBuffer(self._next + where % ALIGNED, nbytes, self, data, (keep,))), 0

    def free(self, buffer: SimBuffer) -> None:
        """Unmaps a buffer that somebody may still hold; touching it is then a fault."""
        with self.lock:
            buffer.alive = False
            self._live.pop(buffer.address, None)
        for peer in list(buffer.peers):
            peer.memory.free(peer)

    def find(self, address: int) -> SimBuffer | None:
        """The live buffer that maps `address`, or None."""
        i = bisect_right(self._bases, address) - 1
        if i < 0:
            return None
        buffer = self._live.get(self._bases[i])
        if buffer is None:  # dropped since: forget its base, nothing else can cover the address
            del self._bases[i]
            return None
        return buffer if address - buffer.address < len(buffer.data) else None

    def view(self, address: int, nbytes: int) -> Bytes:
        """The bytes at an address, to read or write; raises fault 700 where any of them is unmapped."""
        buffer = self.find(address)
        if buffer is not None:
            start = address - buffer.address
            if start + nbytes <= len(buffer.data):
                return buffer.data[start : start + nbytes]
        raise unmapped(address, nbytes)

    def box(self, address: int, shape: Sequence[int], strides: Sequence[int], item: int) -> Array | None:
        """A strided view when all of it lies in one buffer; None when it does not (it may still be mapped piece by piece).

        `strides` are bytes and not negative; `item` is the element size in bytes.
        """
        buffer = self.find(address)
        if buffer is None:
            return None
        start = address - buffer.address
        end = start + item
        for n, stride in zip(shape, strides, strict=True):
            end += (n - 1) * stride
        if end > len(buffer.data):
            return None
        return np.ndarray(tuple(shape), ELEMENT[item], buffer.data, start, tuple(strides))


def unmapped(address: int, nbytes: int) -> Fault:
    """Fault 700 for global memory."""
    return Fault(
        ILLEGAL_ADDRESS,
        "global memory that is not mapped is touched",
        got=f"{nbytes} bytes at {address:#x}",
        required="memory of a live buffer of this device",
        fix="bind a live array, and keep extents and strides inside it",
    )


@final
class SharedMemory:
    """The window of one CTA: `SHARED_BASE` system bytes (not protected), then the dynamic part rounded up to 128 (measured)."""

    __slots__ = ("_poison", "data", "raw", "size", "units")

    def __init__(self, shared_bytes: int) -> None:
        self.size = SHARED_BASE + -(-shared_bytes // 128) * 128
        self.data = poisoned(self.size)
        self.raw = self.data.data  # the same bytes as a memoryview: quicker for a barrier's word
        self.units = self.data.view(UNIT)
        self._poison = self.data.copy()

    def reset(self) -> None:
        self.data[:] = self._poison
