"""The run-time twins of a descriptor's signatures: tile, token and operation must fit the map that a copy goes through."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn

from oxidecopy.errors import AlignmentError, DescriptorError, DTypeError, RecordError, ScopeError, ShapeError, TokenError
from oxidecopy.isa import limits, ops
from oxidecopy.isa.dtypes import DTYPES, VALUE_A_BYTE
from oxidecopy.isa.expr import Const
from oxidecopy.isa.im2col import HALO_MAX, OFFSET_BITS, WIDE_OFFSET_MAX, wide_rows
from oxidecopy.isa.swizzle import EVERY_SWIZZLE
from oxidecopy.program.tensor_map import SLICE_BYTES, TILE
from oxidecopy.typed.geometry import AnySwizzle
from oxidecopy.typed.global_array import GlobalArray
from oxidecopy.typed.handles import RecordedArray, borrowing
from oxidecopy.typed.reduce import ReduceOp
from oxidecopy.typed.refusal import described, refuse, require, whole
from oxidecopy.typed.smem import SharedArray
from oxidecopy.typed.symbolic import refuse_foreign
from oxidecopy.typed.tiled_map import Source
from oxidecopy.typed.tokens import TxToken

if TYPE_CHECKING:
    from oxidecopy.isa.expr import Expr
    from oxidecopy.isa.ops import TileRef
    from oxidecopy.program.program import ArrayParam, MapParam
    from oxidecopy.typed.recorder import Recorder
    from oxidecopy.typed.symbolic import Idx

GROUP: Final = 16  # packed elements that lie together (PTX 5.5.1.1)
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


def fitting(recorder: Recorder, param: MapParam, tile: object, what: str, *, store: bool = False, rows: int | None = None) -> TileRef:
    """The tile must have the map's element type, box and alignment; `rows` are those of a wide im2col copy, its halo included."""
    shape = param.layout.shape if rows is None else (rows, param.layout.shape[-1])
    return _fitting(recorder, param, tile, shape, what, store=store)


def four_rows(recorder: Recorder, param: MapParam, tile: object, what: str, *, store: bool = False) -> TileRef:
    """The tile of a gather or scatter: four boxes of one row."""
    box = param.box_dim
    if param.rank != len(box) or box[:-1] != (1,):
        refuse(
            ShapeError,
            "OX1162",
            f"{what} takes rows one by one: the descriptor's box must be one",
            got=f"a box of {box}",
            required="rank 2, a box of (1, n)",
            fix="make a descriptor with `box=(1, n)`",
        )
    return _fitting(recorder, param, tile, (4, param.layout.shape[-1]), what, store=store)


def gathered(recorder: Recorder, rows: object, column: Idx, what: str) -> tuple[Expr, ...]:
    """Four rows and a column as expressions."""
    if not isinstance(rows, tuple) or len(rows) != 4:  # gather4
        got = f"{len(rows)} rows" if isinstance(rows, tuple) else described(rows)
        refuse(ShapeError, "OX1013", f"{what} takes four rows", got=got, required="a tuple of 4", fix="rows=(a, b, c, d)")
    return tuple([recorder.index(c, f"a row or the column of {what}") for c in (*rows, column)])


def picked(recorder: Recorder, param: MapParam, offsets: object, what: str) -> tuple[Expr, ...]:
    """The offsets of an im2col copy, outermost first: plain ones are checked now, the others by the verifier."""
    n = param.rank - 2
    if not isinstance(offsets, tuple) or len(offsets) != n:
        got = f"{len(offsets)} offsets" if isinstance(offsets, tuple) else described(offsets)
        fix = "offsets are elements, outermost first: (h, w) for an array of (n, h, w, c)"
        refuse(ShapeError, "OX1164", f"{what} adds offsets in {n} dimensions", got=got, required=f"a tuple of {n}", fix=fix)
    top = (1 << OFFSET_BITS[n]) - 1
    fix = "an offset is that of a filter tap: its number times the dilation"
    return tuple([recorder.below(o, top + 1, f"an offset of {what}", ShapeError, "OX1164", fix) for o in offsets])


def widened(recorder: Recorder, param: MapParam, operands: tuple[Idx, object], what: str) -> tuple[Expr, ...]:
    """Offset and halo of a wide im2col copy."""
    offset, halo = operands
    fix = "an offset is that of a filter tap along w"
    at = recorder.below(offset, WIDE_OFFSET_MAX + 1, f"the offset of {what}", ShapeError, "OX1164", fix)
    return (at, Const(_halo(param, halo, what)))


def halo_rows(param: MapParam, halo: object, what: str) -> int:
    """Rows of the tile of a wide im2col copy."""
    return wide_rows(param.mode, param.box_dim[0], _halo(param, halo, what))


def _halo(param: MapParam, halo: object, what: str) -> int:
    """It says how large a tile is: a plain number."""
    pixels, most = whole(halo), HALO_MAX[param.mode]
    if pixels is None or not 0 <= pixels <= most:
        required, fix = f"a plain int from 0 to {most}", "a halo is the taps of the filter along w, less one"
        refuse(ShapeError, "OX1166", f"the halo of {what} is no number of pixels", got=described(halo), required=required, fix=fix)
    return pixels


