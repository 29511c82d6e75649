"""Remainder tiles and padded strides: extents that no box divides, rows of any length.

A tensor map knows the extents of its array, so a box that reaches over the edge needs no special code: loads fill what lies outside with
zeros, stores leave it out. What the hardware does insist on is the layout: rows must start a multiple of 16 bytes apart, and a copy must
start at a multiple of 16 bytes in its row. Two launches are broken on purpose: one without the padding, one off the 16-byte grid.

    python examples/05_remainders.py --input x.npy --output y.npy  # any 2-D float32 array
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

import oxidecopy as ox

BOX = (32, 64)
Map = ox.TmaDescriptor[ox.f32, ox.D2]
Result = ox.GlobalArray[ox.f32, ox.D2]
Array = npt.NDArray[np.float32]


# ---- a copy that never touches a register
# In by one tensor copy, out by another. A box at the last column or row is loaded in full as far as the barrier is concerned: `tile.nbytes`
# is announced for it as for any other, and the bytes outside the array count as landed zeros. There is no "last tile" case.
@ox.pipeline(threads=32)
def copy(cta: ox.Cta, src: Map, dst: Map) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    y, x = cta.block_idx.y * 32, cta.block_idx.x * 64
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        src.g2s(leader, tile, (y, x), token)
        full.wait(token)  # the thread that stores is the one that must know that the tile has landed
        dst.s2g(leader, tile, (y, x))
        leader.commit_group()
        leader.wait_group_read(0)
    full.inval()


@copy.recipe
def copy_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    x, src, dst, out, grid = arguments(dev, x, pad=True)
    return ox.Recipe(launch=copy[grid].bind(src, dst), outputs={"out": out}, expected={"out": x})


def arguments(dev: ox.Device, x: Array | None, *, pad: bool) -> tuple[Array, Map, Map, Result, ox.Grid]:
    """As many boxes as cover the array, counted with a division that rounds up."""
    if x is None:
        # Neither extent fits the box, and 201 elements are 804 bytes, which 16 does not divide.
        x = np.random.default_rng(5).standard_normal((70, 201), dtype=np.float32)
    a = dev.array(x, ox.f32, pad=pad)
    out = dev.empty(x.shape, ox.f32, pad=pad)
    # With `pad=True` the strides in memory are larger than the rows: 816 bytes for 804. numpy never sees it; `out.numpy()` is dense again.
    src, dst = ox.TmaDescriptor.tiled(a, box=BOX), ox.TmaDescriptor.tiled(out, box=BOX)
    rows, cols = x.shape
    return x, src, dst, out, ox.Grid(x=-(-cols // 64), y=-(-rows // 32))


# ---- coordinates below zero
# A load may start anywhere, below zero too: what lies outside is filled. Here each box is loaded from one row further up and 4 elements (16
# bytes) further left than it is stored to, which shifts the array and brings zeros in at two sides: the halo of a stencil. (A store must
# not start below zero: the hardware faults, and the verifier refuses it.)
@ox.pipeline(threads=32)
def shift(cta: ox.Cta, src: Map, dst: Map) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    y, x = cta.block_idx.y * 32, cta.block_idx.x * 64
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        src.g2s(leader, tile, (y - 1, x - 4), token)
        full.wait(token)
        dst.s2g(leader, tile, (y, x))
        leader.commit_group()
        leader.wait_group_read(0)
    full.inval()


@shift.recipe
def shift_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    x, src, dst, out, grid = arguments(dev, x, pad=True)
    moved = np.zeros_like(x)
    moved[1:, 4:] = x[:-1, :-4]
    return ox.Recipe(launch=shift[grid].bind(src, dst), outputs={"out": out}, expected={"out": moved})


# ---- broken on purpose: no padding
# The pipeline is the one above; what is wrong is the array that it is launched with. The descriptor says so on the host, before anything
# reaches a driver (which would only answer "invalid value").
@copy.recipe(refused="OX2006")
def broken_pad_recipe(dev: ox.Device) -> ox.Recipe:
    x, src, dst, out, grid = arguments(dev, None, pad=False)  # the edit: not `pad=True`
    return ox.Recipe(launch=copy[grid].bind(src, dst), outputs={"out": out}, expected={"out": x})


# ---- broken on purpose: off the 16-byte grid
# One element further left is 4 bytes, and the hardware answers "illegal instruction" to it.
@ox.pipeline(threads=32)
def broken_shift(cta: ox.Cta, src: Map, dst: Map) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    y, x = cta.block_idx.y * 32, cta.block_idx.x * 64
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        src.g2s(leader, tile, (y - 1, x - 1), token)  # the edit: `x - 1`
        full.wait(token)
        dst.s2g(leader, tile, (y, x))
        leader.commit_group()
        leader.wait_group_read(0)
    full.inval()


@broken_shift.recipe(refused="OX3080")
def broken_shift_recipe(dev: ox.Device) -> ox.Recipe:
    _, src, dst, out, grid = arguments(dev, None, pad=True)
    return ox.Recipe(launch=broken_shift[grid].bind(src, dst), outputs={"out": out})


def main(argv: Sequence[str] | None = None) -> int:
    return ox.run_recipes(__doc__, copy, shift, broken_shift, argv=argv)


if __name__ == "__main__":
    raise SystemExit(main())
