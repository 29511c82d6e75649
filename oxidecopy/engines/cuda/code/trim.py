"""Barriers that order nothing are left out of device code.

Between two barriers of the same threads where one thread meanwhile issues stores and nobody else does anything, the second one has no
effect: what it would order has been ordered by the first, and a store that was issued is told of by a wait for its group alone. All who
take part have to be there: a barrier that another role reaches elsewhere is as often awaited there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from oxidecopy.isa import ops
from oxidecopy.program.program import Program, Step

_STORES: Final = (ops.TensorS2G, ops.TensorReduce, ops.BulkS2G, ops.BulkReduce, ops.CommitGroup)


def trimmed(program: Program) -> Program:
    """The program without them."""
    return replace(program, steps=_steps(program.steps, program.threads))


def _steps(steps: Sequence[Step], present: int) -> tuple[Step, ...]:
    """`present`: how many threads are at these steps."""
    made: list[Step] = []
    last: ops.BarSync | None = None  # nothing but stores has come since
    for step in steps:
        op = step.op
        if isinstance(op, ops.BarSync):
            if last is not None and (op.number, op.threads) == (last.number, last.threads) and op.threads == present:
                continue
            last = op
        elif not _only_stores(step):
            last = None
        inside = len(op.threads) if isinstance(op, ops.Scope) else present
        made.append(replace(step, body=_steps(step.body, inside)) if step.body else step)
    return tuple(made)


def _only_stores(step: Step) -> bool:
    """True for one thread that stores and commits."""
    return isinstance(step.op, ops.Scope) and len(step.op.threads) == 1 and all(isinstance(inner.op, _STORES) for inner in step.body)
