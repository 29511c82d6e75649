"""Copies that the usual records do not hold: with a cache policy, im2col, four rows at once, plain bulk, between CTAs, prefetches, ...

Those through maps that the program replaces are among them. Each is a COPY_EXTRA record with its tail, which the kernels of the families
"full", "wide" and "many" know.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from oxidecopy.engines.cuda.abi import RECORD_BYTES, DeviceOp
from oxidecopy.engines.cuda.code import refusals
from oxidecopy.engines.cuda.code.elements import code_of
from oxidecopy.engines.cuda.code.image import Where
from oxidecopy.engines.cuda.code.nodes import Op
from oxidecopy.engines.cuda.code.values import ZERO, Lin
from oxidecopy.isa import ops
from oxidecopy.isa.dtypes import REDUCE_OPS
from oxidecopy.isa.expr import Expr
from oxidecopy.isa.im2col import OFFSET_BITS
from oxidecopy.program.tensor_map import IM2COL_WIDE, TILE

if TYPE_CHECKING:
    from oxidecopy.engines.cuda.code.lower import AgentLowering

_TAIL: Final = struct.Struct("<4BfiB")
_MASK_BITS: Final = 16
FIRST_COORDINATE: Final = 3
KINDS: Final[dict[type[ops.Copy], DeviceOp]] = {
    ops.TensorG2S: DeviceOp.TENSOR_G2S,
    ops.TensorG2SMulticast: DeviceOp.TENSOR_G2S_MULTICAST,
    ops.TensorS2G: DeviceOp.TENSOR_S2G,
    ops.TensorReduce: DeviceOp.TENSOR_REDUCE,
    ops.TensorPrefetch: DeviceOp.TENSOR_PREFETCH,
    ops.TensorGather4: DeviceOp.TENSOR_GATHER4,
    ops.TensorScatter4: DeviceOp.TENSOR_SCATTER4,
    ops.BulkG2S: DeviceOp.BULK_G2S,
    ops.BulkG2SMulticast: DeviceOp.BULK_G2S_MULTICAST,
    ops.BulkS2G: DeviceOp.BULK_S2G,
    ops.BulkReduce: DeviceOp.BULK_REDUCE,
    ops.BulkPrefetch: DeviceOp.BULK_PREFETCH,
    ops.BulkS2S: DeviceOp.BULK_S2S,
    ops.BulkReduceS2S: DeviceOp.BULK_REDUCE_S2S,
}


def is_extra(low: AgentLowering, op: ops.Copy) -> bool:
    """True for a copy that needs such a record."""
    if not isinstance(op, ops.TensorG2S | ops.TensorG2SMulticast | ops.TensorS2G | ops.TensorReduce):
        return True
    return op.hint is not None or op.map.slot is not None or low.program.maps[op.map.name].mode != TILE


def extra(low: AgentLowering, op: ops.Copy, where: Where) -> Op:
    """The record of a copy."""
    if low.threads > 1:
        low.refused.append(refusals.together(where, str(low.kind)))
    if isinstance(op, ops.TensorCopy | ops.TensorPrefetch) and low.program.maps[op.map.name].mode in IM2COL_WIDE:
        low.refused.append(refusals.wide_im2col(where))
    made = Op(op=DeviceOp.COPY_EXTRA, where=where, operands=_operands(low, op), tail=_tail(low, op))
    if isinstance(op, ops.TensorReduce | ops.BulkReduce | ops.BulkReduceS2S):
        made.flags = REDUCE_OPS.index(op.op)
    if isinstance(op, ops.Send):
        return made
    coords = op.coords
    if isinstance(op, ops.TensorGather4 | ops.TensorScatter4):  # innermost first they are the column, then the rows in order
        coords = (*reversed(coords[:-1]), coords[-1])
    made.aux, made.exact = len(coords), coordinates(low, coords)
    if isinstance(op, ops.Through) and op.map.slot is not None:
        made.slot, made.placed, made.map = low.value(low.shared.row_of(op.map.slot)), True, low.array(op.map.slot.array)
    elif isinstance(op, ops.Through):
        made.slot = low.map(op.map)
    else:
        made.map = low.array(op.array.name)
    return made


def _operands(low: AgentLowering, op: ops.Copy) -> tuple[tuple[int, Lin], ...]:
    found = {2: _third(low, op)}
    if not isinstance(op, ops.Prefetch):
        found[0] = low.tile(op.tile)
    if isinstance(op, ops.Landing):
        found[1] = low.barrier(op.bar)
    if isinstance(op, ops.Send):
        found[3] = low.tile(op.into)
    return tuple([(k, value) for k, value in sorted(found.items()) if value != ZERO])


def _third(low: AgentLowering, op: ops.Copy) -> Lin:
    """Operand 2: mask or rank; of an im2col load its offsets, behind the mask where there is one."""
    if isinstance(op, ops.Send):
        return low.value(op.rank)
    mask = low.value(op.cta_mask) if isinstance(op, ops.Multicast) else ZERO
    if not isinstance(op, ops.TensorG2S | ops.TensorG2SMulticast | ops.TensorPrefetch) or not op.offsets:
        return mask
    bits, packed = OFFSET_BITS[len(op.offsets)], ZERO
    for i, e in enumerate(reversed(op.offsets)):
        packed = low.values.add(packed, low.value(e), 1 << bits * i)
    return low.values.add(mask, packed, 1 << _MASK_BITS if isinstance(op, ops.TensorG2SMulticast) else 1)


def coordinates(low: AgentLowering, coords: tuple[Expr, ...]) -> tuple[tuple[int, Lin], ...]:
    """Of a copy or plain store: in registers alone."""
    return tuple([(FIRST_COORDINATE + i, low.value(e)) for i, e in enumerate(coords)])


def _tail(low: AgentLowering, op: ops.Copy) -> bytes:
    hint = None if isinstance(op, ops.Send) else op.hint
    im2col = isinstance(op, ops.TensorCopy | ops.TensorPrefetch) and low.program.maps[op.map.name].mode != TILE
    dtype = nbytes = 0
    if isinstance(op, ops.BulkCopy | ops.BulkPrefetch | ops.Send):
        nbytes = op.nbytes
        dtype = 0 if isinstance(op, ops.Prefetch) else code_of(low.program.tiles[op.tile.tile].dtype)
    policy, fraction = (0, 0.0) if hint is None else (1 + hint.word, hint.fraction)
    placed = isinstance(op, ops.Through) and op.map.slot is not None
    return _TAIL.pack(KINDS[type(op)], im2col, policy, dtype, fraction, nbytes, placed).ljust(RECORD_BYTES, b"\0")
