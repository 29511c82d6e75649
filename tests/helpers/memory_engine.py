"""An engine that only keeps bytes: the host side without a simulator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

from oxidecopy.engines.base import Bindings, Buffer, Outcome
from oxidecopy.host.device import Device
from oxidecopy.program.verified import VerifiedProgram


@final
@dataclass(frozen=True, slots=True, eq=False)
class PlainBuffer:
    """Bytes at a made-up address."""

    address: int
    nbytes: int
    data: bytearray


@final
@dataclass(slots=True)
class MemoryEngine:
    """Allocates poisoned buffers, reads and writes them; runs nothing."""

    name: str = "memory"
    sm: int = 90
    room: int = 1 << 30
    buffers: list[PlainBuffer] = field(default_factory=list)

    def allocate(self, nbytes: int) -> Buffer:
        if nbytes > self.room:
            raise MemoryError(nbytes)
        made = PlainBuffer(0x1000 * (len(self.buffers) + 1), nbytes, bytearray(b"\xa5" * nbytes))
        self.buffers.append(made)
        return made

    def room_bytes(self) -> int:
        return self.room

    def fill(self, buffer: Buffer, offset: int, nbytes: int, value: int) -> None:
        assert isinstance(buffer, PlainBuffer)
        buffer.data[offset : offset + nbytes] = bytes([value]) * nbytes

    def write(self, buffer: Buffer, offset: int, data: memoryview) -> None:
        assert isinstance(buffer, PlainBuffer)
        assert offset + len(data) <= buffer.nbytes
        buffer.data[offset : offset + len(data)] = data

    def read(self, buffer: Buffer, offset: int, nbytes: int) -> bytes:
        assert isinstance(buffer, PlainBuffer)
        assert offset + nbytes <= buffer.nbytes
        return bytes(buffer.data[offset : offset + nbytes])

    def run(self, verified: VerifiedProgram, bindings: Bindings) -> Outcome:
        raise NotImplementedError


def memory_device(sm: int = 90) -> tuple[Device, MemoryEngine]:
    """A device on such an engine."""
    engine = MemoryEngine(sm=sm)
    return Device("memory", engine), engine
