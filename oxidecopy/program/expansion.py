"""Stages of rings written out as the primitive ops they stand for: what verifier and simulator work on."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, assert_never

from oxidecopy.errors import Site
from oxidecopy.isa import limits, mma, ops
from oxidecopy.isa.expr import ONE, ZERO, Bool, Cond, Const, Expr, Sym, SymKind, add, floordiv, mod, mul
from oxidecopy.isa.ops import BarrierRef, Instr, Stage, ThreadSet, TileRef
from oxidecopy.program.program import RANK_SYMBOL, Program, Step

ALWAYS: Final = Bool(value=True)


def expanded(program: Program, whole: tuple[type[Instr], ...] = ()) -> Program:
    """`program` in primitive ops only, but for those of `whole`, which stay as they are; itself when it has no stage."""
    if not any(isinstance(s.op, ops.STAGES) and not isinstance(s.op, whole) for s in program.walk()):
        return program
    return replace(program, steps=_expanded(program, program.steps, whole))


def _expanded(program: Program, steps: tuple[Step, ...], whole: tuple[type[Instr], ...]) -> tuple[Step, ...]:
    out: list[Step] = []
    for step in steps:
        body = _expanded(program, step.body, whole)
        if isinstance(step.op, ops.Stage) and not isinstance(step.op, whole):
            out += expansion(program, step.op, body, step.site)
        else:
            out.append(replace(step, body=body))
    return tuple(out)


def expansion(program: Program, op: Stage, body: tuple[Step, ...], at: Site | None) -> tuple[Step, ...]:
    """What one stage does, in order; `body` is the user's part of it."""
    match op:
        case ops.ProduceStage():
            return (
                Step(ops.MbarrierWaitPhase(bar=op.empty, phase=op.free), at),
                Step(ops.MbarrierArriveExpectTx(bar=op.full, nbytes=op.nbytes, token=op.token), at),
                *body,
            )
        case ops.ConsumeStage():
            release = (
                Step(ops.BarSync(number=op.number, threads=op.threads), at),
                _lane(op.lane, *_arrivals(program, op, op.empty, at), at=at),
            )
            return (Step(ops.MbarrierWaitPhase(bar=op.full, phase=op.landed), at), *body, *_where(op.release, release, at))
        case ops.LoadStoreStage():
            return (
                Step(ops.MbarrierWaitPhase(bar=op.full, phase=op.landed), at),
                Step(ops.TensorS2G(map=op.map, tile=op.tile, coords=op.coords, hint=op.hint), at),
                Step(ops.CommitGroup(), at),
                Step(ops.WaitGroupRead(pending=op.pending), at),
                *_where(op.release, _arrivals(program, op, op.empty, at), at),
            )
        case ops.Contract():
            return (*_sums(program, op, at), *_results(program, op, at))
        case ops.ContractDrain():
            return (_lane(op.lane, Step(ops.WaitGroupRead(pending=0), at), at=at), Step(_sync(op), at))
        case _:
            assert_never(op)


