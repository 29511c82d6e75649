"""A matrix product on the tensor cores, with bias and GELU in its epilogue.

A ring brings slabs of both matrices, 64 deep, and two warpgroups multiply them: each has half of the rows of a tile of the result. The loop
over K, the epilogue and the stores are one call, `group.contract`, since sums live in registers from the first product to the last line of
the epilogue. Meanwhile the producer fetches the next tile's slabs, and the stores of the last tile are under way. Three twins are broken on
purpose: tiles that overlap, a slab too few, and a bias that lies in the result.

    python examples/30_matmul.py --input x.npy --output y.npy     # any 2-D float32 array: its signs are multiplied
"""

from __future__ import annotations

from collections.abc import Sequence
from math import erfc

import numpy as np
import numpy.typing as npt

import oxidecopy as ox

ROWS, COLUMNS, DEPTH = 128, 128, 64  # of a tile of the result, and of a slab: 64 f16 are 128 bytes, a row of the swizzle
CTAS = 2  # as many as there are multiprocessors would be fastest
Operand = ox.TmaDescriptor[ox.f16, ox.D2, ox.Swizzle128B]
Vector = ox.GlobalArray[ox.f32, ox.D1]
Whole = ox.GlobalArray[ox.f16, ox.D2]
Array = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.float64]


# ---- one tile after the other
# `x` is (rows, K) and `w` (columns, K), as the weights of a linear layer lie in memory: K is dense in both. `at` is the corner of the whole
# tile for both groups; `part` says which of its rows are a group's.
def body(cta: ox.Cta, x: Operand, w: Operand, y: Operand, bias: Vector, *, rows: int = ROWS, left: int = 0) -> None:
    ring = cta.ring(stages=4, tiles=(x, w))
    steps = (x.shape[1] + DEPTH - 1) // DEPTH
    with cta.producer() as leader:
        for row, column in cta.tiles(y, box=(rows, COLUMNS)):
            for k in cta.range(steps):
                with ring.produce(leader) as (slab, weights):
                    slab.load(x, (row, k * DEPTH))
                    weights.load(w, (column, k * DEPTH))
    for me in range(2):  # Python's loop: two blocks side by side
        outs = cta.store_ring(y, stages=2)
        with cta.consumers(me) as group:
            for at in cta.tiles(y, box=(rows, COLUMNS)):
                group.contract(
                    ring,
                    outs,
                    at,
                    steps=steps - left,
                    part=(me, 2),
                    epilogue=lambda s, b: (s + b).gelu().cast(ox.f16),
                    reads=(ox.per_column(bias),),
                )


@ox.pipeline(warps=ox.roles(producer=1, consumers=(4, 4)))
def linear(cta: ox.Cta, x: Operand, w: Operand, y: Operand, bias: Vector) -> None:
    body(cta, x, w, y, bias)


@linear.recipe
def linear_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    return recipe(dev, linear, x)


def recipe(dev: ox.Device, pipeline: ox.Pipeline[Operand, Operand, Operand, Vector], given: Array | None = None) -> ox.Recipe:
    x = numbers((136, 136), 1) if given is None else signs(dev, given)
    w, bias = numbers((72, x.shape[1]), 2), numbers((72,), 3)
    out = dev.zeros((len(x), 72), ox.f16)
    launch = pipeline[CTAS].bind(operand(dev, x), operand(dev, w), staged(out), dev.array(bias.astype(np.float32)))
    expected = gelu(x @ w.T + bias).astype(np.float16)
    return ox.Recipe(launch=launch, outputs={"y": out}, expected={"y": expected}, within={"y": 0.02})  # `gelu` is no exact function


def operand(dev: ox.Device, x: Numbers) -> Operand:
    """Slabs of 128 rows. Rows of 136 f16 are multiples of 16 bytes, as TMA wants them; `pad=True` sees to that for any number."""
    array = dev.array(x.astype(np.float16), ox.f16, pad=True)
    return ox.TmaDescriptor.tiled(array, box=(ROWS, DEPTH), swizzle=ox.Swizzle128B)


def staged(out: ox.GlobalArray[ox.f16, tuple[int, int]]) -> Operand:
    """Results leave in boxes of 64 rows of 128 bytes."""
    return ox.TmaDescriptor.tiled(out, box=(64, 64), swizzle=ox.Swizzle128B)


