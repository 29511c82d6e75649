"""Operands as text, by their kind in the op table, and back.

`FORMS` has one entry per `Kind`; immediates and choices are handled by their own data. An op is its mnemonic, then its operands in the
order of the table: a choice stands like a word of the mnemonic, bare numbers and expressions carry their field's name, results come after
an arrow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

from oxidecopy.errors import Site
from oxidecopy.isa import ops
from oxidecopy.isa.expr import ZERO, Expr, SymKind
from oxidecopy.isa.ops import (
    ArrayRef,
    BarrierRef,
    CacheHint,
    Choice,
    Imm,
    Instr,
    Kind,
    MapRef,
    OperandKind,
    Part,
    ScalarRef,
    SlotRef,
    ThreadSet,
    TileRef,
)
from oxidecopy.program.program import BarrierDecl, Param, RegisterHint, Requirement, TileDecl
from oxidecopy.program.text.cursor import Cursor
from oxidecopy.program.text.elements import format_elem, read_elem
from oxidecopy.program.text.expression_reader import read_cond, read_expr
from oxidecopy.program.text.expressions import format_node
from oxidecopy.program.text.lexer import TokenKind, format_name, format_word, quote, refuse

Decl: TypeAlias = TileDecl | BarrierDecl
_FLOATS: Final = {"nan": float("nan"), "inf": float("inf")}


@final
class Labels:
    """What tiles or barriers are called in a text: their names, with `@position` where a name alone would not tell which one."""

    def __init__(self, decls: Sequence[Decl], shared: Mapping[str, int]) -> None:
        """`shared` counts how often each name is declared in the whole program."""
        self.decls = decls
        self._labels = [
            format_name(d.name) if shared[d.name] == 1 else f"{format_name(d.name)}@{position}" for position, d in enumerate(decls)
        ]
        self._positions: dict[str, list[int]] = {}
        for position, d in enumerate(decls):
            self._positions.setdefault(d.name, []).append(position)

    def format(self, position: int) -> str:
        return self._labels[position] if 0 <= position < len(self._labels) else f"@{position}"

    def stages(self, position: int) -> int:
        return self.decls[position].stages if 0 <= position < len(self.decls) else 0

    def read(self, cursor: Cursor, what: str) -> int:
        """The position that a label names; the checks of the whole program look at its range."""
        if cursor.take("@"):
            return cursor.integer()
        name = cursor.name(f"the name of a {what}")
        found = self._positions.get(name, [])
        if cursor.take("@"):
            wanted = cursor.integer()
            found = [n for n in found if n == wanted]
        if len(found) == 1:
            return found[0]
        known = ", ".join(map(self.format, range(len(self.decls))))
        refuse(
            cursor.place,
            "OX1912",
            f"{name!r} names {'more than one' if found else 'no'} {what}",
            required=known[:200] or "one declared above",
        )


@final
@dataclass(frozen=True, slots=True)
class Names:
    """All that can be named at one line: `symbols` are the integers known there."""

    tiles: Labels
    barriers: Labels
    symbols: Mapping[str, SymKind]


def make_names(
    params: Sequence[Param], tiles: Sequence[TileDecl], barriers: Sequence[BarrierDecl], symbols: Mapping[str, SymKind]
) -> Names:
    shared = Counter(d.name for d in (*params, *tiles, *barriers))
    return Names(tiles=Labels(tiles, shared), barriers=Labels(barriers, shared), symbols=symbols)


@final
@dataclass(frozen=True, slots=True)
class Form:
    """How operands of one kind are written; `keyword` ones carry their field's name."""

    write: Callable[[Any, Names], str]
    read: Callable[[Cursor, Names], object]
    keyword: bool = False


# ---- one pair per kind. (Any: the op table ties each kind to the class of its values.)
def _write_stage(labels: Labels, position: int, index: Expr) -> str:
    plain = index == ZERO and labels.stages(position) == 1
    return labels.format(position) if plain else f"{labels.format(position)}[{format_node(index)}]"


def _read_index(cursor: Cursor, names: Names) -> Expr:
    if not cursor.take("["):
        return ZERO
    index = read_expr(cursor, names.symbols)
    cursor.expect("]")
    return index


def _write_barrier(ref: BarrierRef, names: Names) -> str:
    return _write_stage(names.barriers, ref.barrier, ref.index)


