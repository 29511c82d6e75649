"""`kernels/abi.h`: the declarations of `abi` as C++, with the layouts asserted where they are compiled, and their fingerprint."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from enum import IntEnum
from functools import cache
from typing import Final

from oxidecopy.engines.cuda import abi

Field = tuple[str, str, int]

STRUCTS: Final[tuple[tuple[str, tuple[Field, ...], int], ...]] = (
    ("Header", abi.HEADER, abi.HEADER_BYTES),
    ("History", abi.HISTORY, 8 * abi.HISTORY_WORDS),
    ("WarpEntry", abi.WARP_ENTRY, abi.WARP_ENTRY_BYTES),
    ("Record", abi.RECORD, abi.RECORD_BYTES),
    ("Layout", abi.LAYOUT, abi.RECORD_BYTES),
    ("Rows", abi.ROWS, abi.RECORD_BYTES),
    ("Ring", abi.RING, abi.RECORD_BYTES),
    ("Copy", abi.COPY, abi.RECORD_BYTES),
    ("Once", abi.ONCE, abi.RECORD_BYTES),
    ("ApplyHead", abi.APPLY, abi.RECORD_BYTES),
    ("ExtraRecord", abi.EXTRA, abi.RECORD_BYTES),
    ("Coordinate", abi.COORDINATE, abi.COORDINATE_BYTES),
    ("EvalInstr", abi.EVAL_INSTR, abi.EVAL_BYTES),
    ("ElemInstr", abi.ELEM_INSTR, abi.EVAL_BYTES),
    ("ComputeInstr", abi.COMPUTE_INSTR, abi.EVAL_BYTES),
    ("Units", abi.UNITS, abi.RECORD_BYTES),
    ("FlipRecord", abi.FLIP, abi.RECORD_BYTES),
    ("FoldRecord", abi.FOLD, abi.RECORD_BYTES),
    ("StencilRecord", abi.STENCIL, abi.RECORD_BYTES),
    ("TapEntry", abi.TAP, abi.EVAL_BYTES),
    ("Contract", abi.CONTRACT, abi.RECORD_BYTES),
    ("Epilogue", abi.EPILOGUE, abi.RECORD_BYTES),
    ("ProductHead", abi.PRODUCT, abi.PRODUCT_LOAD_AT),
    ("ProductLoad", abi.PRODUCT_LOAD, abi.PRODUCT_LOAD_BYTES),
    ("FinishHead", abi.FINISH, abi.FINISH_BYTES),
    ("FinishStep", abi.FINISH_STEP, abi.FINISH_STEP_BYTES),
    ("ReportHeader", abi.REPORT_HEADER, 16),
    ("ReportEntry", abi.REPORT_ENTRY, 4 * abi.REPORT_ENTRY_WORDS),
    ("StampHeader", abi.STAMP_HEADER, 16),
    ("Stamp", abi.STAMP, abi.STAMP_BYTES),
)
ENUMS: Final[tuple[tuple[str, type[IntEnum]], ...]] = (
    ("OP", abi.DeviceOp),
    ("EVAL", abi.EvalFn),
    ("ELEM", abi.ElemFn),
    ("COMPUTE", abi.ComputeFn),
    ("FORM", abi.ElementForm),
    ("STENCIL", abi.StencilWay),
    ("CONTRACT", abi.ContractType),
    ("SHAPE", abi.ContractShape),
    ("FINISH", abi.FinishFn),
    ("FINISH_OP", abi.FinishOp),
    ("FINISH_OF", abi.FinishOf),
    ("DT", abi.DTypeCode),
    ("REPORT", abi.ReportKind),
)
CONSTANTS: Final = (
    "NO_REG",
    "REGISTERS",
    "STACK_DEPTH",
    "REG_BLOCK_X",
    "REG_BLOCK_Y",
    "REG_BLOCK_Z",
    "REG_RANK",
    "RECORD_BYTES",
    "COORDINATE_BYTES",
    "MAP_BYTES",
    "INLINE_MAPS_SMALL",
    "INLINE_MAPS_MEDIUM",
    "INLINE_MAPS_LARGE",
    "PARAM_BYTES_SMALL",
    "PARAM_BYTES_MEDIUM",
    "PARAM_BYTES_LARGE",
    "HEADER_BYTES",
    "ARRAY_WORDS",
    "STAGES_MAX",
    "WIDE_ARRAY_WORDS",
    "HISTORY_WORDS",
    "TOKEN_KEPT",
    "TOKEN_SHARED",
    "NO_TOKEN",
    "RING_FLAG_READ",
    "RING_FLAG_COUNTER",
    "RING_FLAG_PLACED",
    "TILE_BITS",
    "TILES_AT_ONCE",
    "ONCE_CODE",
    "APPLY_LOADS",
    "APPLY_STORES",
    "APPLY_COMPUTE",
    "ONCE_FLAG_READ",
    "ONCE_FLAG_INVAL",
    "NO_TILE",
    "FEW_BARRIERS",
    "COMPUTE_UNITS",
    "LOOP_TIGHT",
    "COMPUTE_VECTORS",
    "COMPUTE_ARGUMENT",
    "COMPUTE_AT_HAND",
    "PRODUCT_LOADS",
    "PRODUCT_LOAD_AT",
    "PRODUCT_FINISH_AT",
    "PRODUCT_BYTES",
    "PRODUCT_CORNER",
    "PRODUCT_PLACES",
    "PRODUCT_PLACE_WORDS",
    "FINISH_STEPS",
    "FINISH_ARGUMENT",
    "FINISH_SCALE_ARGUMENT",
    "FINISH_SCALED",
    "REPORT_ENTRIES",
)
_SIZES: Final = {"u8": 1, "u16": 2, "u32": 4, "i32": 4, "u64": 8}
_TYPES: Final = {"u8": "unsigned char", "u16": "unsigned short", "u32": "unsigned", "i32": "int", "u64": "unsigned long long"}
_TOP: Final = """\
// Generated from oxidecopy/engines/cuda/abi.py by `python -m oxidecopy._tools.kernel_header`. Do not edit.
#pragma once

