"""A blur: every box is loaded with the pixels around it, as nine boxes that overlap by one pixel.

A pixel is four floats, so 16 bytes, and a box may begin at any of them: one that begins a pixel to the left, or a row above, is a load like
any other. What lies outside of the picture is black: the engine fills it with zeros. The three boxes of a row of pixels are one stage of a
ring, and what they add is kept in a tile. Boxes share all but their edges, which come from L2. One twin is broken on purpose: it takes a
picture with one byte for a pixel, where boxes can begin at every sixteenth pixel only.

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

BOX = (8, 16, 4)  # rows, columns, red to alpha
Picture = ox.TmaDescriptor[ox.f32, ox.D3]
Array = npt.NDArray[np.float32]


# ---- nine boxes
# The weights are 1 2 1 in both directions, 16 in all. The sum begins with the row above; of each row the boxes to the left and to the right
# count once, the one between them twice.
@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def blurred(cta: ox.Cta, src: Picture, dst: Picture) -> None:
    ring = cta.ring(stages=2, tiles=(src, src, src))
    total = cta.shared(src)
    with cta.producer() as leader:
        for y, x, _ in cta.tiles(src):
            for dy in (-1, 0, 1):
                with ring.produce(leader) as (left, middle, right):
                    left.load(src, (y + dy, x - 1, 0))
                    middle.load(src, (y + dy, x, 0))
                    right.load(src, (y + dy, x + 1, 0))
    with cta.consumers() as group:
        for at in cta.tiles(src):
            group.fill(total, 0)
            for weight in (1 / 16, 2 / 16, 1 / 16):
                group.sync()
                with ring.consume(group) as (left, middle, right):
                    group.map(lambda s, a, b, c: s + (a + b * 2 + c) * weight, total, left, middle, right, out=total)  # noqa: B023  # called here
            group.store(dst, total, at)


@blurred.recipe
def blurred_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    if x is None:
        x = np.random.default_rng(27).random((30, 50, 4), np.float32)
    array: ox.GlobalArray[ox.f32, ox.D3] = dev.array(x, ox.f32)
    src = ox.TmaDescriptor.tiled(array, box=BOX)
    out = dev.empty((len(x), x.shape[1], x.shape[2]), ox.f32)
    return ox.Recipe(launch=blurred[4].bind(src, ox.TmaDescriptor.tiled(out, box=BOX)), outputs={"out": out}, expected={"out": blur(x)})


def blur(x: Array) -> Array:
    """By numpy: the same additions in the same order."""
    around = np.pad(x, ((1, 1), (1, 1), (0, 0)))
    total = np.zeros_like(x)
    for dy, weight in enumerate((1 / 16, 2 / 16, 1 / 16)):
        row = around[dy : dy + len(x)]
        left, middle, right = (row[:, dx : dx + x.shape[1]] for dx in range(3))
        total += (left + middle * np.float32(2) + right) * np.float32(weight)
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
