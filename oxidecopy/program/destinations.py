"""Which parameters a program writes to, in global memory: what read-only memory must not be passed for."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from oxidecopy.errors import Site
from oxidecopy.isa import ops
from oxidecopy.program.program import Program

How: TypeAlias = Literal["store", "reduce"]

# What each op does to the memory behind its map or array; a test holds that every op with such an operand is named here.
STORES: Final = (ops.StoreGlobal, ops.TensorS2G, ops.TensorScatter4, ops.BulkS2G, ops.LoadStoreStage)
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
)


def destinations(program: Program) -> dict[str, dict[How, Site | None]]:
    """Name of a parameter (of a table as well) -> how it is written to, with the first line that does."""
    found: dict[str, dict[How, Site | None]] = {}
    for step in program.walk():
        op = step.op
        if isinstance(op, ops.StoreGlobal | ops.BulkS2G):
            found.setdefault(op.array.name, {}).setdefault("store", step.site)
        elif isinstance(op, ops.BulkReduce):
            found.setdefault(op.array.name, {}).setdefault("reduce", step.site)
        elif isinstance(op, ops.TensorS2G | ops.TensorScatter4 | ops.LoadStoreStage):
            found.setdefault(op.map.name, {}).setdefault("store", step.site)
        elif isinstance(op, ops.TensorReduce):
            found.setdefault(op.map.name, {}).setdefault("reduce", step.site)
    return found
