"""How values are written and read, by their class: derived from the fields of dataclasses, so that no class is listed here."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, TypeAlias, final, get_args, get_origin, get_type_hints

from oxidecopy.errors import Site
from oxidecopy.isa.elem import Elem
from oxidecopy.isa.expr import Cond, Expr
from oxidecopy.program.binary.stream import Reader, Writer
from oxidecopy.program.nesting import NESTING_MAX, NODES_MAX, nodes

# A type as it stands in an annotation. Any, because Python has no common class for those.
Hint: TypeAlias = Any


@final
@dataclass(frozen=True, slots=True)
class Codec:
    """Both directions for one class of values; `Any` because that class is known to the caller only."""

    write: Callable[[Writer, Any], None]
    read: Callable[[Reader], Any]


@cache
def codec_of(hint: Hint) -> Codec:
    """The codec for values of an annotated type."""
    if hint in _KNOWN:
        return _KNOWN[hint]
    origin: object = get_origin(hint)
    if origin is tuple:
        return _tuple(get_args(hint))
    if isinstance(hint, UnionType):
        return _union(get_args(hint))
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return word(tuple(hint), hint.__name__)
    if isinstance(hint, type) and is_dataclass(hint):
        return record(hint, {name: codec_of(kind) for name, kind in hints_of(hint).items()})
    raise TypeError(f"values of {hint!r} have no binary form")


def hints_of(cls: Hint) -> dict[str, Hint]:
    """The types of the fields of a dataclass, in order."""
    hints = get_type_hints(cls)
    return {f.name: hints[f.name] for f in fields(cls)}


# ---- composed values
def word(words: tuple[object, ...], what: str) -> Codec:
    """One of a few values, as its position."""
    return Codec(lambda w, value: w.unsigned(words.index(value)), lambda r: words[r.position(len(words), what)])


def record(cls: Callable[..., object], codecs: dict[str, Codec]) -> Codec:
    """A dataclass, field by field."""

    def write(w: Writer, value: object) -> None:
        for name, codec in codecs.items():
            codec.write(w, getattr(value, name))

    return Codec(write, lambda r: cls(**{name: codec.read(r) for name, codec in codecs.items()}))


def _tuple(args: tuple[Hint, ...]) -> Codec:
    each = codec_of(args[0])
    if args[1:] != (...,):
        row = tuple(map(codec_of, args))

        def write_row(w: Writer, values: tuple[object, ...]) -> None:
            for codec, value in zip(row, values, strict=True):
                codec.write(w, value)

        return Codec(write_row, lambda r: tuple(codec.read(r) for codec in row))

    def write(w: Writer, values: tuple[object, ...]) -> None:
        w.unsigned(len(values))
        for value in values:
            each.write(w, value)

    return Codec(write, lambda r: tuple(each.read(r) for _ in range(r.count())))


def _union(args: tuple[Hint, ...]) -> Codec:
    """A value of one of several classes: which one, then the value. None has nothing after it."""
    codecs = {cls: codec_of(cls) for cls in args}
    # None first, so that what is absent is a zero in every union.
    classes = tuple(sorted(codecs, key=lambda cls: cls is not NoneType))

    def write(w: Writer, value: object) -> None:
        cls = next(cls for cls in classes if isinstance(value, cls))
        w.unsigned(classes.index(cls))
        codecs[cls].write(w, value)

    def read(r: Reader) -> object:
        return codecs[classes[r.position(len(classes), "class of values")]].read(r)

    return Codec(write, read)


# ---- expressions, conditions and element expressions
_TREES: Final = (Expr, Cond, Elem)


@final
@dataclass(frozen=True, slots=True)
class _NodeForm:
    """One class of nodes: its operands, with the classes they may have, and what else it holds."""

    make: type
    operands: tuple[tuple[str, tuple[type, ...]], ...]
    contents: tuple[tuple[str, Codec], ...]


@cache
def _node_forms() -> tuple[dict[type, int], tuple[_NodeForm, ...]]:
    """The number of each class of nodes, and the forms by number."""
    classes: list[type] = [cls for tree in _TREES for cls in get_args(tree)]
    forms = []
    for cls in classes:
        hints = hints_of(cls)
        operands = tuple((name, get_args(hint)) for name, hint in hints.items() if hint in _TREES)
        contents = tuple((name, codec_of(hint)) for name, hint in hints.items() if hint not in _TREES)
        forms.append(_NodeForm(cls, operands, contents))
    return {cls: number for number, cls in enumerate(classes)}, tuple(forms)


def _write_tree(w: Writer, root: Expr | Cond | Elem) -> None:
    numbers, forms = _node_forms()
    # From the last one to the root: operands come before what uses them, and a stack is all that reading takes.
    backwards = [node for node, _ in nodes(root)][::-1]
    w.unsigned(len(backwards))
    for node in backwards:
        number = numbers[type(node)]
        w.byte(number)
        for name, codec in forms[number].contents:
            codec.write(w, getattr(node, name))


def _read_tree(r: Reader, wanted: tuple[type, ...]) -> object:
    start, forms = r.at, _node_forms()[1]
    count = r.count()
    if not 1 <= count <= NODES_MAX:
        r.refuse("OX1966", "an expression that is empty or too large", at=start, got=count, required=f"1 to {NODES_MAX} nodes")
    stack: list[tuple[object, int]] = []
    for _ in range(count):
        at = r.at
        form = forms[r.position(len(forms), "node of an expression")]
        values: dict[str, object] = {name: codec.read(r) for name, codec in form.contents}
        height = 1
        for name, classes in form.operands:
            if not stack or not isinstance(stack[-1][0], classes):
                r.refuse("OX1966", f"{form.make.__name__} without its operand {name!r}", at=at)
            values[name], below = stack.pop()
            height = max(height, below + 1)
        if height > NESTING_MAX:
            r.refuse("OX1966", "an expression is nested too deeply", at=at, got=f"level {height}", required=f"at most {NESTING_MAX} levels")
        stack.append((form.make(**values), height))
    root = stack.pop()[0]
    if stack or not isinstance(root, wanted):
        r.refuse("OX1966", "nodes that make no expression of this sort", at=start, got=f"{len(stack) + 1} trees", required="one tree")
    return root


def _tree(hint: Hint) -> Codec:
    return Codec(_write_tree, lambda r: _read_tree(r, get_args(hint)))


_KNOWN: Final[dict[Hint, Codec]] = {
    int: Codec(Writer.signed, Reader.signed),
    float: Codec(Writer.real, Reader.real),
    str: Codec(Writer.text, Reader.text),
    bool: word((False, True), "truth value"),
    NoneType: Codec(lambda _w, _value: None, lambda _r: None),
    Site | None: Codec(Writer.site, Reader.site),
    **{tree: _tree(tree) for tree in _TREES},
}
