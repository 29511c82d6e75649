"""Operands of an op instance: which barriers, bytes, phases and CTAs it names now.

A value that differs over the box of block indices asks for a split of the box.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from oxidecopy.isa import expr, ops
from oxidecopy.isa.expr import Cond, Const, Expr
from oxidecopy.isa.im2col import wide_rows
from oxidecopy.program.program import Program
from oxidecopy.program.tensor_map import IM2COL_WIDE, TileLayout
from oxidecopy.verify import rule_ids as ids
from oxidecopy.verify.affine import Range, has_loop_symbol, point
from oxidecopy.verify.state import INDEX, PHASE, TRUTH, Agent, Asked, At, Machine, Span, Use

Remote = ops.MbarrierArriveRemote | ops.MbarrierArriveExpectTxRemote | ops.Send  # ops with a `rank`
GATHERED: Final = 4  # rows of gather4 and scatter4


class UndecidedError(Exception):
    """An expression that steers control has several values over this box of block indices."""

    def __init__(self, what: Expr | Cond) -> None:
        super().__init__()
        self.what = what


def ranges(agent: Agent) -> dict[str, Range]:
    """Every symbol as the agent sees it now."""
    return {**agent.ranges, **counters(agent)}


def counters(agent: Agent) -> dict[str, Range]:
    """The counters of the loops that the agent is in, and the number of tiles that a counter gives it."""
    if agent.seen is None:
        agent.seen = {**agent.given, **{name: point(agent.env[name]) for name in agent.turns}}
    return agent.seen


def note(machine: Machine, agent: Agent, use: Use, e: Expr | Cond, *, truth: bool = False, bar: int = -1) -> None:
    """Remembers an expression that steered the agent, for the search for periods."""
    if machine.log is None:
        return
    varies = machine.steered.get(id(e))
    if varies is None:
        varies = machine.steered[id(e)] = has_loop_symbol(e)
    if varies or (use is PHASE and machine.all_phases):
        machine.log.append(Asked(agent.id, use, e, counters(agent), truth, bar, agent.code[agent.pc]))


def value(machine: Machine, agent: Agent, e: Expr, use: Use = INDEX, bar: int = -1) -> int:
    """The one value of `e`."""
    if type(e) is expr.Const:
        if use is PHASE:
            note(machine, agent, use, e, bar=bar)
        return e.value
    if machine.log is not None:
        note(machine, agent, use, e, bar=bar)
    quick = agent.quick
    try:
        return (quick.numbers.get(id(e)) or quick.number(e))(agent.env)
    except KeyError:
        r = quick.range(e, counters(agent))
        if r.single:
            return r.lo
        raise UndecidedError(e) from None


def truth(machine: Machine, agent: Agent, c: Cond) -> bool:
    """The one truth of an answer-free condition."""
    quick = agent.quick
    try:
        answer = (quick.truths.get(id(c)) or quick.truth(c))(agent.env)
    except KeyError:
        over_all = quick.decided(c, counters(agent))
        if over_all is None:
            raise UndecidedError(c) from None
        answer = over_all
    if machine.log is not None:
        note(machine, agent, TRUTH, c, truth=answer)
    return answer


# ---- operands
def naming(op: ops.Instr) -> tuple[Expr, ...] | None:
    """The expressions whose values name the barriers, tiles and CTAs of `op`; None where it has none of them."""
    tile: ops.TileRef | None = getattr(op, "tile", None)
    refs = [op.out, *op.inputs] if isinstance(op, ops.Made) else [tile] if tile is not None else []
    if isinstance(op, ops.MmaStep):
        refs = [op.a, op.b]
    if isinstance(op, ops.Send):
        refs.append(op.into)
    bar: ops.BarrierRef | None = getattr(op, "bar", None)
    found = [_receivers(op), bar.index if bar is not None else None]
    for ref in refs:
        found += [ref.index, ref.part.rank if ref.part is not None else None]
    named = tuple(e for e in found if e is not None and not isinstance(e, expr.Const))
    return named if refs or bar is not None else None


def _receivers(op: ops.Instr) -> Expr | None:
    if isinstance(op, ops.Multicast):
        return op.cta_mask
    return op.rank if isinstance(op, Remote) else None


def resolve(machine: Machine, at: At, named: tuple[Expr, ...]) -> bool:
    """Fills in the barriers and tile bytes that the op names, by the values of `named`; False when it names some that do not exist."""
    # The same values name the same operands: looked up once.
    key = _key(machine, at, named)
    found = machine.operands.get(key)
    if found is not None:
        at.bars, at.tiles, at.sources = found
        return True
    if not _resolve(machine, at):
        return False
    machine.operands[key] = (at.bars, at.tiles, at.sources)
    return True


def _key(machine: Machine, at: At, named: tuple[Expr, ...]) -> tuple[int, ...]:
    agent = at.agent
    numbers, env = agent.quick.numbers, agent.env
    try:
        key = (id(at.op), agent.rank, *[numbers[id(e)](env) for e in named])
    except KeyError:  # one was not asked for before, or is not settled
        return (id(at.op), agent.rank, *[value(machine, agent, e) for e in named])
    if machine.log is not None:
        for e in named:
            note(machine, agent, INDEX, e)
    return key


def _resolve(machine: Machine, at: At) -> bool:
    op, agent = at.op, at.agent
    if isinstance(op, ops.Multicast):
        ranks = _mask(machine, at, op.cta_mask)
    elif isinstance(op, Remote):
        ranks = _rank(machine, at, op.rank)
    else:
        ranks = [agent.rank]
    ref = getattr(op, "bar", None)
    if ref is not None:
        i = _bar(machine, at, ref)
        if i is None:
            return False
        at.bars = [machine.bars[rank * machine.bars_per_cta + i] for rank in ranks]
    return _tiles(machine, at, ranks) and (bool(ranks) or isinstance(op, ops.Multicast))


def _tiles(machine: Machine, at: At, ranks: list[int]) -> bool:
    """Fills in the tile bytes; False when there is no such stage or part."""
    op = at.op
    if isinstance(op, ops.Send):
        at.tiles, at.sources = _spans(machine, at, op.into, ranks), _spans(machine, at, op.tile, [at.agent.rank])
        return bool(at.tiles and at.sources)
    if isinstance(op, ops.MmaStep):
        at.sources = [span for ref in (op.a, op.b) for span in _spans(machine, at, ref, ranks)]
        return len(at.sources) == 2
    tile = op.out if isinstance(op, ops.Made) else getattr(op, "tile", None)
    if tile is None:
        return True
    at.tiles = _spans(machine, at, tile, ranks)
    if not isinstance(op, ops.Made):
        return bool(at.tiles) or not ranks
    at.sources = [span for ref in op.inputs for span in _spans(machine, at, ref, ranks)]
    return bool(at.tiles) and len(at.sources) == len(op.inputs)


def _bar(machine: Machine, at: At, ref: ops.BarrierRef) -> int | None:
    """Place of a barrier among those of a CTA."""
    decl = machine.program.barriers[ref.barrier]
    i = value(machine, at.agent, ref.index)
    if not 0 <= i < decl.stages:
        machine.out.add(
            ids.BARRIER_INDEX,
            f"index into barrier array {decl.name!r} is out of range",
            step=at.step,
            got=f"{i}{_where(at)}",
            required=f"0 to {decl.stages - 1}",
            fix=f"take the index modulo {decl.stages}",
        )
        return None
    return machine.bar_base[ref.barrier] + i


def _spans(machine: Machine, at: At, ref: ops.TileRef, ranks: list[int]) -> list[Span]:
    """What the op touches of a tile in each of these CTAs; nothing when there is no such stage or part."""
    found = _bytes(machine, at, ref)
    if found is None:
        return []
    lo, hi, stage = found
    first = machine.tile_base[ref.tile] + stage
    return [(machine.stages[rank * machine.stages_per_cta + first], lo, hi) for rank in ranks]


def _bytes(machine: Machine, at: At, ref: ops.TileRef) -> tuple[int, int, int] | None:
    """First byte, end and stage of what the op touches in a tile, counted from the start of the stage."""
    decl = machine.program.tiles[ref.tile]
    stage = value(machine, at.agent, ref.index)
    if not 0 <= stage < decl.stages:
        machine.out.add(
            ids.TILE_INDEX,
            f"stage index of tile {decl.name!r} is out of range",
            step=at.step,
            got=f"{stage}{_where(at)}",
            required=f"0 to {decl.stages - 1}",
            fix=f"take the index modulo {decl.stages}",
        )
        return None
    layout, rank = decl.layout, 0
    if ref.part is not None:
        rank = value(machine, at.agent, ref.part.rank)
        if not 0 <= rank < ref.part.of:
            machine.out.add(
                ids.TILE_INDEX,
                f"part number of tile {decl.name!r} is out of range",
                step=at.step,
                got=f"{rank}{_where(at)}",
                required=f"0 to {ref.part.of - 1}",
                fix="parts are numbered from 0; with one part for each CTA, as many parts as CTAs in the cluster",
            )
            return None
        lo, size = part_bytes(layout, rank, ref.part.of)
    else:
        lo, size = 0, layout.footprint_bytes
    return lo, lo + (_copied(machine.program, at.op) or size), stage


def _copied(program: Program, op: ops.Instr) -> int:
    """Shared bytes from the first to the last that a copy touches; 0 for other ops."""
    if isinstance(op, ops.TensorCopy):
        return image_of(program, op).footprint_bytes
    return op.nbytes if isinstance(op, ops.BulkCopy | ops.Send) else 0


def image_of(program: Program, op: ops.TensorCopy) -> TileLayout:
    """How a tensor copy's box lies in shared memory."""
    param = program.maps[op.map.name]
    one = param.layout
    if param.mode in IM2COL_WIDE and isinstance(op, ops.TensorG2S | ops.TensorG2SMulticast):
        halo = op.offsets[-1]
        return replace(one, shape=(wide_rows(param.mode, param.box_dim[0], halo.value if isinstance(halo, Const) else 0), one.shape[-1]))
    return replace(one, shape=(GATHERED, one.shape[-1])) if isinstance(op, ops.TensorGather4 | ops.TensorScatter4) else one


