"""What ops cost on an imagined GPU: enough for a picture of who waits for whom, no prediction of a time.

The rates of memory are those of one H200 (docs/performance.md); the other numbers are round ones of its order of magnitude. Nothing is
known here of L2, of DRAM pages, of how the warps of an SM share its units, or of other CTAs but their share of the memory's rate.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import ceil, prod
from typing import Final, final

from oxidecopy.isa import ops
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.program.nesting import nodes
from oxidecopy.program.program import Program

SHARED_OF_AN_SM: Final = 228 * 1024
RESERVED: Final = 1024  # of shared memory, by the system, for each CTA
THREADS_OF_AN_SM: Final = 2048
CTAS_OF_AN_SM: Final = 32

_NO_WORK: Final = ops.Copy | ops.Edit | ops.TensormapCpFenceproxy


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Latencies in nanoseconds, rates in bytes (or lanes) per nanosecond.

    Attributes:
        op: any op that only issues something.
        wake: from the end of a phase, a sync or a copy until a waiting warp goes on.
        sync: of a CTA, after the last has come.
        cluster_sync: the same of a cluster.
        fence: of the async proxy.
        read: one word of global memory.
        load: from a copy's turn until its first byte has landed.
        store_read: from a store's turn until its first byte has been read.
        store_write: from then until it is written.
        send: between CTAs of a cluster, until the first byte has landed.
        memory: rate of global memory, all SMs together.
        sm: rate of the copy engine of one SM.
        sms: how many SMs there are.
        lanes: instructions of lanes that an SM runs in a nanosecond.
        products: times bytes of an operand's element, that its tensor cores make in a nanosecond.
    """

    op: float = 10
    wake: float = 40
    sync: float = 20
    cluster_sync: float = 200
    fence: float = 20
    read: float = 600
    load: float = 700
    store_read: float = 300
    store_write: float = 500
    send: float = 300
    memory: float = 4300
    sm: float = 64
    sms: int = 132
    lanes: float = 220
    products: float = 7500

    # ---- the launch
    def resident(self, program: Program) -> int:
        """CTAs that are there at a time, if there are so many."""
        threads = ceil(program.threads / 32) * 32
        room = (SHARED_OF_AN_SM // (program.shared_bytes + RESERVED), THREADS_OF_AN_SM // threads, CTAS_OF_AN_SM)
        return self.sms * max(1, min(room))

    def rate(self, program: Program, grid: tuple[int, int, int]) -> float:
        """Bytes per nanosecond that each CTA may move: the memory is shared evenly."""
        there = min(prod(grid), self.resident(program))
        beside = max(1, ceil(there / self.sms))
        return min(self.sm / beside, self.memory / there)

    # ---- ops
    def of(self, program: Program, op: ops.Instr, threads: int, rate: float) -> float:
        """How long the `threads` threads that share an op are busy with it, once they need not wait."""
        match op:
            case ops.Scope() | ops.When() | ops.Loop() | ops.ShareTiles():
                return 0
            case ops.BarSync():
                return self.sync
            case ops.ClusterSync():
                return self.cluster_sync
            case ops.FenceProxyAsync() | ops.FenceMbarrierInit() | ops.FenceProxyTensormap() | ops.TensormapCpFenceproxy():
                return self.fence
            case ops.LoadIndex():
                return self.read
            case ops.MmaStep():
                return self.op + self._products(program, op)
            case ops.StoreGlobal():
                return max(self._work(program, op, threads), _nbytes(program, op.tile) / rate)
            case _:
                return self.op + (0 if isinstance(op, _NO_WORK) else self._work(program, op, threads))

    def _products(self, program: Program, op: ops.MmaStep) -> float:
        """A warpgroup's products on tensor cores: twice as many of types of half the size."""
        a, b = program.tiles[op.a.tile], program.tiles[op.b.tile]
        rows, columns = (prod(tile.shape) // op.depth // (ref.part.of if ref.part else 1) for tile, ref in ((a, op.a), (b, op.b)))
        return rows * columns * op.depth * DTYPES[a.dtype].nbytes / self.products

    def _work(self, program: Program, op: ops.Instr, threads: int) -> float:
        """Threads that touch tiles, element by element: one instruction for each tile and each operation on it."""
        tiles = [ref for f in fields(op) for ref in _refs(getattr(op, f.name))]
        if not tiles:
            return 0
        elements = max(prod(program.tiles[ref.tile].shape) // (ref.part.of if ref.part else 1) for ref in tiles)
        each = len(tiles) + (sum(1 for _ in nodes(op.fn)) if isinstance(op, ops.MapTiles) else 0)
        return elements * each * 128 / (self.lanes * min(threads, 128))

    def lines(self, program: Program, grid: tuple[int, int, int]) -> tuple[str, ...]:
        """The model in words, for whoever looks at its times."""
        rate, there = self.rate(program, grid), min(prod(grid), self.resident(program))
        return (
            f"a cost model, no prediction: {self.sms} SMs, {self.memory / 1000:g} TB/s of memory shared evenly by {there} CTAs at a time:"
            f" {rate:.1f} bytes per ns for each",
            f"a copy moves its bytes in turn, then takes {self.load:g} ns more to land (loads), {self.store_read:g} ns to be read"
            f" and {self.store_write:g} ns to be written (stores), {self.send:g} ns between CTAs",
            f"{self.op:g} ns for an op that issues, {self.wake:g} ns from the end of a phase until a waiting warp goes on,"
            f" {self.sync:g} ns for a sync; element work at {self.lanes:g} lane instructions per ns, products of 16-bit types at"
            f" {self.products / 2:g}",
            "all CTAs start at 0; L2, DRAM pages and the units that warps share are not modelled; a counter deals tiles in turn",
        )


def _refs(value: object) -> list[ops.TileRef]:
    if isinstance(value, ops.TileRef):
        return [value]
    return [ref for ref in value if isinstance(ref, ops.TileRef)] if isinstance(value, tuple) else []


def _nbytes(program: Program, ref: ops.TileRef) -> int:
    decl = program.tiles[ref.tile]
    return prod(decl.shape) * DTYPES[decl.dtype].nbytes // (ref.part.of if ref.part else 1)
