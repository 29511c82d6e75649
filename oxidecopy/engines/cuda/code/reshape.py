"""`TransposeTile`, `ReduceTile` and `StencilTile` as records of the family "reshape"."""

from __future__ import annotations

import struct
from math import gcd, prod
from typing import TYPE_CHECKING, Final

from oxidecopy.engines.cuda.abi import RECORD_BYTES, DeviceOp, ElementForm, StencilWay
from oxidecopy.engines.cuda.code import refusals
from oxidecopy.engines.cuda.code.coordinates import magic_of
from oxidecopy.engines.cuda.code.image import Where
from oxidecopy.engines.cuda.code.nodes import Op
from oxidecopy.engines.cuda.code.swizzles import chunk_mask
from oxidecopy.engines.cuda.code.tile_maps import lanes_of, share_of
from oxidecopy.isa import limits, ops

if TYPE_CHECKING:
    from oxidecopy.engines.cuda.code.lower import AgentLowering

_FLIP: Final = struct.Struct("<3I4B4I")
_FOLD: Final = struct.Struct("<3I4B")
_STENCIL: Final = struct.Struct("<5I4B2I")
_TAP: Final = struct.Struct("<if")
_FORMS: Final = {"f32": ElementForm.BITS32, "f16": ElementForm.F16, "bf16": ElementForm.BF16}
_CHUNK: Final = 16  # bytes that no swizzle tears apart
_BLOCK: Final = 4  # elements of f32 in such a chunk
_BANKS: Final = 128  # bytes that shared memory moves at once
_SIDES: Final = {1: 8, 2: 8, 4: 4, 8: 2}  # elements of a block's side, by their bytes


def reshape_records(low: AgentLowering, op: ops.TransposeTile | ops.ReduceTile | ops.StencilTile, where: Where) -> list[Op]:
    """The record of an op, with what follows it; none for an agent that leaves it to the others."""
    if not low.shared.computes:
        low.refused.append(refusals.reshapes(where))
        return []
    share = lanes_of(low, limits.WARP)
    if share[0] == share[1]:
        return []
    operands, shares = ((0, low.tile(op.out)), (1, low.tile(op.source))), share_of(share)
    if isinstance(op, ops.TransposeTile):
        shifts, tail = _flip(low, op)
        return [Op(op=DeviceOp.TRANSPOSE_TILE, where=where, operands=operands, imms=(*shares, (4, shifts)), tail=tail)]
    if isinstance(op, ops.StencilTile):
        return [Op(op=DeviceOp.STENCIL_TILE, where=where, aux=len(op.taps), operands=operands, imms=shares, tail=_stencil(low, op))]
    how = ops.FOLDS.index(op.op) | op.axis << 1 | op.onto << 2
    return [Op(op=DeviceOp.REDUCE_TILE, where=where, aux=how, operands=operands, imms=shares, tail=_fold(low, op))]


def _flip(low: AgentLowering, op: ops.TransposeTile) -> tuple[int, bytes]:
    """Immediate 4 and `abi.FLIP`."""
    source, out = low.layout(op.source), low.layout(op.out)
    size, (rows, columns) = source.element_bytes, source.shape[-2:]
    side = _SIDES[size]
    if rows % side or columns % side or not all(_aligned(low, ref, side * size) for ref in (op.source, op.out)):
        side = 1
    high, wide = rows // side, columns // side
    tall_cut, wide_cut = (gcd(n, _BANKS // (side * size)) if side > 1 else 1 for n in (high, wide))
    across, down = wide // wide_cut, high // tall_cut
    (across_magic, across_shift), (down_magic, down_shift) = magic_of(across), magic_of(down)
    shifts = across_shift | down_shift << 8 | (tall_cut.bit_length() - 1) << 16 | (wide_cut.bit_length() - 1) << 24
    sizes = (prod(source.shape[:-2]) * high * wide, source.pitch_bytes, out.pitch_bytes)
    masks = (chunk_mask(source.swizzle), chunk_mask(out.swizzle), size.bit_length() - 1, side.bit_length() - 1)
    return shifts, _FLIP.pack(*sizes, *masks, across, across_magic, down, down_magic).ljust(RECORD_BYTES, b"\0")


def _fold(low: AgentLowering, op: ops.ReduceTile) -> bytes:
    source, out = low.layout(op.source), low.layout(op.out)
    rows, columns = source.shape
    form = _FORMS[low.program.tiles[op.source.tile].dtype]
    masks = (chunk_mask(source.swizzle), chunk_mask(out.swizzle), form, int(_aligned(low, op.source, _CHUNK)))
    return _FOLD.pack(rows, columns, source.pitch_bytes, *masks).ljust(RECORD_BYTES, b"\0")


def _stencil(low: AgentLowering, op: ops.StencilTile) -> bytes:
    """`abi.STENCIL`, and a `abi.TAP` for each tap."""
    source, out = low.layout(op.source), low.layout(op.out)
    around = ops.margin(source.shape, out.shape)
    assert around is not None  # the generic check has seen it
    start = around[0] * source.pitch_bytes + around[1] * source.element_bytes
    masks = chunk_mask(source.swizzle), chunk_mask(out.swizzle)
    chunks = _aligned(low, op.source, _CHUNK) and _aligned(low, op.out, _CHUNK) and start % _CHUNK == 0 and out.shape[1] % _BLOCK == 0
    way, order = StencilWay.WORDS, list[int]()
    if chunks and not any(masks) and min(around) > 0 and all(max(abs(tap.row), abs(tap.column)) <= 1 for tap in op.taps):
        way, order = StencilWay.NEAR, [3 * (tap.row + 1) + tap.column + 1 for tap in op.taps]
    elif chunks and all(tap.column % _BLOCK == 0 for tap in op.taps):
        way = StencilWay.CHUNKS
    places = sum(1 << place for place in order) if order == sorted(set(order)) else 0
    magic, shift = magic_of(out.shape[1] // (1 if way is StencilWay.WORDS else _BLOCK))
    head = _STENCIL.pack(*out.shape, source.pitch_bytes, out.pitch_bytes, start, *masks, way, shift, magic, places)
    taps = [_TAP.pack(tap.row * source.pitch_bytes + tap.column * source.element_bytes, tap.weight) for tap in op.taps]
    return head.ljust(RECORD_BYTES, b"\0") + b"".join(taps).ljust(-(-len(taps) // 4) * RECORD_BYTES, b"\0")


def _aligned(low: AgentLowering, ref: ops.TileRef, chunk: int) -> bool:
    """True when every `chunk` bytes of a row lie at a multiple of them, in all stages and parts."""
    decl, layout = low.program.tiles[ref.tile], low.layout(ref)
    steps = [decl.offset, layout.pitch_bytes, decl.stage_bytes if decl.stages > 1 else 0]
    return not any(n % chunk for n in steps)
