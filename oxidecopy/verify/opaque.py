"""Integers that are known only while the program runs: what they may be used for, and over which values they range.

An index read from memory chooses coordinates and nothing else, so the proof takes it over its whole range. The number of tiles that a
counter gives a CTA steers loops, alike in all its roles; `trips` proves the program for each such number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from oxidecopy.isa import limits, ops
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.expr import ZERO, Const, Expr, Sym, SymKind, symbols
from oxidecopy.program.destinations import destinations
from oxidecopy.program.nesting import steering
from oxidecopy.program.program import Program, Step
from oxidecopy.verify import rule_ids as ids
from oxidecopy.verify.affine import Range, point
from oxidecopy.verify.report import Collector


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Opaque:
    """What is opaque in a program: each index with all it can be, and the share of a counter (its name, and of how many tiles)."""

    ranges: Mapping[str, Range]
    trips: str = ""
    tiles: int = 0


def find_opaque(program: Program, folded: Mapping[int, ops.Instr], out: Collector) -> Opaque | None:
    """None, with violations reported, where an opaque value is used for more than the proof covers."""
    shares = [(step, op) for step in program.walk() if isinstance(op := folded[id(step)], ops.ShareTiles)]
    good = _shares(program, shares, out)
    trips, tiles = ("", 0) if not shares else (shares[0][1].name, _constant(shares[0][1].tiles))
    found: dict[str, Range] = {}
    if not any(isinstance(op, ops.LoadIndex | ops.NextTile | ops.ShareTiles) for op in folded.values()):
        return Opaque(ranges=found)
    for step in program.walk():
        op = folded[id(step)]
        good = _coordinates_only(step, op, out) and good
        if isinstance(op, ops.LoadIndex):
            good = _load(program, step, op, out) and good
            found[op.name] = _below(_constant(op.below))
            out.bound(
                f"the index read here is taken to be any of {_words(found[op.name])}",
                "it chooses places and entries only, which are judged over that range; the device checks the value itself",
                site=step.site,
                key=(step.site or id(step), op.below),
            )
        elif isinstance(op, ops.NextTile):
            found[op.name] = _below(tiles)
    good = _loops(program.steps, folded, {}, out) and good
    return Opaque(ranges=found, trips=trips, tiles=tiles) if good else None


def _constant(e: Expr) -> int:
    return e.value if isinstance(e, Const) else 0


def _words(r: Range) -> str:
    return f"{r.lo} to {r.hi}" if r.hi > r.lo else f"{r.lo}"


def _below(n: int) -> Range:
    return Range(0, n - 1, 1) if n > 1 else point(0)


# ---- the share of a counter
def _shares(program: Program, shares: list[tuple[Step, ops.ShareTiles]], out: Collector) -> bool:
    good = True
    for number, (step, op) in enumerate(shares):
        tiles = _constant(op.tiles)
        wrong = (
            "is not the same for the whole launch" if not isinstance(op.tiles, Const)
            else f"is of {tiles} tiles" if not 0 <= tiles < limits.COORD_MAX
            else "is the second one: the proof goes over one trip count" if number
            else "is not taken once, by all threads of the CTA" if not any(s is step for s in program.steps)
            else "is each CTA's own, but a cluster's CTAs run in step" if program.cluster_size > 1
            else ""
        )  # fmt: skip
        if wrong:
            good = False
            out.add(
                ids.COUNTER,
                f"the share of a counter {wrong}",
                step=step,
                required="one share per pipeline, at its top level, without a cluster, of 0 to 2^31 tiles",
                fix="use one counter-driven schedule, or a static order",
            )
    return good


def _loops(steps: tuple[Step, ...], folded: Mapping[int, ops.Instr], around: Mapping[str, ops.Loop], out: Collector) -> bool:
    """Loops over a share are plain and not nested in others, and tiles of a share are asked for there, by the loop's counter."""
    good = True
    for step in steps:
        op = folded[id(step)]
        inside = around
        if isinstance(op, ops.Loop):
            inside = {**around, op.counter: op}
            if (_has(op.start) or _has(op.stop)) and (around or not over_share(op)):
                good = False
                out.add(
                    ids.COUNTER,
                    "a loop over the share of a counter is nested in another loop, or visits only a part of it",
                    step=step,
                    required="`for at in work` or `ring.stages(group, work)`, outside other loops",
                    fix="take the loop around it away",
                )
        elif isinstance(op, ops.NextTile):
            loop = around.get(op.index.name) if isinstance(op.index, Sym) else None
            if loop is None or not over_share(loop) or loop.stop != op.trips:
                good = False
                out.add(
                    ids.COUNTER,
                    "a tile of a share is asked for outside the loop over that share",
                    step=step,
                    required="the counter of a loop from 0 to the size of the share",
                    fix="ask inside the loop",
                )
        good = _loops(step.body, folded, inside, out) and good
    return good


def over_share(op: ops.Loop) -> bool:
    """True for a loop from 0 to the size of a share."""
    return op.start == ZERO and op.step == 1 and isinstance(op.stop, Sym) and op.stop.kind is SymKind.TRIPS


def _has(e: Expr) -> bool:
    return any(s.kind is SymKind.TRIPS for s in symbols(e))


# ---- indices
def _coordinates_only(step: Step, op: ops.Instr, out: Collector) -> bool:
    if any(s.kind is SymKind.OPAQUE for e in steering(op) for s in symbols(e)):
        out.add(
            ids.OPAQUE_USE,
            f"`{op.mnemonic}` is steered by a value that was read from memory",
            step=step,
            required="coordinates, and indices of further reads",
            fix="let it depend on block indices, loop counters and `Idx` parameters",
        )
        return False
    return True


def _load(program: Program, step: Step, op: ops.LoadIndex, out: Collector) -> bool:
    param = program.arrays[op.array.name]
    row = DTYPES[param.dtype]
    written = op.array.name in destinations(program)
    wrong = (
        f"{param.dtype} of rank {param.rank}" if param.rank != 1 or row.is_float or row.bits % 8 or row.numpy.startswith("float")
        else "an array that the same pipeline writes" if written
        else "a bound that changes during the launch" if not isinstance(op.below, Const)
        else f"a bound of {op.below.value}" if not 1 <= op.below.value <= limits.COORD_MAX
        else ""
    )  # fmt: skip
    if wrong:
        out.add(
            ids.INDEX_SOURCE,
            f"indices cannot be read from {op.array.name!r} like this",
            step=step,
            got=wrong,
            required="a 1-D integer array that the pipeline does not write, and a bound from 1 to 2^31 - 1, one for the launch",
            fix="pass the extent that the index goes into: `below=out.shape[0]`",
        )
    return not wrong
