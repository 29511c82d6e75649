"""Extents and sizes that types say: element types, boxes, swizzles; and boxes that the copy unit cannot move (`oxidecopy-box`)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mypy.nodes import Context
from mypy.types import Instance, Type, get_proper_type

from oxidecopy.mypy_plugin import _codes, _messages, _names
from oxidecopy.mypy_plugin._types import literal

if TYPE_CHECKING:
    from oxidecopy.mypy_plugin._report import Reports

_BITS: Final = re.compile(r"[a-z]+?(\d+)(?:_|$|[a-z])")
_SPANS: Final[dict[str, int]] = {"Swizzle32B": 32, "Swizzle64B": 64, "Swizzle128B": 128}
BOX_MAX: Final = 256  # cuTensorMapEncodeTiled: boxDim
INNER_STEP_BYTES: Final = 16  # the same: boxDim[0] times the element size


def dtype_bytes(t: Type | None) -> int | None:
    """Bytes of an element, by the name of its type; None for those of less than a byte."""
    p = get_proper_type(t)
    if not isinstance(p, Instance) or p.type.module_name != _names.DTYPES:
        return None
    bits = _BITS.match(p.type.name)
    return int(bits[1]) // 8 if bits and int(bits[1]) in (8, 16, 32, 64) else None


def element_bytes(t: Type | None) -> int | None:
    """Bytes of an element of a tile."""
    p = get_proper_type(t)
    return dtype_bytes(p.args[0]) if isinstance(p, Instance) and p.type.fullname == _names.TILE and p.args else None


def box(t: Type | None) -> list[int] | None:
    """The literal extents of a `Box2[Literal[64], Literal[32]]`."""
    p = get_proper_type(t)
    extents = [literal(a) for a in p.args] if isinstance(p, Instance) else []
    known = [e for e in extents if e is not None]
    return known if known and len(known) == len(extents) else None


def tile_bytes(t: Type | None) -> int | None:
    """Bytes of a tile whose type says all extents."""
    p = get_proper_type(t)
    size = element_bytes(p)
    extents = box(p.args[1]) if isinstance(p, Instance) and len(p.args) > 1 else None
    if size is None or extents is None:
        return None
    for extent in extents:
        size *= extent
    return size


def check_descriptor(t: Type | None, node: Context, reports: Reports) -> None:
    """The box of a descriptor's type."""
    p = get_proper_type(t)
    if not isinstance(p, Instance) or p.type.fullname != _names.DESCRIPTOR or len(p.args) < 4:
        return
    size, extents, swizzle = dtype_bytes(p.args[0]), box(p.args[3]), get_proper_type(p.args[2])
    if size is None or extents is None:
        return
    for i, extent in enumerate(extents):
        if not 1 <= extent <= BOX_MAX:
            reports.say(_codes.BOX, node, _messages.box(f"dimension {i} is {extent}; each has to be in 1..{BOX_MAX}"))
    inner = extents[-1] * size
    how = f"the inner dimension is {extents[-1]} x {size} bytes = {inner} bytes"
    if inner % INNER_STEP_BYTES:
        reports.say(_codes.BOX, node, _messages.box(f"{how}; it has to be a multiple of {INNER_STEP_BYTES}"))
    span = _SPANS.get(swizzle.type.name) if isinstance(swizzle, Instance) else None
    if span is not None and inner > span:
        wide = f"{how}, wider than the {span}-byte span of its swizzle"
        reports.say(_codes.BOX, node, _messages.box(wide), f"at most {span // size} elements fit: split the box, or use a wider swizzle")
