"""Cuts a box of cluster indices in two or more where an expression is not decided over it."""

from __future__ import annotations

from collections.abc import Iterable
from math import lcm

from oxidecopy.isa.expr import Cond, Expr, symbols
from oxidecopy.program.program import BLOCK_SYMBOLS
from oxidecopy.verify.affine import Range, point, strided

_RESIDUES_MAX = 64  # a cut by remainder may always give that many boxes; more only where halves would give more still
_RESIDUES_EVER = 2048


def split(box: tuple[Range, ...], what: Expr | Cond, moduli: Iterable[int]) -> list[tuple[Range, ...]]:
    """Boxes that together are `box`: by remainder where the expression has a modulus that the box does not yet respect, else halves."""
    names = {s.name for s in symbols(what)}
    axes = [i for i, name in enumerate(BLOCK_SYMBOLS) if name in names and not box[i].single]
    if not axes:
        raise RuntimeError("an expression without block indices was left undecided")
    axis = max(axes, key=lambda i: box[i].hi - box[i].lo)
    r = box[axis]
    wanted = lcm(r.step, *(m for m in moduli))
    halves = min(2 * ((r.hi - r.lo) // wanted), _RESIDUES_EVER)  # two for each period
    if r.step < wanted <= r.step * max(_RESIDUES_MAX, halves) and r.hi - r.lo > wanted:
        parts = [strided(first, r.hi, wanted) for first in range(r.lo, r.lo + wanted, r.step)]
    else:
        count = (r.hi - r.lo) // r.step + 1
        half = r.lo + (count // 2) * r.step
        parts = [_tidy(r.lo, half - r.step, r.step), _tidy(half, r.hi, r.step)]
    return [(*box[:axis], part, *box[axis + 1 :]) for part in parts]


def _tidy(lo: int, hi: int, step: int) -> Range:
    return point(lo) if lo == hi else Range(lo, hi, step)
