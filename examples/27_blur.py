"""A blur: every box is loaded with the pixels around it, one more on each side.

A pixel is four floats, so 16 bytes, and a box may begin at any of them: one that begins a pixel to the left and a row above is a load like
any other. What lies outside of the picture is black: the engine fills it with zeros. Boxes share their edges, which come from L2. A stencil
then sums the nine pixels around each one, in the middle of the tile: a tap's place is counted in floats, so the next pixel is four columns
to the right. One twin is broken on purpose: it takes a picture with one byte for a pixel, where boxes can begin at every sixteenth only.

    python examples/27_blur.py --input in.png --output out.png        # a picture (with the package pillow)
    python examples/27_blur.py --input x.npy --output y.npy           # or any (rows, columns, 4) float32 array
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

import oxidecopy as ox

PIXEL = 4  # floats: red to alpha
BOX = (32, 32 * PIXEL)
AROUND = (BOX[0] + 2, BOX[1] + 2 * PIXEL)
# The weights are 1 2 1 in both directions, 16 in all. The sum goes row by row, from left to right.
TAPS = {(y, PIXEL * x): (2 - abs(y)) * (2 - abs(x)) / 16 for y in (-1, 0, 1) for x in (-1, 0, 1)}
Picture = ox.TmaDescriptor[ox.f32, ox.D2]
Array = npt.NDArray[np.float32]


# ---- boxes with a halo
@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def blurred(cta: ox.Cta, src: Picture, dst: Picture) -> None:
    ring, made = cta.ring(stages=2, tiles=(src,)), cta.store_ring(dst, stages=1)
    with cta.producer() as leader:
        for y, x in cta.tiles(dst):
            with ring.produce(leader) as (slot,):
                slot.load(src, (y - 1, x - PIXEL))
    with cta.consumers() as group:
        for at in cta.tiles(dst):
            with ring.consume(group) as (tile,), made.put(group, at) as result:
                group.stencil(tile, taps=TAPS, out=result)


@blurred.recipe
def blurred_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    if x is None:
        x = np.random.default_rng(27).random((50, 60, PIXEL), np.float32)
    out = dev.empty(x.shape, ox.f32)
    src, dst = (ox.TmaDescriptor.tiled(rows(a), box=box) for a, box in ((dev.array(x, ox.f32), AROUND), (out, BOX)))
    return ox.Recipe(launch=blurred[4].bind(src, dst), outputs={"out": out}, expected={"out": blur(x)})


def rows(picture: ox.GlobalArray[ox.f32, Any]) -> ox.GlobalArray[ox.f32, ox.D2]:
    """The same memory as rows of floats."""
    height, width, _ = picture.permute(0, 1, 2).shape  # refused unless there are three dimensions
    return picture.as_strided((height, width * PIXEL), picture.strides_bytes[::2])


def blur(x: Array) -> Array:
    """By numpy: the same products and sums in the same order."""
    around = np.pad(x, ((1, 1), (1, 1), (0, 0)))
    parts = [around[1 + y : 1 + y + len(x), 1 + dx // PIXEL : 1 + dx // PIXEL + x.shape[1]] * np.float32(w) for (y, dx), w in TAPS.items()]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


# ---- broken on purpose: one byte for a pixel
# The box to the left would begin one byte before a multiple of 16.
@ox.pipeline(threads=32)
def broken_bytes(cta: ox.Cta, src: ox.TmaDescriptor[ox.u8, ox.D2], dst: ox.TmaDescriptor[ox.u8, ox.D2]) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    y, x = cta.block_idx.y * 8, cta.block_idx.x * 16
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile)
        src.g2s(leader, tile, (y, x - 1), token)  # the edit: a pixel is not 16 bytes
        full.wait(token)
        dst.s2g(leader, tile, (y, x))
        leader.commit_group()
        leader.wait_group_read(0)


@broken_bytes.recipe(refused="OX3080")
def broken_bytes_recipe(dev: ox.Device) -> ox.Recipe:
    x = np.random.default_rng(27).integers(0, 256, (32, 64), dtype=np.uint8)
    array: ox.GlobalArray[ox.u8, ox.D2] = dev.array(x, ox.u8)
    out = dev.empty((32, 64), ox.u8)
    maps = (ox.TmaDescriptor.tiled(a, box=(8, 16)) for a in (array, out))
    return ox.Recipe(launch=broken_bytes[4, 4].bind(*maps), outputs={"out": out}, expected={"out": x})


# ---- pictures
def pillow() -> Any:
    """The package that reads and writes PNG."""
    try:
        from PIL import Image
    except ImportError:
        raise SystemExit("pictures need the package pillow: pip install 'oxidecopy[images]'") from None
    return Image


def main(argv: Sequence[str] | None = None) -> int:
    args = list(sys.argv[1:] if argv is None else argv)
    pictures = {args[i - 1]: (i, word) for i, word in enumerate(args) if i and word.lower().endswith(".png")}
    with TemporaryDirectory() as folder:
        for option, (i, word) in pictures.items():
            args[i] = str(Path(folder) / f"{option.strip('-')}.npy")
            if option == "--input":
                try:
                    np.save(args[i], np.asarray(pillow().open(word).convert("RGBA"), np.float32) / np.float32(255))
                except OSError as problem:
                    sys.stderr.write(f"{word} cannot be read as a picture: {problem}\n")
                    return 1
        status = ox.run_recipes(__doc__, blurred, broken_bytes, argv=args)
        if not status and "--output" in pictures:
            i, word = pictures["--output"]
            pixels = np.load(args[i])
            pillow().fromarray((pixels * 255 + 0.5).clip(0, 255).astype(np.uint8), "RGBA").save(word)
    return status


if __name__ == "__main__":
    raise SystemExit(main())
