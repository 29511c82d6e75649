"""Products on tensor cores: sums in float64, which are rounded to f32 once, when they are used.

The hardware adds in f32 and in an order of its own, so that results agree within a bound only (`isa.mma.error_bound`). Every class of the
group keeps all sums, and writes its share of the rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from oxidecopy.engines.sim.agents import Agent, Op
from oxidecopy.engines.sim.elements import evaluate, from_float, numbers
from oxidecopy.engines.sim.faults import INVALID_VALUE, Refused
from oxidecopy.engines.sim.lower_access import array_view, clipped, region_of
from oxidecopy.engines.sim.lower_copies import Images
from oxidecopy.engines.sim.memory import Array
from oxidecopy.isa import elem, mma, ops
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.elem import Along

if TYPE_CHECKING:
    from oxidecopy.engines.base import BoundArray
    from oxidecopy.engines.sim.images import TileImage
    from oxidecopy.engines.sim.lower_ops import Make
    from oxidecopy.engines.sim.lowering import Lowering

Sums = npt.NDArray[np.float64]


def zero() -> Make:
    def make(nxt: int) -> Op:
        def run(agent: Agent) -> int:
            agent.sums = None
            return nxt

        return run

    return make


def step(low: Lowering, op: ops.MmaStep) -> Make:
    a, b = _Operand(low, op.a, op.a_major, op.depth), _Operand(low, op.b, op.b_major, op.depth)
    wrong = mma.pair_problem(a.dtype, b.dtype) or mma.shape_problem(a.rows, b.rows)
    if wrong:
        raise Refused(INVALID_VALUE, f"no product on tensor cores: {wrong}", got=repr(op), fix="see docs/contract.md")
    clocks, site = low.clocks, low.site

    def make(nxt: int) -> Op:
        def run(agent: Agent) -> int:
            images = [a.image(agent), b.image(agent)]
            if clocks is not None:
                clocks.operands(agent, images, op, site)
            with np.errstate(invalid="ignore", over="ignore"):
                product = a.values(images[0].elements()) @ b.values(images[1].elements()).T
                agent.sums = product if agent.sums is None else agent.sums + product
            return nxt

        return run

    return make


class _Operand:
    """One side: rows by depth."""

    def __init__(self, low: Lowering, ref: ops.TileRef, major: str, depth: int) -> None:
        layout = low.tile_layout(ref)
        found = mma.operand_shape(layout.shape, major, depth)
        if found is None:
            raise Refused(INVALID_VALUE, "a tile holds no operand of a product", got=f"{layout.shape}, {major}-major, {depth} deep")
        self.dtype = low.tile(ref).dtype
        self.rows = found[0]
        self._shape, self._major, self._depth = layout.shape, major, depth
        self._images, self._at = Images(layout), low.tile_address(ref)

    def image(self, agent: Agent) -> TileImage:
        return self._images.at(agent.cta, self._at(agent.env))

    def values(self, elements: Array) -> Sums:
        found = numbers(elements, self.dtype).astype(np.float64)
        if self._major == "k":
            return found.reshape(self.rows, self._depth)
        return found.reshape(-1, self._depth, self._shape[-1]).swapaxes(1, 2).reshape(self.rows, self._depth)


def out(low: Lowering, op: ops.MmaOut) -> list[Make]:
    layout = low.tile_layout(op.tile)
    images, tile_at, clocks, site = Images(layout), low.tile_address(op.tile), low.clocks, low.site
    rows, columns = mma.extents(layout.shape)
    start, stop = low.share.rows(rows)
    alone = low.share.high - low.share.low == low.share.total
    ways, loops = elem.ways(op.fn), tuple(low.loops)
    alongs = [min(ways.get(i, {Along.ALL}), key=lambda a: a.value) for i in range(1, len(op.arrays) + 1)]
    coords = [low.value(e) for e in op.coords]
    sources = [_Source(low, ref.name, along) for ref, along in zip(op.arrays, alongs, strict=True)]
    if start >= stop and clocks is None:
        return []

    def make(nxt: int) -> Op:
        def run(agent: Agent) -> int:
            image = images.at(agent.cta, tile_at(agent.env))
            if clocks is not None:
                clocks.write(agent, image, op, tuple([agent.env[slot] for slot in loops]), site, alone=alone)
            if start < stop:
                first = [c(agent.env) for c in coords]
                sums = _part(agent.sums, (op.row + start, op.row + stop), (op.column, op.column + columns))
                inputs = [from_float(sums, mma.SUM_DTYPE), *(s.part(agent, first, (start, stop), columns) for s in sources)]
                values = np.empty((rows, columns), image.elements().dtype)
                values[start:stop] = evaluate(op.fn, inputs, low.bound.scalars)
                image.put_elements(values.reshape(layout.shape), start, stop)
            return nxt

        return run

    return [make]


def _part(sums: Sums | None, rows: tuple[int, int], columns: tuple[int, int]) -> Sums:
    """Sums that were never added to are zero, and so is what is beside them."""
    made = np.zeros((rows[1] - rows[0], columns[1] - columns[0]))
    if sums is not None:
        found = sums[slice(*rows), slice(*columns)]
        made[: found.shape[0], : found.shape[1]] = found
    return made


class _Source:
    """An array that an epilogue reads; beyond its edges are zeros."""

    def __init__(self, low: Lowering, name: str, along: Along) -> None:
        self._array: BoundArray = low.bound.arrays[name]
        self._along, self._memory, self._clocks, self._site = along, low.bound.memory, low.clocks, low.site
        self._view: Array | None = None
        self._zero = np.zeros((), f"u{DTYPES[self._array.info.dtype].nbytes}")

    def part(self, agent: Agent, first: list[int], rows: tuple[int, int], columns: int) -> Array:
        """What belongs to these rows of a result whose first element has these coordinates."""
        if self._view is None:
            self._view = array_view(self._array, self._memory)
        *outer, y, x = first
        down, across = (y + rows[0], y + rows[1]), (x, x + columns)
        if self._along is Along.ROW:
            return self._clipped(agent, [down])[:, None]
        if self._along is Along.COLUMN:
            return self._clipped(agent, [across])[None, :]
        return self._clipped(agent, [*((i, i + 1) for i in outer), down, across]).reshape(rows[1] - rows[0], columns)

    def _clipped(self, agent: Agent, wanted: list[tuple[int, int]]) -> Array:
        """A box of the array, with zeros where it is not."""
        made = np.full([stop - start for start, stop in wanted], self._zero)
        limits = [(0, stop - start) for start, stop in wanted]
        boxes = clipped([start for start, _ in wanted], limits, self._array.info.shape)
        if boxes is not None and self._view is not None:
            into, of = boxes
            made[into] = self._view[of]
            if self._clocks is not None:
                self._clocks.ledger.read(agent, region_of(self._array, of), self._site)
        return made
