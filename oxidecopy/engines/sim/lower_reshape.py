"""`TransposeTile`, `ReduceTile` and `StencilTile`: tiles from tiles of another shape. Classes share the rows written, as for a map."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from oxidecopy.engines.sim.agents import Agent, Op
from oxidecopy.engines.sim.elements import cast, combine, constant
from oxidecopy.engines.sim.faults import INVALID_VALUE, Refused
from oxidecopy.engines.sim.images import TileImage
from oxidecopy.engines.sim.lower_copies import Images
from oxidecopy.engines.sim.memory import Array
from oxidecopy.isa import ops
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.elem import ElemOp

if TYPE_CHECKING:
    from oxidecopy.engines.sim.lower_ops import Make
    from oxidecopy.engines.sim.lowering import Lowering

_FOLDS: Final = {"sum": ElemOp.ADD, "max": ElemOp.MAX}
_NEUTRAL: Final = {"sum": -0.0, "max": -np.inf}  # changes no number, not even a zero's sign


def transpose_tile(low: Lowering, op: ops.TransposeTile) -> list[Make]:
    shape, dtype = low.tile_layout(op.source).shape, low.tile(op.source).dtype
    other, needed = low.tile_layout(op.out).shape, (*shape[:-2], *shape[:-3:-1])
    if len(shape) < 2 or other != needed or low.tile(op.out).dtype != dtype or op.source.tile == op.out.tile:
        got = f"{dtype} {shape} into {low.tile(op.out).dtype} {other}"
        raise Refused(INVALID_VALUE, "a tile is no transpose of another one", got=got, required=f"{dtype} {needed}, another tile")
    return _made(low, op, lambda tiles: np.swapaxes(tiles[0].elements(), -1, -2))


def reduce_tile(low: Lowering, op: ops.ReduceTile) -> list[Make]:
    shape, dtype = low.tile_layout(op.source).shape, low.tile(op.source).dtype
    other, into = low.tile_layout(op.out).shape, low.tile(op.out).dtype
    fits = len(shape) == 2 and other == (shape[1 - op.axis],) and op.source.tile != op.out.tile
    if not fits or dtype not in ops.FOLDABLE or into != "f32":
        required = f"{', '.join(ops.FOLDABLE)} of two dimensions into f32, one element for each row or column"
        raise Refused(INVALID_VALUE, "a vector is no reduction of a tile", got=f"{dtype} {shape} into {into} {other}", required=required)

    def folded(tiles: list[TileImage]) -> Array:
        with np.errstate(all="ignore"):
            made = fold(tiles[0].elements(), dtype, op.op, op.axis)
            return combine(_FOLDS[op.op], tiles[1].elements(), made, "f32") if op.onto else made

    return _made(low, op, folded)


def fold(elements: Array, dtype: str, how: str, axis: int) -> Array:
    """Each row (axis 1) or column (axis 0) put together, in the order that `ops.ReduceTile` states: bits of f32."""
    rows = cast(elements, dtype, "f32") if dtype != "f32" else elements
    rows = rows if axis else rows.T
    partials = ops.FOLD_BYTES // DTYPES[dtype].nbytes if axis else ops.FOLD_ROWS
    steps = -(-rows.shape[1] // partials)
    padded = np.full((len(rows), steps * partials), constant(_NEUTRAL[how], "f32")[0])
    padded[:, : rows.shape[1]] = rows
    parts = padded.reshape(len(rows), steps, partials)
    fn = _FOLDS[how]
    made = parts[:, 0]
    for step in range(1, steps):
        made = combine(fn, made, parts[:, step], "f32")
    while made.shape[1] > 1:
        made = combine(fn, made[:, ::2], made[:, 1::2], "f32")
    return made[:, 0]


def stencil_tile(low: Lowering, op: ops.StencilTile) -> list[Make]:
    shapes = low.tile_layout(op.source).shape, low.tile_layout(op.out).shape
    dtypes = low.tile(op.source).dtype, low.tile(op.out).dtype
    around = ops.margin(*shapes)
    problem = "" if around is None else ops.taps_problem(op.taps, around)
    if around is None or dtypes != ("f32", "f32") or op.source.tile == op.out.tile or problem:
        got = f"{dtypes[0]} {shapes[0]} into {dtypes[1]} {shapes[1]}, {len(op.taps)} taps"
        required = problem or "f32 of two dimensions, the output in the middle of another tile"
        raise Refused(INVALID_VALUE, "a tile does not lie around its stencil's output", got=got, required=required)

    def summed(tiles: list[TileImage]) -> Array:
        with np.errstate(all="ignore"):
            return weighted(tiles[0].elements(), op.taps, around)

    return _made(low, op, summed)


def weighted(elements: Array, taps: tuple[ops.Tap, ...], around: tuple[int, int]) -> Array:
    """The sums of a stencil, in the order that `ops.StencilTile` states: bits of f32."""
    rows, columns = (n - 2 * more for n, more in zip(elements.shape, around, strict=True))
    total: Array | None = None
    for tap in taps:
        top, left = around[0] + tap.row, around[1] + tap.column
        part = np.ascontiguousarray(elements[top : top + rows, left : left + columns])
        product = combine(ElemOp.MUL, part, np.broadcast_to(constant(tap.weight, "f32"), part.shape), "f32")
        total = product if total is None else combine(ElemOp.ADD, total, product, "f32")
    assert total is not None  # there is a tap
    return total


def _made(
    low: Lowering, op: ops.TransposeTile | ops.ReduceTile | ops.StencilTile, elements: Callable[[list[TileImage]], Array]
) -> list[Make]:
    """The closure of an op that sets `op.out` to what `elements` makes of its inputs."""
    layout = low.tile_layout(op.out)
    sources = [(Images(low.tile_layout(ref)), low.tile_address(ref)) for ref in op.inputs]
    target, target_at = Images(layout), low.tile_address(op.out)
    clocks, site, loops = low.clocks, low.site, tuple(low.loops)
    start, stop = low.share.rows(layout.rows)
    alone = low.share.high - low.share.low == low.share.total
    if start >= stop and clocks is None:
        return []

    def make(nxt: int) -> Op:
        def run(agent: Agent) -> int:
            inputs = [images.at(agent.cta, address(agent.env)) for images, address in sources]
            image = target.at(agent.cta, target_at(agent.env))
            if clocks is not None:
                clocks.map(agent, inputs, image, op, tuple([agent.env[slot] for slot in loops]), site, alone=alone)
            if start < stop:
                image.put_elements(elements(inputs), start, stop)
            return nxt

        return run

    return [make]
