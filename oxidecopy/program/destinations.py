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
        if isinstance(step.op, (*STORES, *REDUCES)):
            how: How = "reduce" if isinstance(step.op, REDUCES) else "store"
            name = step.op.map.name if hasattr(step.op, "map") else step.op.array.name
            found.setdefault(name, {}).setdefault(how, step.site)
    return found
