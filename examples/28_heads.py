"""Heads of attention: from (batch, sequence, head, depth) to (batch, head, sequence, depth), as pure copies.

The two arrays differ in the order of their dimensions alone, and elements of a head follow each other in both. So a tensor map over the
result that names its dimensions as the source does takes the boxes as they were loaded: no thread looks at an element. A box of 16 places
and 4 heads is a few long pieces in either array. One twin is broken on purpose: it puts its coordinates in the other order, too.
`ox.copy(None, x.permute(0, 2, 1, 3))` does the same in one line.

    python examples/28_heads.py --input x.npy --output y.npy       # any 4-D float16 array whose depth is a multiple of 8
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

import oxidecopy as ox

BOX = (1, 16, 4, 64)  # batch, places, heads, depth
Heads = ox.TmaDescriptor[ox.f16, ox.D4]
Array = npt.NDArray[np.float16]


# ---- permute
@ox.pipeline(threads=32)
def permuted(cta: ox.Cta, src: Heads, dst: Heads) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    for at in cta.tiles(src, order=ox.order.once):
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile)
            src.g2s(leader, tile, at, token)
            full.wait(token)
            dst.s2g(leader, tile, at)  # the same coordinates: the map has the other order
            leader.commit_group()
            leader.wait_group_read(0)


@permuted.recipe
def permuted_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    x, src, dst, out = arguments(dev, x)
    launch = permuted[boxes(x)].bind(src, dst)
    return ox.Recipe(launch=launch, outputs={"out": out}, expected={"out": x.transpose(0, 2, 1, 3)})


def arguments(dev: ox.Device, x: Array | None) -> tuple[Array, Heads, Heads, ox.GlobalArray[ox.f16, ox.D4]]:
    if x is None:
        x = np.random.default_rng(28).standard_normal((2, 40, 6, 64)).astype(np.float16)
    array: ox.GlobalArray[ox.f16, ox.D4] = dev.array(x, ox.f16)
    src = ox.TmaDescriptor.tiled(array, box=BOX)
    batch, places, heads, depth = x.shape
    out = dev.empty((batch, heads, places, depth), ox.f16)
    return x, src, ox.TmaDescriptor.tiled(out.permute(0, 2, 1, 3), box=BOX), out


def boxes(x: Array) -> int:
    count = 1
    for n, b in zip(x.shape, BOX, strict=True):
        count *= -(-n // b)
    return count


# ---- broken on purpose: turned twice
# Boxes of 16 places by 4 heads, stored as far apart as if they were 4 places by 16 heads: they overlap.
@ox.pipeline(threads=32)
def broken_order(cta: ox.Cta, src: Heads, dst: Heads) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    for at in cta.tiles(src, order=ox.order.once):
        batch, place, head, depth = at
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile)
            src.g2s(leader, tile, at, token)
            full.wait(token)
            dst.s2g(leader, tile, (batch, head, place, depth))  # the edit: not `at`
            leader.commit_group()
            leader.wait_group_read(0)


@broken_order.recipe(refused="OX3201")
def broken_order_recipe(dev: ox.Device) -> ox.Recipe:
    x, src, dst, out = arguments(dev, None)
    return ox.Recipe(launch=broken_order[boxes(x)].bind(src, dst), outputs={"out": out}, expected={"out": x.transpose(0, 2, 1, 3)})


def main(argv: Sequence[str] | None = None) -> int:
    return ox.run_recipes(__doc__, permuted, broken_order, argv=argv)


if __name__ == "__main__":
    raise SystemExit(main())
