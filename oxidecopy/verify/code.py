"""A program as one class of threads runs it: a flat list of items, launch constants folded into every expression.

Flat, so that where an agent stands is two small things (a position and its loop counters), which the walk can compare and move.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, assert_never, final

from oxidecopy.isa import expr, ops
from oxidecopy.isa.expr import Cond, Expr, Sym
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


_BINARY = {
    expr.Add: expr.add,
    expr.Mul: expr.mul,
    expr.FloorDiv: expr.floordiv,
    expr.Mod: expr.mod,
    expr.Min: expr.minimum,
    expr.Max: expr.maximum,
}


def fold(e: Expr, env: Mapping[str, int]) -> Expr:
    """`e` with the symbols of `env` replaced by their values."""
    if isinstance(e, expr.Const):
        return e
    if isinstance(e, Sym):
        return expr.Const(env[e.name]) if e.name in env else e
    return _BINARY[type(e)](fold(e.a, env), fold(e.b, env))


def fold_cond(c: Cond, env: Mapping[str, int]) -> Cond:
    """`c` with the symbols of `env` replaced by their values."""
    match c:
        case expr.Bool() | expr.Answer():
            return c
        case expr.Not(a):
            return expr.Not(fold_cond(a, env))
        case expr.And(a, b):
            return expr.And(fold_cond(a, env), fold_cond(b, env))
        case expr.Or(a, b):
            return expr.Or(fold_cond(a, env), fold_cond(b, env))
        case expr.Cmp(op, x, y):
            return expr.Cmp(op, fold(x, env), fold(y, env))
        case _:
            assert_never(c)


def fold_op(op: ops.Instr, env: Mapping[str, int]) -> ops.Instr:  # noqa: C901  one case per kind
    """`op` with launch constants in its operands."""
    changed: dict[str, Any] = {}
    for name, kind in ops.operands(type(op)):
        value = getattr(op, name)
        if kind is ops.BARRIER:
            new: object = replace(value, index=fold(value.index, env))
        elif kind in ops.ONE_TILE:
            new = _fold_tile(value, env)
        elif kind is ops.MAP:
            new = replace(value, index=fold(value.index, env)) if value.index is not None else value
        elif kind is ops.TILES:
            new = tuple(_fold_tile(ref, env) for ref in value)
        elif kind in PLACES:
            new = tuple(fold(e, env) for e in value)
        elif kind is ops.EXPR:
            new = fold(value, env)
        elif kind is ops.COND:
            new = fold_cond(value, env)
        else:
            continue
        if new != value:
            changed[name] = new
    return replace(op, **changed) if changed else op


def _fold_tile(ref: ops.TileRef, env: Mapping[str, int]) -> ops.TileRef:
    part = ref.part and replace(ref.part, rank=fold(ref.part.rank, env))
    return replace(ref, index=fold(ref.index, env), part=part)


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
