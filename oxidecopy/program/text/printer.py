"""Program -> text."""

from __future__ import annotations

from typing import Final

from oxidecopy.errors import ProgramTextError, Site
from oxidecopy.isa import ops
from oxidecopy.program.nesting import check_nesting
from oxidecopy.program.program import Program, Step
from oxidecopy.program.text.declarations import format_ints, write_declaration
from oxidecopy.program.text.lexer import format_name
from oxidecopy.program.text.operands import Names, make_names, write_op, write_registers, write_requirement
from oxidecopy.program.text.sites import format_site

INDENT: Final = "  "
SITE_COLUMN_MAX: Final = 88  # call sites line up, unless the line before one is longer than this

_Line = tuple[str, Site | None]


def to_text(program: Program) -> str:
    """The text form of `program`, ending in a newline.

    A program that breaks its op table is printed too, as far as text can say it, so that it can be looked at. Not-a-number fills come back
    as Python's one `float("nan")`, which no comparison finds equal.

    Raises:
        ProgramTextError: expressions or blocks are nested more deeply than a text may be (OX1903).
    """
    nested = check_nesting(program)
    if nested:
        raise ProgramTextError(*nested)
    lines: list[_Line] = [(_header(program), program.site)]
    names = make_names(program.params, program.tiles, program.barriers, {})
    for parameter in program.params:
        lines.append((INDENT + write_declaration(parameter, format_name(parameter.name)), None))
    for position, tile in enumerate(program.tiles):
        lines.append((INDENT + write_declaration(tile, names.tiles.format(position)), tile.site))
    for position, barrier in enumerate(program.barriers):
        lines.append((INDENT + write_declaration(barrier, names.barriers.format(position)), barrier.site))
    for hint in program.registers:
        lines.append((INDENT + write_registers(hint), None))
    for requirement in program.requires:
        lines.append((INDENT + write_requirement(requirement), requirement.site))
    if len(lines) > 1 and program.steps:
        lines.append(("", None))
    lines += _steps(program.steps, names)
    return _join(lines, program.site)


def _header(program: Program) -> str:
    cluster = format_ints(program.cluster)
    return f"program {format_name(program.name)} threads={program.threads} cluster={cluster} shared={program.shared_bytes}:"


def _steps(steps: tuple[Step, ...], names: Names) -> list[_Line]:
    lines: list[_Line] = []
    stack = [(step, 1) for step in reversed(steps)]
    while stack:
        step, level = stack.pop()
        colon = ":" if isinstance(step.op, ops.BLOCKS) else ""
        lines.append((INDENT * level + write_op(step.op, names) + colon, step.site))
        stack += [(inner, level + 1) for inner in reversed(step.body)]
    return lines


def _join(lines: list[_Line], home: Site | None) -> str:
    widths = [len(text) for text, site in lines if site is not None and len(text) <= SITE_COLUMN_MAX]
    column = max(widths, default=0)
    # The first line is the program's own, whose site the others are relative to.
    comments = [format_site(site, home if number else None) if site else "" for number, (_, site) in enumerate(lines)]
    return "".join(f"{text:<{column}}  {comment}\n" if comment else f"{text}\n" for (text, _), comment in zip(lines, comments, strict=True))