def _read_barrier(cursor: Cursor, names: Names) -> BarrierRef:
    barrier = names.barriers.read(cursor, "barrier")
    return BarrierRef(barrier, _read_index(cursor, names))


def _write_tile(ref: TileRef, names: Names) -> str:
    stage = _write_stage(names.tiles, ref.tile, ref.index)
    return stage if ref.part is None else f"{stage}.part({format_node(ref.part.rank)}, of={ref.part.of})"


def _read_tile(cursor: Cursor, names: Names) -> TileRef:
    tile = names.tiles.read(cursor, "tile")
    index = _read_index(cursor, names)
    if not cursor.take("."):
        return TileRef(tile, index)
    if cursor.peek.text != "part":
        cursor.unexpected("`part`")
    cursor.advance()
    cursor.expect("(")
    rank = read_expr(cursor, names.symbols)
    cursor.expect(",")
    cursor.keyword("of")
    part = Part(rank, cursor.integer())
    cursor.expect(")")
    return TileRef(tile, index, part)


def _write_tiles(refs: tuple[TileRef, ...], names: Names) -> str:
    return f"({', '.join(_write_tile(ref, names) for ref in refs)})"


def _read_tiles(cursor: Cursor, names: Names) -> tuple[TileRef, ...]:
    cursor.expect("(")
    refs: list[TileRef] = []
    while not cursor.take(")"):
        if refs:
            cursor.expect(",")
        refs.append(_read_tile(cursor, names))
    return tuple(refs)


def _write_arrays(refs: tuple[ArrayRef, ...], _: Names) -> str:
    return f"({', '.join(format_name(ref.name) for ref in refs)})"


def _read_arrays(cursor: Cursor, _: Names) -> tuple[ArrayRef, ...]:
    cursor.expect("(")
    refs: list[ArrayRef] = []
    while not cursor.take(")"):
        if refs:
            cursor.expect(",")
        refs.append(ArrayRef(cursor.name("the name of an array")))
    return tuple(refs)


def _write_map(ref: MapRef, names: Names) -> str:
    text = format_name(ref.name) + (f"[{format_node(ref.index)}]" if ref.index is not None else "")
    return text if ref.slot is None else f"{text}@{_write_slot(ref.slot, names)}"


def _read_map(cursor: Cursor, names: Names) -> MapRef:
    name, index = cursor.name("the name of a map"), None
    if cursor.take("["):
        index = read_expr(cursor, names.symbols)
        cursor.expect("]")
    return MapRef(name, index, _read_slot(cursor, names) if cursor.take("@") else None)


def _write_slot(ref: SlotRef, _: Names) -> str:
    return f"{format_name(ref.array)}[{ref.number}]"


def _read_slot(cursor: Cursor, _: Names) -> SlotRef:
    array = cursor.name("the name of an array of maps")
    cursor.expect("[")
    number = cursor.integer()
    cursor.expect("]")
    return SlotRef(array, number)


def _write_coords(coords: tuple[Expr, ...], _: Names) -> str:
    return f"[{', '.join(map(format_node, coords))}]"


def _read_coords(cursor: Cursor, names: Names) -> tuple[Expr, ...]:
    cursor.expect("[")
    coords: list[Expr] = []
    while not cursor.take("]"):
        if coords:
            cursor.expect(",")
        coords.append(read_expr(cursor, names.symbols))
    return tuple(coords)


def _write_hint(hint: CacheHint | None, _: Names) -> str:
    if hint is None:
        return "none"
    plain = hint == CacheHint(hint.primary)
    return hint.primary if plain else f"{hint.primary}({hint.fraction!r}, {hint.secondary})"


def _read_hint(cursor: Cursor, _: Names) -> CacheHint | None:
    primary = cursor.word(f"one of {', '.join(ops.PRIMARY_POLICIES)}")
    if primary == "none":
        return None
    if not cursor.take("("):
        return CacheHint(primary)
    fraction = _read_value(cursor, _)
    cursor.expect(",")
    secondary = cursor.word(f"one of {', '.join(ops.SECONDARY_POLICIES)}")
    cursor.expect(")")
    return CacheHint(primary, float(fraction) if not isinstance(fraction, ScalarRef) else float("nan"), secondary)


def _write_threads(threads: ThreadSet) -> str:
    return "{" + ", ".join(str(lo) if hi == lo + 1 else f"{lo}..{hi - 1}" for lo, hi in threads.ranges) + "}"


