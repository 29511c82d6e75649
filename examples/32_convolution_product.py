"""A convolution as a product: copies bring the pixels under each tap, the tensor cores multiply them.

The result has a row for each pixel and a column for each filter. K runs over taps, and for each tap over channels: a stage has 64 pixels,
shifted by one tap, and the weights of all filters for it. Nothing is written out: the padding and the shifts are the copy's. Two twins are
broken on purpose: a pixel where its filter base is asked for, and a tap that is loaded and not multiplied.

    python examples/32_convolution_product.py --input x.npy --output y.npy     # any 4-D float32 array: its signs are filtered
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

import oxidecopy as ox

PIXELS, FILTERS, CHANNELS = 64, 64, 64  # of a stage
CTAS = 3
TAPS = [(row, column) for row in range(3) for column in range(3)]
Images = ox.Im2colDescriptor[ox.f16, ox.D4, ox.Swizzle128B]
Matrix = ox.TmaDescriptor[ox.f16, ox.D2, ox.Swizzle128B]
Array = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.float64]


# ---- a stage for each tap and 64 channels
# Weights are (filters, slabs * taps * 64): those of tap t for slab s of 64 channels begin at column (9 * s + t) * 64. Channels behind the
# last one are zeros, as everything outside of an array.
def body(cta: ox.Cta, x: Images, w: Matrix, y: Matrix, *, corner: int = 1, taps: int = len(TAPS)) -> None:
    ring, outs = cta.ring(stages=4, tiles=(x, w)), cta.store_ring(y, stages=2)
    _, rows, columns, channels = x.shape
    slabs = (channels + CHANNELS - 1) // CHANNELS
    with cta.producer() as leader:
        for pixel, filter_ in cta.tiles(y, box=(PIXELS, FILTERS)):
            base = (pixel // (rows * columns), pixel // columns % rows - corner, pixel % columns - corner)
            for slab in cta.range(slabs):
                for t, tap in enumerate(TAPS):  # Python's loop: nine produce blocks, one after the other
                    with ring.produce(leader) as (pixels, weights):
                        pixels.load(x, (*base, slab * CHANNELS), offsets=tap)
                        weights.load(w, (filter_, (slab * len(TAPS) + t) * CHANNELS))
    with cta.consumers() as group:
        for at in cta.tiles(y, box=(PIXELS, FILTERS)):
            group.contract(ring, outs, at, steps=slabs * taps, epilogue=lambda s: s.relu().cast(ox.f16))


@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def convolution(cta: ox.Cta, x: Images, w: Matrix, y: Matrix) -> None:
    body(cta, x, w, y)


@convolution.recipe
def convolution_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    return recipe(dev, convolution, x)


def recipe(dev: ox.Device, pipeline: ox.Pipeline[Images, Matrix, Matrix], given: Array | None = None) -> ox.Recipe:
    rng = np.random.default_rng(32)
    x = signs(dev, rng.standard_normal((2, 9, 13, 40), dtype=np.float32) if given is None else given)
    w = rng.integers(-1, 2, (72, 3, 3, x.shape[3])).astype(np.float64)
    images, weights = dev.array(x.astype(np.float16), ox.f16, pad=True), dev.array(by_slabs(w).astype(np.float16), ox.f16)
    src = ox.TmaDescriptor.im2col(images, lower=(-1, -1), upper=(-1, -1), channels=CHANNELS, pixels=PIXELS, swizzle=ox.Swizzle128B)
    out = dev.zeros((x.size // x.shape[3], len(w)), ox.f16)
    filters = ox.TmaDescriptor.tiled(weights, box=(FILTERS, CHANNELS), swizzle=ox.Swizzle128B)
    result = ox.TmaDescriptor.tiled(out, box=(64, 64), swizzle=ox.Swizzle128B)
    launch = pipeline[CTAS].bind(src, filters, result)
    return ox.Recipe(launch=launch, outputs={"y": out}, expected={"y": filtered(x, w).astype(np.float16)})


def signs(dev: ox.Device, x: Array) -> Numbers:
    """Of a user's array, which is looked at by the maker of descriptors: it refuses what is no array of f32 with four dimensions."""
    ox.TmaDescriptor.tiled(dev.array(x, ox.f32, pad=True), box=(1, 1, 1, 4))
    return np.sign(x).astype(np.float64)


def by_slabs(w: Numbers) -> Numbers:
    """Weights in the order of the stages: 64 channels of each tap, then the next 64."""
    filters, _, _, channels = w.shape
    padded = np.pad(w, ((0, 0), (0, 0), (0, 0), (0, -channels % CHANNELS)))
    made: Numbers = padded.reshape(filters, len(TAPS), -1, CHANNELS).swapaxes(1, 2).reshape(filters, -1)
    return made


def filtered(x: Numbers, w: Numbers) -> Numbers:
    _, rows, columns, channels = x.shape
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    sums = sum(padded[:, r : r + rows, c : c + columns].reshape(-1, channels) @ w[:, r, c].T for r, c in TAPS)
    made: Numbers = np.maximum(np.asarray(sums), 0)
    return made


# ---- broken on purpose: a pixel for its base
# A load begins at the corner of a filter's window, one row up and one column to the left of its pixel.
@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def broken_base(cta: ox.Cta, x: Images, w: Matrix, y: Matrix) -> None:
    body(cta, x, w, y, corner=0)  # the edit: not 1


@broken_base.recipe(refused="OX3095")
def broken_base_recipe(dev: ox.Device) -> ox.Recipe:
    return recipe(dev, broken_base)


# ---- broken on purpose: a tap left out
# Nine stages are filled for a tile and eight multiplied: the ninth is taken for the first of the next tile.
@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def broken_taps(cta: ox.Cta, x: Images, w: Matrix, y: Matrix) -> None:
    body(cta, x, w, y, taps=8)  # the edit: not 9


@broken_taps.recipe(refused="OX3051")
def broken_taps_recipe(dev: ox.Device) -> ox.Recipe:
    return recipe(dev, broken_taps)


def main(argv: Sequence[str] | None = None) -> int:
    return ox.run_recipes(__doc__, convolution, broken_base, broken_taps, argv=argv)


if __name__ == "__main__":
    raise SystemExit(main())
