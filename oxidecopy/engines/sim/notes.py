"""What a run leaves undone: elements of an output that no store reached, and roles in which nothing ran.

Neither is a hazard: the launch does what the program says. Both are mostly not what was meant, so a run notes them beside its findings.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, final

import numpy as np

from oxidecopy.engines.sim import reports
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.ops import Loop, Scope, When
from oxidecopy.program.destinations import destinations
from oxidecopy.program.program import walk
from oxidecopy.program.tensor_map import TILE

if TYPE_CHECKING:
    from oxidecopy.engines.base import Bindings
    from oxidecopy.engines.sim.agents import Agent, Op
    from oxidecopy.engines.sim.ledger import Ledger
    from oxidecopy.errors import Diagnostic
    from oxidecopy.program.program import Program, Step


@final
class Ran:
    """Which steps ran at least once. A step's closure tells it, and takes itself out of the way."""

    def __init__(self) -> None:
        self.steps: set[int] = set()

    def watched(self, ops: list[Op], at: int, step: Step) -> None:
        """Puts a closure in the place of the one at `ops[at]`, until it is run."""
        op = ops[at]

        def first(agent: Agent) -> int:
            self.steps.add(id(step))
            ops[at] = op
            return op(agent)

        ops[at] = first


def idle_roles(program: Program, ran: Ran) -> Iterator[Diagnostic]:
    """The outermost blocks of threads in which no thread ran anything; those inside loops and conditions may well be empty."""
    todo = list(program.steps)
    while todo:
        step = todo.pop()
        if not isinstance(step.op, Scope):
            continue
        inner = [s for s in walk(step.body) if not isinstance(s.op, Scope | When | Loop)]
        if inner and not any(id(s) in ran.steps for s in inner):
            yield reports.idle_role(step.op.role, step.site)
        else:
            todo += step.body


def uncovered(program: Program, bindings: Bindings, ledger: Ledger) -> Iterator[Diagnostic]:
    """Outputs with elements that nothing was stored to. Where sums go, and into which entry of a table, is the program's own business."""
    for name, how in destinations(program).items():
        if "reduce" in how:
            continue
        missing = _missing(name, bindings, ledger)
        if missing:
            yield reports.not_covered(name, missing, how["store"])


def _missing(name: str, bindings: Bindings, ledger: Ledger) -> str:
    """The smallest box around what was not stored to, as a slice; empty where there is none, or nobody looked."""
    if name in bindings.maps:
        bound = bindings.maps[name]
        if bound.map.mode != TILE or bound.map.interleave != "none":
            return ""
        info, dims, strides = bound.map.dtype_info, bound.map.global_dim, bound.map.global_strides
        size = 1 if info.packed else info.nbytes
        dims = (*dims[:-1], info.row_bytes(dims[-1])) if info.packed else dims
        start = bound.buffer.address + bound.offset_bytes
    elif name in bindings.arrays:
        array = bindings.arrays[name]
        size, dims, strides = DTYPES[array.info.dtype].nbytes, array.info.shape, array.info.strides_bytes[:-1]
        start = array.buffer.address + array.offset_bytes
    else:
        return ""
    missed = ledger.missed(start, dims, strides, size)
    if missed is None or not missed.any():
        return ""
    places = np.argwhere(missed)
    return "[" + ", ".join(f"{lo}:{hi + 1}" for lo, hi in zip(places.min(axis=0), places.max(axis=0), strict=True)) + "]"
