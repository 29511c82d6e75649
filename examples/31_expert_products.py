"""A grouped product: the tokens of each expert times that expert's weights, in one launch.

Tokens lie sorted by expert, each expert's rows filled up to a multiple of a tile's. So every tile of the result is of one expert, and a
list says of which; its weights come through a table of descriptors. The groups that multiply need not know whose weights they have. Two
twins are broken on purpose: experts that the table has not, and tiles of more rows than an expert's are filled up to.

    python examples/31_expert_products.py --input x.npy --output y.npy     # any 2-D float32 array of tokens: their signs are multiplied
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

import oxidecopy as ox

ROWS, COLUMNS, DEPTH = 64, 64, 64
CTAS = 3
EXPERTS = 4
Operand = ox.TmaDescriptor[ox.f16, ox.D2, ox.Swizzle128B]
Weights = ox.DescriptorTable[ox.f16, ox.D2, ox.Swizzle128B]
List = ox.GlobalArray[ox.i32, ox.D1]
Array = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.float64]


# ---- whose tile
# Tile i of the rows is expert `owner[i]`'s, which is read while the pipeline runs; the number chooses the table's entry.
def body(cta: ox.Cta, x: Operand, w: Weights, y: Operand, owner: List, *, experts: int | None = None, rows: int = ROWS) -> None:
    ring, outs = cta.ring(stages=4, tiles=(x, w[0])), cta.store_ring(y, stages=2)
    steps = (x.shape[1] + DEPTH - 1) // DEPTH
    with cta.producer() as leader:
        for row, column in cta.tiles(y, box=(rows, COLUMNS)):
            expert = cta.load_index(owner, row // ROWS, below=experts or len(w))
            for k in cta.range(steps):
                with ring.produce(leader) as (tokens, weights):
                    tokens.load(x, (row, k * DEPTH))
                    weights.load(w[expert], (column, k * DEPTH))
    with cta.consumers() as group:
        for at in cta.tiles(y, box=(rows, COLUMNS)):
            group.contract(ring, outs, at, steps=steps)


@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def experts(cta: ox.Cta, x: Operand, w: Weights, y: Operand, owner: List) -> None:
    body(cta, x, w, y, owner)


@experts.recipe
def experts_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    return recipe(dev, experts, x)


def recipe(
    dev: ox.Device, pipeline: ox.Pipeline[Operand, Weights, Operand, List], given: Array | None = None, *, beyond: bool = False
) -> ox.Recipe:
    rng = np.random.default_rng(31)
    tokens = signs(dev, rng.standard_normal((100, 72), dtype=np.float32) if given is None else given)
    w = rng.integers(-2, 3, (EXPERTS, 72, tokens.shape[1])).astype(np.float64)
    x, owner = by_expert(tokens)
    out = dev.zeros((len(x), 72), ox.f16)
    expected = np.concatenate([x[i * ROWS : (i + 1) * ROWS] @ w[expert].T for i, expert in enumerate(owner)])
    if beyond:
        owner[-1] = EXPERTS
    table = ox.DescriptorTable([operand(dev, matrix, COLUMNS) for matrix in w])
    result = ox.TmaDescriptor.tiled(out, box=(64, 64), swizzle=ox.Swizzle128B)
    launch = pipeline[CTAS].bind(operand(dev, x, ROWS), table, result, dev.array(owner))
    return ox.Recipe(launch=launch, outputs={"y": out}, expected={"y": expected.astype(np.float16)})


def signs(dev: ox.Device, x: Array) -> Numbers:
    """Of a user's array, which is looked at by the maker of descriptors: it refuses what is no array of f32 with two dimensions."""
    ox.TmaDescriptor.tiled(dev.array(x, ox.f32, pad=True), box=(1, 4))
    return np.sign(x).astype(np.float64)


def by_expert(tokens: Numbers) -> tuple[Numbers, npt.NDArray[np.int32]]:
    """Tokens sorted by expert, those of each filled up with zeros to whole tiles, and the expert of each tile. None go to expert 1."""
    route = np.array([0, 2, 3, 0])[np.arange(len(tokens)) % 4]
    parts = [np.pad(mine, ((0, -len(mine) % ROWS), (0, 0))) for mine in (tokens[route == expert] for expert in range(EXPERTS))]
    owner = np.repeat(np.arange(EXPERTS, dtype=np.int32), [len(part) // ROWS for part in parts])
    return np.concatenate(parts), owner


def operand(dev: ox.Device, values: Numbers, rows: int) -> Operand:
    array = dev.array(values.astype(np.float16), ox.f16, pad=True)
    return ox.TmaDescriptor.tiled(array, box=(rows, DEPTH), swizzle=ox.Swizzle128B)


# ---- broken on purpose: an expert too many
# The list is trusted to hold numbers below 5, and holds a 4; the table has 4 entries: what comes behind is no descriptor.
@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def broken_table(cta: ox.Cta, x: Operand, w: Weights, y: Operand, owner: List) -> None:
    body(cta, x, w, y, owner, experts=EXPERTS + 1)  # the edit: not len(w)


@broken_table.recipe(refused="OX3089")
def broken_table_recipe(dev: ox.Device) -> ox.Recipe:
    return recipe(dev, broken_table, beyond=True)


# ---- broken on purpose: every second row of tiles
# Tiles are visited every 32 rows and have 64: what one block stores the next one stores again, perhaps with another expert's weights.
@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def broken_rows(cta: ox.Cta, x: Operand, w: Weights, y: Operand, owner: List) -> None:
    body(cta, x, w, y, owner, rows=ROWS // 2)  # the edit: not ROWS


@broken_rows.recipe(refused="OX3201")
def broken_rows_recipe(dev: ox.Device) -> ox.Recipe:
    return recipe(dev, broken_rows)


def main(argv: Sequence[str] | None = None) -> int:
    return ox.run_recipes(__doc__, experts, broken_table, broken_rows, argv=argv)


if __name__ == "__main__":
    raise SystemExit(main())
