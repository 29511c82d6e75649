"""Replaces symbols in ops, whatever their operands: generic over the op table."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from oxidecopy.isa.expr import Add, And, Cmp, FloorDiv, Max, Min, Mod, Mul, Not, Or, Sym
from oxidecopy.isa.ops import BarrierRef, Instr, MapRef, Part, TileRef
from oxidecopy.isa.rewriter import Rewriter

_EXPRS = (Sym, Add, Mul, FloorDiv, Mod, Min, Max)
_CONDS = (Cmp, And, Or, Not)


def rewrite(op: Instr, known: Rewriter) -> Instr:
    """`op` with symbols replaced in every operand."""
    changed: dict[str, Any] = {}
    for f in fields(op):
        old = getattr(op, f.name)
        new = _operand(old, known)
        if new is not old:
            changed[f.name] = new
    return replace(op, **changed) if changed else op


def _operand(value: Any, known: Rewriter) -> Any:
    """One operand; those without expressions come back as they are."""
    if isinstance(value, _EXPRS):
        return known.expr(value)
    if isinstance(value, _CONDS):
        return known.cond(value)
    if isinstance(value, BarrierRef | MapRef):
        if value.index is None or (index := known.expr(value.index)) is value.index:
            return value
        return replace(value, index=index)
    if isinstance(value, TileRef):
        part = Part(known.expr(value.part.rank), value.part.of) if value.part is not None else None
        return TileRef(value.tile, known.expr(value.index), part)
    if isinstance(value, tuple) and any(isinstance(v, (*_EXPRS, TileRef)) for v in value):
        return tuple(_operand(v, known) for v in value)
    return value
