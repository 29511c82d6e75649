"""Makes a program smaller for as long as it stays interesting: what is left of it is what matters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any, Final

from oxidecopy.errors import OxidecopyError
from oxidecopy.fuzz.case import Case
from oxidecopy.fuzz.mutants import paths, splice
from oxidecopy.isa import ops
from oxidecopy.isa.expr import Const, Expr
from oxidecopy.program.check import check_operands
from oxidecopy.program.program import Program, Step

TRIES_MAX: Final = 600
Interesting = Callable[[Case], bool]


def shrunk(case: Case, interesting: Interesting, tries: int = TRIES_MAX) -> Case:
    """The smallest case that was found by cutting one thing after the other, each cut keeping it `interesting`.

    Args:
        case: an interesting one.
        interesting: such as that verifier and simulator disagree about it in the same way.
        tries: after how many candidates to give up.
    """
    left = tries
    again = True
    while again:
        again = False
        for smaller in _smaller(case):
            left -= 1
            if left < 0:
                return case
            if _holds(smaller, interesting):
                case, again = smaller, True
                break
    return case


def _holds(case: Case, interesting: Interesting) -> bool:
    if check_operands(case.program):
        return False
    try:
        return interesting(case)
    except OxidecopyError:  # cut to where it is no program any more
        return False


def _smaller(case: Case) -> Iterator[Case]:
    """Everything that one cut makes of it, the largest cuts first."""
    yield from _launches(case)
    every = sorted(paths(case.program.steps), key=lambda found: -_size(found[1]))
    for path, _ in every:
        yield _with(case, splice(case.program.steps, path, ()))
    for path, step in every:
        if step.body:
            yield _with(case, splice(case.program.steps, path, step.body))
    for path, step in every:
        for op in _plainer(step.op):
            yield _with(case, splice(case.program.steps, path, (replace(step, op=op),)))


def _launches(case: Case) -> Iterator[Case]:
    """Fewer blocks, smaller `Idx` arguments."""
    if case.grid != case.program.cluster:
        yield replace(case, grid=case.program.cluster, expected={})
    for name, value in case.idx.items():
        for less in sorted({0, 1, value // 2, value - 1}):
            if 0 <= less < value:
                yield replace(case, idx={**case.idx, name: less}, expected={})


def _plainer(op: ops.Instr) -> Iterator[ops.Instr]:
    """The same op with a simpler operand: a constant for an expression, a smaller constant, no hint."""
    for f in fields(op):
        for new in _plainer_operands(getattr(op, f.name), f.metadata["kind"]):
            change: Any = {f.name: new}  # an operand of the op's own, whatever its kind
            yield replace(op, **change)


def _plainer_operands(old: Any, kind: ops.OperandKind) -> Iterator[Any]:
    """Any: of the same kind as it came."""
    if kind == ops.HINT and old is not None:
        yield None
    elif kind == ops.EXPR:
        yield from _simpler(old)
    elif kind in (ops.BARRIER, *ops.ONE_TILE):
        yield from (replace(old, index=new) for new in _simpler(old.index))
    elif kind == ops.COORDS:
        for i, e in enumerate(old):
            yield from ((*old[:i], new, *old[i + 1 :]) for new in _simpler(e))


def _simpler(e: Expr) -> Iterator[Expr]:
    if not isinstance(e, Const):
        yield Const(0)
        yield Const(1)
        return
    for less in sorted({0, 1, e.value // 2, e.value - 1}):
        if 0 <= less < e.value:
            yield Const(less)


def _with(case: Case, steps: tuple[Step, ...]) -> Case:
    program: Program = replace(case.program, steps=steps)
    return replace(case, program=program, expected={}, apart=False)


def _size(step: Step) -> int:
    return 1 + sum(_size(inner) for inner in step.body)