def _read_threads(cursor: Cursor) -> ThreadSet:
    cursor.expect("{")
    ranges: list[tuple[int, int]] = []
    while not cursor.take("}"):
        if ranges:
            cursor.expect(",")
        low = cursor.integer()
        ranges.append((low, (cursor.integer() if cursor.take("..") else low) + 1))
    return ThreadSet(tuple(ranges))


# A hint for registers is declared, not executed, and has no name: `registers {0..127}: 232`.
REGISTERS: Final = "registers"


def write_registers(hint: RegisterHint) -> str:
    return f"{REGISTERS} {_write_threads(hint.threads)}: {hint.registers}"


def read_registers(cursor: Cursor) -> RegisterHint:
    """What follows the keyword."""
    threads = _read_threads(cursor)
    cursor.expect(":")
    hint = RegisterHint(threads, cursor.integer())
    cursor.end()
    return hint


# `requires src.dim[0] <= grid_dim.x, what="..", fix=".."`
REQUIRES: Final = "requires"


def write_requirement(requirement: Requirement) -> str:
    return f"{REQUIRES} {format_node(requirement.cond)}, what={quote(requirement.what)}, fix={quote(requirement.fix)}"


def read_requirement(cursor: Cursor, symbols: Mapping[str, SymKind], site: Site | None) -> Requirement:
    """What follows the keyword."""
    cond = read_cond(cursor, symbols)
    cursor.expect(",")
    cursor.keyword("what")
    what = cursor.word("a string")
    cursor.expect(",")
    cursor.keyword("fix")
    fix = cursor.word("a string")
    cursor.end()
    return Requirement(cond=cond, what=what, fix=fix, site=site)


def _write_value(value: object, _: Names) -> str:
    if isinstance(value, ScalarRef):
        return format_name(value.name)
    return repr(float(value)) if isinstance(value, float) else str(value)


def _read_value(cursor: Cursor, _: Names) -> float | int | ScalarRef:
    sign = -1 if cursor.take("-") else 1
    token = cursor.peek
    if token.kind is TokenKind.FLOAT:
        return sign * float(cursor.advance().text)
    if token.kind is TokenKind.WORD and token.text in _FLOATS:
        return sign * _FLOATS[cursor.advance().text]
    if token.kind is TokenKind.INT or sign < 0:
        return sign * cursor.integer()
    return ScalarRef(cursor.name("a number or a scalar parameter"))


def _write_tokens(tokens: tuple[int, ...], _: Names) -> str:
    mark = ops.TOKEN.sigil
    return f"{mark}{tokens[0]}" if len(tokens) == 1 else "(" + ", ".join(f"{mark}{n}" for n in tokens) + ")"


def _read_tokens(cursor: Cursor, _: Names) -> tuple[int, ...]:
    mark = ops.TOKEN.sigil
    if not cursor.take("("):
        cursor.expect(mark)
        return (cursor.integer(),)
    tokens: list[int] = []
    while not cursor.take(")"):
        if tokens:
            cursor.expect(",")
        cursor.expect(mark)
        tokens.append(cursor.integer())
    return tuple(tokens)


def _write_taps(taps: tuple[ops.Tap, ...], _: Names) -> str:
    return f"[{', '.join(f'({tap.row}, {tap.column}, {tap.weight!r})' for tap in taps)}]"


def _read_taps(cursor: Cursor, names: Names) -> tuple[ops.Tap, ...]:
    cursor.expect("[")
    taps: list[ops.Tap] = []
    while not cursor.take("]"):
        if taps:
            cursor.expect(",")
        cursor.expect("(")
        row = cursor.integer()
        cursor.expect(",")
        column = cursor.integer()
        cursor.expect(",")
        weight = _read_value(cursor, names)
        if not isinstance(weight, float):
            cursor.unexpected("a weight, such as 0.25")
        cursor.expect(")")
        taps.append(ops.Tap(row, column, weight))
    return tuple(taps)


