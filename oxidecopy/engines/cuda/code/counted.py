"""Shares that a counter in device memory deals: which loops allow it.

One thread class must load the tiles of the share into a ring, in a loop that runs as one record: it asks the counter, and hands each
tile's number on beside the stage that its data go to. Every other loop over the share must begin by waiting for the same stage, and
whoever runs it must have let go of the stage, or met those who do, before the next number overwrites it. The producer ends with a stage
that holds no tile, so all stages up to it must be let go of without a condition on how many tiles there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, final

from oxidecopy.engines.cuda.abi import NO_TILE, DeviceOp
from oxidecopy.engines.cuda.code.deal import Deal, NotCountedError
from oxidecopy.engines.cuda.code.fuse import Item, NotFusedError, Pattern, Ring, body_of
from oxidecopy.engines.cuda.code.nodes import Fused, Op, Repeat
from oxidecopy.engines.cuda.code.values import INT_MAX, ZERO, Lin
from oxidecopy.isa import limits, ops
from oxidecopy.isa.expr import Sym
from oxidecopy.program.program import Launch, Program

if TYPE_CHECKING:
    from oxidecopy.engines.cuda.code.image import Where
    from oxidecopy.engines.cuda.code.lower import AgentLowering
    from oxidecopy.engines.cuda.code.nodes import Node
    from oxidecopy.program.program import Step

WORD = 4
_ARRIVALS = (
    ops.MbarrierArrive,
    ops.MbarrierArriveExpectTx,
    ops.MbarrierArriveDrop,
    ops.MbarrierArriveRemote,
    ops.MbarrierArriveExpectTxRemote,
)


@final
class _Looping(NamedTuple):
    """A loop over the share that waits for its ring's stages."""

    low: AgentLowering
    pattern: Pattern
    ring: Ring
    full: int
    items: list[Item]