#ifdef __CUDACC_RTC__
#define OFFSET_OF(TYPE, FIELD) __INTADDR__(&static_cast<TYPE*>(nullptr)->FIELD)
#else
#define OFFSET_OF(TYPE, FIELD) __builtin_offsetof(TYPE, FIELD)
#endif
"""


@cache
def header_text() -> str:
    """The whole header."""
    blocks = [
        _TOP,
        "".join(f"using {name} = {ctype};\n" for name, ctype in _TYPES.items()),
        "".join(f"constexpr u32 {name} = {getattr(abi, name):#x};\n" for name in CONSTANTS),
        *(_enum(prefix, members) for prefix, members in ENUMS),
        *(_struct(name, fields, nbytes) for name, fields, nbytes in STRUCTS),
    ]
    return "\n".join(blocks)


def abi_hash() -> str:
    """SHA-256 of the header's text, 64 hexadecimal digits: what host and cubin must have in common."""
    return hashlib.sha256(header_text().encode()).hexdigest()


def _enum(prefix: str, members: Iterable[IntEnum]) -> str:
    return f"enum : u32 {{\n{''.join(f'    {prefix}_{m.name} = {m.value:#x},{chr(10)}' for m in members)}}};\n"


def _struct(name: str, fields: tuple[Field, ...], nbytes: int) -> str:
    lines, checks, end = [], [f"static_assert(sizeof({name}) == {nbytes});\n"], 0
    for number, (field, ctype, offset) in enumerate(fields):
        if offset < end:
            raise ValueError(f"{name}.{field} overlaps the field before it")
        if offset > end:
            lines.append(f"    u8 gap{number}[{offset - end}];\n")
        base, _, count = ctype.partition("[")
        lines.append(f"    {base} {field}{f'[{count}' if count else ''};\n")
        checks.append(f"static_assert(OFFSET_OF({name}, {field}) == {offset});\n")
        end = offset + _SIZES[base] * int(count.rstrip("]") or 1)
    if end < nbytes:
        lines.append(f"    u8 gap[{nbytes - end}];\n")
    align = next(n for n in (16, 8, 4, 2, 1) if nbytes % n == 0)
    return f"struct alignas({align}) {name} {{\n{''.join(lines)}}};\n{''.join(checks)}"
