"""Cuts a box of cluster indices in two or more where an expression is not decided over it.

Where few enough indices are left they are told apart by what the expression makes of them: those for which all that hangs on the block
alone has one value stay together. So blocks with one trip count are one box, and a condition is not asked again in halves of halves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from math import lcm
from typing import Final

from oxidecopy.isa import expr
from oxidecopy.isa.expr import Cond, Const, Expr, SymKind, evaluate, holds, symbols
from oxidecopy.program.program import BLOCK_SYMBOLS
from oxidecopy.verify.affine import Range, point, strided

_RESIDUES_MAX: Final = 64  # a cut by remainder may always give that many boxes; more only where halves would give more still
_RESIDUES_EVER: Final = 2048
_TOLD_APART: Final = 4096  # indices that are looked at one by one
_CLASSES_MAX: Final = 64  # boxes that this may give


def split(
    box: tuple[Range, ...], what: Expr | Cond, moduli: Iterable[int], cluster: tuple[int, int, int] = (1, 1, 1)
) -> list[tuple[Range, ...]]:
    """Boxes that together are `box`: by value, else by remainder where there is a modulus that the box does not keep yet, else halves."""
    names = {s.name for s in symbols(what)}
    axes = [i for i, name in enumerate(BLOCK_SYMBOLS) if name in names and not box[i].single]
    if not axes:
        raise RuntimeError("an expression without block indices was left undecided")
    axis = max(axes, key=lambda i: box[i].hi - box[i].lo)
    try:
        parts = _by_value(box, axis, what, cluster) if len(axes) == 1 else []
    except ZeroDivisionError:  # in a part that nobody may come to
        parts = []
    if len(parts) < 2:
        parts = _by_remainder(box[axis], moduli)
    return [(*box[:axis], part, *box[axis + 1 :]) for part in parts]


def _by_remainder(r: Range, moduli: Iterable[int]) -> list[Range]:
    wanted = lcm(r.step, *(m for m in moduli))
    halves = min(2 * ((r.hi - r.lo) // wanted), _RESIDUES_EVER)  # two for each period
    if r.step < wanted <= r.step * max(_RESIDUES_MAX, halves) and r.hi - r.lo > wanted:
        return [strided(first, r.hi, wanted) for first in range(r.lo, r.lo + wanted, r.step)]
    count = (r.hi - r.lo) // r.step + 1
    half = r.lo + (count // 2) * r.step
    return [strided(r.lo, half - r.step, r.step), strided(half, r.hi, r.step)]


def _by_value(box: tuple[Range, ...], axis: int, what: Expr | Cond, cluster: tuple[int, int, int]) -> list[Range]:
    """Indices along `axis` by the values of all in `what` that hangs on blocks alone; nothing where they are, or would be, too many."""
    r, size = box[axis], cluster[axis]
    kept = list(_of_blocks(what))
    if (r.hi - r.lo) // r.step >= _TOLD_APART or not kept:
        return []
    # The CTAs of a cluster have indices of their own, along the other axes too.
    envs = [
        {name: box[i].lo * cluster[i] + at for i, (name, at) in enumerate(zip(BLOCK_SYMBOLS, place, strict=True))}
        for place in _places(cluster)
    ]
    classes: dict[tuple[int, ...], list[int]] = {}
    for index in range(r.lo, r.hi + 1, r.step):
        moved = (index - r.lo) * size
        key = tuple([_value(e, {**env, BLOCK_SYMBOLS[axis]: env[BLOCK_SYMBOLS[axis]] + moved}) for env in envs for e in kept])
        classes.setdefault(key, []).append(index)
        if len(classes) > _CLASSES_MAX:
            return []
    parts = [part for members in classes.values() for part in _progressions(members)]
    return parts if len(parts) <= _CLASSES_MAX else []


def _places(cluster: tuple[int, int, int]) -> Iterator[tuple[int, int, int]]:
    x, y, z = cluster
    return ((i, j, k) for k in range(z) for j in range(y) for i in range(x))


def _of_blocks(node: Expr | Cond) -> Iterator[Expr | Cond]:
    """The largest parts in which there is nothing but block indices."""
    kinds = {s.kind for s in symbols(node)}
    if kinds == {SymKind.BLOCK} and not _asks(node):
        yield node
    elif isinstance(node, expr.Not):
        yield from _of_blocks(node.a)
    elif kinds and not isinstance(node, expr.Sym | Const | expr.Bool | expr.Answer):
        yield from _of_blocks(node.a)
        yield from _of_blocks(node.b)


def _asks(node: Expr | Cond) -> bool:
    """True when the answer of a test is in it."""
    if isinstance(node, expr.Not):
        return _asks(node.a)
    return isinstance(node, expr.Answer) or (isinstance(node, expr.And | expr.Or) and (_asks(node.a) or _asks(node.b)))


def _value(node: Expr | Cond, env: dict[str, int]) -> int:
    return evaluate(node, env) if isinstance(node, Expr) else int(holds(node, env, {}))


def _progressions(members: list[int]) -> list[Range]:
    """Ascending numbers as one range where they are evenly apart, else as runs."""
    steps = {b - a for a, b in pairwise(members)}
    if len(steps) <= 1:
        return [strided(members[0], members[-1], max(steps, default=0))]
    step, runs = min(steps), [[members[0]]]
    for a, b in pairwise(members):
        if b - a == step:
            runs[-1].append(b)
        else:
            runs.append([b])
    return [strided(run[0], run[-1], step) if len(run) > 1 else point(run[0]) for run in runs]