# ---- contractions
def results(program: Program, op: ops.Contract) -> tuple[tuple[int, int], ...]:
    """Row and column of each part of the sums that `out` takes at once, in order; none where it does not divide them."""
    rows, columns = mma.extents(program.tiles[op.out.tile].shape)
    m, n = operand(program, op.a, op.a_major, op.depth)[0], operand(program, op.b, op.b_major, op.depth)[0]
    if m % rows or n % columns or len(op.coords) < 2:
        return ()
    return tuple((i * rows, j * columns) for j in range(n // columns) for i in range(m // rows))


def operand(program: Program, ref: TileRef, major: str, depth: int) -> tuple[int, int]:
    """Rows and depth of an operand; zeros where the tile holds none."""
    outer, *inner = program.tiles[ref.tile].shape
    return mma.operand_shape((outer // (ref.part.of if ref.part is not None else 1), *inner), major, depth) or (0, 0)


def _sums(program: Program, op: ops.Contract, at: Site | None) -> tuple[Step, ...]:
    """The loop over K. A stage is released as soon as it is multiplied, the earliest that the op may do."""
    name = f"contract{op.token}.k"
    number = add(op.first, Sym(name, SymKind.LOOP))
    slot, turn = mod(number, Const(op.stages)), floordiv(number, Const(op.stages))
    full, empty = BarrierRef(op.full.barrier, slot), BarrierRef(op.empty.barrier, slot)
    a, b = replace(op.a, index=slot), replace(op.b, index=slot)
    body = (
        Step(ops.MbarrierWaitPhase(bar=full, phase=turn), at),
        Step(ops.MmaStep(a=a, b=b, a_major=op.a_major, b_major=op.b_major, depth=op.depth), at),
        Step(_sync(op), at),
        _lane(op.lane, *_arrivals(program, op, empty, at), at=at),
    )
    return Step(ops.MmaZero(), at), Step(ops.Loop(counter=name, start=ZERO, stop=op.steps, step=1), at, body)


def _results(program: Program, op: ops.Contract, at: Site | None) -> tuple[Step, ...]:
    """The epilogue: as what a store ring does, once for each part of the sums."""
    stages, put = program.tiles[op.out.tile].stages, op.put
    out: list[Step] = []
    for row, column in results(program, op):
        tile = replace(op.out, index=mod(put, Const(stages)))
        *outer, y, x = op.coords
        coords: tuple[Expr, ...] = (*outer, add(y, Const(row)), add(x, Const(column)))
        store = (
            ops.TensorReduce(op=op.combine, map=op.map, tile=tile, coords=coords, hint=op.hint)
            if op.combine != "none"
            else ops.TensorS2G(map=op.map, tile=tile, coords=coords, hint=op.hint)
        )
        out += (
            _lane(op.lane, Step(ops.WaitGroupRead(pending=min(stages - 1, limits.WAIT_GROUP_MAX)), at), at=at),
            Step(_sync(op), at),
            Step(ops.MmaOut(tile=tile, row=row, column=column, coords=coords, arrays=op.arrays, fn=op.fn), at),
            Step(ops.FenceProxyAsync(), at),
            Step(_sync(op), at),
            _lane(op.lane, Step(store, at), Step(ops.CommitGroup(), at), at=at),
        )
        put = add(put, ONE)
    return tuple(out)


def _sync(op: ops.Contract | ops.ContractDrain) -> ops.BarSync:
    return ops.BarSync(number=op.number, threads=op.threads)


def _lane(lane: int, *steps: Step, at: Site | None) -> Step:
    """What one thread does."""
    return Step(ops.Scope(role="elect", threads=ThreadSet(((lane, lane + 1),))), at, steps)


def _arrivals(
    program: Program, op: ops.ConsumeStage | ops.LoadStoreStage | ops.Contract, empty: BarrierRef, at: Site | None
) -> tuple[Step, ...]:
    """What tells the producers of a stage that it is free."""
    if isinstance(op, ops.LoadStoreStage) or not op.peers:
        return (Step(ops.MbarrierArrive(bar=empty, token=op.token), at),)
    return tuple(Step(ops.MbarrierArriveRemote(bar=empty, rank=rank), at) for rank in told_ranks(program.cluster, op.told))


def told_ranks(cluster: tuple[int, int, int], told: str) -> tuple[Expr, ...]:
    """The CTAs that are told, as the cluster rank of the one that tells them: all, those of its row (x) or of its column (y), or both."""
    x, y, z = cluster
    if told == "cluster":
        return tuple(Const(rank) for rank in range(x * y * z))
    rank = Sym(RANK_SYMBOL, SymKind.RANK)
    row = tuple(add(mul(floordiv(rank, Const(x)), Const(x)), Const(i)) for i in range(x))
    column = tuple(mod(add(rank, Const(j * x)), Const(x * y)) for j in range(y))
    return {"x": row, "y": column, "xy": (*row, *column[1:])}[told]


def _where(cond: Cond, steps: tuple[Step, ...], at: Site | None) -> tuple[Step, ...]:
    return steps if cond == ALWAYS else (Step(ops.When(cond=cond), at, steps),)
