"""Program -> bytes."""

from __future__ import annotations

import struct
import zlib
from typing import Final

from oxidecopy.errors import ProgramBinaryError
from oxidecopy.isa import ops
from oxidecopy.isa.abi_hash import table_hash
from oxidecopy.program.binary.codecs import codec_of, hints_of
from oxidecopy.program.binary.operands import CODECS
from oxidecopy.program.binary.stream import Writer, refuse
from oxidecopy.program.check import check_operands
from oxidecopy.program.program import Program, Step

MAGIC: Final = b"\x89OXP\r\n\x1a\n"
VERSION: Final = 2
HEADER: Final = struct.Struct("<8sB16sII")
SIZE_MAX: Final = 1 << 20  # bytes, header included
STEPS: Final = "steps"  # the one field that is a tree: it comes last
FIELDS: Final = {name: hint for name, hint in hints_of(Program).items() if name != STEPS}


def fingerprint() -> bytes:
    """Of the op table, as far as a header holds it."""
    return bytes.fromhex(table_hash())[:16]


def to_bytes(program: Program) -> bytes:
    """The binary form of `program`; equal programs have equal bytes, down to the sign of a zero.

    Raises:
        ProgramBinaryError: the program breaks its op table, so that no reader would take it, or is too large.
    """
    broken = check_operands(program)
    if broken:
        raise ProgramBinaryError(*broken)
    writer = Writer()
    for name, hint in FIELDS.items():
        codec_of(hint).write(writer, getattr(program, name))
    _write_steps(writer, program.steps)
    size = HEADER.size + len(writer.out)
    if size > SIZE_MAX:
        refuse("OX1960", "the program is too large for the binary form", got=f"{size} bytes", required=f"at most {SIZE_MAX}")
    return HEADER.pack(MAGIC, VERSION, fingerprint(), len(writer.out), zlib.crc32(writer.out)) + writer.out


def _write_steps(writer: Writer, steps: tuple[Step, ...]) -> None:
    writer.unsigned(len(steps))
    stack = list(reversed(steps))
    while stack:
        step = stack.pop()
        writer.byte(step.op.opcode)
        writer.site(step.site)
        CODECS[step.op.opcode].write(writer, step.op)
        if isinstance(step.op, ops.BLOCKS):
            writer.unsigned(len(step.body))
            stack += reversed(step.body)
