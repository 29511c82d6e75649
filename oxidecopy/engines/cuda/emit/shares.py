"""Shares of tiles in emitted code: a real counter where the program's loops allow it, else fixed shares, which the op allows as well.

With a counter nobody knows beforehand how many tiles a CTA gets. So it takes one producer, a single thread that takes numbers and puts each
into a slot of the stage that brings the tile; consumers read it there, and -1 ends their loops. Everything else about the ring stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

from oxidecopy.isa import ops
from oxidecopy.isa.expr import ONE, ZERO, Const, Expr, Mod, Sym, SymKind, add, floordiv, maximum, mul, sub, symbols
from oxidecopy.isa.limits import SHARED_BYTES_MAX
from oxidecopy.program.nesting import expressions
from oxidecopy.program.program import BLOCK_SYMBOLS, Program, Step, walk

SLOT_BYTES = 4


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CountedShare:
    """A share that a counter deals: the barriers of its ring, whose number of stages is that of the slots, and where the slots lie."""

    full: int
    stages: int
    slots: int


# ---- fixed shares
def _grid(axis: str) -> Expr:
    return Sym(f"grid_dim.{axis}", SymKind.GRID)


def worker() -> Expr:
    """Number of the block, x fastest."""
    x, y, z = (Sym(name, SymKind.BLOCK) for name in BLOCK_SYMBOLS)
    return add(add(x, mul(_grid("x"), y)), mul(mul(_grid("x"), _grid("y")), z))


def workers() -> Expr:
    """Blocks of the launch."""
    return mul(mul(_grid("x"), _grid("y")), _grid("z"))


def fixed_trips(tiles: Expr) -> Expr:
    """How many of `tiles` this block takes: every `workers`-th from its own number on."""
    return maximum(ZERO, floordiv(add(sub(tiles, worker()), sub(workers(), ONE)), workers()))


def fixed_tile(index: Expr) -> Expr:
    """The `index`-th tile of this block."""
    return add(worker(), mul(index, workers()))


# ---- counters
def counted_shares(program: Program, sm: int) -> dict[str, CountedShare]:
    """The shares of an expanded program that a counter can deal, by their names."""
    found: dict[str, CountedShare] = {}
    room = -(-program.shared_bytes // SLOT_BYTES) * SLOT_BYTES
    for step in program.walk():
        if isinstance(step.op, ops.ShareTiles) and program.cluster_size == 1:
            ring = _ring(program, step.op.name)
            if ring is not None and room + ring[1] * SLOT_BYTES <= SHARED_BYTES_MAX.get(sm, 0):
                found[step.op.name] = CountedShare(full=ring[0], stages=ring[1], slots=room)
                room += ring[1] * SLOT_BYTES
    return found


def _ring(program: Program, name: str) -> tuple[int, int] | None:
    """The barrier array whose stages bring the tiles, and its length; None where some loop does not fit."""
    loops = list(_loops(program.steps, name, (), program.threads))
    producers = [p for p in loops if p.full is not None and p.produces]
    fulls = {p.full for p in loops}
    if len(producers) != 1 or len(fulls) != 1 or producers[0].threads != 1 or len(loops) < 2 or any(p.nested for p in loops):
        return None
    full = producers[0].full
    inits = [s.op.count for s in program.walk() if isinstance(s.op, ops.MbarrierInit) and s.op.bar.barrier == full]
    uses = sum(_uses(s, full) for s in program.walk())
    inside = sum(_uses(s, full) for p in loops for s in walk(p.step.body))
    named = sum(any(x.name == name for x in symbols(e)) for s in program.walk() for _, e in expressions(s.op) if isinstance(e, Expr))
    conds = any(x.name == name for s in program.walk() if isinstance(s.op, ops.When) for x in symbols(s.op.cond))
    if full is None or set(inits) != {1} or uses != inside or named != 2 * len(loops) or conds:
        return None
    return full, program.barriers[full].stages


@final
@dataclass(frozen=True, slots=True)
class _Found:
    """A loop over the share, the barriers it goes round, and whether it fills them."""

    step: Step
    threads: int
    nested: bool
    full: int | None
    produces: bool


def _loops(steps: Sequence[Step], name: str, around: tuple[ops.Loop, ...], threads: int) -> Iterator[_Found]:
    for step in steps:
        op = step.op
        if isinstance(op, ops.Loop) and any(s.name == name for s in symbols(op.stop)):
            yield _loop(step, op, name, nested=bool(around), threads=threads)
        inner = len(op.threads) if isinstance(op, ops.Scope) else threads
        yield from _loops(step.body, name, (*around, op) if isinstance(op, ops.Loop) else around, inner)


def _loop(step: Step, op: ops.Loop, name: str, *, nested: bool, threads: int) -> _Found:
    """What `step` is, where it begins as a stage's loop does: the tile's number, then the stage's wait."""
    counter = Sym(op.counter, SymKind.LOOP)
    plain = op.start == ZERO and op.step == 1 and op.stop == Sym(name, SymKind.TRIPS)
    first = [s.op for s in step.body[:3]]
    match first:
        case [ops.NextTile(index=i), ops.MbarrierWaitPhase(), ops.MbarrierArriveExpectTx(bar=bar), *_] if plain and i == counter:
            return _Found(step, threads, nested, bar.barrier if _goes_round(bar, counter) else None, produces=True)
        case [ops.NextTile(index=i), ops.MbarrierWaitPhase(bar=bar, phase=phase), *_] if plain and i == counter:
            fits = _goes_round(bar, counter) and phase == floordiv(counter, bar.index.b if isinstance(bar.index, Mod) else ONE)
            return _Found(step, threads, nested, bar.barrier if fits else None, produces=False)
        case _:
            return _Found(step, threads, nested, None, produces=False)


def _goes_round(bar: ops.BarrierRef, counter: Sym) -> bool:
    return isinstance(bar.index, Mod) and bar.index.a == counter and isinstance(bar.index.b, Const)


def _uses(step: Step, barrier: int | None) -> bool:
    """True for what works on the barriers, their begin and end apart."""
    ref = getattr(step.op, "bar", None)
    return isinstance(ref, ops.BarrierRef) and ref.barrier == barrier and not isinstance(step.op, ops.MbarrierInit | ops.MbarrierInval)
