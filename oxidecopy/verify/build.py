"""The machine at the start of a walk: one cluster whose block indices range over one piece of the grid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import is_
from typing import final

import numpy as np

from oxidecopy.isa import ops
from oxidecopy.isa.expr import Const
from oxidecopy.isa.rewriter import Rewriter
from oxidecopy.program.program import BLOCK_SYMBOLS, RANK_SYMBOL, Launch, Program, Step
from oxidecopy.verify.affine import Range, point, range_of
from oxidecopy.verify.check import CHECKS
from oxidecopy.verify.classes import ThreadClass, thread_classes
from oxidecopy.verify.code import Control, Item, flatten, fold_op
from oxidecopy.verify.coords import doubtful, everywhere
from oxidecopy.verify.opaque import Opaque, find_opaque
from oxidecopy.verify.quick import Quick
from oxidecopy.verify.report import Collector
from oxidecopy.verify.requirements import Need
from oxidecopy.verify.resolve import image_of, naming
from oxidecopy.verify.state import Agent, Bar, Machine, Stage
from oxidecopy.verify.transfer import effect_of, ready_of


@final
@dataclass(frozen=True, slots=True)
class Compiled:
    """What all pieces share: what may run, launch constants, folded ops by the id of their step, and each class with its code."""

    program: Program
    env: dict[str, int]
    folded: dict[int, ops.Instr]
    classes: tuple[ThreadClass, ...]
    code: tuple[list[Item], ...]
    doubtful: set[int]
    opaque: Opaque | None  # None where one is used for what the proof does not cover


def compile_program(program: Program, launch: Launch, out: Collector, *, whole: bool = False) -> Compiled:
    """Folds the launch into the program and lays it out per class; `whole`: with loops that nobody comes into."""
    env = launch.environment()
    folded: dict[int, ops.Instr] = {}
    known = Rewriter({name: Const(value) for name, value in env.items()})
    around = everywhere(program, launch, Opaque(ranges={})) if not whole else None
    program = replace(program, steps=tuple(_running(program.steps, known, around, folded)))
    classes = thread_classes(program)
    code = tuple(flatten(program.steps, c, folded) for c in classes)
    runners = Counter(id(item.step) for items in code for item in items)
    leading: set[int] = set()
    for items in code:
        # A class that commits anywhere may well wait before it does: where a ring of stores is still empty, or nothing was left to do.
        met = {Need.UNGUARDED, Need.COMMITTED} if any(isinstance(item.op, ops.CommitGroup) for item in items) else {Need.UNGUARDED}
        for item in items:
            item.joint = runners[id(item.step)] > 1
            if item.control is Control.RUN and not _is_followed(item, leading):
                _look_up(program, item, met)
    opaque = find_opaque(program, folded, out)
    watched = doubtful(program, launch, folded, opaque, out) if opaque is not None else set[int]()
    return Compiled(program, env, folded, classes, code, watched, opaque)


def _running(steps: tuple[Step, ...], known: Rewriter, around: Mapping[str, Range] | None, folded: dict[int, ops.Instr]) -> Iterator[Step]:
    """The steps, without loops that no CTA comes into, as the rest of a division often is; `folded` gets their ops.

    `around` are all block indices; None keeps every loop.
    """
    for step in steps:
        op = fold_op(step.op, known)
        if around is not None and isinstance(op, ops.Loop) and _is_empty(op, around) and not _reads(step):
            continue
        body = tuple(_running(step.body, known, around, folded))
        kept = step if len(body) == len(step.body) and all(map(is_, body, step.body)) else replace(step, body=body)
        folded[id(kept)] = op
        yield kept


def _reads(step: Step) -> bool:
    """It holds what is judged whether it runs or not, as an engine looks at it before: indices that are read, tiles of a counter."""
    return isinstance(step.op, ops.LoadIndex | ops.NextTile | ops.ShareTiles) or any(map(_reads, step.body))


def _is_empty(loop: ops.Loop, around: Mapping[str, Range]) -> bool:
    """True when the loop makes no turn, whatever the block."""
    try:
        first, stop = range_of(loop.start, around), range_of(loop.stop, around)
    except (KeyError, ZeroDivisionError):  # a counter moves it, or nobody may come there
        return False
    return stop.hi <= first.lo if loop.step > 0 else first.hi <= stop.lo


def _is_followed(item: Item, leading: set[int]) -> bool:
    """An instruction of a whole warp is done by the first of the classes that make it up: true for the others."""
    if not isinstance(item.op, ops.TensormapCpFenceproxy):
        return False
    first = id(item.step) not in leading
    leading.add(id(item.step))
    return not first


def _look_up(program: Program, item: Item, met: set[Need]) -> None:
    """`met` are needs that are known to hold."""
    op = item.op
    item.checks = tuple([CHECKS[need] for need in item.needs if need not in met])
    item.banned = Need.UNGUARDED in item.needs
    item.effect, item.ready, item.named = effect_of(op), ready_of(op), naming(op)
    if isinstance(op, ops.TensorLoad):
        item.moved = image_of(program, op).nbytes
    elif isinstance(op, ops.BulkLoad | ops.Send | ops.MbarrierCompleteTx):
        item.moved = op.nbytes
    elif not isinstance(op, ops.Copy):
        item.told = getattr(op, "nbytes", 0)


def unshared(program: Program) -> Program:
    """`program` with no `Step` object at two places: the verifier tells ops apart by the object."""
    steps = list(program.walk())
    if len({id(s) for s in steps}) == len(steps):
        return program
    return replace(program, steps=tuple(_copy(s) for s in program.steps))


def _copy(step: Step) -> Step:
    return Step(step.op, step.site, tuple(_copy(s) for s in step.body))


def cluster_box(program: Program, launch: Launch) -> tuple[Range, Range, Range]:
    """Cluster indices of the whole grid, x, y, z."""
    x, y, z = (_span(n // c) for n, c in zip(launch.grid, program.cluster, strict=True))
    return x, y, z


def _span(n: int) -> Range:
    return Range(0, n - 1, 1) if n > 1 else point(0)


def block_ranges(program: Program, box: tuple[Range, ...], rank: int) -> dict[str, Range]:
    """Block indices of the CTA of a rank (x fastest) in the clusters of `box`."""
    seen: dict[str, Range] = {}
    for name, size, r in zip(BLOCK_SYMBOLS, program.cluster, box, strict=True):
        rank, at = divmod(rank, size)
        seen[name] = Range(r.lo * size + at, r.hi * size + at, r.step * size)
    return seen


def build(launch: Launch, compiled: Compiled, box: tuple[Range, ...], out: Collector, *, count: int = 0) -> Machine:
    """A fresh machine for one piece; a counter, if there is one, gives the CTA `count` tiles."""
    program = compiled.program
    bar_base = tuple(accumulate((b.stages for b in program.barriers), initial=0))
    tile_base = tuple(accumulate((t.stages for t in program.tiles), initial=0))
    size = program.cluster_size
    bars: list[Bar] = []
    stages: list[Stage] = []
    for rank in range(size):
        where = f" of CTA {rank}" if size > 1 else ""
        for d, bar in enumerate(program.barriers):
            for i in range(bar.stages):
                bars.append(Bar(id=len(bars), rank=rank, decl=d, index=i, name=f"{_element(bar.name, i, bar.stages)}{where}"))
        for t, tile in enumerate(program.tiles):
            for i in range(tile.stages):
                stages.append(Stage(rank=rank, tile=t, index=i, name=f"{_element(tile.name, i, tile.stages)}{where}"))
    agents: list[Agent] = []
    opaque = compiled.opaque or Opaque(ranges={})
    given = {opaque.trips: point(count)} if opaque.trips else {}
    width = 3 * size * len(compiled.classes) + 2 * len(bars)
    for rank in range(size):
        ranges = {**block_ranges(program, box, rank), **opaque.ranges, **given, RANK_SYMBOL: point(rank)}
        quick = Quick({name: r for name, r in ranges.items() if name not in given})
        env = {name: r.lo for name, r in ranges.items() if r.single}
        for threads, code in zip(compiled.classes, compiled.code, strict=True):
            name = f"{threads.name} of CTA {rank}" if size > 1 else threads.name
            agents.append(
                Agent(
                    id=len(agents),
                    rank=rank,
                    threads=threads,
                    size=threads.size,
                    name=name,
                    code=code,
                    known=np.zeros(width, np.int64),
                    env=dict(env),
                    ranges=ranges,
                    quick=quick,
                    given=given,
                )
            )
    return Machine(
        program=program,
        launch=launch,
        out=out,
        agents=agents,
        bars=bars,
        stages=stages,
        bar_base=bar_base,
        tile_base=tile_base,
        bars_per_cta=bar_base[-1],
        stages_per_cta=tile_base[-1],
        doubtful=compiled.doubtful,
        trips=opaque.trips,
        count=count,
    )


def _element(name: str, index: int, stages: int) -> str:
    return f"{name}[{index}]" if stages > 1 else f"{name!r}"
