"""A program as one class of threads runs it: a flat list of items, launch constants folded into every expression.

Flat, so that where an agent stands is two small things (a position and its loop counters), which the walk can compare and move.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from operator import is_
from typing import TYPE_CHECKING, Any, Final, assert_never, final

from oxidecopy.isa import expr, ops
from oxidecopy.isa.expr import Cond, Expr, Sym
from oxidecopy.isa.rewriter import Rewriter
from oxidecopy.program.nesting import PLACES
from oxidecopy.program.program import Step
from oxidecopy.verify.classes import ThreadClass
from oxidecopy.verify.requirements import Need, needs_of

if TYPE_CHECKING:
    from oxidecopy.verify.state import At, Machine


class Control(Enum):
    """What an item does to the position."""

    RUN = "run"  # an op; go on behind it
    WHEN = "when"  # go on, or to `target` when the condition fails
    UNGUARD = "unguard"  # the end of a body that the answer of a test guards
    ENTER = "enter"  # start a loop, or go to `target`
    NEXT = "next"  # next iteration: back to `target`, or go on


RUN: Final = Control.RUN  # asked for at every op, and slow to be looked up in an enumeration (Python 3.11)
NEXT: Final = Control.NEXT


_NO_MORE: Final[Cond] = expr.Bool(value=False)


def nothing(_machine: Machine, _at: At) -> None:
    """The effect of an op that has none."""


@final
@dataclass(slots=True, kw_only=True)
class Item:
    """One position. `loops` are the counters of the enclosing loops, outermost first; `guarded` is set inside a body under an answer."""

    control: Control
    step: Step
    op: ops.Instr
    needs: tuple[Need, ...] = ()
    loops: tuple[str, ...] = ()
    guarded: bool = False
    joint: bool = False  # other classes run it too, each for its share of the elements
    target: int = 0
    more: Cond = _NO_MORE  # of a loop's items: there is another iteration
    answered: bool = False  # of a condition: it hangs on the answer of a test
    # Of an op, looked up once: what its needs and its effect are, whether it has to wait, what names its operands, its bytes.
    checks: tuple[Callable[[Machine, At], None], ...] = ()
    effect: Callable[[Machine, At], None] = nothing
    ready: Callable[[Machine, At], bool] | None = None  # of an op that may have to wait: it need not
    named: tuple[Expr, ...] | None = None  # None: it has no operands
    banned: bool = False  # it hangs on an answer, and must not
    told: int = 0  # bytes that one thread announces
    moved: int = 0  # bytes that one thread brings


def fold_op(op: ops.Instr, known: Rewriter) -> ops.Instr:
    """`op` with launch constants in its operands."""
    changed: dict[str, Any] = {}
    for name, kind in _operands(type(op)):
        value = getattr(op, name)
        new = _fold(kind, value, known)
        if new is not value:
            changed[name] = new
    return replace(op, **changed) if changed else op


_FOLDED: Final = (ops.BARRIER, *ops.ONE_TILE, ops.MAP, ops.TILES, *PLACES, ops.EXPR, ops.COND)  # kinds that may hold expressions
_folded: dict[type[ops.Instr], tuple[tuple[str, ops.OperandKind], ...]] = {}  # kept, as they are asked for often


def _operands(op: type[ops.Instr]) -> tuple[tuple[str, ops.OperandKind], ...]:
    """The operands that may hold expressions."""
    found = _folded.get(op)
    if found is None:
        found = _folded[op] = tuple(operand for operand in ops.operands(op) if operand[1] in _FOLDED)
    return found


def _fold(kind: ops.OperandKind, value: Any, known: Rewriter) -> Any:
    """Any: each kind has a class of its own."""
    if kind is ops.EXPR:
        return known.expr(value)
    if kind is ops.COND:
        return known.cond(value)
    if kind in PLACES:
        places = tuple([known.expr(e) for e in value])
        return value if all(map(is_, places, value)) else places
    if kind is ops.TILES:
        return tuple(_fold_tile(ref, known) for ref in value)
    if kind in ops.ONE_TILE:
        return _fold_tile(value, known)
    if value.index is None:
        return value  # a map that is no table
    index = known.expr(value.index)
    return value if index is value.index else replace(value, index=index)


def _fold_tile(ref: ops.TileRef, known: Rewriter) -> ops.TileRef:
    index = known.expr(ref.index)
    part = ref.part
    if part is not None and (rank := known.expr(part.rank)) is not part.rank:
        part = replace(part, rank=rank)
    return ref if index is ref.index and part is ref.part else replace(ref, index=index, part=part)


def has_answer(c: Cond) -> bool:
    """True when the truth of `c` hangs on the answer of a test."""
    return bool(answers(c))


def answers(c: Cond) -> frozenset[int]:
    """The predicates in `c`."""
    match c:
        case expr.Answer(register):
            return frozenset((register,))
        case expr.Bool() | expr.Cmp():
            return frozenset()
        case expr.Not(a):
            return answers(a)
        case expr.And(a, b) | expr.Or(a, b):
            return answers(a) | answers(b)
        case _:
            assert_never(c)


def another(op: ops.Loop) -> Cond:
    """The counter is still on the near side of the loop's end."""
    counter = Sym(op.counter, expr.SymKind.LOOP)
    return expr.Cmp(expr.CmpOp.LT, counter, op.stop) if op.step > 0 else expr.Cmp(expr.CmpOp.LT, op.stop, counter)


