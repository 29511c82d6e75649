"""The fingerprint of the op table: two sides that share it agree on every opcode and operand.

Binary programs and compiled kernels carry it, so that one made for another table is refused instead of misread. Words of documentation,
mnemonics and compute capabilities are no part of it.
"""

from __future__ import annotations

import hashlib
from functools import cache

from oxidecopy.isa import ops
from oxidecopy.isa.ops import Choice, Imm, Kind, OperandKind


@cache
def table_hash() -> str:
    """SHA-256 over opcodes, operand names, kinds and bounds in the order of opcodes: 64 hexadecimal digits."""
    return hashlib.sha256(describe_table().encode()).hexdigest()


def describe_table() -> str:
    """What is hashed, a line per op: to compare two tables by eye."""
    lines = []
    for opcode, op in sorted(ops.BY_OPCODE.items()):
        operands = "".join(f" {name}:{_describe(kind)}" for name, kind in ops.operands(op))
        lines.append(f"{opcode:#04x}{operands}\n")
    return "".join(lines)


def _describe(kind: OperandKind) -> str:
    match kind:
        case Imm(low, high, sigil, makes, nonzero):
            return f"{sigil}[{low},{high}]{'!' if makes else ''}{'-0' if nonzero else ''}"
        case Choice(words):
            return "|".join(words)
        case Kind(name):
            return name
