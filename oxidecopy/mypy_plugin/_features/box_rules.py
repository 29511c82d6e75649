"""Boxes that no tensor map can have: extents, bytes of a row, the span of a swizzle, and more bytes than a block's shared memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mypy.nodes import CallExpr, Context, MemberExpr, RefExpr, TypeInfo
from mypy.types import Instance, ProperType, TupleType, Type, TypeAliasType, UnionType, get_proper_type

from oxidecopy.mypy_plugin import _names
from oxidecopy.mypy_plugin._codes import BOX
from oxidecopy.mypy_plugin._features.literals import GEOMETRY, Problem, View, dense, element, extents, named

# As in oxidecopy.isa, which a test holds them against: the plugin is a stranger to the package.
BOX_DIM_MAX: Final = 256
BOX_INNER_ALIGN: Final = 16
BOX_BYTES_MAX: Final = 233_472
SPANS: Final[dict[str, int]] = {f"{GEOMETRY}.Swizzle32B": 32, f"{GEOMETRY}.Swizzle64B": 64, f"{GEOMETRY}.Swizzle128B": 128}
METHOD: Final = "tiled"
_DEPTH_MAX: Final = 4


def faults(
    node: Context, kind: tuple[str, int] | None, swizzle: Type | None, box: tuple[int | None, ...], *, strided: bool = False
) -> Iterator[Problem]:
    """What is wrong with a box of these elements; the same rules as the run time's, for what is known here."""
    for axis, extent in enumerate(box):
        if extent is not None and not 1 <= extent <= BOX_DIM_MAX:
            words = f"TMA box: entry {axis} is {extent}; each extent is 1 to {BOX_DIM_MAX} elements"
            yield Problem(node=node, code=BOX, message=words, notes=("copy in several boxes",) if extent > BOX_DIM_MAX else ())
            return
    inner = box[-1] if box else None
    if kind is None or inner is None:
        return
    name, size = kind
    row = inner * size
    how = f"TMA box: the inner dimension is {inner} x {size} ({name}) = {row} bytes"
    if row % BOX_INNER_ALIGN:
        step = BOX_INNER_ALIGN // size
        words = f"{how}, no multiple of {BOX_INNER_ALIGN}"
        yield Problem(node=node, code=BOX, message=words, notes=(f"make it a multiple of {step} elements of {name}",))
        return
    mode = get_proper_type(swizzle) if swizzle is not None else None
    span = SPANS.get(mode.type.fullname) if isinstance(mode, Instance) else None
    if span is not None and row > span:
        words = f"{how}, wider than the {span}-byte span of a {span}B swizzle"
        note = f"at most {span // size} elements of {name} fit: split the box, or use a wider swizzle or none"
        yield Problem(node=node, code=BOX, message=words, notes=(note,))
        return
    total = dense(kind, box)
    if total is not None and total > BOX_BYTES_MAX and not strided:
        words = f"TMA box: {total} bytes, more than the {BOX_BYTES_MAX} that one copy can move"
        yield Problem(node=node, code=BOX, message=words, notes=("copy in several boxes",))


def of_type(node: Context, t: Type | None, depth: int = 0) -> Iterator[Problem]:
    """The descriptors that an annotation names. What an alias stands for is checked where the alias is made."""
    if t is None or depth > _DEPTH_MAX or (isinstance(t, TypeAliasType) and not t.args):
        return
    p: ProperType = get_proper_type(t)
    if isinstance(p, Instance):
        if p.type.fullname == _names.DESCRIPTOR and len(p.args) == 4:
            box = extents(p.args[3])
            if box is not None:
                yield from faults(node, element(p.args[0]), p.args[2], box, strided=True)
            return
        for argument in p.args:
            yield from of_type(node, argument, depth + 1)
    elif isinstance(p, TupleType | UnionType):
        for item in p.items:
            yield from of_type(node, item, depth + 1)


def of_call(call: CallExpr, view: View) -> Iterator[Problem]:
    """A map that `TmaDescriptor.tiled` is to make: its element type and swizzle from the type, its box from the call."""
    callee = call.callee
    if not (isinstance(callee, MemberExpr) and callee.name == METHOD and isinstance(callee.expr, RefExpr)):
        return
    owner = callee.expr.node
    if not (isinstance(owner, TypeInfo) and owner.fullname == _names.DESCRIPTOR):
        return
    made = view.type_of(call)
    if not isinstance(made, Instance) or made.type.fullname != _names.DESCRIPTOR or len(made.args) != 4:
        return
    given = named(call, "box")
    box = extents(made.args[3]) or view.box(given)
    if box:
        strided = named(call, "element_strides") is not None
        yield from faults(given or call, element(made.args[0]), made.args[2], box, strided=strided)