def _fitting(recorder: Recorder, param: MapParam, tile: object, shape: tuple[int, ...], what: str, *, store: bool) -> TileRef:
    made = require(tile, SharedArray, what, f"tile = cta.shared({param.name})")
    ref = made._ref(recorder)
    request = made._request
    wanted = "u8" if store and param.dtype == VALUE_A_BYTE else param.dtype  # its stores take one value from each byte
    own = f"use cta.shared({param.name})" if (shape, wanted) == (param.layout.shape, param.dtype) else ""
    own = own or f"use cta.shared(ox.{wanted}, {_elements(wanted, shape)}, align=ox.A1024)"
    if (made._packed or request.dtype) != wanted:
        got = made._packed or request.dtype
        refuse(DTypeError, "OX1011", f"{what} and its tile have different element types", got=got, required=wanted, fix=own)
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
    if made.shape != (extents := _elements(wanted, shape)):
        own_words = "the box" if shape == param.layout.shape else "pixels and halo" if param.mode != TILE else "four rows"
        required = f"{extents}, {own_words} of {param.name!r}"
        refuse(ShapeError, "OX1012", f"{what} and its tile have different boxes", got=str(made.shape), required=required, fix=own)
    request.adopt(param.swizzle)
    return ref


def _elements(dtype: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """What lies in shared memory, in elements."""
    info = DTYPES[dtype]
    return (*shape[:-1], shape[-1] * GROUP // info.group_bytes) if info.packed else shape


def tile_of(tile: object, what: str) -> SharedArray[Any, Any, Any]:
    """A tile of elements that plain accesses and plain bulk copies know."""
    made = require(tile, SharedArray, what, "pass what `cta.shared` gave; of an array of stages, one element: `tiles[i]`")
    if made._packed:
        refuse(
            DTypeError,
            "OX1049",
            f"{what} does not know packed {made._packed}",
            got=f"a tile of {made._packed}",
            required="elements of whole bytes",
            fix="use its bytes: `tile.bytes`",
        )
    return made


def array_of(recorder: Recorder, array: object, what: str) -> ArrayParam:
    """The parameter that an array of this recording stands for."""
    if isinstance(array, GlobalArray):
        refuse_captured(f"{what} of an array")
    if not isinstance(array, RecordedArray):
        fix = "pass an array that is a parameter of the pipeline"
        refuse(RecordError, "OX1009", f"{what} takes a GlobalArray", got=described(array), required="GlobalArray", fix=fix)
    if array._recorder is not recorder:
        refuse_foreign("an array")
    return array._param


def same_type(what: str, got: str, required: str) -> None:
    """Copies and stores do not convert."""
    if got != required:
        refuse(DTypeError, "OX1011", f"{what} has another element type", got=got, required=required, fix=f"make it of ox.{required}")


def reduction(op: object, dtype: str, legal: frozenset[str] | None = None, source: str = "cp.reduce.async.bulk.tensor") -> str:
    """The name of an operation that the element type has; `legal` are those of another instruction than the tensor copies'."""
    made = require(op, ReduceOp, "`reduce`", "pass ox.reduce.add or another operation of ox.reduce")
    legal = DTYPES[dtype].reduce if legal is None else legal
    if made.name not in legal:
        names = ", ".join(f"ox.reduce.{n}" for n in ops.REDUCE.words if n in legal)
        refuse(
            DTypeError,
            "OX1016",
            f"{dtype} has no such reduction",
            got=f"ox.reduce.{made.name}",
            required=names or f"nothing: {dtype} has no reductions",
            fix=f"use an element type with this operation (PTX {source})",
        )
    return made.name


def in_shared(dtype: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The extents of a tile as it lies in shared memory: rows of packed elements are whole groups of 16, in bytes."""
    info = DTYPES[dtype]
    if not info.packed:
        return shape
    if shape[-1] % GROUP:
        what, fix = f"rows of a tile of {dtype} are whole groups of elements", f"{-(-shape[-1] // GROUP) * GROUP} elements"
        refuse(ShapeError, "OX1057", what, got=f"{shape[-1]} elements", required=f"a multiple of {GROUP}", fix=fix)
    return (*shape[:-1], info.shared_bytes(shape[-1]))


def stored(dtype: str, what: str) -> None:
    """The type is one that tensor copies store."""
    if not DTYPES[dtype].stored:
        refuse(
            DTypeError,
            "OX1165",
            f"{what}: {dtype} is a type to load",
            got=dtype,
            required="a type that tensor copies store: in shared memory this one has gaps (PTX, restrictions on tensor copies)",
            fix="store through a descriptor of ox.u4x16_align8b",
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
        recorded = isinstance(a, RecordedArray)
        refuse(
            DTypeError,
            "OX1046",
            "a descriptor is made of a device array",
            got=f"{described(a)}, a parameter of a recorded pipeline" if recorded else described(a),
            required="a GlobalArray of the host" if recorded else "a GlobalArray",
            fix="make it before the launch, and pass it" if recorded else f"use `{borrowing(a) or 'dev.array(x)'}`",
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
    if of.dtype.packed:
        refuse(
            DescriptorError,
            "OX2028",
            f"{of} is not interleaved",
            got=f"{of.dtype.name}, whose elements are parts of bytes",
            required="elements of whole bytes",
            fix="make the map over the bytes: ox.TmaDescriptor.interleaved(a.bytes, ...)",
        )
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
    return of._replace(shape=of.shape[:-1], strides_bytes=of.strides_bytes[:-1], interleave=widths[width])


def wide_mode(mode: object) -> str:
    """A mode of wide im2col copies as a map calls it."""
    if mode not in ("w", "w128"):
        fix = 'mode="w"'
        refuse(DescriptorError, "OX2050", "`mode` of a wide map is unknown", got=described(mode), required='"w" or "w128"', fix=fix)
    return f"im2col_{mode}"
