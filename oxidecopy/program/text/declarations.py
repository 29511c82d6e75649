"""Declarations as text: one row of `TABLE` per class of parameter, tile or barrier, from which both printer and parser work.

A declaration is a keyword, a name and a list of settings: bare ones first, then `key=value`. Settings at their default are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

from oxidecopy.program.program import ArrayParam, BarrierDecl, IdxParam, MapParam, ScalarParam, TileDecl
from oxidecopy.program.text.cursor import Cursor
from oxidecopy.program.text.lexer import TokenKind, format_word, refuse

Declared: TypeAlias = MapParam | ArrayParam | IdxParam | ScalarParam | TileDecl | BarrierDecl


@final
@dataclass(frozen=True, slots=True)
class Form:
    """How one sort of setting is written; `Any` because a setting's class follows from its field."""

    write: Callable[[Any], str]
    read: Callable[[Cursor], object]


def format_ints(values: tuple[int, ...]) -> str:
    return str(tuple(values))


def read_ints(cursor: Cursor) -> tuple[int, ...]:
    cursor.expect("(")
    values: list[int] = []
    while not cursor.take(")"):
        values.append(cursor.integer())
        if not cursor.peek.is_mark(")"):
            cursor.expect(",")
    return tuple(values)


INT: Final = Form(str, Cursor.integer)
INTS: Final = Form(format_ints, read_ints)
WORD: Final = Form(format_word, Cursor.word)


@final
@dataclass(frozen=True, slots=True)
class Setting:
    """A field: its key in the text ("" for a bare setting), how it is written, and its default given the settings before it."""

    field: str
    key: str
    form: Form
    default: Callable[[Mapping[str, Any]], object] | None = None


def _constant(value: object) -> Callable[[Mapping[str, Any]], object]:
    return lambda _: value


TABLE: Final[dict[type[Declared], tuple[str, tuple[Setting, ...]]]] = {
    MapParam: (
        "map",
        (
            Setting("dtype", "", WORD),
            Setting("box_dim", "box", INTS),
            Setting("element_strides", "element_strides", INTS, lambda values: (1,) * len(values["box_dim"])),
            Setting("interleave", "interleave", WORD, _constant("none")),
            Setting("swizzle", "swizzle", WORD, _constant("none")),
            Setting("oob_fill", "oob_fill", WORD, _constant("zero")),
            Setting("mode", "mode", WORD, _constant("tile")),
            Setting("entries", "entries", INT, _constant(None)),
        ),
    ),
    ArrayParam: ("array", (Setting("dtype", "", WORD), Setting("rank", "rank", INT))),
    IdxParam: ("idx", ()),
    ScalarParam: ("scalar", (Setting("dtype", "", WORD),)),
    TileDecl: (
        "tile",
        (
            Setting("dtype", "", WORD),
            Setting("shape", "", INTS),
            Setting("align", "align", INT),
            Setting("swizzle", "swizzle", WORD, _constant("none")),
            Setting("stages", "stages", INT, _constant(1)),
            Setting("offset", "at", INT),
            Setting("stage_bytes", "step", INT),
        ),
    ),
    BarrierDecl: ("barrier", (Setting("kind", "", WORD), Setting("stages", "stages", INT, _constant(1)), Setting("offset", "at", INT))),
}
KEYWORDS: Final[dict[str, type[Declared]]] = {keyword: declared for declared, (keyword, _) in TABLE.items()}


def write_declaration(decl: Declared, label: str) -> str:
    keyword, settings = TABLE[type(decl)]
    text = f"{keyword} {label}"
    values = {s.field: getattr(decl, s.field) for s in settings}
    separator = ": "
    for setting in settings:
        if setting.default is None or values[setting.field] != setting.default(values):
            text += f"{separator}{setting.key}{'=' if setting.key else ''}{setting.form.write(values[setting.field])}"
            separator = " "
    return text


def read_declaration(keyword: str, cursor: Cursor, position: int | None) -> tuple[Callable[..., Declared], dict[str, object]]:
    """The class and the fields of a declaration whose keyword has been read; `position` is where it goes among tiles or barriers."""
    declared = KEYWORDS[keyword]
    values: dict[str, object] = {"name": cursor.name()}
    if position is not None and cursor.take("@") and cursor.integer() != position:
        refuse(cursor.place, "OX1912", "a label's number is not its position", required=f"@{position}", fix="leave the number out")
    settings = TABLE[declared][1]
    if settings:
        cursor.expect(":")
    for setting in settings:
        written = not setting.key or (cursor.peek.kind is TokenKind.WORD and cursor.peek.text == setting.key)
        if setting.default is not None and not written:
            values[setting.field] = setting.default(values)
            continue
        if setting.key:
            cursor.keyword(setting.key)
        values[setting.field] = setting.form.read(cursor)
    cursor.end()
    return declared, values
