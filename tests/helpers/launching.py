"""A pipeline of one tile per CTA, for tests of launching: `out` becomes `src`."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

import oxidecopy as ox

Src: TypeAlias = ox.TmaDescriptor[ox.f32, ox.D2]
Out: TypeAlias = ox.GlobalArray[ox.f32, ox.D2]


def copy_pipeline() -> ox.Pipeline[[Src, Out]]:
    """A fresh one: nothing is recorded yet. Boxes of 16 x 16."""

    @ox.pipeline(threads=32)
    def load(cta: ox.Cta, src: Src, out: Out) -> None:
        tile = cta.shared(src)
        full = cta.barrier().init(1)
        at = (cta.block_idx.y * 16, cta.block_idx.x * 16)
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile)
            src.g2s(leader, tile, at, token)
        full.wait(token)
        cta.store(out, tile, at)
        full.inval()

    return load


def numbers(first: int = 0, rows: int = 32, cols: int = 32) -> npt.NDArray[np.float32]:
    """`rows` x `cols` numbers from `first` on."""
    return np.arange(first, first + rows * cols, dtype=np.float32).reshape(rows, cols)


def descriptor(array: Out) -> Src:
    """With boxes of 16 x 16."""
    return ox.TmaDescriptor.tiled(array, box=(16, 16))


# ---- what does not fit into the launch parameter: more than 8 maps, more than 4 KiB of code
@ox.pipeline(threads=32)
def nine(cta: ox.Cta, a: Src, b: Src, c: Src, d: Src, e: Src, f: Src, g: Src, h: Src, i: Src, out: Out) -> None:
    full = cta.barrier().init(1)
    tile = cta.shared(a)
    for n, src in enumerate((a, b, c, d, e, f, g, h, i)):
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile)
            src.g2s(leader, tile, (0, 0), token)
        full.wait(token)
        cta.store(out, tile, (16 * n, 0))
        cta.sync()
    full.inval()


@ox.pipeline(threads=32)
def long(cta: ox.Cta, src: Src, out: Out) -> None:
    full = cta.barrier().init(1)
    tile = cta.shared(src)
    for n in range(60):
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile)
            src.g2s(leader, tile, (n % 16, 0), token)
        full.wait(token)
        cta.store(out, tile, (16 * n, 0))
        cta.sync()
    full.inval()