@final
class Counted(Deal):
    """One share, dealt by the counter. Raises NotCountedError as soon as that turns out to be impossible."""

    def __init__(self, launch: Launch, name: str) -> None:
        super().__init__(launch)
        self.name = name
        self._tiles: Lin = ZERO
        self._tile: Lin | None = None  # what the counter gives in the loop that is being lowered
        self._producer: tuple[Fused, tuple[int, int]] | None = None
        self._loops: list[_Looping] = []
        self._busy: set[int] = set()

    def share(self, low: AgentLowering, op: ops.ShareTiles) -> None:
        """How many tiles a block is given stays unknown; a use of that number fails."""
        if low.depth or low.inside:
            raise NotCountedError("it is dealt out in a block or by some of the threads")
        self._tiles = low.value(op.tiles)
        if low.values.interval(self._tiles)[1] > NO_TILE:
            raise NotCountedError(f"it may have more than {NO_TILE:,} tiles")

    def next(self, low: AgentLowering, op: ops.NextTile) -> None:
        """The tile is what the loop's head reads."""
        if self._tile is None:
            raise NotCountedError("a tile of it is asked for outside of a loop over it")
        low.values.define(op.name, self._tile)

    def loop(self, low: AgentLowering, op: ops.Loop, step: Step, where: Where) -> list[Node] | None:
        """The records of a loop over the share; None for other loops."""
        if not isinstance(op.stop, Sym) or op.stop.name != self.name:
            return None
        if low.depth or low.me in self._busy:
            raise NotCountedError("a loop over it stands in a loop or branch, or one thread runs two of them")
        if op.step != 1 or low.value(op.start) != ZERO:
            raise NotCountedError("a loop over it skips tiles")
        self._busy.add(low.me)
        most = low.values.interval(self._tiles)[1]
        if most < 1:
            return []
        counter = low.values.named(op.counter) or low.values.symbol(op.counter, 0, most - 1)
        self._tile = low.values.symbol(f"tile of {op.counter}", 0, most - 1)
        pattern = Pattern(low, op, step, where, counter, ZERO, self._tiles)
        pattern.counted, pattern.tile = True, self._tile
        found = pattern.recognise()
        low.note(step, op, found)
        if pattern.loads and not isinstance(found, Fused):
            raise NotCountedError(f"the loop that loads its tiles runs op by op: {found}")
        nodes: list[Node] = [found if isinstance(found, Fused) else self._unfused(pattern, step, where)]
        if isinstance(found, Fused):
            self._fused(found, pattern)
        self._tile = None
        return nodes

    def _fused(self, found: Fused, pattern: Pattern) -> None:
        if found.offset or found.start != ZERO:
            raise NotCountedError("the stages of its ring are not counted from 0")
        if found.op is DeviceOp.DRAIN:
            self._add(pattern)
            return
        if self._producer is not None:
            raise NotCountedError("two loops load its tiles")
        if min(pattern.barriers) < 0:
            raise NotCountedError("no loop over it waits for a free stage")
        self._producer = (found, pattern.barriers)

    def _unfused(self, pattern: Pattern, step: Step, where: Where) -> Node:
        looping = self._add(pattern)
        first, *body = pattern.low.block(step)
        if not isinstance(first, Op) or first.op is not DeviceOp.MBARRIER_WAIT_PHASE:
            raise NotCountedError("a loop over it does not begin with a wait for the stage that its tile lands in")
        return Repeat(
            counter=pattern.counter,
            start=ZERO,
            stop=(INT_MAX, ()),
            step=1,
            body=body,
            where=where,
            full=looping.full,
            stages=looping.ring.stages,
            tile=pattern.tile,
        )

    def _add(self, pattern: Pattern) -> _Looping:
        """Notes a loop that waits for its tiles."""
        low = pattern.low
        try:
            items = list(body_of(low, pattern.step.body, low.inside))
            wait = items[0] if items else Item(ops.ClusterSync(), None)
            if not isinstance(wait.op, ops.MbarrierWaitPhase) or wait.test is not None:
                raise NotCountedError("a loop over it does not begin with a wait for the stage that its tile lands in")
            full = low.barrier(wait.op.bar)
            ring = pattern.ring(wait.op.bar, full, low.value(wait.op.phase), lead=0)
        except NotFusedError as why:
            raise NotCountedError(f"of a loop over it: {why}") from None
        if ring.k != pattern.counter:
            raise NotCountedError("the stages of its ring are not counted from 0")
        at = low.values.add(full, ring.stage, -limits.MBARRIER_BYTES)
        self._loops.append(_Looping(low, pattern, ring, at[0], items))
        return self._loops[-1]

    # ---- once all is lowered
    def finish(self, program: Program, sm: int) -> None:
        """Checks that the loops go together, and places the numbers that are handed on."""
        if self._producer is None:
            raise NotCountedError("no loop that runs as one record loads its tiles")
        found, (full, empty) = self._producer
        if program.cluster_size > 1:
            raise NotCountedError("blocks of a cluster work together")
        if any(loop.full != found.full or loop.ring.stages != found.stages for loop in self._loops):
            raise NotCountedError("the loops over it wait for different rings")
        self._check_counts(program, full, empty)
        self._check_meetings(empty)
        at = -(-program.shared_bytes // WORD) * WORD
        size = at + WORD * (1 + found.stages)
        if size > limits.SHARED_BYTES_MAX[sm]:
            raise NotCountedError(f"{WORD * (1 + found.stages)} more bytes of shared memory for the numbers of tiles do not fit")
        self.slots, self.shared_bytes, self.words = at, size, {self.name: "counter"}

    def _check_counts(self, program: Program, full: int, empty: int) -> None:
        """One arrival fills a stage, and one round of the loops over the share frees one."""
        counts: dict[int, set[int]] = {full: set(), empty: set()}
        arrivals: dict[int, set[int]] = {full: set(), empty: set()}
        for step in program.walk():
            if isinstance(step.op, ops.MbarrierInit) and step.op.bar.barrier in counts:
                counts[step.op.bar.barrier].add(step.op.count)
            elif isinstance(step.op, _ARRIVALS) and step.op.bar.barrier in counts:
                arrivals[step.op.bar.barrier].add(id(step.op))
        freed = sum(self._freed(loop, empty) for loop in self._loops)
        mine = {id(item.op) for loop in self._loops for item in self._releases(loop, empty)}
        if counts[full] != {1} or len(arrivals[full]) != 1:
            raise NotCountedError("others arrive on the barriers that its tiles land at")
        if counts[empty] != {freed} or arrivals[empty] != mine:
            raise NotCountedError("its stages are not let go of in each iteration by those who loop over it, and nobody else")

    @staticmethod
    def _releases(loop: _Looping, empty: int) -> list[Item]:
        return [item for item in loop.items if isinstance(item.op, _ARRIVALS) and item.op.bar.barrier == empty]

    def _freed(self, loop: _Looping, empty: int) -> int:
        """Arrivals of a loop on the stage that it lets go of."""
        total = 0
        for item in self._releases(loop, empty):
            if not isinstance(item.op, ops.MbarrierArrive):
                raise NotCountedError(f"its stages are let go of by {item.op.mnemonic}")
            try:
                _, behind = loop.pattern.behind(loop.low.barrier(item.op.bar), loop.ring)
                first = loop.pattern.first(item.test, loop.ring, behind)
            except NotFusedError as why:
                raise NotCountedError(f"of a loop over it: {why}") from None
            if first > behind:
                raise NotCountedError("its first stages are never let go of")
            total += loop.low.threads
        return total

    def _check_meetings(self, empty: int) -> None:
        """Who does not let go of stages meets somebody who does, before he does it."""
        met: set[int] = set()
        for loop in self._loops:
            bars: set[int] = set()
            for item in loop.items:
                if isinstance(item.op, ops.BarSync):
                    bars.add(item.op.number)
                elif isinstance(item.op, ops.MbarrierArrive) and item.op.bar.barrier == empty:
                    met |= bars
        for loop in self._loops:
            numbers = {item.op.number for item in loop.items if isinstance(item.op, ops.BarSync)}
            if not self._releases(loop, empty) and not numbers & met:
                raise NotCountedError(f"{loop.low.kind} read its tiles, but do not hold up those who let go of the stage")
