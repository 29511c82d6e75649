"""What an engine is: it owns memory, takes a `VerifiedProgram` with its buffers, and says what happened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, final

from oxidecopy.errors import Diagnostic
from oxidecopy.program.program import ArrayInfo
from oxidecopy.program.tensor_map import TensorMap
from oxidecopy.program.verified import VerifiedProgram


class Buffer(Protocol):
    """Device memory owned by an engine: `nbytes` bytes at `address`."""

    @property
    def address(self) -> int:
        """First byte, in the device's address space."""

    @property
    def nbytes(self) -> int:
        """Size in bytes."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BoundMap:
    """A tensor map with the memory it points to; element 0 lies `offset_bytes` into the buffer."""

    map: TensorMap
    buffer: Buffer
    offset_bytes: int = 0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BoundArray:
    """A global array with its memory; element 0 lies `offset_bytes` into the buffer."""

    info: ArrayInfo
    buffer: Buffer
    offset_bytes: int = 0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Bindings:
    """The actual arguments of a launch, by parameter name."""

    grid: tuple[int, int, int]
    maps: Mapping[str, BoundMap]
    arrays: Mapping[str, BoundArray]
    idx: Mapping[str, int]
    scalars: Mapping[str, int | float]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a finished launch went; `findings` are races, missing fences and other luck (empty when none were looked for)."""

    findings: tuple[Diagnostic, ...] = ()


class Engine(Protocol):
    """Runs verified programs. Memory passes as raw bytes; shapes and types are the host side's business."""

    @property
    def name(self) -> str:
        """As `Device.open` takes it."""

    @property
    def sm(self) -> int:
        """Compute capability, 90 for 9.0."""

    def allocate(self, nbytes: int) -> Buffer:
        """New memory, contents undefined, aligned to 256 bytes at least."""

    def write(self, buffer: Buffer, offset: int, data: memoryview) -> None:
        """Copies bytes to the device, `offset` bytes into the buffer."""

    def read(self, buffer: Buffer, offset: int, nbytes: int) -> bytes:
        """Copies bytes back."""

    def run(self, verified: VerifiedProgram, bindings: Bindings) -> Outcome:
        """Discharges the proof's assumptions on these buffers, then runs to the end; raises ExecutionError for what went wrong."""
