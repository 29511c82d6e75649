"""A convolution's feed: im2col loads bring the pixels under each tap of a filter, as a product's operand.

A convolution is a product of pixels and weights. Copies through an im2col descriptor walk over pixels as they lie in the image, across rows
and from one image to the next, shifted by the tap and zero in the padding. So a ring is fed one stage for each tap, as a product's
mainloop for each slab; CUTLASS calls this implicit GEMM. Here each channel is filtered by itself, by Sobel's filter. Three twins are
broken on purpose: a pixel where its filter base is asked for, taps that one role leaves out, and a store that reaches into the padding.

    python examples/23_convolution.py --input x.npy --output y.npy     # any 4-D float32 array: images, rows, columns, channels
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

import oxidecopy as ox

PIXELS, CHANNELS = 32, 32  # of a tile
CTAS = 3
# Sobel's filter: six taps at (row, column), each with its weight; the other three are zero.
TAPS = {(row, column): (1.0, 2.0, 1.0)[row] * (column - 1) for row in range(3) for column in (0, 2)}
ALL = [(row, column) for row in range(3) for column in range(3)]
Images = ox.Im2colDescriptor[ox.f32, ox.D4]
Pixels = ox.TmaDescriptor[ox.f32, ox.D2]
Array = npt.NDArray[np.float32]


# ---- taps
# The result has a row for each pixel. A load starts at a filter *base*, the corner of the filter's window, which the descriptor's corners
# let begin one row and one column outside the image: that of pixel (row, column) is (row - 1, column - 1). `offsets` choose the tap.
def body(cta: ox.Cta, src: Images, dst: Pixels, *, corner: int = 1, loaded: Sequence[tuple[int, int]] = tuple(TAPS)) -> None:
    ring, results = cta.ring(stages=4, tiles=(src,)), cta.store_ring(dst, stages=2)
    _, rows, columns, _ = src.shape
    with cta.producer() as leader:
        for pixel, channel in cta.tiles(dst):
            base = (pixel // (rows * columns), pixel // columns % rows - corner, pixel % columns - corner, channel)
            for tap in loaded:  # Python's loop: a stage for each tap, one after the other
                with ring.produce(leader) as (slot,):
                    slot.load(src, base, offsets=tap)
    with cta.consumers() as group:
        for at in cta.tiles(dst):
            with results.put(group, at) as sums:
                group.fill(sums, 0)
                group.sync()
                for weight in TAPS.values():
                    with ring.consume(group) as (tile,):
                        multiply_add(group, tile, weight, sums)


def multiply_add(group: ox.Group, tile: ox.Landed[ox.f32], weight: float, sums: ox.SharedArray[ox.f32]) -> None:
    group.map(lambda s, v: s + v * weight, sums, tile, out=sums)


@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def edges(cta: ox.Cta, src: Images, dst: Pixels) -> None:
    body(cta, src, dst)


@edges.recipe
def edges_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    return recipe(dev, x, edges)


def recipe(dev: ox.Device, x: Array | None, pipeline: ox.Pipeline[Images, Pixels]) -> ox.Recipe:
    if x is None:
        x = np.random.default_rng(23).standard_normal((2, 9, 13, 40), dtype=np.float32)
    src = images(dev.array(x, ox.f32, pad=True))
    out = dev.empty((x.size // x.shape[3], x.shape[3]), ox.f32, pad=True)
    dst = ox.TmaDescriptor.tiled(out, box=(PIXELS, CHANNELS))
    return ox.Recipe(launch=pipeline[CTAS].bind(src, dst), outputs={"out": out}, expected={"out": filtered(x)})


def images(array: ox.GlobalArray[ox.f32, ox.D4]) -> Images:
    return ox.TmaDescriptor.im2col(array, lower=(-1, -1), upper=(-1, -1), channels=CHANNELS, pixels=PIXELS)


def filtered(x: Array) -> Array:
    _, rows, columns, channels = x.shape
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    sums = np.zeros_like(x)
    for (row, column), weight in TAPS.items():
        sums += padded[:, row : row + rows, column : column + columns] * np.float32(weight)
    return sums.reshape(-1, channels)


# ---- broken on purpose: a pixel for its base
# Pixel (0, 0) is taken for a base, so every window is one row and one column off, and the last pixels are outside the box of bases: there
# the copy faults.
@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def broken_base(cta: ox.Cta, src: Images, dst: Pixels) -> None:
    body(cta, src, dst, corner=0)  # the edit: not 1


@broken_base.recipe(refused="OX3095")
def broken_base_recipe(dev: ox.Device) -> ox.Recipe:
    return recipe(dev, None, broken_base)


# ---- broken on purpose: taps left out by one role
# Who multiplies skips the zeros, who loads does not know of them: after one tile the two are three stages apart.
@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def broken_taps(cta: ox.Cta, src: Images, dst: Pixels) -> None:
    body(cta, src, dst, loaded=ALL)  # the edit: not `tuple(TAPS)`


@broken_taps.recipe(refused="OX3012")
def broken_taps_recipe(dev: ox.Device) -> ox.Recipe:
    return recipe(dev, None, broken_taps)


# ---- broken on purpose: a store into the padding
# What is loaded could be stored the same way, through an im2col map. But a store knows no padding: bases outside the image lie in other
# memory.
@ox.pipeline(threads=128)
def broken_store(cta: ox.Cta, src: Images, dst: Images) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile)
        src.g2s(leader, tile, (0, -1, -1, 0), token, offsets=(1, 1))
        full.wait(token)
        dst.s2g(leader, tile, (0, -1, -1, 0))
        leader.commit_group()
        leader.wait_group_read(0)


@broken_store.recipe(refused="OX3096")
def broken_store_recipe(dev: ox.Device) -> ox.Recipe:
    x = np.zeros((2, 9, 13, 40), np.float32)
    out = dev.empty(x.shape, ox.f32, pad=True)
    dst = images(out)  # the edit: not a map with corners of zero, and bases to fit
    return ox.Recipe(launch=broken_store[1].bind(images(dev.array(x, ox.f32, pad=True)), dst), outputs={"out": out})


def main(argv: Sequence[str] | None = None) -> int:
    return ox.run_recipes(__doc__, edges, broken_base, broken_taps, broken_store, argv=argv)


if __name__ == "__main__":
    raise SystemExit(main())
