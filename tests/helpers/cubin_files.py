"""The cubins of the tests, and an engine that notes what it is asked to launch."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from oxidecopy.engines.base import Bindings, Buffer, Outcome, RawLaunch
from oxidecopy.host.device import Device
from oxidecopy.program.verified import VerifiedProgram
from tests.helpers.memory_engine import MemoryEngine

FOLDER = Path(__file__).parent / "cubins"
SM90 = FOLDER / "probe_cuda12.sm_90a.cubin"
SM90_CUDA13 = FOLDER / "probe_cuda13.sm_90a.cubin"
SM100 = FOLDER / "probe_cuda13.sm_100a.cubin"
LESSON = Path(__file__).parents[2] / "examples" / "kernels" / "scale.sm_90a.cubin"


@final
@dataclass(slots=True)
class NotingEngine:
    """Memory, and a list of the launches with the streams they were ordered on."""

    sm: int = 90
    name: str = "cuda:0"
    memory: MemoryEngine = field(default_factory=MemoryEngine)
    launched: list[tuple[RawLaunch, object]] = field(default_factory=list)

    def allocate(self, nbytes: int) -> Buffer:
        return self.memory.allocate(nbytes)

    def room_bytes(self) -> int:
        return self.memory.room_bytes()

    def fill(self, buffer: Buffer, offset: int, nbytes: int, value: int) -> None:
        self.memory.fill(buffer, offset, nbytes, value)

    def write(self, buffer: Buffer, offset: int, data: memoryview) -> None:
        self.memory.write(buffer, offset, data)

    def read(self, buffer: Buffer, offset: int, nbytes: int) -> bytes:
        return self.memory.read(buffer, offset, nbytes)

    def run(self, verified: VerifiedProgram, bindings: Bindings) -> Outcome:
        raise NotImplementedError

    def launch_raw(self, launch: RawLaunch, stream: object) -> None:
        self.launched.append((launch, stream))


def noting_device(sm: int = 90) -> tuple[Device, NotingEngine]:
    """A device on such an engine."""
    engine = NotingEngine(sm=sm)
    return Device(engine.name, engine), engine
