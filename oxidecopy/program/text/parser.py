"""Text -> Program.

Lines are read one by one into a stack of open blocks, so that neither depth nor length of a text can exhaust Python's stack. Every line
that does not parse is reported; a text whose lines all parse then goes through the generic check of the op table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from typing import Final, final

from oxidecopy.errors import Diagnostic, ProgramTextError, Site
from oxidecopy.isa import ops
from oxidecopy.isa.expr import SymKind
from oxidecopy.isa.ops import Instr
from oxidecopy.program.check import check_operands
from oxidecopy.program.declared import Places, known_symbols
from oxidecopy.program.nesting import NESTING_MAX
from oxidecopy.program.program import BarrierDecl, Param, Program, RegisterHint, Requirement, Step, TileDecl
from oxidecopy.program.text.cursor import Cursor
from oxidecopy.program.text.declarations import KEYWORDS, Declared, format_ints, read_declaration, read_ints
from oxidecopy.program.text.lexer import refuse, take_mnemonic, tokenize
from oxidecopy.program.text.operands import REGISTERS, REQUIRES, Names, make_names, read_op, read_registers, read_requirement
from oxidecopy.program.text.printer import INDENT
from oxidecopy.program.text.sites import parse_site

TEXT_MAX: Final = 1 << 23  # characters
ERRORS_MAX: Final = 20  # lines reported at most; the rest of a text that far off says little


def from_text(text: str, file: str = "<program>") -> Program:
    """The program that `text` describes. `file` names the text in errors.

    Raises:
        ProgramTextError: with one diagnostic per line that does not parse, or per operand out of its bounds.
    """
    if len(text) > TEXT_MAX:
        refuse(Site(file, 1), "OX1900", "the text is too long", got=f"{len(text)} characters", required=f"at most {TEXT_MAX}")
    reader = _Reader(file)
    for number, line in enumerate(text.split("\n"), 1):
        if not reader.line(line.rstrip("\r"), Site(file, number)):
            break
    return reader.finish()


@final
@dataclass(slots=True)
class _Open:
    """An open block, or the program itself; `op` is None for the program and for a block whose line did not parse."""

    op: Instr | None = None
    site: Site | None = None
    hidden: dict[str, SymKind | None] = field(default_factory=dict)  # what the integers named in the block meant outside
    steps: list[Step] = field(default_factory=list)


@final
class _Reader:
    """What has been read so far."""

    __slots__ = (
        "_barriers",
        "_errors",
        "_file",
        "_header",
        "_home",
        "_names",
        "_open",
        "_params",
        "_places",
        "_registers",
        "_requires",
        "_symbols",
        "_tiles",
    )

    def __init__(self, file: str) -> None:
        self._file = file
        self._errors: list[Diagnostic] = []
        self._header: Callable[..., Program] | None = None
        self._home: Site | None = None  # of the program
        self._params: list[Param] = []
        self._tiles: list[TileDecl] = []
        self._barriers: list[BarrierDecl] = []
        self._registers: list[RegisterHint] = []
        self._requires: list[Requirement] = []
        self._symbols: dict[str, SymKind] = {}
        self._names: Names | None = None  # made at the first op, when everything is declared
        self._open: list[_Open] = []
        self._places = Places()

    def line(self, line: str, place: Site) -> bool:
        """Reads one line; False when reading on would only report the same mistakes again."""
        content = line.lstrip(" ")
        if not content or content.startswith("#"):
            return True
        try:
            level = self._level(len(line) - len(content), place)
            word, end = take_mnemonic(line, len(line) - len(content))
            tokens, comment = tokenize(line, place, end)
            cursor = Cursor(tokens, place)
            site = parse_site(comment, self._home)
            if level == 0:
                self._program(word, cursor, site)
            elif level == 1 and (word in KEYWORDS or word in (REGISTERS, REQUIRES)):
                self._declare(word, cursor, site)
            elif self._names is None and self._errors and word in ops.BY_MNEMONIC:
                return False  # ops cannot be read without all declarations
            else:
                self._step(word, cursor, site)
        except ProgramTextError as error:
            self._errors += error.diagnostics
            if content.split("#")[0].rstrip().endswith(":"):
                self._open.append(_Open())  # its body is well indented, whatever it says
        return len(self._errors) < ERRORS_MAX

    # ---- blocks
    def _level(self, spaces: int, place: Site) -> int:
        """The block level of a line; closes the blocks that it is not part of."""
        level, odd = divmod(spaces, len(INDENT))
        if odd or level > len(self._open):
            bound = f"a multiple of {len(INDENT)}, here at most {len(INDENT) * len(self._open)}"
            refuse(
                place, "OX1902", "wrong indentation", got=f"{spaces} spaces", required=bound, fix="only `program` and blocks have a body"
            )
        while len(self._open) > max(level, 1):
            self._close()
        return level

    def _close(self) -> None:
        block = self._open.pop()
        for counter, kind in block.hidden.items():
            if kind is None:
                del self._symbols[counter]
            else:
                self._symbols[counter] = kind
        if block.op is not None:
            self._open[-1].steps.append(Step(block.op, block.site, tuple(block.steps)))

    # ---- one line each
    def _program(self, word: str, cursor: Cursor, site: Site | None) -> None:
        if word != "program" or self._open:
            refuse(cursor.place, "OX1901", "a text is one `program` with everything else indented below it", got=word or str(cursor.peek))
        self._open.append(_Open())
        name = cursor.name()
        cursor.keyword("threads")
        threads = cursor.integer()
        cursor.keyword("cluster")
        cluster = read_ints(cursor)
        cursor.keyword("shared")
        shared = cursor.integer()
        cursor.expect(":")
        cursor.end()
        if len(cluster) != 3:
            refuse(cursor.place, "OX1919", "a cluster has three extents", got=format_ints(cluster), required="(x, y, z)")
        self._places.program = cursor.place
        self._home = site
        self._header = partial(Program, name=name, threads=threads, cluster=cluster, shared_bytes=shared, site=site)

    def _declare(self, keyword: str, cursor: Cursor, site: Site | None) -> None:
        if self._names is not None:
            refuse(cursor.place, "OX1901", "a declaration after the first op", got=keyword, fix="move it above the ops")
        if keyword == REGISTERS:
            self._registers.append(read_registers(cursor))
            self._places.registers.append(cursor.place)
            return
        if keyword == REQUIRES:
            self._requires.append(read_requirement(cursor, known_symbols(self._params), site))
            self._places.requires.append(cursor.place)
            return
        positions: dict[type[Declared], int] = {TileDecl: len(self._tiles), BarrierDecl: len(self._barriers)}
        position = positions.get(KEYWORDS[keyword])
        make, values = read_declaration(keyword, cursor, position)
        if position is not None:
            values["site"] = site
        decl = make(**values)
        match decl:
            case TileDecl():
                self._tiles.append(decl)
                self._places.tiles.append(cursor.place)
            case BarrierDecl():
                self._barriers.append(decl)
                self._places.barriers.append(cursor.place)
            case _:
                self._params.append(decl)
                self._places.params.append(cursor.place)

    def _step(self, word: str, cursor: Cursor, site: Site | None) -> None:
        if word not in ops.BY_MNEMONIC:
            near = ", ".join(get_close_matches(word, ops.BY_MNEMONIC))
            refuse(cursor.place, "OX1904", "no such op", got=word or str(cursor.peek), fix=f"did you mean {near}?" if near else "")
        if len(self._open) > NESTING_MAX:
            refuse(
                cursor.place,
                "OX1903",
                "blocks are nested too deeply",
                got=f"level {len(self._open)}",
                required=f"at most {NESTING_MAX} levels",
            )
        if self._names is None:
            self._symbols = known_symbols(self._params)
            self._names = make_names(self._params, self._tiles, self._barriers, self._symbols)
        op = read_op(ops.BY_MNEMONIC[word], cursor, self._names)
        is_block = isinstance(op, ops.BLOCKS)
        if is_block:
            cursor.expect(":")
        cursor.end()
        self._places.steps.append(cursor.place)
        if is_block:
            self._open.append(_Open(op, site))
        else:
            self._open[-1].steps.append(Step(op, site))
        # A block's counter is known in its body; what another op names, to the end of the body it stands in.
        for field_name, kind in ops.operands(type(op)):
            if kind in ops.NAMING:
                name = getattr(op, field_name)
                self._open[-1].hidden.setdefault(name, self._symbols.get(name))
                self._symbols[name] = ops.NAMING[kind]

    # ---- the end
    def finish(self) -> Program:
        if self._header is None and not self._errors:
            refuse(
                Site(self._file, 1),
                "OX1901",
                "the text holds no program",
                required="program NAME threads=N cluster=(X, Y, Z) shared=BYTES:",
            )
        if self._header is None or self._errors:
            raise ProgramTextError(*self._errors)
        while len(self._open) > 1:
            self._close()
        program = self._header(
            params=tuple(self._params),
            tiles=tuple(self._tiles),
            barriers=tuple(self._barriers),
            registers=tuple(self._registers),
            requires=tuple(self._requires),
            steps=tuple(self._open[0].steps),
        )
        broken = check_operands(program, self._places)
        if broken:
            raise ProgramTextError(*broken)
        return program
