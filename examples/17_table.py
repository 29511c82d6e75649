"""Tables of descriptors: a list of matrices of different sizes is copied in one launch.

A launch with one descriptor for each matrix would fix their number in the pipeline's signature. A `DescriptorTable` is one parameter, and
`table[i]` one of its descriptors, where `i` may be a block index, a counter, or a number that is read while the pipeline runs. `ragged`
gives each matrix to a CTA, `grouped` gives each box of any matrix to the next CTA of few, by a list that the host has made. Three twins are
broken on purpose: more CTAs than matrices, a list that may name matrices that are not there, and a table of different boxes.

    python examples/17_table.py --input x.npy --output y.npy    # any 2-D float32 array; it is cut into matrices of different sizes
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

import oxidecopy as ox

BOX = (16, 32)
Matrix = ox.TmaDescriptor[ox.f32, ox.D2, ox.Swizzle128B]
Table = ox.DescriptorTable[ox.f32, ox.D2, ox.Swizzle128B]
List = ox.GlobalArray[ox.i32, ox.D1]
Array = npt.NDArray[np.float32]
Data = ox.GlobalArray[ox.f32, ox.D2]


# ---- a matrix for each CTA
# What all entries share is fixed when the table is made: element type, box, swizzle. So tiles and rings are made like those of any entry,
# and a stage's bytes are the same whichever matrix they come from.
@ox.pipeline(warps=ox.roles(producer=1, consumers=(), store=1))
def ragged(cta: ox.Cta, src: Table, dst: Table) -> None:
    matrix, x = cta.block_idx.y, cta.block_idx.x * BOX[1]
    ring = cta.ring(stages=3, tiles=(src[0],))

    # What they do not share is known at the launch. `shape` of an entry that is chosen at run time is an integer like any other: each CTA
    # goes down its own matrix, in as many steps as that has. Loads behind its right edge fill with zeros, stores there write nothing.
    rows, _ = src[matrix].shape
    steps = (rows + BOX[0] - 1) // BOX[0]
    with cta.producer() as leader:
        for y in cta.range(steps):
            with ring.produce(leader) as (slot,):
                slot.load(src[matrix], (y * BOX[0], x))
    with cta.storer() as leader:
        for y in cta.range(steps):
            ring.forward(leader, dst[matrix], (y * BOX[0], x))


@ragged.recipe
def ragged_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    x, parts, out = batch(dev, x)
    # CTAs for every matrix, and beside each other for the widest.
    across = max(-(-part.columns // BOX[1]) for part in parts)
    src, dst = table([part.src for part in parts]), table([part.dst for part in parts])
    return ox.Recipe(launch=ragged[across, len(parts)].bind(src, dst), outputs={"out": out}, expected={"out": x})


# ---- a box for each turn
# A few CTAs for all boxes of all matrices: the host writes down which box is where, three numbers each, and the CTAs take every n-th of
# that list. An entry that is read from memory is checked against its bound on the device, and the proof covers all entries below it.
@ox.pipeline(warps=ox.roles(producer=1, consumers=(), store=1))
def grouped(cta: ox.Cta, src: Table, dst: Table, which: List, row: List, column: List, most: ox.Idx) -> None:
    ring = cta.ring(stages=3, tiles=(src[0],))
    first, ctas = cta.block_idx.x, cta.grid_dim.x
    mine = (which.shape[0] - first + ctas - 1) // ctas

    with cta.producer() as leader:
        for k in cta.range(mine):
            turn = first + k * ctas
            matrix = cta.load_index(which, turn, below=len(src))
            at = (cta.load_index(row, turn, below=most) * BOX[0], cta.load_index(column, turn, below=most) * BOX[1])
            with ring.produce(leader) as (slot,):
                slot.load(src[matrix], at)

    # The storer reads the same list: both see the same numbers, as nobody writes them meanwhile.
    with cta.storer() as leader:
        for k in cta.range(mine):
            turn = first + k * ctas
            matrix = cta.load_index(which, turn, below=len(dst))
            at = (cta.load_index(row, turn, below=most) * BOX[0], cta.load_index(column, turn, below=most) * BOX[1])
            ring.forward(leader, dst[matrix], at)


@grouped.recipe
def grouped_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    x, parts, out = batch(dev, x)
    src, dst = table([part.src for part in parts]), table([part.dst for part in parts])
    boxes = np.array(
        [(i, *at) for i, part in enumerate(parts) for at in np.ndindex(-(-part.rows // BOX[0]), -(-part.columns // BOX[1]))], np.int32
    )
    which, row, column = (dev.array(np.ascontiguousarray(numbers), ox.i32) for numbers in boxes.T)
    most = int(boxes[:, 1:].max()) + 1
    return ox.Recipe(launch=grouped[4].bind(src, dst, which, row, column, most), outputs={"out": out}, expected={"out": x})


# ---- the matrices
class Part(NamedTuple):
    """A matrix of the batch: its size, where it is read, and where it is written."""

    rows: int
    columns: int
    src: Data
    dst: Data


def batch(dev: ox.Device, x: Array | None) -> tuple[Array, list[Part], Data]:
    """An array on the device and one like it, both cut into matrices of different sizes."""
    if x is None:
        x = np.random.default_rng(17).standard_normal((130, 100), dtype=np.float32)
    a, out = dev.array(x, ox.f32, pad=True), dev.empty(x.shape, ox.f32, pad=True)
    table([a, out])  # the whole array is checked first: it has two dimensions, as the box has
    rows, columns = x.shape
    parts: list[Part] = []
    for i, (top, bottom) in enumerate(pairwise(sorted({0, rows // 7, rows // 2, rows}))):
        middle = columns * (i + 1) // 4 // 4 * 4  # arrays of descriptors start at multiples of 16 bytes
        for left, right in pairwise(sorted({0, middle, columns})):
            size = (bottom - top, right - left)
            parts.append(Part(*size, window(a, (top, left), size), window(out, (top, left), size)))
    return x, parts, out


def window(a: Data, start: tuple[int, int], size: tuple[int, int]) -> Data:
    """A part of an array as an array: the same memory, from another element on."""
    offset = a.offset_bytes + sum(i * stride for i, stride in zip(start, a.strides_bytes, strict=True))
    return ox.GlobalArray(dtype=ox.f32, shape=size, strides_bytes=a.strides_bytes, buffer=a.buffer, device=a.device, offset_bytes=offset)


def table(parts: Sequence[Data]) -> Table:
    """One descriptor for each; their arrays may differ in all but what `BOX` and swizzle say."""
    return ox.DescriptorTable([ox.TmaDescriptor.tiled(part, box=BOX, swizzle=ox.Swizzle128B) for part in parts])


# ---- broken on purpose: more CTAs than matrices
# What lies behind the table is no map, and the copy engine would take it for one. The verifier knows the grid and the table.
@ox.pipeline(threads=32)
def broken_grid(cta: ox.Cta, src: Table) -> None:
    tile = cta.shared(src[0])
    full = cta.barrier().init(1)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        src[cta.block_idx.x].g2s(leader, tile, (0, 0), token)
    full.wait(token)


@broken_grid.recipe(refused="OX3089")
def broken_grid_recipe(dev: ox.Device) -> ox.Recipe:
    _, parts, _ = batch(dev, None)
    src = table([part.src for part in parts])
    return ox.Recipe(launch=broken_grid[len(src) + 1].bind(src), outputs={})  # the edit: one more


# ---- broken on purpose: a bound that is too large
# The list could name any number below its bound, and the proof takes all of them.
@ox.pipeline(threads=32)
def broken_bound(cta: ox.Cta, src: Table, which: List) -> None:
    tile = cta.shared(src[0])
    full = cta.barrier().init(1)
    matrix = cta.load_index(which, cta.block_idx.x, below=which.shape[0])  # the edit: not len(src)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        src[matrix].g2s(leader, tile, (0, 0), token)
    full.wait(token)


@broken_bound.recipe(refused="OX3089")
def broken_bound_recipe(dev: ox.Device) -> ox.Recipe:
    _, parts, _ = batch(dev, None)
    which = dev.array(np.arange(64, dtype=np.int32), ox.i32)
    return ox.Recipe(launch=broken_bound[64].bind(table([part.src for part in parts]), which), outputs={})


# ---- broken on purpose: a table of different boxes
# The tile and the bytes that a copy announces are those of the box, and must not depend on which entry it will be.
@ox.pipeline(threads=32)
def broken_boxes(cta: ox.Cta, src: Table) -> None:
    cta.shared(src[0])


@broken_boxes.recipe(refused="OX2031")
def broken_boxes_recipe(dev: ox.Device) -> ox.Recipe:
    _, parts, _ = batch(dev, None)
    maps = [ox.TmaDescriptor.tiled(part.src, box=(16 + i, 32), swizzle=ox.Swizzle128B) for i, part in enumerate(parts)]  # the edit: + i
    return ox.Recipe(launch=broken_boxes[1].bind(ox.DescriptorTable(maps)), outputs={})


def main(argv: Sequence[str] | None = None) -> int:
    return ox.run_recipes(__doc__, ragged, grouped, broken_grid, broken_bound, broken_boxes, argv=argv)


if __name__ == "__main__":
    raise SystemExit(main())
