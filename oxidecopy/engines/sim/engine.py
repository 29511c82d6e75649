"""`SimEngine`: the public face of the simulator. It takes verified programs only; `explore` takes any."""

from __future__ import annotations

import os
from typing import Final, final

import numpy as np

from oxidecopy.engines.base import FREED, OTHER_DEVICE, Bindings, Buffer, Outcome
from oxidecopy.engines.sim.explore import raise_for
from oxidecopy.engines.sim.launch import execute
from oxidecopy.engines.sim.memory import GlobalMemory, SimBuffer
from oxidecopy.errors import ArgumentError, Diagnostic, ExecutionError, LifetimeError, UsageError
from oxidecopy.isa.limits import GLOBAL_ADDRESS_ALIGN
from oxidecopy.program.verified import VerifiedProgram

ASSUMPTION: Final = "OX4020"
OUT_OF_BUFFER: Final = "OX4021"


@final
class SimEngine:
    """A device made of numpy arrays.

    Args:
        seed: of the schedule; the same seed gives the same run.
        sm: the compute capability whose limits hold; what 9.0 does not have was not measured.
        hazards: deliver copies late and in portions, and report races and missing fences in the outcome. Without it the simulator is
            about ten times faster, and copies complete at once.
    """

    name: str = "sim"

    def __init__(self, *, seed: int = 0, hazards: bool = True, sm: int = 90) -> None:
        self.seed = seed
        self.sm = sm
        self.hazards = hazards
        self._memory = GlobalMemory()

    # ---- memory
    def room_bytes(self) -> int:
        """Physical memory of this machine, where the arrays lie; without a bound where the system does not say."""
        try:
            return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        except (AttributeError, ValueError, OSError):
            return 1 << 62

    def allocate(self, nbytes: int) -> SimBuffer:
        """`nbytes` bytes of poisoned memory at an address of its own, 4,096-aligned; it lives as long as the buffer is held."""
        if nbytes > self.room_bytes():  # asked first: systems promise more memory than they have
            raise MemoryError(nbytes)
        return self._memory.allocate(nbytes)

    def free(self, buffer: Buffer) -> None:
        """Unmaps a buffer at once; touching it afterwards is fault 700."""
        self._memory.free(self._own(buffer))

    def fill(self, buffer: Buffer, offset: int, nbytes: int, value: int) -> None:
        self._bytes(buffer, offset, nbytes)[...] = value

    def write(self, buffer: Buffer, offset: int, data: memoryview) -> None:
        raw = np.frombuffer(data, np.uint8)
        self._bytes(buffer, offset, len(raw))[...] = raw

    def read(self, buffer: Buffer, offset: int, nbytes: int) -> bytes:
        return self._bytes(buffer, offset, nbytes).tobytes()

    def _bytes(self, buffer: Buffer, offset: int, nbytes: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
        own = self._own(buffer)
        if offset < 0 or nbytes < 0 or offset + nbytes > own.nbytes:
            raise UsageError(
                Diagnostic(
                    rule=OUT_OF_BUFFER,
                    what="a copy between host and simulator leaves the buffer",
                    got=f"bytes {offset} to {offset + nbytes}",
                    required=f"0 to {own.nbytes}",
                    fix="copy no more than the buffer holds",
                )
            )
        return own.data[offset : offset + nbytes]

    # ---- other libraries
    @property
    def dlpack_device(self) -> tuple[int, int]:
        """Host memory, as DLPack counts."""
        return 1, 0

    def borrow(self, address: int, nbytes: int, *, keep: object, readonly: bool) -> tuple[SimBuffer, int]:
        """Host memory that `keep` owns, as memory of the simulator."""
        return self._memory.borrow(address, nbytes, keep=keep, readonly=readonly)

    def reach(self, buffer: Buffer) -> tuple[SimBuffer, int]:
        """Memory of another simulator of this process."""
        if not isinstance(buffer, SimBuffer):
            required, fix = "memory of another simulator", "copy it: dev.array(a.numpy())"
            what = "the simulator reaches the memory of simulators alone"
            raise ArgumentError(Diagnostic(rule=OTHER_DEVICE, what=what, got=repr(buffer), required=required, fix=fix))
        if buffer.memory is self._memory:
            return buffer, 0
        data = _live(buffer).data
        found, offset = self._memory.borrow(data.ctypes.data, buffer.nbytes, keep=buffer, readonly=not data.flags.writeable)
        if found.keep == (buffer,):  # not memory that was borrowed here by itself: that stays
            buffer.peers.add(found)
        return found, offset

    def lend(self, buffer: Buffer, stream: int | None) -> tuple[int, object]:
        """Its address on this machine; nothing is ever in flight."""
        own = self._own(buffer)
        return own.data.ctypes.data, own

    def order(self, after: int, before: object) -> None:
        """Nothing is ever in flight."""

    def _own(self, buffer: Buffer) -> SimBuffer:
        if not isinstance(buffer, SimBuffer) or buffer.memory is not self._memory:
            required, fix = "memory of this simulator", "take arrays of one `Device`: two opened ones do not share memory"
            what = "memory of another device is used on the simulator"
            raise LifetimeError(Diagnostic(rule=OTHER_DEVICE, what=what, got=repr(buffer), required=required, fix=fix))
        return _live(buffer)

    # ---- running
    def run(self, verified: VerifiedProgram, bindings: Bindings) -> Outcome:
        """Runs a launch whose arguments are those of the proof.

        Raises:
            DeadlockError: nobody can go on.
            DeviceFaultError: the hardware would fault here.
            ExecutionError: the arguments are not those the proof was made for.
        """
        broken = self._discharge(verified, bindings)
        if broken:
            raise ExecutionError(*broken)
        for buffer in [bound.buffer for bound in bindings.maps.values()] + [array.buffer for array in bindings.arrays.values()]:
            self._own(buffer)
        result = execute(verified.program, bindings, self._memory, seed=self.seed, hazards=self.hazards)
        raise_for(result.outcome, result.code, result.diagnostics)
        return Outcome(findings=result.findings)

    def _discharge(self, verified: VerifiedProgram, bindings: Bindings) -> list[Diagnostic]:
        """Every assumption of the proof that these arguments break."""
        assumed, launch = verified.assumptions, verified.assumptions.launch
        actual = bindings.launch(self.sm)
        pairs: list[tuple[str, object, object]] = [
            ("compute capability", self.sm, assumed.sm),
            ("shared bytes", verified.program.shared_bytes, assumed.shared_bytes),
            ("grid", actual.grid, launch.grid),
            ("index parameters", actual.idx, launch.idx),
            ("parameters over one view", actual.same, launch.same),
            ("parameters that share memory", actual.overlapping, launch.overlapping),
        ]
        pairs += _by_name("tensor map", dict(actual.maps), dict(launch.maps))
        pairs += _by_name("array", dict(actual.arrays), dict(launch.arrays))
        pairs.append(("what lies behind the rows", actual.edges, launch.edges))
        broken = [_broken(what, got, wanted) for what, got, wanted in pairs if got != wanted]
        for name, bound in bindings.maps.items():
            address = bound.buffer.address + bound.offset_bytes
            if address % GLOBAL_ADDRESS_ALIGN:
                broken.append(_broken(f"address of `{name}`", f"{address:#x}", f"a multiple of {GLOBAL_ADDRESS_ALIGN}"))
        return broken


def _live(buffer: SimBuffer) -> SimBuffer:
    """The buffer; refuses one that was freed."""
    if not buffer.alive:
        fix = "free an array after its last use, or drop it"
        what = "memory is used after it was freed"
        raise LifetimeError(Diagnostic(rule=FREED, what=what, got=repr(buffer), required="live memory", fix=fix))
    return buffer


def _by_name(kind: str, actual: dict[str, object], assumed: dict[str, object]) -> list[tuple[str, object, object]]:
    return [(f"{kind} `{name}`", actual.get(name), assumed.get(name)) for name in sorted({*actual, *assumed})]


def _broken(what: str, got: object, wanted: object) -> Diagnostic:
    return Diagnostic(
        rule=ASSUMPTION,
        what=f"the launch is not the one that was verified: {what} differs",
        got=str(got),
        required=str(wanted),
        fix="verify the program again for this launch",
    )
