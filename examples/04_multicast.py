"""Multicast: one load for several CTAs, and one tile loaded by the CTAs of a cluster, a slice each.

Four CTAs of a cluster need the same tile. In the first pipeline one of them loads it for all; in the second each loads a quarter and
sends it to all, so that four copy engines share the work. Two twins are broken on purpose: a mask that names a CTA outside the cluster, and
CTAs that announce only the slice they load themselves.

    python examples/04_multicast.py --input x.npy --output y.npy   # any 2-D float32 array
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

import oxidecopy as ox

ALL = 0b1111  # bit i of a mask is the CTA of rank i in the cluster
Source = ox.TmaDescriptor[ox.f32, ox.D2]
Result = ox.GlobalArray[ox.f32, ox.D2]
Array = npt.NDArray[np.float32]


# ---- one load for all
# `cluster=4` makes every four neighbours along x a cluster: CTAs that run at the same time and reach each other's shared memory. Such a
# pipeline is given a `ClusterCta`, which knows its rank.
@ox.pipeline(threads=128, cluster=4)
def one_for_all(cta: ox.ClusterCta, src: Source, out: Result) -> None:
    tile = cta.shared(src)  # 64 x 64, in every CTA at the same place
    full = cta.barrier().init(1)
    y, x = cta.block_idx.y * 64, cta.block_idx.x // 4 * 64

    # Nobody may write to a peer's shared memory, or report to its barrier, before the peer has started and initialised it.
    cta.cluster_sync()

    with cta.elect() as leader:
        # Every CTA announces the bytes to its own barrier: each receiver is told the full size of what reaches it.
        token = full.arrive_expect_tx(leader, tile.nbytes)
        with cta.when(cta.cta_rank == 0):
            src.g2s_multicast(leader, tile, (y, x), token, cta_mask=ALL)
    full.wait(token)

    # All four have the whole tile; each stores a quarter of it, 16 rows.
    cta.store(out, tile.part(cta.cta_rank, of=4), (y + cta.cta_rank * 16, x))

    # No CTA may end while a peer may still reach into it.
    cta.cluster_sync()
    full.inval()


@one_for_all.recipe
def one_for_all_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    x, src, out, grid = arguments(dev, x, box=(64, 64))
    return ox.Recipe(launch=one_for_all[grid].bind(src, out), outputs={"out": out}, expected={"out": x})


def arguments(dev: ox.Device, x: Array | None, *, box: tuple[int, int]) -> tuple[Array, Source, Result, ox.Grid]:
    """Four CTAs for each 64 x 64 tile, so the cluster always divides the grid."""
    if x is None:
        x = np.arange(128 * 128, dtype=np.float32).reshape(128, 128)
    src = ox.TmaDescriptor.tiled(dev.array(x, ox.f32, pad=True), box=box)
    out = dev.empty(x.shape, ox.f32)
    rows, cols = x.shape
    return x, src, out, ox.Grid(x=4 * -(-cols // 64), y=-(-rows // 64))


# ---- a slice from each
# The descriptor's box is now a slice: 16 x 64. The tile is asked for by element type and extents, with the strongest alignment, and
# `tile.part(rank, of=4)` is the slice that this CTA loads, and where it lands in all four.
@ox.pipeline(threads=128, cluster=4)
def slices(cta: ox.ClusterCta, src: Source, out: Result) -> None:
    tile = cta.shared(ox.f32, (64, 64), align=ox.A1024)
    full = cta.barrier().init(1)
    rank = cta.cta_rank
    y, x = cta.block_idx.y * 64 + rank * 16, cta.block_idx.x // 4 * 64
    cta.cluster_sync()
    with cta.elect() as leader:
        # The bytes of all four slices arrive here, so that is what is announced, although this CTA issues only one of them.
        token = full.arrive_expect_tx(leader, tile.nbytes)
        src.g2s_multicast(leader, tile.part(rank, of=4), (y, x), token, cta_mask=ALL)
    full.wait(token)
    # Each CTA stores the slice that its neighbour loaded: it has it, too.
    other = (rank + 1) % 4
    cta.store(out, tile.part(other, of=4), (cta.block_idx.y * 64 + other * 16, x))
    cta.cluster_sync()
    full.inval()


@slices.recipe
def slices_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    x, src, out, grid = arguments(dev, x, box=(16, 64))
    return ox.Recipe(launch=slices[grid].bind(src, out), outputs={"out": out}, expected={"out": x})


# ---- broken on purpose: a mask beyond the cluster
# The hardware stops the whole context for it (launch failed), long after the line that is wrong.
@ox.pipeline(threads=128, cluster=4)
def broken_mask(cta: ox.ClusterCta, src: Source, out: Result) -> None:
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    y, x = cta.block_idx.y * 64, cta.block_idx.x // 4 * 64
    cta.cluster_sync()
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        with cta.when(cta.cta_rank == 0):
            src.g2s_multicast(leader, tile, (y, x), token, cta_mask=0b11111)  # type: ignore[oxidecopy-tx]  # the edit: a fifth CTA
    full.wait(token)
    cta.store(out, tile.part(cta.cta_rank, of=4), (y + cta.cta_rank * 16, x))
    cta.cluster_sync()
    full.inval()


@broken_mask.recipe(refused="OX3083")
def broken_mask_recipe(dev: ox.Device) -> ox.Recipe:
    x, src, out, grid = arguments(dev, None, box=(64, 64))
    return ox.Recipe(launch=broken_mask[grid].bind(src, out), outputs={"out": out}, expected={"out": x})


# ---- broken on purpose: only the own slice announced
# Four slices arrive at each barrier, one was announced. To see it, one has to look at all CTAs of the cluster together; the verifier does.
@ox.pipeline(threads=128, cluster=4)
def broken_slices(cta: ox.ClusterCta, src: Source, out: Result) -> None:
    tile = cta.shared(ox.f32, (64, 64), align=ox.A1024)
    full = cta.barrier().init(1)
    rank = cta.cta_rank
    y, x = cta.block_idx.y * 64 + rank * 16, cta.block_idx.x // 4 * 64
    cta.cluster_sync()
    with cta.elect() as leader:
        part = tile.part(rank, of=4)
        token = full.arrive_expect_tx(leader, part.nbytes)  # the edit: `part` instead of `tile`
        src.g2s_multicast(leader, part, (y, x), token, cta_mask=ALL)
    full.wait(token)
    other = (rank + 1) % 4
    cta.store(out, tile.part(other, of=4), (cta.block_idx.y * 64 + other * 16, x))
    cta.cluster_sync()
    full.inval()


@broken_slices.recipe(refused="OX3021")
def broken_slices_recipe(dev: ox.Device) -> ox.Recipe:
    x, src, out, grid = arguments(dev, None, box=(16, 64))
    return ox.Recipe(launch=broken_slices[grid].bind(src, out), outputs={"out": out}, expected={"out": x})


def main(argv: Sequence[str] | None = None) -> int:
    return ox.run_recipes(__doc__, one_for_all, slices, broken_mask, broken_slices, argv=argv)


if __name__ == "__main__":
    raise SystemExit(main())
