"""What the CTAs of a cluster may tell each other: between which accesses of two of them some order can come from.

CTAs of different clusters tell each other nothing. Inside a cluster a sync, an arrival on another CTA's barrier or a copy into another
CTA may order two accesses; whether it does is not followed here. Where there is nothing of that kind between them, nothing orders them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from oxidecopy.isa import ops
from oxidecopy.isa.expr import Cond, Const, Expr, substitute, substitute_cond
from oxidecopy.program.program import Step, walk

_TELLS: Final = (
    ops.ClusterSync,
    ops.MbarrierArriveRemote,
    ops.MbarrierArriveExpectTxRemote,
    ops.TensorG2SMulticast,
    ops.BulkG2SMulticast,
    ops.BulkS2S,
    ops.BulkReduceS2S,
)


def may_be_ordered(steps: tuple[Step, ...], folded: Mapping[int, ops.Instr], one: Step, other: Step) -> bool:
    """False when no CTA of a cluster tells another one anything between the two, whichever comes first."""
    at = [n for n, step in enumerate(steps) if any(inner is one or inner is other for inner in walk((step,)))]
    return any(isinstance(folded[id(inner)], _TELLS) for inner in walk(steps[min(at) : max(at) + 1]))


def alike(steps: tuple[Step, ...], folded: Mapping[int, ops.Instr], one: Mapping[str, int], other: Mapping[str, int]) -> bool:
    """True when two CTAs do the same ops, so that neither is ahead of the other by the program: their block indices and ranks are given."""
    first, second = ({name: Const(n) for name, n in own.items()} for own in (one, other))
    steering = [e for step in steps for inner in walk((step,)) for e in _steering(folded[id(inner)])]
    return all(_with(e, first) == _with(e, second) for e in steering)


def _steering(op: ops.Instr) -> tuple[Expr | Cond, ...]:
    """What decides whether and how often ops run, and what is waited for."""
    match op:
        case ops.When():
            return (op.cond,)
        case ops.Loop():
            return op.start, op.stop
        case ops.MbarrierWaitPhase():
            return (op.phase,)
        case ops.MbarrierWaitParity():
            return (op.parity,)
        case _:
            return ()


def _with(e: Expr | Cond, values: Mapping[str, Expr]) -> Expr | Cond:
    return substitute(e, values) if isinstance(e, Expr) else substitute_cond(e, values)
