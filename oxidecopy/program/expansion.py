"""Stages of rings written out as the primitive ops they stand for: what verifier and simulator work on."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, assert_never

from oxidecopy.errors import Site
from oxidecopy.isa import ops
from oxidecopy.isa.expr import Bool, Cond, Const
from oxidecopy.isa.ops import BarrierRef, Stage, ThreadSet
from oxidecopy.program.program import Program, Step

ALWAYS: Final = Bool(value=True)


def expanded(program: Program) -> Program:
    """`program` in primitive ops only; itself when it has no stage."""
    if not any(isinstance(s.op, ops.STAGES) for s in program.walk()):
        return program
    return replace(program, steps=_expanded(program.steps))


def _expanded(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    out: list[Step] = []
    for step in steps:
        body = _expanded(step.body)
        out += expansion(step.op, body, step.site) if isinstance(step.op, ops.STAGES) else (replace(step, body=body),)
    return tuple(out)


def expansion(op: Stage, body: tuple[Step, ...], at: Site | None) -> tuple[Step, ...]:
    """What one stage does, in order; `body` is the user's part of it."""
    match op:
        case ops.ProduceStage():
            return (
                Step(ops.MbarrierWaitPhase(bar=op.empty, phase=op.free), at),
                Step(ops.MbarrierArriveExpectTx(bar=op.full, nbytes=op.nbytes, token=op.token), at),
                *body,
            )
        case ops.ConsumeStage():
            elected = ops.Scope(role="elect", threads=ThreadSet(((op.lane, op.lane + 1),)))
            release = (
                Step(ops.BarSync(number=op.number, threads=op.threads), at),
                Step(elected, at, _arrivals(op.empty, op.peers, op.token, at)),
            )
            return (Step(ops.MbarrierWaitPhase(bar=op.full, phase=op.landed), at), *body, *_where(op.release, release, at))
        case ops.LoadStoreStage():
            return (
                Step(ops.MbarrierWaitPhase(bar=op.full, phase=op.landed), at),
                Step(ops.TensorS2G(map=op.map, tile=op.tile, coords=op.coords, hint=op.hint), at),
                Step(ops.CommitGroup(), at),
                Step(ops.WaitGroupRead(pending=op.pending), at),
                *_where(op.release, _arrivals(op.empty, 0, op.token, at), at),
            )
        case _:
            assert_never(op)


def _arrivals(empty: BarrierRef, peers: int, token: int, at: Site | None) -> tuple[Step, ...]:
    if not peers:
        return (Step(ops.MbarrierArrive(bar=empty, token=token), at),)
    return tuple(Step(ops.MbarrierArriveRemote(bar=empty, rank=Const(rank)), at) for rank in range(peers))


def _where(cond: Cond, steps: tuple[Step, ...], at: Site | None) -> tuple[Step, ...]:
    return steps if cond == ALWAYS else (Step(ops.When(cond=cond), at, steps),)
