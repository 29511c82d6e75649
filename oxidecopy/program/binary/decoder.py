"""Bytes -> Program.

Nothing is believed: the header says whether the rest is meant for this version, the checksum whether it is whole, and then every value is
held against what there can be. Blocks and expressions are read with stacks of their own, so that no nesting can exhaust Python's. What
decodes goes through the generic check of the op table, as a parsed text does.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, final, get_args

from oxidecopy.errors import Diagnostic, ProgramBinaryError, Site
from oxidecopy.isa import ops
from oxidecopy.isa.ops import Instr
from oxidecopy.program.binary.codecs import codec_of
from oxidecopy.program.binary.encoder import FIELDS, HEADER, MAGIC, SIZE_MAX, STEPS, VERSION, fingerprint
from oxidecopy.program.binary.operands import CODECS
from oxidecopy.program.binary.stream import Reader, refuse
from oxidecopy.program.check import check_operands
from oxidecopy.program.declared import Places
from oxidecopy.program.nesting import NESTING_MAX
from oxidecopy.program.program import Program, Step

ERRORS_MAX: Final = 20  # reported at most
_AGAIN: Final = "record it again with this version; the text form is the one to keep"


def is_binary(data: bytes) -> bool:
    """True when `data` starts as a binary program does; the rest of it may still be damaged."""
    return data.startswith(MAGIC)


def from_bytes(data: bytes, file: str = "<program>") -> Program:
    """The program whose binary form is `data`. `file` names it in errors.

    Raises:
        ProgramBinaryError: with the byte at which the data is damaged, or one diagnostic per operand out of its bounds.
    """
    reader = Reader(data, HEADER.size, file)
    _check_header(data, file)
    values: dict[str, object] = {}
    places = Places(program=_place(reader))
    lists = {name: getattr(places, name) for name in ("params", "tiles", "barriers", "registers", "requires")}
    for name, hint in FIELDS.items():
        values[name] = _read_list(reader, get_args(hint)[0], lists[name]) if name in lists else codec_of(hint).read(reader)
    values[STEPS] = _read_steps(reader, places.steps)
    if reader.left:
        reader.refuse("OX1964", "the body goes on after the program", got=f"{reader.left} bytes", required="none")
    make: Callable[..., Program] = Program
    program = make(**values)
    broken = check_operands(program, places)
    if broken:
        raise ProgramBinaryError(*(_at_byte(d, file) for d in broken[:ERRORS_MAX]))
    return program


def _check_header(data: bytes, file: str) -> None:
    if len(data) > SIZE_MAX:
        refuse("OX1960", f"{file}: too large for a program", got=f"{len(data)} bytes", required=f"at most {SIZE_MAX}")
    if not is_binary(data):
        refuse("OX1961", f"{file}: no binary program", got=repr(data[:8]), required=f"{MAGIC!r} as its first bytes")
    if len(data) < HEADER.size:
        refuse("OX1964", f"{file}: the header is cut off", got=f"{len(data)} bytes", required=f"{HEADER.size} and a body")
    _, version, table, size, checksum = HEADER.unpack_from(data)
    if version != VERSION:
        refuse("OX1962", f"{file}, byte 8: another version of the form", got=version, required=str(VERSION), fix=_AGAIN)
    if table != fingerprint():
        refuse("OX1962", f"{file}, byte 9: made for another op table", got=table.hex(), required=fingerprint().hex(), fix=_AGAIN)
    body = memoryview(data)[HEADER.size :]
    if len(body) != size:
        what = "cut off" if len(body) < size else "longer than it says"
        refuse("OX1964", f"{file}, byte {len(data)}: {what}", got=f"{len(body)} bytes of body", required=str(size))
    if zlib.crc32(body) != checksum:
        refuse(
            "OX1963", f"{file}, byte 29: the body is damaged", got=f"{zlib.crc32(body):#010x}", required=f"a checksum of {checksum:#010x}"
        )


# ---- the body. A place is the number of a byte, kept as the line of a site while the program is checked.
def _place(reader: Reader) -> Site:
    return Site("", reader.at)


def _at_byte(broken: Diagnostic, file: str) -> Diagnostic:
    at = broken.site.line if broken.site is not None else HEADER.size
    return replace(broken, what=f"{file}, byte {at}: {broken.what}", site=None)


def _read_list(reader: Reader, hint: object, places: list[Site | None]) -> tuple[object, ...]:
    values = []
    for _ in range(reader.count()):
        places.append(_place(reader))
        values.append(codec_of(hint).read(reader))
    return tuple(values)


@final
@dataclass(slots=True)
class _Open:
    """An open block, or the program itself, which has no op: how many of its steps are still to be read, and those that were."""

    left: int
    op: Instr | None = None
    site: Site | None = None
    steps: list[Step] = field(default_factory=list)


def _read_steps(reader: Reader, places: list[Site | None]) -> tuple[Step, ...]:
    blocks = [_Open(reader.count())]
    while True:
        block = blocks[-1]
        if not block.left:
            if block.op is None:
                return tuple(block.steps)
            blocks.pop()
            blocks[-1].steps.append(Step(block.op, block.site, tuple(block.steps)))
            continue
        block.left -= 1
        places.append(_place(reader))
        op, site = _read_op(reader)
        if not isinstance(op, ops.BLOCKS):
            block.steps.append(Step(op, site))
            continue
        if len(blocks) > NESTING_MAX:
            reader.refuse("OX1966", "blocks are nested too deeply", got=f"level {len(blocks)}", required=f"at most {NESTING_MAX} levels")
        blocks.append(_Open(reader.count(), op, site))


def _read_op(reader: Reader) -> tuple[Instr, Site | None]:
    at, opcode = reader.at, reader.byte()
    op = ops.BY_OPCODE.get(opcode)
    if op is None:
        reader.refuse("OX1965", "no such op", at=at, got=f"opcode {opcode:#04x}", required="one of the op table")
    site = reader.site()
    made: Instr = CODECS[opcode].read(reader)
    return made, site
