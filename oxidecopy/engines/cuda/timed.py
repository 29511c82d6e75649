"""Runs a launch by the interpreter that stamps its ops, and reads the stamps.

That interpreter runs op by op, without the records that make loops and maps fast, and deals shares of tiles by a fixed rule: what it
shows is when copies land, who waits for whom and how long a copy takes on this GPU, while the launch as a whole is slower than it would
be. Each warp that does something has a lane of its own.

When a copy lands nobody says; it is taken to be over when the first wait on its barrier is over that ends after the copy was issued.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Final, final

from oxidecopy.engines.base import Bindings
from oxidecopy.engines.cuda import abi
from oxidecopy.engines.cuda.abi import DeviceOp
from oxidecopy.engines.cuda.code.agents import WARPS_MAX, classes_of
from oxidecopy.engines.cuda.code.encode import encode_program
from oxidecopy.engines.cuda.code.image import Image
from oxidecopy.engines.cuda.engine import CudaEngine
from oxidecopy.errors import DeadlockError, DeviceCodeError, Diagnostic
from oxidecopy.isa import expr, ops
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.expr import Sym
from oxidecopy.program.expansion import expanded
from oxidecopy.program.program import BLOCK_SYMBOLS, RANK_SYMBOL, Program, Step
from oxidecopy.program.stamps import Block, Flight, Stamp, Stamped, ThreadGroup
from oxidecopy.program.verified import VerifiedProgram

TOO_MANY: Final = "OX6053"
_HEADER: Final = struct.Struct("<4I")
_STAMP: Final = struct.Struct("<IIQ")
_MODEL: Final = (
    "stamped by the GPU's global timer",
    "run op by op, by an interpreter that stamps: loops, maps and shares of a counter are slower than in a launch that is not looked at",
    "a load is drawn until the first wait on its barrier after it, a store until its group is waited for, else to the end",
    "of classes of threads that only wait and sync nothing is known: they have no warp there",
)


def stamped(engine: CudaEngine, verified: VerifiedProgram, bindings: Bindings, *, ctas: int, ops_max: int) -> Stamped:
    """Runs the launch, whole, and follows its first CTAs.

    Raises:
        DeviceCodeError: there is no such code (OX5501 to OX5511), or the program has more classes of threads than a CTA has warps.
    """
    launch = verified.assumptions.launch
    image = encode_program(verified.program, launch, timed=True)
    if image.family != abi.TIMED_FAMILY:
        raise DeviceCodeError(
            Diagnostic(
                rule=TOO_MANY,
                what=f"program {image.name} cannot be stamped: it has more classes of threads than a CTA has warps",
                got=f"{len(image.agents)} classes",
                required=f"at most {WARPS_MAX}",
                fix="follow it on the simulator: oxidecopy trace FILE --device sim",
            )
        )
    followed = min(ctas, prod(bindings.grid))
    capacity = max(1, ops_max // (followed * len(image.warps)))
    room = _HEADER.size + followed * len(image.warps) * capacity * abi.STAMP_BYTES
    buffer = engine.allocate(room)
    engine.fill(buffer, 0, room, 0)
    engine.write(buffer, 0, memoryview(_HEADER.pack(followed, capacity, 0, 0)))
    outcome, problems = "ok", tuple[Diagnostic, ...]()
    try:
        engine.run_image(verified, image, bindings, buffer)
    except DeadlockError as stuck:
        outcome, problems = "deadlock", stuck.diagnostics
    data = engine.read(buffer, 0, room)
    run = read(image, verified.program, launch.environment(), bindings.grid, data)
    return replace(run, source=f"{engine.name}, {engine.context.gpu.name}", outcome=outcome, diagnostics=problems)


# ---- from bytes to stamps
@final
@dataclass(slots=True)
class _Lane:
    """One warp of one CTA, while its stamps are read."""

    cta: Block
    agent: int
    names: dict[str, int]
    stored: list[list[int]] = field(default_factory=lambda: [[]])  # by bulk group: its flights; the last one is open


def read(image: Image, program: Program, constants: Mapping[str, int], grid: Block, data: bytes) -> Stamped:
    """What a buffer of stamps says."""
    program = expanded(program)
    followed, capacity, _, _ = _HEADER.unpack_from(data)
    # Counted from the first stamp on: nanoseconds since 1970 are more than a float holds.
    first = min((begun for _, _, begun in _STAMP.iter_unpack(data[_HEADER.size :]) if begun), default=0)
    reader = _Reader(image, program, constants, grid)
    full = False
    for number in range(followed):
        for warp in range(len(image.warps)):
            at = _HEADER.size + (number * len(image.warps) + warp) * capacity * abi.STAMP_BYTES
            found = [(s[0], s[1], s[2] - first) for s in _STAMP.iter_unpack(data[at : at + capacity * abi.STAMP_BYTES]) if s[2]]
            full = full or len(found) == capacity
            reader.warp(number, warp, found)
    return reader.finish(followed, cut=f"cut off after {capacity:,} records of a warp: what comes later is not shown" if full else "")


@final
class _Reader:
    def __init__(self, image: Image, program: Program, constants: Mapping[str, int], grid: Block) -> None:
        self.image, self.program, self.constants, self.grid = image, program, constants, grid
        self.stamps: list[Stamp] = []
        self.flights: list[Flight] = []
        self._next = [s.op for s in program.walk() if isinstance(s.op, ops.NextTile)]
        self._steps: dict[int, Step] = {}

    def warp(self, number: int, warp: int, found: Sequence[tuple[int, int, int]]) -> None:
        """The stamps of one warp, in order."""
        x, y, _ = self.grid
        cta = (number % x, number // x % y, number // (x * y))
        lane = _Lane(cta, warp, {**self.constants, **dict(zip(BLOCK_SYMBOLS, cta, strict=True)), RANK_SYMBOL: self._rank(cta)})
        for i, (pc, value, begun) in enumerate(found):
            op = self.image.code[pc * abi.RECORD_BYTES]
            where = self.image.sites[pc]
            if isinstance(where.op, ops.Loop):
                signed = value - (1 << 32) if value >> 31 else value
                self._count(lane, where.op.counter, signed, number)
            elif where.op is not None:
                # The cluster's sync is made between two records: it is over when the warp comes to the next one.
                behind = found[i + 1][2] - begun if i + 1 < len(found) else 0
                self._stamp(lane, self._step(pc), begun, behind if op == DeviceOp.CLUSTER_SYNC else value)

    def _rank(self, cta: Block) -> int:
        cx, cy, cz = self.program.cluster
        return cta[0] % cx + cx * (cta[1] % cy + cy * (cta[2] % cz))

    def _count(self, lane: _Lane, counter: str, value: int, number: int) -> None:
        """A loop's counter, and the tiles of a share that follow from it by the fixed rule."""
        lane.names[counter] = value
        for op in self._next:
            if isinstance(op.index, Sym) and op.index.name == counter:
                lane.names[op.name] = number + value * prod(self.grid)

    def _step(self, pc: int) -> Step:
        """One object for each step of the program, whichever record it came from."""
        if pc not in self._steps:
            where = self.image.sites[pc]
            assert where.op is not None
            self._steps[pc] = Step(where.op, where.site)
        return self._steps[pc]

    def _stamp(self, lane: _Lane, step: Step, begun: int, took: int) -> None:
        waits = isinstance(step.op, ops.MbarrierWait | ops.MbarrierWaitPhase | ops.MbarrierWaitParity | ops.WaitGroup | ops.WaitGroupRead)
        waits = waits or isinstance(step.op, ops.BarSync | ops.ClusterSync)
        end = float(begun + took)
        stamp = Stamp(
            cta=lane.cta,
            agent=lane.agent,
            step=step,
            names=dict(lane.names),
            came=float(begun),
            went=end if waits else float(begun),
            end=end,
        )
        self.stamps.append(stamp)
        self._copies(lane, step.op, len(self.stamps) - 1, float(begun), end)

    def _copies(self, lane: _Lane, op: ops.Instr, number: int, begun: float, end: float) -> None:
        """What the op issues, and which stores it has waited for."""
        if isinstance(op, ops.Landing | ops.Grouped):
            self.flights.append(Flight(stamp=number, into=lane.cta, nbytes=_nbytes(self.program, op), issued=begun))
            if isinstance(op, ops.Grouped):
                lane.stored[-1].append(len(self.flights) - 1)
        elif isinstance(op, ops.CommitGroup):
            lane.stored.append([])
        elif isinstance(op, ops.WaitGroup | ops.WaitGroupRead):
            over = lane.stored[: len(lane.stored) - 1 - op.pending]
            for i in (i for group in over for i in group):
                flight = self.flights[i]
                if isinstance(op, ops.WaitGroupRead):
                    self.flights[i] = replace(flight, read=end if flight.read is None else flight.read)
                elif flight.end is None:
                    self.flights[i] = replace(flight, read=end if flight.read is None else flight.read, end=end)

    # ---- all of it
    def finish(self, followed: int, *, cut: str) -> Stamped:
        """With when each load was seen to have landed."""
        self._land()
        x, y, _ = self.grid
        classes = {str(kind): kind for kind in classes_of(self.program)}
        return Stamped(
            program=self.program,
            grid=self.grid,
            constants=self.constants,
            classes=tuple(self._group(warp, classes[self.image.agents[w.agent].words].roles) for warp, w in enumerate(self.image.warps)),
            ctas=tuple((n % x, n // x % y, n // (x * y)) for n in range(followed)),
            stamps=tuple(self.stamps),
            flights=tuple(self.flights),
            source="GPU",
            model=_MODEL,
            cut=cut,
        )

    def _group(self, warp: int, roles: tuple[str, ...]) -> ThreadGroup:
        """The threads of one warp of the table: the class's threads are dealt to its warps in order."""
        mine = self.image.warps[warp]
        kind = next(kind for kind in classes_of(self.program) if str(kind) == self.image.agents[mine.agent].words)
        before = sum(w.threads for w in self.image.warps[:warp] if w.agent == mine.agent)
        threads = [t for low, high in kind.threads.ranges for t in range(low, high)][before : before + mine.threads]
        return ThreadGroup(threads=ops.ThreadSet(tuple(_ranges(threads))), roles=roles)

    def _land(self) -> None:
        """A load has landed when a wait on its barrier ends that ended after the load was issued: the next one."""
        waits: dict[tuple[Block, int, int | None], list[float]] = {}
        for s in self.stamps:
            op = s.step.op
            if isinstance(op, ops.MbarrierWait | ops.MbarrierWaitPhase | ops.MbarrierWaitParity) and s.end is not None:
                waits.setdefault((s.cta, op.bar.barrier, _index(op.bar, s.names)), []).append(s.end)
        for i, flight in enumerate(self.flights):
            stamp = self.stamps[flight.stamp]
            op = stamp.step.op
            if isinstance(op, ops.Landing) and not isinstance(op, ops.Send):
                ends = waits.get((flight.into, op.bar.barrier, _index(op.bar, stamp.names)), [])
                self.flights[i] = replace(flight, end=min((end for end in ends if end > flight.issued), default=None))


def _index(ref: ops.BarrierRef, names: Mapping[str, int]) -> int | None:
    try:
        return expr.evaluate(ref.index, names)
    except (KeyError, ZeroDivisionError):
        return None


def _nbytes(program: Program, op: ops.Landing | ops.Grouped) -> int:
    if isinstance(op, ops.BulkLoad | ops.BulkStore | ops.Send):
        return op.nbytes
    decl = program.tiles[op.tile.tile]
    return prod(decl.shape) * DTYPES[decl.dtype].nbytes // (op.tile.part.of if op.tile.part else 1)


def _ranges(threads: Sequence[int]) -> Iterator[tuple[int, int]]:
    start = 0
    for i in range(1, len(threads) + 1):
        if i == len(threads) or threads[i] != threads[i - 1] + 1:
            yield threads[start], threads[i - 1] + 1
            start = i
