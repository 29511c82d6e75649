"""`MapTiles`: element expressions over tiles, each in its own layout. Classes share the rows out as for every cooperative access."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from oxidecopy.engines.sim.agents import Agent, Op
from oxidecopy.engines.sim.elements import evaluate
from oxidecopy.engines.sim.faults import INVALID_VALUE, Refused
from oxidecopy.engines.sim.lower_copies import Images
from oxidecopy.engines.sim.memory import Array
from oxidecopy.isa import elem, ops
from oxidecopy.isa.elem import Along, fits_shape

if TYPE_CHECKING:
    from oxidecopy.engines.sim.lower_ops import Make
    from oxidecopy.engines.sim.lowering import Lowering


def map_tiles(low: Lowering, op: ops.MapTiles) -> list[Make]:
    ways = elem.ways(op.fn)
    layouts = [low.tile_layout(ref) for ref in op.inputs]
    layout = low.tile_layout(op.out)
    alongs = [min(ways.get(i, {Along.ALL}), key=lambda a: a.value) for i in range(len(layouts))]
    if not all(fits_shape(other.shape, layout.shape, along) for other, along in zip(layouts, alongs, strict=True)):
        shapes = [other.shape for other in layouts]
        raise Refused(INVALID_VALUE, "the tiles of a map differ in shape", got=repr(shapes), required=repr(layout.shape))
    sources = [(Images(other), low.tile_address(ref)) for ref, other in zip(op.inputs, layouts, strict=True)]
    target, target_at = Images(layout), low.tile_address(op.out)
    clocks, site, fn, scalars = low.clocks, low.site, op.fn, low.bound.scalars
    start, stop = low.share.rows(layout.rows)
    alone = low.share.high - low.share.low == low.share.total
    rows, loops = (layout.rows, layout.shape[-1]), tuple(low.loops)

    if start >= stop and clocks is None:
        return []

    def make(nxt: int) -> Op:
        def run(agent: Agent) -> int:
            inputs = [images.at(agent.cta, address(agent.env)) for images, address in sources]
            image = target.at(agent.cta, target_at(agent.env))
            if clocks is not None:
                clocks.map(agent, inputs, image, op, tuple([agent.env[slot] for slot in loops]), site, alone=alone)
            if start < stop:
                made = evaluate(fn, [_part(i.elements(), a, rows, start, stop) for i, a in zip(inputs, alongs, strict=True)], scalars)
                values = np.empty(rows, made.dtype)
                values[start:stop] = made
                image.put_elements(values.reshape(layout.shape), start, stop)
            return nxt

        return run

    return [make]


def _part(elements: Array, along: Along, shape: tuple[int, int], start: int, stop: int) -> Array:
    """What belongs to rows `start` to `stop` - 1, as numpy spreads it over them."""
    if along is Along.ROW:
        return elements.reshape(-1)[start:stop, None]
    return elements.reshape(1, -1) if along is Along.COLUMN else elements.reshape(shape)[start:stop]
