"""Which parameters a program writes to, in global memory: what read-only memory must not be passed for."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from oxidecopy.errors import Site
from oxidecopy.isa import ops
from oxidecopy.program.program import Program
from oxidecopy.program.replaced import pointed_at

How: TypeAlias = Literal["store", "reduce"]

# What each op does to the memory behind its map or array; a test holds that every op with such an operand is named here.
STORES: Final = (ops.StoreGlobal, ops.TensorS2G, ops.TensorScatter4, ops.BulkS2G, ops.LoadStoreStage, ops.Contract)
REDUCES: Final = (ops.TensorReduce, ops.BulkReduce)
READS: Final = (
    ops.TensorG2S,
    ops.TensorG2SMulticast,
    ops.TensorGather4,
    ops.TensorPrefetch,
    ops.BulkG2S,
    ops.BulkG2SMulticast,
    ops.BulkPrefetch,
    ops.LoadIndex,
    ops.TensormapCopy,
    ops.MmaOut,
    ops.TensormapReplaceArray,  # by itself; what is copied through the map does as those copies do
)


def destinations(program: Program) -> dict[str, dict[How, Site | None]]:
    """Name of a parameter (of a table as well) -> how it is written to, with the first line that does.

    A copy through a map that was replaced counts for all that the map may point at.
    """
    found: dict[str, dict[How, Site | None]] = {}
    through = pointed_at(program)
    for step in program.walk():
        op = step.op
        how: How = "reduce" if isinstance(op, REDUCES) or (isinstance(op, ops.Contract) and op.combine != "none") else "store"
        if isinstance(op, ops.TensormapCpFenceproxy):
            names: tuple[str, ...] = (op.slot.array,)
        elif isinstance(op, ops.TensorStore | ops.LoadStoreStage | ops.Contract):
            names = (op.map.name,) if op.map.slot is None else through.get(op.map.slot, ())
        elif isinstance(op, ops.StoreGlobal | ops.BulkStore):
            names = (op.array.name,)
        else:
            continue
        for name in names:
            found.setdefault(name, {}).setdefault(how, step.site)
    return found
