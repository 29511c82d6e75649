"""Maps that a program replaces: COPY_EXTRA records of kinds that are no copies."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from oxidecopy.engines.cuda.abi import RECORD_BYTES, DeviceOp
from oxidecopy.engines.cuda.code import refusals
from oxidecopy.engines.cuda.code.extra import coordinates
from oxidecopy.engines.cuda.code.image import Where
from oxidecopy.engines.cuda.code.nodes import Node, Op
from oxidecopy.engines.cuda.code.values import Lin
from oxidecopy.isa import ops
from oxidecopy.isa.ops import MAP_FIELDS, SlotRef

if TYPE_CHECKING:
    from oxidecopy.engines.cuda.code.lower import AgentLowering

_TAIL: Final = struct.Struct("<B7xi")
_EXTENT: Final = MAP_FIELDS.index("global_dim")


def edit(low: AgentLowering, op: ops.Edit, where: Where) -> list[Node]:
    """The records of one edit: of a window its address and strides, then each extent, which the device looks at."""
    if low.threads > 1:
        low.refused.append(refusals.together(where, str(low.kind)))
    tile = low.tile(op.tile)
    match op:
        case ops.TensormapCopy():
            return [_record(DeviceOp.TENSORMAP_COPY, where, tile, slot=low.map(op.map))]
        case ops.TensormapReplace():
            return [_replace(where, tile, MAP_FIELDS.index(op.field), op.ord, low.value(op.value))]
        case ops.TensormapReplaceArray():
            point = _record(DeviceOp.TENSORMAP_REPLACE_ARRAY, where, tile)
            point.map, point.aux, point.exact = low.array(op.array.name), len(op.first), coordinates(low, op.first)
            sizes = [low.values.add(low.value(b), low.value(a), -1) for a, b in zip(op.first, op.stop, strict=True)]
            extents = [_replace(where, tile, _EXTENT, ord_, size, checked=True) for ord_, size in enumerate(reversed(sizes))]
            return [point, *extents]


def release(low: AgentLowering, op: ops.TensormapCpFenceproxy, where: Where) -> list[Node]:
    """By the first agent of those that stand for the warp: its own hardware warp is whole."""
    if low.share[0]:
        return []
    made = _record(DeviceOp.TENSORMAP_CP_FENCEPROXY, where, low.tile(op.tile), row_of_slot(low, op.slot))
    made.map = low.array(op.slot.array)
    return [made]


def acquire(low: AgentLowering, op: ops.FenceProxyTensormap, where: Where) -> Op:
    """By all lanes of the agent."""
    made = Op(op=DeviceOp.COPY_EXTRA, where=where, operands=((2, row_of_slot(low, op.slot)),), tail=_tail(DeviceOp.FENCE_PROXY_TENSORMAP))
    made.map = low.array(op.slot.array)
    return made


def row_of_slot(low: AgentLowering, slot: SlotRef) -> Lin:
    """The row of a place in its array."""
    return low.value(low.shared.row_of(slot))


def _replace(where: Where, tile: Lin, field: int, ord_: int, value: Lin, *, checked: bool = False) -> Op:
    made = _record(DeviceOp.TENSORMAP_REPLACE, where, tile, value, checked=checked)
    made.aux, made.flags = field, ord_
    return made


def _record(kind: DeviceOp, where: Where, tile: Lin, value: Lin | None = None, *, slot: Lin = (0, ()), checked: bool = False) -> Op:
    operands = ((0, tile),) if value is None else ((0, tile), (2, value))
    return Op(op=DeviceOp.COPY_EXTRA, where=where, operands=operands, slot=slot, tail=_tail(kind, checked=checked))


def _tail(kind: DeviceOp, *, checked: bool = False) -> bytes:
    return _TAIL.pack(kind, checked).ljust(RECORD_BYTES, b"\0")
