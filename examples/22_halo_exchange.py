"""Halo exchange: the CTAs of a cluster send each other the rows at their edges, from shared to shared memory.

A stencil needs the rows beside its own. Lesson 14 keeps them from the tile before; here every CTA has its tile at the same time, and gets
the missing rows from the CTAs above and below, which have them in shared memory: each array element is read once from global memory, but
for the rows around a cluster. Three twins are broken on purpose: a CTA that sends before its neighbour is ready, one that leaves while its
rows are still being read, and two halos mixed up.

    python examples/22_halo_exchange.py --input x.npy --output y.npy       # any 2-D float32 array: sums of each row and those beside it
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

import oxidecopy as ox

CLUSTER = 4
ROWS, COLUMNS = 8, 32  # of a CTA's tile
Tiles = ox.TmaDescriptor[ox.f32, ox.D2]
Array = npt.NDArray[np.float32]


# ---- the exchange
# Each CTA announces two rows and does not mind where they come from: its neighbours, or global memory at the ends of the cluster, where
# what lies outside the array is zero. A neighbour names the tile and the barrier as it names its own. `begin` and `end` say whether the
# cluster meets there, `crossed` whether a row goes to the other side of its receiver: the first row is what lies *below* the CTA above.
def body(cta: ox.ClusterCta, src: Tiles, edge: Tiles, dst: Tiles, *, begin: bool = True, end: bool = True, crossed: bool = True) -> None:
    tile, sums = cta.shared(src), cta.shared(dst)
    above, below = cta.shared(edge, name="above"), cta.shared(edge, name="below")
    loaded, received = cta.barrier(name="loaded").init(1), cta.barrier(name="received").init(1)
    row, column, rank, last = cta.block_idx.y * ROWS, cta.block_idx.x * COLUMNS, cta.cta_rank, CLUSTER - 1
    if begin:
        cta.cluster_sync()  # all barriers are initialised

    with cta.elect() as leader:
        token = loaded.arrive_expect_tx(leader, tile)
        src.g2s(leader, tile, (row, column), token)
        halo = received.arrive_expect_tx(leader, above, below)
        with cta.when(rank == 0):
            edge.g2s(leader, above, (row - 1, column), halo)
        with cta.when(rank == last):
            edge.g2s(leader, below, (row + ROWS, column), halo)
        loaded.wait(token)
        with cta.when(rank > 0):
            ox.bulk_s2s(leader, tile.part(0, of=ROWS), below if crossed else above, received, cta_rank=rank - 1)
        with cta.when(rank < last):
            ox.bulk_s2s(leader, tile.part(ROWS - 1, of=ROWS), above, received, cta_rank=rank + 1)
    received.wait(halo)

    # The own rows are parts of the tile. The leader saw them land and then sent the halo that all have waited for, but not all of it comes
    # from there: so everybody waits for the tile as well.
    loaded.wait_phase(0)
    rows = [above, *(tile.part(r, of=ROWS) for r in range(ROWS)), below]
    for r in range(ROWS):
        cta.map(lambda a, b, c: a + b + c, rows[r], rows[r + 1], rows[r + 2], out=sums.part(r, of=ROWS))
    cta.fence_proxy_async()
    cta.sync()
    with cta.elect() as leader:
        dst.s2g(leader, sums, (row, column))
        leader.commit_group()
        leader.wait_group_read(0)
    if end:
        cta.cluster_sync()  # what was sent has been received, so it was read


@ox.pipeline(threads=128, cluster=(1, CLUSTER))
def exchange(cta: ox.ClusterCta, src: Tiles, edge: Tiles, dst: Tiles) -> None:
    body(cta, src, edge, dst)


@exchange.recipe
def exchange_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    return recipe(dev, x, exchange)


def recipe(dev: ox.Device, x: Array | None, pipeline: ox.Pipeline[Tiles, Tiles, Tiles]) -> ox.Recipe:
    if x is None:
        x = np.random.default_rng(22).standard_normal((70, 80), dtype=np.float32)
    array, out = dev.array(x, ox.f32, pad=True), dev.empty(x.shape, ox.f32, pad=True)
    src, dst = (ox.TmaDescriptor.tiled(a, box=(ROWS, COLUMNS)) for a in (array, out))
    edge = ox.TmaDescriptor.tiled(array, box=(1, COLUMNS))
    clusters = -(-x.shape[0] // (CLUSTER * ROWS))
    padded = np.pad(x, ((1, 1), (0, 0)))
    launch = pipeline[-(-x.shape[1] // COLUMNS), clusters * CLUSTER].bind(src, edge, dst)
    return ox.Recipe(launch=launch, outputs={"out": out}, expected={"out": padded[:-2] + x + padded[2:]})


# ---- broken on purpose: too early
# The neighbour's barrier may not be initialised when the row arrives there.
@ox.pipeline(threads=128, cluster=(1, CLUSTER))
def broken_begin(cta: ox.ClusterCta, src: Tiles, edge: Tiles, dst: Tiles) -> None:
    body(cta, src, edge, dst, begin=False)  # the edit: not True


@broken_begin.recipe(refused="OX3006")
def broken_begin_recipe(dev: ox.Device) -> ox.Recipe:
    return recipe(dev, None, broken_begin)


# ---- broken on purpose: gone too early
# The CTA has its sums and ends; the copy of its row to a slower neighbour may still be reading it.
@ox.pipeline(threads=128, cluster=(1, CLUSTER))
def broken_end(cta: ox.ClusterCta, src: Tiles, edge: Tiles, dst: Tiles) -> None:
    body(cta, src, edge, dst, end=False)  # the edit: not True


@broken_end.recipe(refused="OX3058")
def broken_end_recipe(dev: ox.Device) -> ox.Recipe:
    return recipe(dev, None, broken_end)


# ---- broken on purpose: on the wrong side
# "My first row goes above" is half of it: it is the halo *below* that CTA. The bytes add up, so nobody waits in vain.
@ox.pipeline(threads=128, cluster=(1, CLUSTER))
def broken_side(cta: ox.ClusterCta, src: Tiles, edge: Tiles, dst: Tiles) -> None:
    body(cta, src, edge, dst, crossed=False)  # the edit: not True


@broken_side.recipe(refused="OX3042")
def broken_side_recipe(dev: ox.Device) -> ox.Recipe:
    return recipe(dev, None, broken_side)


def main(argv: Sequence[str] | None = None) -> int:
    return ox.run_recipes(__doc__, exchange, broken_begin, broken_end, broken_side, argv=argv)


if __name__ == "__main__":
    raise SystemExit(main())
