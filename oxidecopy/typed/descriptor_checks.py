"""The run-time twins of a descriptor's signatures: tile, token and operation must fit the map that a copy goes through."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NoReturn

from oxidecopy.errors import AlignmentError, DescriptorError, DTypeError, RecordError, ScopeError, ShapeError, TokenError
from oxidecopy.isa import limits, ops
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.swizzle import EVERY_SWIZZLE
from oxidecopy.program.tensor_map import SLICE_BYTES
from oxidecopy.typed.geometry import AnySwizzle
from oxidecopy.typed.global_array import GlobalArray
from oxidecopy.typed.reduce import ReduceOp
from oxidecopy.typed.refusal import described, refuse, require
from oxidecopy.typed.smem import SharedArray
from oxidecopy.typed.tiled_map import Source
from oxidecopy.typed.tokens import TxToken

if TYPE_CHECKING:
    from oxidecopy.isa.ops import TileRef
    from oxidecopy.program.program import MapParam
    from oxidecopy.typed.recorder import Recorder

_INTERLEAVED_RANK: Final = 4  # of the smallest array: a map has rank 3 at least, and the channels are no dimension of it


def armed(token: object, what: str) -> TxToken[Any, Any]:
    """A token whose arrival announced bytes."""
    if not isinstance(token, TxToken):
        refuse(
            TokenError,
            "OX1006",
            f"{what} needs a token whose arrival announced bytes",
            got=described(token),
            required="the TxToken that `arrive_expect_tx` returned",
            fix="token = full.arrive_expect_tx(leader, tile.nbytes)",
        )
    return token


def fitting(recorder: Recorder, param: MapParam, tile: object, what: str) -> TileRef:
    """The tile must have the map's element type, box and alignment."""
    made = require(tile, SharedArray, what, f"tile = cta.shared({param.name})")
    ref = made._ref(recorder)
    request = made._request
    own = f"use cta.shared({param.name})"
    if request.dtype != param.dtype:
        refuse(DTypeError, "OX1011", f"{what} and its tile have different element types", got=request.dtype, required=param.dtype, fix=own)
    need = max(limits.TENSOR_SMEM_ALIGN, EVERY_SWIZZLE[param.swizzle].repeat_bytes)
    if request.align < need:
        refuse(
            AlignmentError,
            "OX1010",
            f"{what}: the tile is aligned too weakly",
            got=f"{request.align} bytes",
            required=f"{need} bytes for swizzle {param.swizzle} (PTX 5.5.7; measured)",
            fix=f"align=ox.A{need}",
        )
    if made.shape != param.layout.shape:
        required = f"{param.layout.shape}, the box of {param.name!r}"
        refuse(ShapeError, "OX1012", f"{what} and its tile have different boxes", got=str(made.shape), required=required, fix=own)
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


def refuse_captured(what: str) -> NoReturn:
    """Refuses a host object where a parameter of the pipeline is needed."""
    refuse(
        ScopeError,
        "OX1059",
        f"{what} that is no parameter of a pipeline under recording",
        got="an object of the host",
        required="a parameter of the pipeline function",
        fix="declare it as a parameter of an `@ox.pipeline` function, and pass it at the launch",
    )


def device_array(a: object) -> GlobalArray[Any, Any]:
    """What a map is made over."""
    if not isinstance(a, GlobalArray):
        refuse(
            DTypeError,
            "OX1046",
            "a descriptor is made of a device array",
            got=described(a),
            required="a GlobalArray",
            fix="use `dev.array(x)`",
        )
    return a


def swizzle_mode(mode: object) -> type[AnySwizzle]:
    """A swizzle mode."""
    if not (isinstance(mode, type) and issubclass(mode, AnySwizzle) and "info" in mode.__dict__):
        required = "ox.SwizzleNone, ox.Swizzle32B, ox.Swizzle64B or ox.Swizzle128B"
        refuse(DTypeError, "OX1047", "`swizzle` is no swizzle mode", got=described(mode), required=required, fix="swizzle=ox.Swizzle128B")
    return mode


def source_of(array: GlobalArray[Any, Any]) -> Source:
    """What a map knows of an array."""
    address = array.buffer.address + array.offset_bytes
    return Source(dtype=array.dtype.info, shape=array.shape, strides_bytes=array.strides_bytes, address=address)


def slices_of(array: GlobalArray[Any, Any]) -> Source:
    """The array as an interleaved map counts it: its innermost dimension is one pixel of a slice, which the map takes as a unit."""
    of = source_of(array)
    size, widths = of.dtype.bits // 8, {width: name for name, width in SLICE_BYTES.items() if width}
    width = of.shape[-1] * size
    if len(of.shape) < _INTERLEAVED_RANK or width not in widths or of.strides_bytes[-1] != size:
        refuse(
            DescriptorError,
            "OX2028",
            f"{of} is not interleaved",
            got=f"{of.shape[-1]} x {size} bytes innermost, {of.strides_bytes[-1]} bytes apart",
            required="(batch, slices, [h,] w, channels) with dense channels of 16 or 32 bytes together",
            fix=f"split the channels: x.reshape(n, h, w, c // {16 // size}, {16 // size}).transpose(0, 3, 1, 2, 4), made contiguous",
        )
    return replace(of, shape=of.shape[:-1], strides_bytes=of.strides_bytes[:-1], interleave=widths[width])


def wide_mode(mode: object) -> str:
    """A mode of wide im2col copies as a map calls it."""
    if mode not in ("w", "w128"):
        fix = 'mode="w"'
        refuse(DescriptorError, "OX2050", "`mode` of a wide map is unknown", got=described(mode), required='"w" or "w128"', fix=fix)
    return f"im2col_{mode}"
