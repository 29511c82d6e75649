"""A cluster of (1, 1, 2): two CTAs share every load and tell each other when a tile may be refilled.

The array is copied twice, by a grid whose z is the number of the copy. Both CTAs of a cluster need the same tiles, so the one of rank 0
loads them for both, in a ring of stages as in lesson 06. Before it refills a stage it must know that both have read it: the other CTA
tells it by arriving on its barrier, across the cluster. One twin is broken on purpose: it leaves out the cluster sync at the start.

    python examples/07_cluster.py --input x.npy --output y.npy     # any 2-D float32 array
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

import oxidecopy as ox

STAGES = 2
BOX = (1, 64, 32)
Source = ox.TmaDescriptor[ox.f32, ox.D3]
Result = ox.GlobalArray[ox.f32, ox.D3]
Array = npt.NDArray[np.float32]


class Full:
    """Of the barriers that say: this tile has landed here."""


class Empty:
    """Of the barriers of rank 0 that say: this tile has been read by both."""


# `cluster=(1, 1, 2)`: x, y, z as in CUDA. The ranks of a cluster count x fastest; here rank 0 has the even z and rank 1 the odd one. The
# cluster must divide the grid, which the launch checks.
@ox.pipeline(threads=128, cluster=(1, 1, 2))
def twice(cta: ox.ClusterCta, src: Source, out: Result, n: ox.Idx) -> None:
    tiles = cta.shared(src, stages=STAGES)
    full = cta.barriers(STAGES, brand=Full).init(1)
    empty = cta.barriers(STAGES, brand=Empty).init(2)  # one arrival by each CTA; only those of rank 0 are used
    y, z = cta.block_idx.y * 64, cta.block_idx.z

    # `init` includes the fence that makes the barriers known to the cluster. This sync tells each CTA that the other has got that far.
    cta.cluster_sync()

    for i in cta.range(n):
        stage = i % STAGES
        with cta.elect() as leader:
            # Each CTA announces what will reach it. It may do so before or after the copy is issued: bytes that come early are counted.
            token = full[stage].arrive_expect_tx(leader, tiles[stage].nbytes)
            with cta.when(cta.cta_rank == 0):
                empty[stage].wait_phase(i // STAGES - 1)
                src.g2s_multicast(leader, tiles[stage], (0, y, i * 32), token, cta_mask=0b11)
        full[stage].wait_phase(i // STAGES)
        cta.store(out, tiles[stage], (z, y, i * 32))
        cta.sync()  # all threads of this CTA have read the tile
        with cta.elect():
            empty[stage].arrive_remote(0)  # on the barrier of rank 0; rank 0 itself does the same

    # Nobody ends while the other may still send to it, or arrive on its barriers.
    cta.cluster_sync()
    full.inval()
    empty.inval()


@twice.recipe
def twice_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    x, src, out, grid, n = arguments(dev, x)
    return ox.Recipe(launch=twice[grid].bind(src, out, n), outputs={"out": out}, expected={"out": np.stack([x, x])})


def arguments(dev: ox.Device, x: Array | None) -> tuple[Array, Source, Result, ox.Grid, int]:
    """The grid's y counts blocks of 64 rows, z the two copies; each CTA walks along its rows, 32 columns at a time."""
    if x is None:
        x = np.random.default_rng(7).standard_normal((100, 150), dtype=np.float32)
    src = ox.TmaDescriptor.tiled(dev.array(x[np.newaxis], ox.f32, pad=True), box=BOX)
    rows, cols = x.shape
    out = dev.empty((2, rows, cols), ox.f32)
    return x, src, out, ox.Grid(y=-(-rows // 64), z=2), -(-cols // 32)


# ---- broken on purpose: no cluster sync at the start
# Rank 0 may send into a CTA that has not started, or has not initialised its barriers.
@ox.pipeline(threads=128, cluster=(1, 1, 2))
def broken_start(cta: ox.ClusterCta, src: Source, out: Result, n: ox.Idx) -> None:
    tiles = cta.shared(src, stages=STAGES)
    full = cta.barriers(STAGES, brand=Full).init(1)
    empty = cta.barriers(STAGES, brand=Empty).init(2)
    y, z = cta.block_idx.y * 64, cta.block_idx.z
    # the edit: no `cta.cluster_sync()`
    for i in cta.range(n):
        stage = i % STAGES
        with cta.elect() as leader:
            token = full[stage].arrive_expect_tx(leader, tiles[stage].nbytes)
            with cta.when(cta.cta_rank == 0):
                empty[stage].wait_phase(i // STAGES - 1)
                src.g2s_multicast(leader, tiles[stage], (0, y, i * 32), token, cta_mask=0b11)
        full[stage].wait_phase(i // STAGES)
        cta.store(out, tiles[stage], (z, y, i * 32))
        cta.sync()
        with cta.elect():
            empty[stage].arrive_remote(0)
    cta.cluster_sync()
    full.inval()
    empty.inval()


@broken_start.recipe(refused="OX3006")
def broken_start_recipe(dev: ox.Device) -> ox.Recipe:
    x, src, out, grid, n = arguments(dev, None)
    return ox.Recipe(launch=broken_start[grid].bind(src, out, n), outputs={"out": out}, expected={"out": np.stack([x, x])})


def main(argv: Sequence[str] | None = None) -> int:
    return ox.run_recipes(__doc__, twice, broken_start, argv=argv)


if __name__ == "__main__":
    raise SystemExit(main())