def signs(dev: ox.Device, x: Array) -> Numbers:
    """Of a user's array, which is looked at by the maker of descriptors: it refuses what is no array of f32 with two dimensions."""
    ox.TmaDescriptor.tiled(dev.array(x, ox.f32, pad=True), box=(1, 4))
    return np.sign(x).astype(np.float64)


def numbers(shape: tuple[int, ...], seed: int) -> Numbers:
    """Small integers, whose sums are exact in any order: those of others would differ from numpy's in their last places."""
    return np.random.default_rng(seed).integers(-1, 2, shape).astype(np.float64)


def gelu(x: Numbers) -> Numbers:
    made: Numbers = x * 0.5 * np.vectorize(erfc)(-x / np.sqrt(2))
    return made


# ---- broken on purpose: tiles that overlap
# A tile of the result has the rows of both groups. Here tiles begin every 64 rows and have 128: the next block stores half of them again.
@ox.pipeline(warps=ox.roles(producer=1, consumers=(4, 4)))
def broken_tiles(cta: ox.Cta, x: Operand, w: Operand, y: Operand, bias: Vector) -> None:
    body(cta, x, w, y, bias, rows=64)  # the edit: not ROWS


@broken_tiles.recipe(refused="OX3201")
def broken_tiles_recipe(dev: ox.Device) -> ox.Recipe:
    return recipe(dev, broken_tiles)


# ---- broken on purpose: a slab that nobody takes
# The producer fills three stages for each tile and two are multiplied: from the second tile on all sums are of the wrong slabs, and at the
# end the ring is full.
@ox.pipeline(warps=ox.roles(producer=1, consumers=(4, 4)))
def broken_steps(cta: ox.Cta, x: Operand, w: Operand, y: Operand, bias: Vector) -> None:
    body(cta, x, w, y, bias, left=1)  # the edit: not 0


@broken_steps.recipe(refused="OX3051")
def broken_steps_recipe(dev: ox.Device) -> ox.Recipe:
    return recipe(dev, broken_steps)


# ---- a residual
# An epilogue may read the array that it stores to: each element is read where, and before, it is written. It may not read any other
# element of it, as a bias that lies in its first row: plain loads wait for nothing, and another block may be storing there.
@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def added(cta: ox.Cta, x: Operand, w: Operand, y: Operand, residual: Whole, bias: ox.GlobalArray[ox.f16, ox.D1]) -> None:
    ring, outs = cta.ring(stages=4, tiles=(x, w)), cta.store_ring(y, stages=2)
    steps = (x.shape[1] + DEPTH - 1) // DEPTH
    with cta.producer() as leader:
        for row, column in cta.tiles(y, box=(ROWS, COLUMNS)):
            for k in cta.range(steps):
                with ring.produce(leader) as (slab, weights):
                    slab.load(x, (row, k * DEPTH))
                    weights.load(w, (column, k * DEPTH))
    with cta.consumers() as group:
        for at in cta.tiles(y, box=(ROWS, COLUMNS)):
            reads = (residual, ox.per_column(bias))
            group.contract(ring, outs, at, steps=steps, epilogue=lambda s, r, b: s.cast(ox.f16) + r + b, reads=reads)


@added.recipe
def added_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    return residual_recipe(dev, x)


@added.recipe(refused="OX3131")
def broken_bias_recipe(dev: ox.Device) -> ox.Recipe:
    return residual_recipe(dev, None, within=True)  # the edit: not False


def residual_recipe(dev: ox.Device, given: Array | None, *, within: bool = False) -> ox.Recipe:
    x = numbers((136, 72), 4) if given is None else signs(dev, given)
    w, r, b = numbers((136, x.shape[1]), 5), numbers((len(x), 136), 6), numbers((136,), 7)
    out = dev.array(r.astype(np.float16), ox.f16)
    bias = out.select(0, 0) if within else dev.array(b.astype(np.float16), ox.f16)
    launch = added[CTAS].bind(operand(dev, x), operand(dev, w), staged(out), out, bias)
    return ox.Recipe(launch=launch, outputs={"y": out}, expected={"y": (x @ w.T + r + b).astype(np.float16)})


def main(argv: Sequence[str] | None = None) -> int:
    return ox.run_recipes(__doc__, linear, broken_tiles, broken_steps, added, argv=argv)


if __name__ == "__main__":
    raise SystemExit(main())