def part_bytes(layout: TileLayout, rank: int, of: int) -> tuple[int, int]:
    """Offset and extent in bytes of one of `of` equal slices along the outermost dimension."""
    if len(layout.shape) == 1:
        size = layout.row_bytes // of
        return rank * size, size
    rows = layout.rows // of
    used = layout.pitch_bytes * (rows - 1) + layout.row_bytes
    if layout.swizzle != "none":
        used = -(-used // 128) * 128
    return rank * rows * layout.pitch_bytes, used


def _mask(machine: Machine, at: At, e: Expr) -> list[int]:
    mask, size = value(machine, at.agent, e), machine.program.cluster_size
    if not 0 <= mask < 1 << size:
        machine.out.add(
            ids.MASK,
            "multicast mask names CTAs that the cluster does not have",
            step=at.step,
            got=bin(mask) if mask >= 0 else mask,
            required=f"bits 0 to {size - 1} only: the cluster has {size} CTAs",
            fix=f"use a mask of at most {bin((1 << size) - 1)}",
        )
    return [rank for rank in range(size) if mask >> rank & 1]


def _rank(machine: Machine, at: At, e: Expr) -> list[int]:
    rank, size = value(machine, at.agent, e), machine.program.cluster_size
    if not 0 <= rank < size:
        machine.out.add(
            ids.RANK,
            "remote op names a CTA that the cluster does not have",
            step=at.step,
            got=rank,
            required=f"0 to {size - 1}",
            fix=f"take the rank modulo {size}",
        )
        return []
    return [rank]


def _where(at: At) -> str:
    """The iteration, for a value that depends on it."""
    turns = ", ".join(f"{name} = {at.agent.env[name]}" for name in at.agent.turns)
    return f" (at {turns})" if turns else ""
