"""Boxes that differ where one was asked for, in numbers instead of types (`oxidecopy-box`)."""

from __future__ import annotations

import re
from typing import Final

from mypy.nodes import CallExpr, Expression, MemberExpr, NameExpr
from mypy.types import Instance

from oxidecopy.mypy_plugin import _messages, _names
from oxidecopy.mypy_plugin._features.found import Source
from oxidecopy.mypy_plugin._features.literals import TILE_CLASSES, extents

_ARGUMENT: Final = re.compile(
    r'Argument \S+ to (?P<callee>"\w+"(?: of "\w+")?) has incompatible type "(?P<given>.+)"; expected "(?P<asked>.+)"$'
)
_VARIABLE: Final = re.compile(r'Cannot infer value of type parameter "Bx" of "(?P<method>\w+)" of "\w+"$')
_BOX: Final = re.compile(r"(?:[\w.]+\.)?Box[1-5]\[(?P<extents>(?:Literal\[\d+\](?:, )?)+)\]$")
_DESCRIPTOR: Final = "TmaDescriptor"
_BOX_AT: Final = 3  # of a descriptor's arguments: element, coordinates, swizzle, box


def said(text: str, source: Source) -> str | None:
    """The message in other words, if it is of boxes only."""
    if found := _ARGUMENT.match(text):
        return _of_types(found["callee"], found["given"], found["asked"], source)
    if found := _VARIABLE.match(text):
        call = source.call(found["method"])
        return _of_call(call, found["method"], source) if call is not None else None
    return None


def _of_types(callee: str, given: str, asked: str, source: Source) -> str | None:
    mine, theirs = _arguments(given), _arguments(asked)
    if len(mine) != len(theirs) or len(mine) <= _BOX_AT or mine[:2] != theirs[:2]:
        return None
    boxes = _BOX.match(mine[_BOX_AT]), _BOX.match(theirs[_BOX_AT])
    if boxes[0] is None or boxes[1] is None or boxes[0]["extents"] == boxes[1]["extents"]:
        return None
    name = source.name()
    swizzle = (mine[2], theirs[2]) if mine[2] != theirs[2] and "Any" not in (mine[2], theirs[2]) else None
    shown = name.name if isinstance(name, NameExpr) else ""
    return _messages.other_box(shown, _numbers(boxes[0]["extents"]), callee, _numbers(boxes[1]["extents"]), swizzle)


def _numbers(written: str) -> str:
    return " x ".join(re.findall(r"\d+", written))


def _arguments(t: str) -> list[str]:
    """The arguments of a descriptor's type as mypy shows it."""
    head, opened, inner = t.partition("[")
    if not opened or head.rpartition(".")[2] != _DESCRIPTOR or not inner.endswith("]"):
        return []
    parts, depth, start = [], 0, 0
    for i, sign in enumerate(inner):
        depth += (sign == "[") - (sign == "]")
        if (sign == "," and depth == 0) or depth < 0:
            parts.append(inner[start:i].strip())
            start = i + 1
    return parts


def _of_call(call: CallExpr, method: str, source: Source) -> str | None:
    """`group.store(src, tile, at)`: the map's box and the tile's."""
    receiver = source.type_of(call.callee.expr) if isinstance(call.callee, MemberExpr) else None
    if not isinstance(receiver, Instance) or not receiver.type.fullname.startswith(_names.PREFIX):
        return None
    boxes: dict[str, tuple[Expression, tuple[int, ...]]] = {}
    for e in call.args:
        t = source.type_of(e)
        at = {_names.DESCRIPTOR: _BOX_AT, **dict.fromkeys(TILE_CLASSES, 1)}.get(t.type.fullname) if isinstance(t, Instance) else None
        box = extents(t.args[at]) if isinstance(t, Instance) and at is not None and len(t.args) > at else None
        if box is not None:
            boxes["map" if at == _BOX_AT else "tile"] = e, box
    if len(boxes) < 2 or boxes["map"][1] == boxes["tile"][1]:
        return None
    (of_map, mine), (of_tile, theirs) = boxes["map"], boxes["tile"]
    return _messages.boxes_of_call(method, _name(of_map), " x ".join(map(str, mine)), _name(of_tile), " x ".join(map(str, theirs)))


def _name(e: Expression) -> str:
    return e.name if isinstance(e, NameExpr | MemberExpr) else "..."
