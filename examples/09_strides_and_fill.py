"""Element strides and NaN fill: load every second row, and mark what lies outside the array.

Both are properties of the descriptor, so the pipelines look like those of the other lessons. One twin is broken on purpose: it announces
the bytes of the whole box, of which only every second row arrives.

    python examples/09_strides_and_fill.py --input x.npy --output y.npy    # any 2-D float32 array
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

import oxidecopy as ox

BOX = (64, 32)
Source = ox.TmaDescriptor[ox.f32, ox.D2]
Result = ox.GlobalArray[ox.f32, ox.D2]
Array = npt.NDArray[np.float32]


# ---- every second row
# `element_strides=(2, 1)`: of the 64 rows of a box the copy takes number 0, 2, 4, ... so a tile has 32. `cta.shared(src)` knows that, and
# `tile.nbytes` as well. Coordinates still count the elements of the array, not those that are taken.
@ox.pipeline(threads=128)
def every_second(cta: ox.Cta, src: Source, out: Result) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    y, x = cta.block_idx.y * 64, cta.block_idx.x * 32
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        src.g2s(leader, tile, (y, x), token)
    full.wait(token)
    cta.store(out, tile, (cta.block_idx.y * 32, x))
    full.inval()


@every_second.recipe
def every_second_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    x, src, out, grid = arguments(dev, x)
    return ox.Recipe(launch=every_second[grid].bind(src, out), outputs={"out": out}, expected={"out": x[::2]})


def arguments(dev: ox.Device, x: Array | None) -> tuple[Array, Source, Result, ox.Grid]:
    """Boxes of 64 x 32 over the array, tiles of 32 x 32 over the result."""
    if x is None:
        x = np.random.default_rng(9).standard_normal((150, 70), dtype=np.float32)
    src = ox.TmaDescriptor.tiled(dev.array(x, ox.f32, pad=True), box=BOX, element_strides=(2, 1))
    rows, cols = x.shape
    out = dev.empty((-(-rows // 2), cols), ox.f32)
    return x, src, out, ox.Grid(x=-(-cols // 32), y=-(-rows // 64))


# ---- NaN outside
# With `oob_fill="nan"` what a load finds outside the array becomes NaN. A result that reads over the edge by mistake shows it, where zeros
# would pass for data. Here the result is larger than the source, so the fill can be seen. Only floating-point types have it.
@ox.pipeline(threads=128)
def framed(cta: ox.Cta, src: Source, out: Result) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    y, x = cta.block_idx.y * 64, cta.block_idx.x * 32
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        src.g2s(leader, tile, (y - 2, x - 4), token)
    full.wait(token)
    cta.store(out, tile, (y, x))
    full.inval()


@framed.recipe
def framed_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    if x is None:
        x = np.random.default_rng(9).standard_normal((100, 70), dtype=np.float32)
    src = ox.TmaDescriptor.tiled(dev.array(x, ox.f32, pad=True), box=BOX, oob_fill="nan")
    rows, cols = x.shape[0] + 4, x.shape[1] + 8
    out = dev.empty((rows, cols), ox.f32)
    expected = np.full((rows, cols), np.nan, np.float32)
    expected[2:-2, 4:-4] = x
    return ox.Recipe(launch=framed[-(-cols // 32), -(-rows // 64)].bind(src, out), outputs={"out": out}, expected={"out": expected})


# ---- broken on purpose: the bytes of the whole box
# 64 rows are announced and 32 arrive: the barrier waits for the others for ever.
@ox.pipeline(threads=128)
def broken_box(cta: ox.Cta, src: Source, out: Result) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    y, x = cta.block_idx.y * 64, cta.block_idx.x * 32
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, 64 * 32 * 4)  # the edit: not `tile.nbytes`
        src.g2s(leader, tile, (y, x), token)
    full.wait(token)
    cta.store(out, tile, (cta.block_idx.y * 32, x))
    full.inval()


@broken_box.recipe(refused="OX3020")
def broken_box_recipe(dev: ox.Device) -> ox.Recipe:
    x, src, out, grid = arguments(dev, None)
    return ox.Recipe(launch=broken_box[grid].bind(src, out), outputs={"out": out}, expected={"out": x[::2]})


def main(argv: Sequence[str] | None = None) -> int:
    return ox.run_recipes(__doc__, every_second, framed, broken_box, argv=argv)


if __name__ == "__main__":
    raise SystemExit(main())