FORMS: Final[dict[Kind, Form]] = {
    ops.BARRIER: Form(_write_barrier, _read_barrier),
    ops.TILE: Form(_write_tile, _read_tile),
    ops.MAP: Form(_write_map, _read_map),
    ops.ARRAY: Form(lambda ref, _: format_name(ref.name), lambda cursor, _: ArrayRef(cursor.name("the name of an array"))),
    ops.EXPR: Form(lambda e, _: format_node(e), lambda cursor, names: read_expr(cursor, names.symbols), keyword=True),
    ops.COND: Form(lambda c, _: format_node(c), lambda cursor, names: read_cond(cursor, names.symbols)),
    ops.COORDS: Form(_write_coords, _read_coords),
    ops.GATHER: Form(_write_coords, _read_coords),
    ops.OFFSETS: Form(_write_coords, _read_coords, keyword=True),
    ops.HINT: Form(_write_hint, _read_hint, keyword=True),
    ops.SLOT: Form(_write_slot, _read_slot),
    ops.THREADS: Form(lambda threads, _: _write_threads(threads), lambda cursor, _: _read_threads(cursor)),
    ops.VALUE: Form(_write_value, _read_value),
    ops.NAME: Form(lambda name, _: format_name(name), lambda cursor, _: cursor.name("the name of a counter")),
    ops.INDEX_NAME: Form(lambda name, _: format_name(name), lambda cursor, _: cursor.name("a name for what is read")),
    ops.TRIPS_NAME: Form(lambda name, _: format_name(name), lambda cursor, _: cursor.name("a name for the number of tiles")),
    ops.TOKENS: Form(_write_tokens, _read_tokens),
    ops.TILES: Form(_write_tiles, _read_tiles),
    ops.ARRAYS: Form(_write_arrays, _read_arrays, keyword=True),
    ops.FLIPPED: Form(_write_tile, _read_tile),
    ops.FOLDED: Form(_write_tile, _read_tile),
    ops.AROUND: Form(_write_tile, _read_tile),
    ops.TAPS: Form(_write_taps, _read_taps, keyword=True),
    ops.ELEM: Form(lambda e, _: format_elem(e), lambda cursor, _: read_elem(cursor), keyword=True),
}


def _form(kind: OperandKind) -> Form:
    if isinstance(kind, Kind):
        return FORMS[kind]
    if isinstance(kind, Choice):
        return Form(lambda word, _: format_word(word), lambda cursor, _: cursor.word(f"one of {', '.join(kind.words)}"))
    return Form(lambda value, _: f"{kind.sigil}{value}", lambda cursor, _: _read_immediate(cursor, kind), keyword=not kind.sigil)


def _read_immediate(cursor: Cursor, kind: Imm) -> int:
    if kind.sigil:
        cursor.expect(kind.sigil)
    return cursor.integer()


def _is_next(cursor: Cursor, separator: str, field: str) -> bool:
    """True when an operand that may be absent comes next."""
    return (cursor.following.text if cursor.peek.is_mark(separator) else cursor.peek.text) == field


def _is_result(kind: OperandKind) -> bool:
    return isinstance(kind, Imm) and kind.makes


# ---- whole ops
def write_op(op: Instr, names: Names) -> str:
    """The op without its call site and the colon of a block."""
    text, separator, arrow = op.mnemonic, " ", " -> "
    results = ""
    for field, kind in ops.operands(type(op)):
        form, value = _form(kind), getattr(op, field)
        if kind in ops.ABSENT and value == ops.ABSENT[kind]:
            continue
        operand = form.write(value, names)
        if _is_result(kind):
            results += arrow + operand
            arrow = ", "
        else:
            text += separator + (f"{field}={operand}" if form.keyword else operand)
            separator = " " if isinstance(kind, Choice) else ", "
    return text + results


def read_op(op: type[Instr], cursor: Cursor, names: Names) -> Instr:
    """The operands of `op`, whose mnemonic has been read."""
    values: dict[str, object] = {}
    separator, arrow = "", "->"
    table = ops.operands(op)
    for field, kind in (*((f, k) for f, k in table if not _is_result(k)), *((f, k) for f, k in table if _is_result(k))):
        form = _form(kind)
        if kind in ops.ABSENT and not _is_next(cursor, separator, field):
            continue
        if _is_result(kind):
            cursor.expect(arrow)
            arrow = ","
        else:
            if separator:
                cursor.expect(separator)
            separator = "" if isinstance(kind, Choice) else ","
            if form.keyword:
                cursor.keyword(field)
        values[field] = form.read(cursor, names)
    make: Callable[..., Instr] = op
    return make(**values)
