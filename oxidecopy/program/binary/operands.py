"""Operands by their kind in the op table: one row per `Kind`, immediates and choices by their own data."""

from __future__ import annotations

from typing import Final

from oxidecopy.isa import ops
from oxidecopy.isa.elem import Elem
from oxidecopy.isa.expr import Cond, Expr
from oxidecopy.isa.ops import (
    ArrayRef,
    BarrierRef,
    CacheHint,
    Choice,
    Imm,
    Kind,
    MapRef,
    OperandKind,
    ScalarRef,
    SlotRef,
    Tap,
    ThreadSet,
    TileRef,
)
from oxidecopy.program.binary.codecs import Codec, codec_of, record, word
from oxidecopy.program.binary.stream import Reader, Writer

FORMS: Final[dict[Kind, Codec]] = {
    ops.BARRIER: codec_of(BarrierRef),
    ops.TILE: codec_of(TileRef),
    ops.MAP: codec_of(MapRef),
    ops.ARRAY: codec_of(ArrayRef),
    ops.EXPR: codec_of(Expr),
    ops.COND: codec_of(Cond),
    ops.COORDS: codec_of(tuple[Expr, ...]),
    ops.GATHER: codec_of(tuple[Expr, ...]),
    ops.OFFSETS: codec_of(tuple[Expr, ...]),
    ops.HINT: codec_of(CacheHint | None),
    ops.SLOT: codec_of(SlotRef),
    ops.THREADS: codec_of(ThreadSet),
    ops.VALUE: codec_of(float | int | ScalarRef),
    ops.NAME: codec_of(str),
    ops.INDEX_NAME: codec_of(str),
    ops.TRIPS_NAME: codec_of(str),
    ops.TOKENS: codec_of(tuple[int, ...]),
    ops.TILES: codec_of(tuple[TileRef, ...]),
    ops.ARRAYS: codec_of(tuple[ArrayRef, ...]),
    ops.FLIPPED: codec_of(TileRef),
    ops.FOLDED: codec_of(TileRef),
    ops.AROUND: codec_of(TileRef),
    ops.TAPS: codec_of(tuple[Tap, ...]),
    ops.ELEM: codec_of(Elem),
}


def _codec(kind: OperandKind) -> Codec:
    match kind:
        case Imm(low):
            return codec_of(int) if low < 0 else Codec(Writer.unsigned, Reader.unsigned)
        case Choice(words):
            return word(words, "word")
        case Kind():
            return FORMS[kind]


# All operands of an op, in the order of the table, by opcode.
CODECS: Final = {op.opcode: record(op, {name: _codec(kind) for name, kind in ops.operands(op)}) for op in ops.OPS}
