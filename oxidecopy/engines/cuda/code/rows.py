"""Loops that load rows by number, each by a copy of its own: `LOAD_ROWS` records, by which a warp's lanes read and issue side by side.

Recognised is a loop of one thread whose body reads indices and loads through them, in whatever way it is written: where an index is read
and where a row lands grow by as much each turn, and one coordinate of a load is a multiple of its index plus what does not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, final

from oxidecopy.engines.cuda.abi import DeviceOp
from oxidecopy.engines.cuda.code.elements import code_of
from oxidecopy.engines.cuda.code.extra import FIRST_COORDINATE, is_extra
from oxidecopy.engines.cuda.code.fuse import NotFusedError
from oxidecopy.engines.cuda.code.image import Where
from oxidecopy.engines.cuda.code.nodes import Op
from oxidecopy.engines.cuda.code.records import ROWS
from oxidecopy.engines.cuda.code.values import INT_MAX, INT_MIN, Lin, Values
from oxidecopy.isa import ops
from oxidecopy.isa.limits import WARP
from oxidecopy.program.program import Step

if TYPE_CHECKING:
    from oxidecopy.engines.cuda.code.lower import AgentLowering

ROWS_MAX: Final = 8 * WARP  # turns of a loop: a record has as many as a warp has lanes


def loads_rows(steps: Sequence[Step]) -> bool:
    """True for a body that both reads indices and loads."""
    found = [step.op for step in steps]
    return any(isinstance(op, ops.LoadIndex) for op in found) and any(isinstance(op, ops.TensorG2S) for op in found)


@final
class Index(NamedTuple):
    """An index that is read each turn: `value` stands for it; position `first` in turn 0, `step` more each turn, and at most `most`."""

    op: ops.LoadIndex
    value: Lin
    first: Lin
    step: int
    most: int
    below: int
    where: Where


@final
class Rows:
    """A loop of one agent while it is looked at, with the fewest and the most turns that it may have."""

    def __init__(self, low: AgentLowering, op: ops.Loop, counter: Lin, start: Lin, turns: tuple[int, int]) -> None:
        self.low = low
        self.values: Values = low.values
        self.counter = counter
        self.start = start
        self.by = op.step
        self.fewest, self.turns = turns

    def recognise(self, steps: Sequence[Step]) -> list[Op] | str:
        """The records for the loop with this body, or why it runs op by op."""
        try:
            return self._records(steps)
        except NotFusedError as reason:
            return f"it loads by indices that it reads, and {reason}"

    def _records(self, steps: Sequence[Step]) -> list[Op]:
        if self.low.threads != 1:
            raise NotFusedError(f"{self.low.threads} threads run it together")
        if not self.counter[1] or not self.fewest == self.turns <= ROWS_MAX:
            raise NotFusedError(f"runs {self.fewest} to {self.turns} times, not a known number of times up to {ROWS_MAX}")
        indices: list[Index] = []
        loads: list[tuple[Index, ops.TensorG2S]] = []
        for step in steps:
            match step.op:
                case ops.LoadIndex() as op:
                    indices.append(self._index(op, Where(step.site, self.low.program, op), indices))
                case ops.TensorG2S() as op if not is_extra(self.low, op):
                    loads.append((self._its(op, indices), op))
                case op:
                    raise NotFusedError(f"{op.mnemonic} stands in it")
        if {index.op.name for index, _ in loads} != {index.op.name for index in indices}:
            raise NotFusedError("no load goes by one of them")
        return [node for index, op in loads for node in self._load(index, op, indices)]

    def _index(self, op: ops.LoadIndex, where: Where, before: Sequence[Index]) -> Index:
        position, most, below = self.low.value(op.index), INT_MAX, self.low.value(op.below)
        value = self.low.index_of(op)
        if below[1] or not value[1] or below[0] > INT_MAX:
            raise NotFusedError("the bound of one is not known, or leaves it no choice")
        if len(position[1]) == 1 and position[1][0][1] == 1:  # min(a, b) + c
            atom = self.values.atoms[position[1][0][0]]
            fixed, moving = (atom.a, atom.b) if not atom.a[1] else (atom.b, atom.a)
            if atom.kind == "min" and not fixed[1]:
                most, position = fixed[0] + position[0], self.values.add(moving, (position[0], ()))
        first, step = self._affine(position)
        if any(self._hangs(first, other.value) for other in before):
            raise NotFusedError("one says where another one is read")
        return Index(op=op, value=value, first=first, step=step, most=most, below=below[0], where=where)

    def _its(self, op: ops.TensorG2S, indices: list[Index]) -> Index:
        """The index that a load goes by."""
        found = [index for index in indices if any(self._hangs(self.low.value(e), index.value) for e in op.coords)]
        if len(found) != 1:
            raise NotFusedError(f"a load goes by {len(found)} of them")
        return found[0]

    def _load(self, index: Index, op: ops.TensorG2S, indices: Sequence[Index]) -> list[Op]:
        tile, tile_step = self._affine(self.low.tile(op.tile))
        bar, slot = self.low.barrier(op.bar), self.low.map(op.map)
        coords = [self.low.value(e) for e in op.coords]
        moving = [i for i, at in enumerate(coords) if self._hangs(at, index.value)]
        scale = dict(coords[moving[0]][1]).get(index.value[1][0][0], 0)
        self._check(coords[moving[0]])
        coords[moving[0]] = self.values.add(coords[moving[0]], index.value, -scale)
        changing = (self.counter, *[other.value for other in indices])
        if any(self._hangs(value, by) for value in (tile, bar, slot, *coords) for by in changing):
            raise NotFusedError("more of a load changes than its place, and one coordinate by a multiple of the index")
        array, dtype = self.low.array(index.op.array.name), code_of(self.low.program.arrays[index.op.array.name].dtype)
        made: list[Op] = []
        for begin in range(0, self.turns, WARP):
            first, to = (self.values.add(value, (begin * step, ())) for value, step in ((index.first, index.step), (tile, tile_step)))
            count = min(WARP, self.turns - begin)
            tail = (array, dtype, len(coords) - 1 - moving[0], scale, count, tile_step, index.step, index.most, index.below)
            made.append(
                Op(
                    op=DeviceOp.LOAD_ROWS,
                    where=index.where,
                    aux=len(coords),
                    slot=slot,
                    operands=((0, to), (1, bar), (2, first)),
                    exact=tuple([(FIRST_COORDINATE + i, at) for i, at in enumerate(coords)]),
                    tail=ROWS.pack(*tail),
                )
            )
        return made

    def _affine(self, value: Lin) -> tuple[Lin, int]:
        """Its value in turn 0, and how much it grows each turn."""
        self._check(value)
        factor = dict(value[1]).get(self.counter[1][0][0], 0)
        still = self.values.add(value, self.counter, -factor)
        if self._hangs(still, self.counter):
            raise NotFusedError("where one is read, or where a row lands, does not grow by as much each turn")
        return self.values.add(still, self.start, factor), factor * self.by

    def _hangs(self, value: Lin, on: Lin) -> bool:
        return self.values.depends(value, self.values.symbols_of(on))

    def _check(self, value: Lin) -> None:
        """A lane computes it, in 32 bits."""
        low, high = self.values.interval(value)
        if low < INT_MIN or high > INT_MAX:
            raise NotFusedError("numbers may leave 32 bits")
