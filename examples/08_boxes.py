"""Boxes of rank 3, 4 and 5: one instruction moves a block of an array of up to five dimensions.

A box is cut out of an array as numpy's basic slices are, and lands in shared memory in the array's order: the last dimension is
contiguous. Coordinates and extents are outermost first everywhere. One twin is broken on purpose: its tile is aligned too weakly for the
swizzle, which a type checker sees, too.

    python examples/08_boxes.py --pipeline volume --input x.npy --output y.npy    # 3-D: volume, 4-D: batch, 5-D: batch_of_volumes
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

import oxidecopy as ox


# ---- three dimensions
# A grid has three, too, so each block index gives one coordinate.
@ox.pipeline(threads=64)
def volume(cta: ox.Cta, src: ox.TmaDescriptor[ox.f32, ox.D3], out: ox.GlobalArray[ox.f32, ox.D3]) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    at = (cta.block_idx.z * 4, cta.block_idx.y * 8, cta.block_idx.x * 32)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        src.g2s(leader, tile, at, token)
    full.wait(token)
    cta.store(out, tile, at)
    full.inval()


@volume.recipe
def volume_recipe(dev: ox.Device, x: npt.NDArray[np.float32] | None = None) -> ox.Recipe:
    if x is None:
        x = np.arange(6 * 20 * 70, dtype=np.float32).reshape(6, 20, 70)
    src = ox.TmaDescriptor.tiled(dev.array(x, ox.f32, pad=True), box=(4, 8, 32))
    out = dev.empty(x.shape, ox.f32)
    planes, rows, cols = x.shape
    launch = volume[-(-cols // 32), -(-rows // 8), -(-planes // 4)].bind(src, out)
    return ox.Recipe(launch=launch, outputs={"out": out}, expected={"out": x})


# ---- four dimensions
# From the fourth on, a block index holds two coordinates, taken apart by division. A divisor must be one value for the whole launch: a
# number, an `Idx` parameter or, as here, something made of the extents of the array, which the descriptor knows.
#
# The tile is swizzled: rows of 128 bytes, whose 16-byte pieces are permuted so that a column of them lies in different banks. `cta.store`
# undoes it; what reads shared memory itself must know of it. That is why the swizzle is part of the descriptor's type.
Swizzled = ox.TmaDescriptor[ox.f16, ox.D4, ox.Swizzle128B]


@ox.pipeline(threads=64)
def batch(cta: ox.Cta, src: Swizzled, out: ox.GlobalArray[ox.f16, ox.D4]) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    channels = src.shape[1]
    n, c = cta.block_idx.z // channels, cta.block_idx.z % channels
    at = (n, c, cta.block_idx.y * 16, cta.block_idx.x * 64)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        src.g2s(leader, tile, at, token)
    full.wait(token)
    cta.store(out, tile, at)
    full.inval()


@batch.recipe
def batch_recipe(dev: ox.Device, x: npt.NDArray[np.float16] | None = None) -> ox.Recipe:
    if x is None:
        x = np.random.default_rng(8).standard_normal((2, 3, 20, 100)).astype(np.float16)
    src = ox.TmaDescriptor.tiled(dev.array(x, ox.f16, pad=True), box=(1, 1, 16, 64), swizzle=ox.Swizzle128B)
    out = dev.empty(x.shape, ox.f16)
    number, channels, rows, cols = x.shape
    launch = batch[-(-cols // 64), -(-rows // 16), number * channels].bind(src, out)
    return ox.Recipe(launch=launch, outputs={"out": out}, expected={"out": x})


# ---- five dimensions
# The most that a tensor map has. Bytes this time: 16 of them are the smallest box that a copy can move.
@ox.pipeline(threads=64)
def batch_of_volumes(cta: ox.Cta, src: ox.TmaDescriptor[ox.u8, ox.D5], out: ox.GlobalArray[ox.u8, ox.D5], groups: ox.Idx) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    channels = src.shape[1]
    z, group = cta.block_idx.z // groups, cta.block_idx.z % groups
    at = (z // channels, z % channels, group * 2, cta.block_idx.y * 4, cta.block_idx.x * 16)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        src.g2s(leader, tile, at, token)
    full.wait(token)
    cta.store(out, tile, at)
    full.inval()


@batch_of_volumes.recipe
def batch_of_volumes_recipe(dev: ox.Device, x: npt.NDArray[np.uint8] | None = None) -> ox.Recipe:
    if x is None:
        x = np.random.default_rng(8).integers(256, size=(2, 2, 3, 9, 21), dtype=np.uint8)
    src = ox.TmaDescriptor.tiled(dev.array(x, ox.u8, pad=True), box=(1, 1, 2, 4, 16))
    out = dev.empty(x.shape, ox.u8)
    number, channels, planes, rows, cols = x.shape
    groups = -(-planes // 2)
    launch = batch_of_volumes[-(-cols // 16), -(-rows // 4), number * channels * groups].bind(src, out, groups)
    return ox.Recipe(launch=launch, outputs={"out": out}, expected={"out": x})


# ---- broken on purpose: an alignment too weak
# The pattern of a 128-byte swizzle repeats every 1,024 bytes of shared memory. From a tile that starts in the middle of it the same
# program would read rotated rows: wrong numbers, no fault. The comments that silence mypy and ty are the proof that both see the mistake:
# they complain about such a comment where there is nothing to silence. The recorder sees it without any checker.
@ox.pipeline(threads=64)
def broken_align(cta: ox.Cta, src: Swizzled, out: ox.GlobalArray[ox.f16, ox.D4]) -> None:
    tile = cta.shared(ox.f16, (1, 1, 16, 64), align=ox.A128)  # the edit: not `cta.shared(src)`, which would be aligned to 1,024
    full = cta.barrier().init(1)
    channels = src.shape[1]
    n, c = cta.block_idx.z // channels, cta.block_idx.z % channels
    at = (n, c, cta.block_idx.y * 16, cta.block_idx.x * 64)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        src.g2s(leader, tile, at, token)  # type: ignore[arg-type]  # ty: ignore[no-matching-overload]
    full.wait(token)
    cta.store(out, tile, at)
    full.inval()


@broken_align.recipe(refused="OX1010")
def broken_align_recipe(dev: ox.Device) -> ox.Recipe:
    a, out = dev.zeros((1, 1, 16, 64), ox.f16), dev.empty((1, 1, 16, 64), ox.f16)
    src = ox.TmaDescriptor.tiled(a, box=(1, 1, 16, 64), swizzle=ox.Swizzle128B)
    return ox.Recipe(launch=broken_align[1].bind(src, out), outputs={"out": out})


def main(argv: Sequence[str] | None = None) -> int:
    return ox.run_recipes(__doc__, volume, batch, batch_of_volumes, broken_align, argv=argv)


if __name__ == "__main__":
    raise SystemExit(main())
