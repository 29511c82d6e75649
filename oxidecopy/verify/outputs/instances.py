"""All instances of an op in a launch as columns of numbers: which CTA, and which box.

Conditions on the answers of tests are taken to hold: such an op may run. What a counter deals is taken tile by tile, each on a CTA of
its own, because any two tiles may be on two CTAs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, assert_never, final

import numpy as np
import numpy.typing as npt

from oxidecopy.isa.expr import And, Answer, Bool, Cmp, CmpOp, Cond, Not, Or, symbols
from oxidecopy.verify.outputs.around import INSTANCES_MAX, Around, Column, Columns

if TYPE_CHECKING:
    from oxidecopy.verify.outputs.places import Place

Mask = npt.NDArray[np.bool_]
_NO: Final[Mask] = np.zeros((), bool)
_YES: Final[Mask] = np.ones((), bool)


@final
class Instances(NamedTuple):
    """Where an op runs: the number of its CTA (x fastest) and the first element of its box, per instance, in a CTA in program order."""

    cta: Column
    coords: tuple[Column, ...]
    certain: bool  # False where a condition may also fail


def instances(place: Place, around: Around, tiles: Mapping[str, int], *, alone: bool) -> Instances | None:
    """None where there are too many, or where they depend on what is known only while the program runs.

    `tiles`: of each symbol for a tile of a counter, how many there are. `alone`: the launch is one CTA.
    """
    dealt = {s.name for e in place.coords for s in symbols(e) if s.name in tiles}
    columns = _dealt(tiles, dealt, alone=alone) if dealt else around.columns
    return _finish(place, columns) if columns is not None and columns.knows(*place.coords) else None


def _dealt(tiles: Mapping[str, int], dealt: set[str], *, alone: bool) -> Columns | None:
    (name, *more) = dealt
    if more or tiles[name] > INSTANCES_MAX:
        return None
    number = np.arange(tiles[name], dtype=np.int64)
    return Columns(np.zeros_like(number) if alone else number, {name: number})


def _finish(place: Place, columns: Columns) -> Instances:
    runs = np.ones(len(columns.cta), bool)
    certain = True
    for cond in place.conds:
        always, maybe = _truth(cond, columns)
        certain &= bool(np.all(always == maybe))
        runs &= maybe
    coords = [np.broadcast_to(columns.of(e), columns.cta.shape) for e in place.coords]
    # A box that lies outside altogether touches nothing.
    for c, n, step, dim in zip(coords, place.extents, place.steps, place.dims, strict=True):
        runs &= (c < dim) & (c + (n - 1) * step >= 0)
    return Instances(cta=columns.cta[runs], coords=tuple(c[runs] for c in coords), certain=certain)


def _truth(c: Cond, columns: Columns) -> tuple[Mask, Mask]:
    """Where `c` holds for certain, and where it may hold."""
    match c:
        case Bool(known):
            return np.array(known), np.array(known)
        case Answer():
            return _NO, _YES
        case Cmp(op, a, b):
            if not columns.knows(a, b):
                return _NO, _YES
            x, y = columns.of(a), columns.of(b)
            holds = np.asarray({CmpOp.LT: x < y, CmpOp.LE: x <= y, CmpOp.EQ: x == y, CmpOp.NE: x != y}[op])
            return holds, holds
        case Not(a):
            always, maybe = _truth(a, columns)
            return ~maybe, ~always
        case And(a, b):
            first, second = _truth(a, columns), _truth(b, columns)
            return first[0] & second[0], first[1] & second[1]
        case Or(a, b):
            first, second = _truth(a, columns), _truth(b, columns)
            return first[0] | second[0], first[1] | second[1]
        case _:
            assert_never(c)
