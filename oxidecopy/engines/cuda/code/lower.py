"""Program -> what one agent does: scopes that leave it out disappear, operands become values, decided branches are taken.

`Lowering` holds what all agents share: the values of this launch, argument words, map slots. What each op becomes is in `lower_ops`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import final

from oxidecopy.engines.cuda.abi import DeviceOp
from oxidecopy.engines.cuda.code import refusals
from oxidecopy.engines.cuda.code.agents import Cast
from oxidecopy.engines.cuda.code.contract import WARPS, WHOLE
from oxidecopy.engines.cuda.code.deal import Deal
from oxidecopy.engines.cuda.code.fuse import Pattern
from oxidecopy.engines.cuda.code.image import LoopNote, Where
from oxidecopy.engines.cuda.code.inits import together
from oxidecopy.engines.cuda.code.lower_ops import lower_op
from oxidecopy.engines.cuda.code.nodes import Fused, If, Node, Op, Repeat, Stream
from oxidecopy.engines.cuda.code.operands import Operands
from oxidecopy.engines.cuda.code.rows import Rows, loads_rows
from oxidecopy.engines.cuda.code.tile_maps import computes
from oxidecopy.engines.cuda.code.tokens import Tokens, stamp_of
from oxidecopy.engines.cuda.code.values import ZERO, DivisionByZeroError, Lin, Test, Values
from oxidecopy.engines.cuda.code.words import Words
from oxidecopy.errors import Diagnostic
from oxidecopy.isa import ops
from oxidecopy.isa.expr import CmpOp, Expr
from oxidecopy.isa.ops import Loop, Scope, When
from oxidecopy.program.program import BLOCK_SYMBOLS, RANK_SYMBOL, Launch, Program, Step, entry_name
from oxidecopy.program.replaced import row_of, slots_per_cta

_WIDE = "the program needs device code of 64 bits, tokens that are carried or more thread classes than warps, which has no fused loops"


@final
class Lowering:
    """What the agents of a program have in common. `program` is in primitive ops. With `tokens` the code is for families wide and many."""

    def __init__(
        self, program: Program, launch: Launch, cast: Cast, deal: Deal, phases: Mapping[int, Expr], tokens: Tokens | None = None
    ) -> None:
        self.program = program
        self.tokens = tokens
        self.cast = cast
        self.deal = deal
        self.phases = phases
        self.values = Values(launch.environment())
        for name, n in zip(BLOCK_SYMBOLS, launch.grid, strict=True):
            self.values.symbol(name, 0, n - 1)
        self.values.symbol(RANK_SYMBOL, 0, program.cluster_size - 1)
        self.scopes = cast.scopes
        self._grid, self._slots = launch.grid, slots_per_cta(program)
        self.contracting = WARPS * len({i for _, scopes in cast.steps_of(WHOLE) for i in cast.inside(scopes)})  # warps
        self.computes = tokens is None and not self.contracting and computes(program, launch, cast)
        self.reshapes = any(isinstance(step.op, ops.TransposeTile | ops.ReduceTile | ops.StencilTile) for step in program.walk())
        self.loops: dict[int, int] = {}
        maps, arrays = self._look_through()
        # A record names a slot by 8 bits, those of a table by more: single maps come first.
        used = sorted([param for param in program.maps.values() if param.name in maps], key=lambda param: param.entries is not None)
        self.single_maps = sum(param.entries is None for param in used)
        self.maps = {name: i for i, name in enumerate([name for param in used for name in param.bound_names])}
        self.words = Words(launch, tuple([name for name in program.arrays if name in arrays]), wide=tokens is not None)
        self.notes: dict[tuple[int, int], LoopNote] = {}
        self.refused: list[Diagnostic] = []

    @property
    def contracts(self) -> bool:
        """Warpgroups compute contractions."""
        return self.contracting > 0

    def _look_through(self) -> tuple[set[str], set[str]]:
        """Numbers loops, by identity of their steps; the maps and arrays that are used."""
        maps, arrays = set(), set()
        for step in self.program.walk():
            match step.op:
                case Loop():
                    self.loops[id(step)] = len(self.loops)
                case op if isinstance(op, ops.StoreGlobal | ops.LoadIndex | ops.BulkCopy | ops.BulkPrefetch):
                    arrays.add(op.array.name)
                case ops.Contract(arrays=sources, map=into):
                    arrays.update([array.name for array in sources])
                    maps.add(into.name)
                case op if isinstance(op, ops.TensormapReplaceArray):
                    arrays.add(op.array.name)
                case op if isinstance(op, ops.TensormapCopy):
                    maps.add(op.map.name)
                case op if isinstance(op, ops.Through) and op.map.slot is None:
                    maps.add(op.map.name)
                case _:
                    pass
        return maps, arrays | set(self._slots)

    def row_of(self, slot: ops.SlotRef) -> Expr:
        """The row of a place for a map in its array."""
        return row_of(slot, self._slots[slot.array], self._grid)

    def agent(self, me: int) -> Stream:
        """The code of one agent, by its position among all classes."""
        return AgentLowering(self, me).run()


@final
class AgentLowering(Operands):
    """Lowers the program for one agent."""

    def __init__(self, shared: Lowering, me: int) -> None:
        super().__init__(shared.program, shared.values)
        self.shared = shared
        self.words = shared.words
        self.refused = shared.refused
        self.me = me
        self.kind = shared.cast.all[me]
        self.threads = self.kind.count
        self.answers: set[Test] = set()
        self.depth = 0  # loops and branches around
        self.inside: frozenset[int] = frozenset()  # scopes around
        self.counters: list[str] = []  # of the loops around

    def run(self) -> Stream:
        nodes = together(self._steps(self.program.steps))
        return Stream(nodes, sorted(self.answers, key=lambda test: (test.register, test.kind)))

    # ---- blocks
    def _steps(self, steps: Sequence[Step]) -> list[Node]:
        nodes: list[Node] = []
        for step in steps:
            op = step.op
            where = Where(step.site, self.program, op)
            try:
                match op:
                    case Scope():
                        nodes += self._scope(step)
                    case When():
                        nodes += self._when(op, step, where)
                    case Loop():
                        nodes += self._loop(op, step, where)
                    case ops.ProduceStage() | ops.ConsumeStage() | ops.LoadStoreStage():
                        raise TypeError("stages are expanded before a program is lowered")  # a bug of ours
                    case _:
                        nodes += lower_op(self, op, where)
            except DivisionByZeroError:
                self.refused.append(refusals.division(where))
                if isinstance(op, ops.LoadIndex | ops.ShareTiles | ops.NextTile):
                    self.values.define(op.name, ZERO)  # so that what follows can be looked at, too
        return nodes

    def holds(self, scope: Step) -> bool:
        """True when this agent is in the scope that `scope` opens."""
        return self.shared.scopes[id(scope)] in self.kind.scopes

    def _scope(self, step: Step) -> list[Node]:
        if not self.holds(step):
            return []
        outside, self.inside = self.inside, self.inside | {self.shared.scopes[id(step)]}
        nodes = self._steps(step.body)
        self.inside = outside
        return nodes

    def _when(self, op: When, step: Step, where: Where) -> list[Node]:
        test = self.values.truth(op.cond)
        if test is False:
            return []
        if test is True:
            return self._steps(step.body)
        self._note_answers(test)
        body = self.block(step)
        return [If(test=test, body=body, where=where)] if body else []

    def _note_answers(self, test: Test) -> None:
        if test.kind == "answer":
            self.answers.add(test)
        for part in test.parts:
            self._note_answers(part)

    def block(self, step: Step) -> list[Node]:
        """The body of a loop or branch."""
        self.depth += 1
        nodes = self._steps(step.body)
        self.depth -= 1
        return nodes

    def _loop(self, op: Loop, step: Step, where: Where) -> list[Node]:
        self.counters.append(op.counter)
        nodes = self._looped(op, step, where)
        self.counters.pop()
        return nodes

    def _looped(self, op: Loop, step: Step, where: Where) -> list[Node]:
        dealt = self.shared.deal.loop(self, op, step, where)
        if dealt is not None:
            return dealt
        start, stop = self.values.of(op.start), self.values.of(op.stop)
        up = op.step > 0
        first = self.values.interval(start)[0 if up else 1]
        last = self.values.interval(stop)[1] - 1 if up else self.values.interval(stop)[0] + 1
        if (last < first) if up else (last > first):
            return []
        trips = self._trips(start, stop, op.step)
        if trips[1] == 1:
            return self._once(op, step, where, start, stop, always=trips[0] == 1)
        known = self.values.named(op.counter)
        counter = self.values.symbol(op.counter, min(first, last), max(first, last)) if known is None else known
        found = self._fused(op, step, where, counter, start, stop, trips)
        self.note(step, op, found)
        if not isinstance(found, str):
            return [found] if isinstance(found, Fused) else [*found]
        self._check_end(where, last, op.step)
        return [Repeat(counter=counter, start=start, stop=stop, step=op.step, body=self.block(step), where=where)]

    def _fused(
        self, op: Loop, step: Step, where: Where, counter: Lin, start: Lin, stop: Lin, trips: tuple[int, int]
    ) -> Fused | list[Op] | str:
        """A loop as one record, or a few; else why it is none."""
        if self.shared.tokens is not None:
            return _WIDE
        if loads_rows(step.body):
            return Rows(self, op, counter, start, trips).recognise(step.body)
        return Pattern(self, op, step, where, counter, start, stop).recognise()

    def _trips(self, start: Lin, stop: Lin, step: int) -> tuple[int, int]:
        """The fewest and the most trips of a loop."""
        away = self.values.add(stop, start, -1) if step > 0 else self.values.add(start, stop, -1)
        low, high = self.values.interval(away)
        return max(0, -(-low // abs(step))), max(0, -(-high // abs(step)))

    def _once(self, op: Loop, step: Step, where: Where, start: Lin, stop: Lin, *, always: bool) -> list[Node]:
        """A loop of one trip at most: its body, under a condition where there may be none."""
        self.note(step, op, "it runs at most once")
        if self.values.named(op.counter) is None:
            self.values.define(op.counter, start)
        if always:
            return self._steps(step.body)
        test = self.values.compare(CmpOp.LT, *((start, stop) if op.step > 0 else (stop, start)))
        body = self.block(step)
        return [If(test=test, body=body, where=where)] if body and isinstance(test, Test) else body

    def _check_end(self, where: Where, last: int, step: int) -> None:
        """The counter takes one step beyond its last value."""
        most = 1 << (31 if self.shared.tokens is None else 63)
        if not -most <= last + step < most:
            self.refused.append(refusals.overflow(where, "a loop's counter", min(last, last + step), max(last, last + step)))

    def note(self, step: Step, op: Loop, found: Fused | list[Op] | str) -> None:
        """Writes down how a loop runs."""
        number = self.shared.loops[id(step)]
        why = found if isinstance(found, str) else ""
        fused = "" if why else (found.op if isinstance(found, Fused) else DeviceOp.LOAD_ROWS).name.lower()
        self.shared.notes[number, self.me] = LoopNote(
            loop=number, counter=op.counter, agent=str(self.kind), fused=fused, why=why, site=step.site
        )

    # ---- operands
    def value(self, e: Expr) -> Lin:
        return self.values.of(e)

    def parity(self, e: Expr) -> Lin:
        return self.values.mod(self.values.of(e), 2)

    def phase(self, token: int) -> Lin:
        """The phase that a token names. One that nobody makes in this launch names a phase that never ends, as its wait would."""
        phase = self.shared.phases.get(token)
        return self.values.of(phase) if phase is not None else (0, ())

    def carries(self, token: int) -> bool:
        """True when a wait for it needs what the arrival returned. Nobody makes it in this launch: it has a phase, which never ends."""
        tokens = self.shared.tokens
        return tokens is not None and ((token, self.me) in tokens.kept or token in tokens.shared)

    @property
    def stamp(self) -> Lin:
        """Which iteration of the loops around it is."""
        return stamp_of(self.values, self.counters)

    def map(self, ref: ops.MapRef) -> Lin:
        """The slot of a map; of a table that of the entry that the index names."""
        if ref.index is None:
            return (self.shared.maps[ref.name], ())
        return self.values.add((self.shared.maps[entry_name(ref.name, 0)], ()), self.values.of(ref.index))

    def array(self, name: str) -> int:
        return self.words.slot(name)

    def index_of(self, op: ops.LoadIndex) -> Lin:
        """What it reads, as a symbol; no index is above its bound."""
        most = self.values.interval(self.values.of(op.below))[1] - 1
        return self.values.named(op.name) or self.values.symbol(op.name, 0, max(most, 0))

    @property
    def share(self) -> tuple[int, int, int]:
        """Which part of a cooperative access this agent does: threads low .. high - 1 of the total in scope."""
        everybody = self.shared.cast.inside(self.inside)
        counts = [self.shared.cast.all[i].count for i in everybody]
        before = sum(counts[: everybody.index(self.me)])
        return before, before + self.threads, sum(counts)

    def lanes_at(self, op: ops.BarSync) -> int:
        """Hardware threads that come to a `bar.sync` that stands here."""
        return self.shared.cast.lanes_at(op, self.inside)

    # ---- shares
    def share_tiles(self, op: ops.ShareTiles) -> None:
        self.shared.deal.share(self, op)

    def next_tile(self, op: ops.NextTile) -> None:
        self.shared.deal.next(self, op)
