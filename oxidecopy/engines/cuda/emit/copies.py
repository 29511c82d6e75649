"""Statements of copies: one call of the PTX function of its form each."""

from __future__ import annotations

from typing import Final, assert_never

from oxidecopy.engines.cuda.emit.context import Context
from oxidecopy.engines.cuda.emit.maps import slot_text
from oxidecopy.isa import ops
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.expr import ZERO, Expr
from oxidecopy.program.tensor_map import TILE

_BITS: Final = ("bit_and", "bit_or", "bit_xor")
_ATOM: Final = 8


_PTX_WIDE: Final = {"im2col_w": "im2col::w", "im2col_w128": "im2col::w::128"}


def copy_text(ctx: Context, op: ops.Copy) -> str:
    """The statement."""
    match op:
        case ops.TensorG2S() | ops.TensorG2SMulticast() | ops.TensorGather4():
            return _load(ctx, op)
        case ops.TensorS2G() | ops.TensorReduce() | ops.TensorScatter4():
            return _store(ctx, op)
        case ops.TensorPrefetch():
            rank, mode = len(op.coords), _mode(ctx, op, "im2col")
            name = ctx.ptx.prefetch(rank, offsets=len(op.offsets), hint=op.hint is not None, mode=mode)
            return _call(name, _source(ctx, op.map), *_coords(ctx, op.coords), *_coords(ctx, op.offsets), *_policy(ctx, op.hint))
        case ops.BulkG2S() | ops.BulkG2SMulticast():
            name = ctx.ptx.bulk_load(multicast=isinstance(op, ops.BulkG2SMulticast), hint=op.hint is not None)
            run = _run(ctx, op, const=True)
            return _call(name, _tile(ctx, op.tile), run, str(op.nbytes), ctx.barrier(op.bar), *_mask(ctx, op), *_policy(ctx, op.hint))
        case ops.BulkS2G() | ops.BulkReduce():
            which, kind = (op.op, _kind(ctx, op.op, op.tile)) if isinstance(op, ops.BulkReduce) else ("", "")
            name = ctx.ptx.bulk_store(which, kind, hint=op.hint is not None)
            return _call(name, _run(ctx, op, const=False), _tile(ctx, op.tile), str(op.nbytes), *_policy(ctx, op.hint))
        case ops.BulkPrefetch():
            return _call(ctx.ptx.bulk_prefetch(hint=op.hint is not None), _run(ctx, op, const=True), str(op.nbytes), *_policy(ctx, op.hint))
        case ops.BulkS2S() | ops.BulkReduceS2S():
            which, kind = (op.op, _kind(ctx, op.op, op.tile)) if isinstance(op, ops.BulkReduceS2S) else ("", "")
            there = [_there(ctx, place, op) for place in (_tile(ctx, op.into), ctx.barrier(op.bar))]
            return _call(ctx.ptx.bulk_send(which, kind), there[0], _tile(ctx, op.tile), str(op.nbytes), there[1])
        case _:
            assert_never(op)


def _load(ctx: Context, op: ops.TensorLoad) -> str:
    gathers = isinstance(op, ops.TensorGather4)
    offsets = () if isinstance(op, ops.TensorGather4) else op.offsets
    mode = "tile::gather4" if gathers else _mode(ctx, op, "im2col")
    rank = 2 if gathers else len(op.coords)
    many = isinstance(op, ops.TensorG2SMulticast)
    name = ctx.ptx.load(rank, multicast=many, offsets=len(offsets), hint=op.hint is not None, mode=mode)
    coords = _gathered(ctx, op.coords) if gathers else _coords(ctx, op.coords)
    more = [*_coords(ctx, offsets), *_mask(ctx, op), *_policy(ctx, op.hint)]
    return _call(name, _tile(ctx, op.tile), _source(ctx, op.map), *coords, ctx.barrier(op.bar), *more)


def _store(ctx: Context, op: ops.TensorStore) -> str:
    scatters = isinstance(op, ops.TensorScatter4)
    mode = "tile::scatter4" if scatters else _mode(ctx, op, "im2col_no_offs")
    which = op.op if isinstance(op, ops.TensorReduce) else ""
    name = ctx.ptx.store(2 if scatters else len(op.coords), which, hint=op.hint is not None, mode=mode)
    coords = _gathered(ctx, op.coords) if scatters else _coords(ctx, op.coords)
    return _call(name, _source(ctx, op.map), *coords, _tile(ctx, op.tile), *_policy(ctx, op.hint))


def _call(name: str, *arguments: str) -> str:
    return f"{name}({', '.join(arguments)});"


def _mode(ctx: Context, op: ops.TensorCopy | ops.TensorPrefetch, im2col: str) -> str:
    mode = ctx.program.maps[op.map.name].mode
    return _PTX_WIDE.get(mode, TILE if mode == TILE else im2col)


def _source(ctx: Context, ref: ops.MapRef) -> str:
    if ref.slot is not None:
        return slot_text(ctx, ref.slot)
    source = f"&{ctx.params[ref.name]}"
    if ref.index is None:
        return source
    # What the host has written is acquired by each block (PTX 9.7.13.4); in a kernel's parameter it need not be.
    return f"{ctx.ptx.use('tensormap_acquired')}({source}[{ctx.exprs.text(ref.index)}])"


def _coords(ctx: Context, coords: tuple[Expr, ...]) -> list[str]:
    """Innermost first."""
    return [ctx.exprs.narrow(c) for c in reversed(coords)]


def _gathered(ctx: Context, coords: tuple[Expr, ...]) -> list[str]:
    """The column, then the four rows."""
    return [ctx.exprs.narrow(c) for c in (coords[-1], *coords[:-1])]


def _tile(ctx: Context, ref: ops.TileRef) -> str:
    return f"smem + {ctx.tile(ref)}"


def _mask(ctx: Context, op: ops.Copy) -> list[str]:
    return [f"(u16)({ctx.exprs.text(op.cta_mask)})"] if isinstance(op, ops.Multicast) else []


def _policy(ctx: Context, hint: ops.CacheHint | None) -> list[str]:
    return [] if hint is None else [ctx.ptx.policy(hint)]


def _there(ctx: Context, place: str, op: ops.Send) -> str:
    """The same place in the other CTA."""
    return f"{ctx.ptx.use('mapa')}({place}, {ctx.exprs.narrow(op.rank)})"


def _run(ctx: Context, op: ops.BulkCopy | ops.BulkPrefetch, *, const: bool) -> str:
    """The address of a run's first byte."""
    name = op.array.name
    size = DTYPES[ctx.arrays[name].dtype].nbytes
    named = ctx.strides_of(name)
    parts = [f"({'const ' if const else ''}char*){ctx.params[name]}"]
    for axis, e in enumerate(op.coords):
        if e != ZERO:
            stride = ctx.array_stride(name, axis) if axis in named else str(size)
            parts.append(f"(i64){ctx.exprs.write(e).at(_ATOM)} * {stride}")
    return " + ".join(parts)


def _kind(ctx: Context, op: str, ref: ops.TileRef) -> str:
    """The PTX type of a plain reduction."""
    row = DTYPES[ctx.program.tiles[ref.tile].dtype]
    return f"b{row.bits}" if op in _BITS else {"tf32": "f32"}.get(row.ptx, row.ptx)