def flatten(steps: tuple[Step, ...], threads: ThreadClass, folded: Mapping[int, ops.Instr]) -> list[Item]:
    """The items of one class; `folded` maps the id of each step to its folded op."""
    flat = _Flat(threads, folded)
    flat.emit(steps, (), guarded=False)
    return flat.code


@final
class _Flat:
    """The code so far. A block in which the class does nothing leaves no trace."""

    def __init__(self, threads: ThreadClass, folded: Mapping[int, ops.Instr]) -> None:
        self.threads = threads
        self.folded = folded
        self.code: list[Item] = []

    def emit(self, body: tuple[Step, ...], loops: tuple[str, ...], *, guarded: bool) -> None:
        for step in body:
            op = self.folded[id(step)]
            match op:
                case ops.Scope():
                    if self.threads.inside(op):
                        self.emit(step.body, loops, guarded=guarded)
                case ops.When():
                    self.when(step, op, loops, guarded=guarded)
                case ops.Loop():
                    self.loop(step, op, loops, guarded=guarded)
                case _:
                    needs = needs_of(op, guarded=guarded)
                    self.code.append(Item(control=Control.RUN, step=step, op=op, needs=needs, loops=loops, guarded=guarded))

    def when(self, step: Step, op: ops.When, loops: tuple[str, ...], *, guarded: bool) -> None:
        answered = has_answer(op.cond)
        head = Item(control=Control.WHEN, step=step, op=op, loops=loops, guarded=guarded, answered=answered)
        self.code.append(head)
        self.emit(step.body, loops, guarded=guarded or answered)
        if self.code[-1] is head:
            self.code.pop()
            return
        if answered:
            self.code.append(Item(control=Control.UNGUARD, step=step, op=op, loops=loops, guarded=guarded))
        head.target = len(self.code)

    def loop(self, step: Step, op: ops.Loop, loops: tuple[str, ...], *, guarded: bool) -> None:
        more, inside = another(op), (*loops, op.counter)
        head = Item(control=Control.ENTER, step=step, op=op, loops=loops, guarded=guarded, more=more)
        self.code.append(head)
        start = len(self.code)
        self.emit(step.body, inside, guarded=guarded)
        if len(self.code) == start:
            self.code.pop()
            return
        back = Item(control=Control.NEXT, step=step, op=op, loops=inside, guarded=guarded, target=start, more=more)
        self.code.append(back)
        head.target = len(self.code)
