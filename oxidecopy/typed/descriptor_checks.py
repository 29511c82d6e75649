"""The run-time twins of the copies' signatures: tile, token and operation must fit the map that a copy goes through."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oxidecopy.errors import AlignmentError, DTypeError, RecordError, ShapeError, TokenError
from oxidecopy.isa import limits, ops
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.swizzle import SWIZZLES
from oxidecopy.typed.reduce import ReduceOp
from oxidecopy.typed.refusal import described, refuse, require
from oxidecopy.typed.smem import SharedArray
from oxidecopy.typed.tokens import TxToken

if TYPE_CHECKING:
    from oxidecopy.isa.ops import TileRef
    from oxidecopy.program.program import MapParam
    from oxidecopy.typed.recorder import Recorder


def armed(recorder: Recorder, token: object, what: str) -> ops.BarrierRef:
    """The barrier of a token whose arrival announced bytes."""
    if not isinstance(token, TxToken):
        refuse(
            TokenError,
            "OX1006",
            f"{what} needs a token whose arrival announced bytes",
            got=described(token),
            required="the TxToken that `arrive_expect_tx` returned",
            fix="token = full.arrive_expect_tx(leader, tile.nbytes)",
        )
    token._use(what, recorder)
    return token._ref


def fitting(recorder: Recorder, param: MapParam, tile: object, what: str) -> TileRef:
    """The tile must have the map's element type, box and alignment."""
    made = require(tile, SharedArray, what, f"tile = cta.shared({param.name})")
    ref = made._ref(recorder)
    request = made._request
    own = f"use cta.shared({param.name})"
    if request.dtype != param.dtype:
        refuse(DTypeError, "OX1011", f"{what} and its tile have different element types", got=request.dtype, required=param.dtype, fix=own)
    if made.shape != param.layout.shape:
        required = f"{param.layout.shape}, the box of {param.name!r}"
        refuse(ShapeError, "OX1012", f"{what} and its tile have different boxes", got=str(made.shape), required=required, fix=own)
    need = max(limits.TENSOR_SMEM_ALIGN, SWIZZLES[param.swizzle].repeat_bytes)
    if request.align < need:
        refuse(
            AlignmentError,
            "OX1010",
            f"{what}: the tile is aligned too weakly",
            got=f"{request.align} bytes",
            required=f"{need} bytes for swizzle {param.swizzle} (PTX 5.5.7; measured)",
            fix=f"align=ox.A{need}",
        )
    request.adopt(param.swizzle)
    return ref


def reduction(op: object, dtype: str) -> str:
    """The name of an operation that the element type has."""
    made = require(op, ReduceOp, "`reduce`", "pass ox.reduce.add or another operation of ox.reduce")
    legal = DTYPES[dtype].reduce
    if made.name not in legal:
        names = ", ".join(f"ox.reduce.{n}" for n in ops.REDUCE.words if n in legal)
        refuse(
            DTypeError,
            "OX1016",
            f"{dtype} has no such reduction",
            got=f"ox.reduce.{made.name}",
            required=names or f"nothing: {dtype} has no reductions",
            fix="use an element type with this operation (PTX cp.reduce.async.bulk.tensor)",
        )
    return made.name


def whole_bytes(dtype: str) -> None:
    """Tiles of packed elements are not laid out yet."""
    bits = DTYPES[dtype].bits
    if bits % 8:
        fix = "carry the bytes as ox.u8"
        refuse(
            RecordError,
            "OX1049",
            f"shared tiles of packed {dtype} are not supported yet",
            got=f"{bits} bits",
            required="whole bytes",
            fix=fix,
        )
