"""All instances of an op in a launch as columns of numbers: which CTA, and which box.

Conditions on the answers of tests are taken to hold: such an op may run. What a counter deals is taken tile by tile, each on a CTA of
its own, because any two tiles may be on two CTAs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, assert_never, final

import numpy as np
import numpy.typing as npt

from oxidecopy.isa import ops
from oxidecopy.isa.expr import (
    Add,
    And,
    Answer,
    Bool,
    Cmp,
    CmpOp,
    Cond,
    Const,
    Expr,
    FloorDiv,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    Sym,
    symbols,
)
from oxidecopy.program.program import BLOCK_SYMBOLS

if TYPE_CHECKING:
    from oxidecopy.verify.outputs.places import Place

INSTANCES_MAX: Final = 1 << 18  # of one op: some 10 ms

Column = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
_NO: Final[Mask] = np.zeros((), bool)
_YES: Final[Mask] = np.ones((), bool)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Instances:
    """Where an op runs: the number of its CTA (x fastest) and the first element of its box, per instance, in a CTA in program order."""

    cta: Column
    coords: tuple[Column, ...]
    certain: bool  # False where a condition may also fail


def instances(place: Place, grid: tuple[int, int, int], tiles: Mapping[str, int]) -> Instances | None:
    """None where there are too many, or where they depend on what is known only while the program runs.

    `tiles`: of each symbol for a tile of a counter, how many there are.
    """
    dealt = {s.name for e in place.coords for s in symbols(e) if s.name in tiles}
    if dealt:
        return _dealt(place, grid, tiles, dealt)
    count = grid[0] * grid[1] * grid[2]
    if count > INSTANCES_MAX:
        return None
    number = np.arange(count, dtype=np.int64)
    x, y, _ = grid
    env: dict[str, Column] = dict(zip(BLOCK_SYMBOLS, (number % x, number // x % y, number // (x * y)), strict=True))
    for loop in place.loops:
        if not _known((loop.start, loop.stop), env):
            return None
        grown = _entered(loop, env, number)
        if grown is None:
            return None
        env, number = grown
    return _finish(place, env, number)


def _entered(loop: ops.Loop, env: dict[str, Column], number: Column) -> tuple[dict[str, Column], Column] | None:
    """The instances inside a loop: each one outside repeated for each iteration."""
    start, stop = (np.broadcast_to(value(e, env), number.shape) for e in (loop.start, loop.stop))
    trips = np.maximum(-((start - stop) // loop.step), 0) if loop.step > 0 else np.maximum(-((stop - start) // -loop.step), 0)
    total = int(trips.sum())
    if total > INSTANCES_MAX:
        return None
    outer = np.repeat(np.arange(len(number)), trips)
    first = np.repeat(np.cumsum(trips) - trips, trips)
    inner = {name: column[outer] for name, column in env.items()}
    inner[loop.counter] = start[outer] + (np.arange(total) - first) * loop.step
    return inner, number[outer]


def _dealt(place: Place, grid: tuple[int, int, int], tiles: Mapping[str, int], dealt: set[str]) -> Instances | None:
    (name, *more) = dealt
    if more or tiles[name] > INSTANCES_MAX:
        return None
    number = np.arange(tiles[name], dtype=np.int64)
    alone = grid == (1, 1, 1)
    return _finish(place, {name: number}, np.zeros_like(number) if alone else number)


def _finish(place: Place, env: dict[str, Column], number: Column) -> Instances | None:
    if not _known(place.coords, env):
        return None
    runs = np.ones(len(number), bool)
    certain = True
    for cond in place.conds:
        always, maybe = _truth(cond, env)
        certain &= bool(np.all(always == maybe))
        runs &= maybe
    coords = [np.broadcast_to(value(e, env), number.shape) for e in place.coords]
    # A box that lies outside altogether touches nothing.
    for c, n, step, dim in zip(coords, place.extents, place.steps, place.dims, strict=True):
        runs &= (c < dim) & (c + (n - 1) * step >= 0)
    return Instances(cta=number[runs], coords=tuple(c[runs] for c in coords), certain=certain)


def _known(exprs: tuple[Expr, ...], env: Mapping[str, Column]) -> bool:
    return all(s.name in env for e in exprs for s in symbols(e))


def value(e: Expr, env: Mapping[str, Column]) -> Column | np.int64:  # noqa: C901  one case per kind of node
    """`e` for all instances at once."""
    match e:
        case Const(n):
            return np.int64(n)
        case Sym(name):
            return env[name]
        case Add(a, b):
            return value(a, env) + value(b, env)
        case Mul(a, b):
            return value(a, env) * value(b, env)
        case FloorDiv(a, b):
            return value(a, env) // value(b, env)
        case Mod(a, b):
            return value(a, env) % value(b, env)
        case Min(a, b):
            return np.minimum(value(a, env), value(b, env))
        case Max(a, b):
            return np.maximum(value(a, env), value(b, env))
        case _:
            assert_never(e)


def _truth(c: Cond, env: Mapping[str, Column]) -> tuple[Mask, Mask]:
    """Where `c` holds for certain, and where it may hold."""
    match c:
        case Bool(known):
            return np.array(known), np.array(known)
        case Answer():
            return _NO, _YES
        case Cmp(op, a, b):
            if not _known((a, b), env):
                return _NO, _YES
            x, y = value(a, env), value(b, env)
            holds = np.asarray({CmpOp.LT: x < y, CmpOp.LE: x <= y, CmpOp.EQ: x == y, CmpOp.NE: x != y}[op])
            return holds, holds
        case Not(a):
            always, maybe = _truth(a, env)
            return ~maybe, ~always
        case And(a, b):
            first, second = _truth(a, env), _truth(b, env)
            return first[0] & second[0], first[1] & second[1]
        case Or(a, b):
            first, second = _truth(a, env), _truth(b, env)
            return first[0] | second[0], first[1] | second[1]
        case _:
            assert_never(c)
