"""Replaces symbols in ops, whatever their operands: generic over the op table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from oxidecopy.isa.expr import Add, And, Cmp, Expr, FloorDiv, Max, Min, Mod, Mul, Not, Or, Sym, substitute, substitute_cond
from oxidecopy.isa.ops import BarrierRef, Instr, MapRef, Part, TileRef

_EXPRS = (Sym, Add, Mul, FloorDiv, Mod, Min, Max)
_CONDS = (Cmp, And, Or, Not)


def rewrite(op: Instr, values: Mapping[str, Expr]) -> Instr:
    """`op` with symbols replaced in every operand."""
    changed: dict[str, Any] = {}
    for f in fields(op):
        old = getattr(op, f.name)
        new = _operand(old, values)
        if new is not old:
            changed[f.name] = new
    return replace(op, **changed) if changed else op


def _operand(value: Any, values: Mapping[str, Expr]) -> Any:
    """One operand; those without expressions come back as they are."""
    if isinstance(value, _EXPRS):
        return substitute(value, values)
    if isinstance(value, _CONDS):
        return substitute_cond(value, values)
    if isinstance(value, BarrierRef):
        return BarrierRef(value.barrier, substitute(value.index, values))
    if isinstance(value, MapRef):
        return replace(value, index=substitute(value.index, values)) if value.index is not None else value
    if isinstance(value, TileRef):
        part = Part(substitute(value.part.rank, values), value.part.of) if value.part is not None else None
        return TileRef(value.tile, substitute(value.index, values), part)
    if isinstance(value, tuple) and any(isinstance(v, (*_EXPRS, TileRef)) for v in value):
        return tuple(_operand(v, values) for v in value)
    return value
