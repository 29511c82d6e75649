"""Prefetch: loads run ahead of their use through a ring of tiles, kept by hand.

While one tile is used the next ones are on their way. The ring is written twice: with one loop that refills the tile it has just used
(`fetch = compute + num_stages`, as in NVIDIA's programming guide and the CUTLASS tutorials), and with a producer warp that only loads and
consumer warps that only use. Two twins are broken on purpose: a refill before everybody has read, and a producer that waits one phase too
far.

    python examples/06_prefetch.py --input x.npy --output y.npy    # any 2-D float32 array
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

import oxidecopy as ox

STAGES = 4
BOX = (64, 32)  # rows of 32 f32 are 128 bytes: what a 128-byte swizzle permutes, so that reading a column meets no bank conflicts
Source = ox.TmaDescriptor[ox.f32, ox.D2, ox.Swizzle128B]
Result = ox.GlobalArray[ox.f32, ox.D2]
Array = npt.NDArray[np.float32]


# Brands: any class will do. Tokens and barriers of different brands do not mix, and the barriers bear the names in errors.
class Full:
    """Of the barriers that say: this tile has landed."""


class Empty:
    """Of the barriers that say: this tile has been read."""


# ---- one loop
# Block x owns the rows 64 x to 64 x + 63 and walks along them, n tiles in all. `n` is an `Idx`: an integer that is known at the launch.
#
# A token cannot be carried from one iteration to the next: the loop below is recorded once. So barriers and tiles come in arrays that a
# symbolic index may index, and a wait names its phase by number: tile i is load number i // STAGES of its barrier, and
# `full[i % STAGES].wait_phase(i // STAGES)` waits for that completion, counted from 0. The hardware knows only odd and even phases. Here
# the number is written, and the verifier shows that the one bit is enough.
@ox.pipeline(threads=128)
def prefetch(cta: ox.Cta, src: Source, out: Result, n: ox.Idx) -> None:
    tiles = cta.shared(src, stages=STAGES)
    full = cta.barriers(STAGES, brand=Full).init(1)
    row = cta.block_idx.x * 64

    # Before the loop: fetch tiles 0 to STAGES - 1, or fewer when there are fewer. `cta.range` is a loop that the device runs.
    for fetch in cta.range(ox.minimum(n, STAGES)):
        with cta.elect() as leader:
            first = full[fetch].arrive_expect_tx(leader, tiles[fetch].nbytes)
            src.g2s(leader, tiles[fetch], (row, fetch * 32), first)

    for compute in cta.range(n):
        stage = compute % STAGES
        full[stage].wait_phase(compute // STAGES)
        cta.store(out, tiles[stage], (row, compute * 32))
        # All threads have read the tile: now it may be filled again. Reads need no fence before a load, only this order.
        cta.sync()
        fetch = compute + STAGES
        with cta.elect() as leader, cta.when(fetch < n):
            token = full[stage].arrive_expect_tx(leader, tiles[stage].nbytes)
            src.g2s(leader, tiles[stage], (row, fetch * 32), token)
    full.inval()


@prefetch.recipe
def prefetch_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    x, src, out, blocks, n = arguments(dev, x)
    return ox.Recipe(launch=prefetch[blocks].bind(src, out, n), outputs={"out": out}, expected={"out": x})


def arguments(dev: ox.Device, x: Array | None) -> tuple[Array, Source, Result, int, int]:
    """One CTA for each 64 rows, each walking over all columns, 32 at a time."""
    if x is None:
        x = np.random.default_rng(6).standard_normal((192, 500), dtype=np.float32)
    src = ox.TmaDescriptor.tiled(dev.array(x, ox.f32, pad=True), box=BOX, swizzle=ox.Swizzle128B)
    out = dev.empty(x.shape, ox.f32)
    rows, cols = x.shape
    return x, src, out, -(-rows // 64), -(-cols // 32)


# ---- roles
# One warp loads, four warps use. No sync of the CTA is in the loops: the roles meet only at the barriers. `full` tells the consumers that a
# tile has landed, `empty` tells the producer that all 128 consumer threads have read it.
#
# The producer waits for `empty` before it fills a stage. For the first round there is nothing to wait for: phase -1 passes at once.
@ox.pipeline(threads=160)
def producer_consumers(cta: ox.Cta, src: Source, out: Result, n: ox.Idx) -> None:
    tiles = cta.shared(src, stages=STAGES)
    full = cta.barriers(STAGES, brand=Full).init(1)
    empty = cta.barriers(STAGES, brand=Empty).init(128)
    row = cta.block_idx.x * 64

    with cta.warps(0, 1) as producer, producer.elect() as leader:
        for fetch in cta.range(n):
            stage = fetch % STAGES
            empty[stage].wait_phase(fetch // STAGES - 1)
            token = full[stage].arrive_expect_tx(leader, tiles[stage].nbytes)
            src.g2s(leader, tiles[stage], (row, fetch * 32), token)

    with cta.warps(1, 5):
        for compute in cta.range(n):
            stage = compute % STAGES
            full[stage].wait_phase(compute // STAGES)
            cta.store(out, tiles[stage], (row, compute * 32))
            empty[stage].arrive()

    full.inval()
    empty.inval()


@producer_consumers.recipe
def producer_consumers_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    x, src, out, blocks, n = arguments(dev, x)
    return ox.Recipe(launch=producer_consumers[blocks].bind(src, out, n), outputs={"out": out}, expected={"out": x})


# ---- broken on purpose: a refill before everybody has read
# Thread 0 is done with the tile and loads the next one into it, while the other threads may still be reading. It works until it does not.
@ox.pipeline(threads=128)
def broken_sync(cta: ox.Cta, src: Source, out: Result, n: ox.Idx) -> None:
    tiles = cta.shared(src, stages=STAGES)
    full = cta.barriers(STAGES, brand=Full).init(1)
    row = cta.block_idx.x * 64
    for fetch in cta.range(ox.minimum(n, STAGES)):
        with cta.elect() as leader:
            first = full[fetch].arrive_expect_tx(leader, tiles[fetch].nbytes)
            src.g2s(leader, tiles[fetch], (row, fetch * 32), first)
    for compute in cta.range(n):
        stage = compute % STAGES
        full[stage].wait_phase(compute // STAGES)
        cta.store(out, tiles[stage], (row, compute * 32))
        # the edit: no `cta.sync()`
        fetch = compute + STAGES
        with cta.elect() as leader, cta.when(fetch < n):
            token = full[stage].arrive_expect_tx(leader, tiles[stage].nbytes)
            src.g2s(leader, tiles[stage], (row, fetch * 32), token)
    full.inval()


@broken_sync.recipe(refused="OX3044")
def broken_sync_recipe(dev: ox.Device) -> ox.Recipe:
    x, src, out, blocks, n = arguments(dev, None)
    return ox.Recipe(launch=broken_sync[blocks].bind(src, out, n), outputs={"out": out}, expected={"out": x})


# ---- broken on purpose: one phase too far
# The producer waits until the consumers have emptied what it has not filled yet, and they wait for it to fill it. On a GPU that is a hang;
# here it is an error that says who waits for whom.
@ox.pipeline(threads=160)
def broken_phase(cta: ox.Cta, src: Source, out: Result, n: ox.Idx) -> None:
    tiles = cta.shared(src, stages=STAGES)
    full = cta.barriers(STAGES, brand=Full).init(1)
    empty = cta.barriers(STAGES, brand=Empty).init(128)
    row = cta.block_idx.x * 64
    with cta.warps(0, 1) as producer, producer.elect() as leader:
        for fetch in cta.range(n):
            stage = fetch % STAGES
            empty[stage].wait_phase(fetch // STAGES)  # the edit: not `- 1`
            token = full[stage].arrive_expect_tx(leader, tiles[stage].nbytes)
            src.g2s(leader, tiles[stage], (row, fetch * 32), token)
    with cta.warps(1, 5):
        for compute in cta.range(n):
            stage = compute % STAGES
            full[stage].wait_phase(compute // STAGES)
            cta.store(out, tiles[stage], (row, compute * 32))
            empty[stage].arrive()
    full.inval()
    empty.inval()


@broken_phase.recipe(refused="OX3030")
def broken_phase_recipe(dev: ox.Device) -> ox.Recipe:
    x, src, out, blocks, n = arguments(dev, None)
    return ox.Recipe(launch=broken_phase[blocks].bind(src, out, n), outputs={"out": out}, expected={"out": x})


def main(argv: Sequence[str] | None = None) -> int:
    return ox.run_recipes(__doc__, prefetch, producer_consumers, broken_sync, broken_phase, argv=argv)


if __name__ == "__main__":
    raise SystemExit(main())
