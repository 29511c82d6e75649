"""Extents of a descriptor in a pipeline: its own symbols, or for an entry chosen at run time, an expression over all entries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oxidecopy.isa import expr
from oxidecopy.isa.expr import ONE, ZERO, Const, Expr, Sym, SymKind
from oxidecopy.program.program import entry_name, extent_name
from oxidecopy.typed.symbolic import SymIdx, extents

if TYPE_CHECKING:
    from oxidecopy.program.program import MapParam
    from oxidecopy.typed.recorder import Recorder


def extents_of(recorder: Recorder, param: MapParam, index: Expr | None) -> tuple[SymIdx, ...]:
    """The extents of a map, or of entry `index` of a table."""
    if index is None:
        return extents(recorder, param.name, param.rank)
    if isinstance(index, Const):
        return extents(recorder, entry_name(param.name, index.value), param.rank)
    chosen = [_is(index, k) for k in range(param.entries or 0)]
    return tuple(SymIdx(_chosen(param.name, chosen, axis), recorder) for axis in range(param.rank))


def _is(index: Expr, k: int) -> Expr:
    """1 where the index is `k`, else 0. There is no comparison among integers, but there are minimum and maximum."""
    above, below = expr.add(index, Const(1 - k)), expr.sub(Const(k + 1), index)
    return expr.maximum(ZERO, expr.minimum(above, below))


def _chosen(table: str, chosen: list[Expr], axis: int) -> Expr:
    """The sum of all entries' extents, each times 1 or 0; by halves, as a chain would be nested too deeply."""
    terms = [expr.mul(here, Sym(extent_name(entry_name(table, k), axis), SymKind.EXTENT)) for k, here in enumerate(chosen)]
    while len(terms) > 1:
        pairs = list(zip(terms[::2], terms[1::2], strict=False))
        terms = [expr.add(a, b) for a, b in pairs] + terms[2 * len(pairs) :]
    return terms[0] if terms else ONE
