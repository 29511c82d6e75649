"""A program as one class of threads runs it: a flat list of items, launch constants folded into every expression.

Flat, so that where an agent stands is two small things (a position and its loop counters), which the walk can compare and move.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import Enum
from typing import Any, assert_never, final

from oxidecopy.isa import expr, ops
from oxidecopy.isa.expr import Cond, Expr, Sym
from oxidecopy.program.program import Step
from oxidecopy.verify.classes import ThreadClass
from oxidecopy.verify.requirements import Need, needs_of


class Control(Enum):
    """What an item does to the position."""

    RUN = "run"  # an op; go on behind it
    WHEN = "when"  # go on, or to `target` when the condition fails
    UNGUARD = "unguard"  # the end of a body that the answer of a test guards
    ENTER = "enter"  # start a loop, or go to `target`
    NEXT = "next"  # next iteration: back to `target`, or go on


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
    more: Cond = expr.Bool(value=False)  # of a loop's items: there is another iteration


_BINARY = {expr.Add: expr.add, expr.Mul: expr.mul, expr.FloorDiv: expr.floordiv, expr.Mod: expr.mod, expr.Min: expr.minimum, expr.Max: expr.maximum}


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


def fold_op(op: ops.Instr, env: Mapping[str, int]) -> ops.Instr:
    """`op` with launch constants in its operands."""
    changed: dict[str, Any] = {}
    for f in fields(op):
        value = getattr(op, f.name)
        kind = f.metadata["kind"]
        if kind is ops.BARRIER:
            new: object = replace(value, index=fold(value.index, env))
        elif kind is ops.TILE:
            part = value.part and replace(value.part, rank=fold(value.part.rank, env))
            new = replace(value, index=fold(value.index, env), part=part)
        elif kind is ops.COORDS:
            new = tuple(fold(e, env) for e in value)
        elif kind is ops.EXPR:
            new = fold(value, env)
        elif kind is ops.COND:
            new = fold_cond(value, env)
        else:
            continue
        if new != value:
            changed[f.name] = new
    return replace(op, **changed) if changed else op


def has_answer(c: Cond) -> bool:
    """True when the truth of `c` hangs on the answer of a test."""
    match c:
        case expr.Answer():
            return True
        case expr.Bool() | expr.Cmp():
            return False
        case expr.Not(a):
            return has_answer(a)
        case expr.And(a, b) | expr.Or(a, b):
            return has_answer(a) or has_answer(b)
        case _:
            assert_never(c)


def another(op: ops.Loop) -> Cond:
    """The counter is still on the near side of the loop's end."""
    counter = Sym(op.counter, expr.SymKind.LOOP)
    return expr.Cmp(expr.CmpOp.LT, counter, op.stop) if op.step > 0 else expr.Cmp(expr.CmpOp.LT, op.stop, counter)


def flatten(steps: tuple[Step, ...], threads: ThreadClass, folded: Mapping[int, ops.Instr]) -> list[Item]:
    """The items of one class; `folded` maps the id of each step to its folded op."""
    code: list[Item] = []

    def emit(body: tuple[Step, ...], loops: tuple[str, ...], guarded: bool) -> None:
        for step in body:
            op = folded[id(step)]
            match op:
                case ops.Scope():
                    if threads.inside(op):
                        emit(step.body, loops, guarded)
                case ops.When():
                    answered = has_answer(op.cond)
                    head = Item(control=Control.WHEN, step=step, op=op, loops=loops, guarded=guarded)
                    code.append(head)
                    emit(step.body, loops, guarded or answered)
                    if code[-1] is head:
                        code.pop()
                        continue
                    if answered:
                        code.append(Item(control=Control.UNGUARD, step=step, op=op, loops=loops, guarded=guarded))
                    head.target = len(code)
                case ops.Loop():
                    more = another(op)
                    head = Item(control=Control.ENTER, step=step, op=op, loops=loops, guarded=guarded, more=more)
                    code.append(head)
                    start = len(code)
                    emit(step.body, (*loops, op.counter), guarded)
                    if len(code) == start:
                        code.pop()
                        continue
                    code.append(Item(control=Control.NEXT, step=step, op=op, loops=(*loops, op.counter), guarded=guarded, target=start, more=more))
                    head.target = len(code)
                case _:
                    code.append(Item(control=Control.RUN, step=step, op=op, needs=needs_of(op, guarded), loops=loops, guarded=guarded))

    emit(steps, (), False)
    return code
