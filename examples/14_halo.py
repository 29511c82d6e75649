"""Halo tiles: a consumer that needs the end of the tile before keeps it: nothing is loaded twice.

A block of rows with the rows just before it is what filters, stencils and overlapping windows work on. Each tile is loaded once. The
consumers hold it one stage longer than they need it themselves, and find it beside the next one. Three twins are broken on purpose: the
first tile has none before it, a tile is looked for that was not kept, and all stages are kept.

    python examples/14_halo.py --input x.npy --output y.npy        # any 2-D float32 array
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

import oxidecopy as ox

STAGES = 3
ROWS = 32
HALO = 4
BOX = (ROWS, 32)
Source = ox.TmaDescriptor[ox.f32, ox.D2, ox.Swizzle128B]
Result = ox.GlobalArray[ox.f32, ox.D2]
Array = npt.NDArray[np.float32]


# ---- rows with a halo
# Block x owns 32 columns and walks down them, so that one tile follows the other. For each tile 36 rows are stored: the last four of the
# tile before it, then its own 32.
#
# `keep=1` says that a stage is given back one stage later than usual. Until then it is `tile.back(1)`, a tile like any other: a part of it
# can be taken. For tile 0 there is none, which is said with `cta.when`; the verifier would not let it be forgotten.
@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def haloed(cta: ox.Cta, src: Source, out: Result) -> None:
    ring = cta.ring(stages=STAGES, tiles=(src,))
    col = cta.block_idx.x * 32
    n = (src.shape[0] + ROWS - 1) // ROWS
    with cta.producer() as leader:
        for i in cta.range(n):
            with ring.produce(leader) as (slot,):
                slot.load(src, (i * ROWS, col))
    with cta.consumers() as group:
        for i in cta.range(n):
            with ring.consume(group, keep=1) as (tile,):
                with cta.when(i >= 1):
                    last = tile.back(1).part(ROWS // HALO - 1, of=ROWS // HALO)
                    cta.store(out, last, (i * (HALO + ROWS), col))
                cta.store(out, tile, (i * (HALO + ROWS) + HALO, col))


@haloed.recipe
def haloed_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    x, src, out = arguments(dev, x, HALO + ROWS)
    # Above the first rows, and below the last ones, there is nothing: zeros.
    padded = np.pad(x, ((HALO, -len(x) % ROWS), (0, 0)))
    expected = np.concatenate([padded[i : i + HALO + ROWS] for i in range(0, len(x), ROWS)])
    return ox.Recipe(launch=haloed[-(-x.shape[1] // 32)].bind(src, out), outputs={"out": out}, expected={"out": expected})


def arguments(dev: ox.Device, x: Array | None, rows: int) -> tuple[Array, Source, Result]:
    """What all pipelines of this lesson are launched with: `rows` rows of the result for each tile."""
    if x is None:
        x = np.random.default_rng(14).standard_normal((250, 100), dtype=np.float32)
    src = ox.TmaDescriptor.tiled(dev.array(x, ox.f32, pad=True), box=BOX, swizzle=ox.Swizzle128B)
    return x, src, dev.zeros((-(-len(x) // ROWS) * rows, x.shape[1]), ox.f32)


# ---- overlapping windows
# Windows of three tiles, each starting one tile after the last: with `keep=2` the two tiles before are at hand, and a tile that is loaded
# once is stored three times. `back(n)` exists from tile n on. A ring of three stages would leave one to load into; four keep the engine
# busier.
@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def windows(cta: ox.Cta, src: Source, out: Result) -> None:
    ring = cta.ring(stages=4, tiles=(src,))
    col = cta.block_idx.x * 32
    n = (src.shape[0] + ROWS - 1) // ROWS
    with cta.producer() as leader:
        for i in cta.range(n):
            with ring.produce(leader) as (slot,):
                slot.load(src, (i * ROWS, col))
    with cta.consumers() as group:
        for i in cta.range(n):
            with ring.consume(group, keep=2) as (tile,):
                row = i * 3 * ROWS
                for ago in (2, 1):
                    with cta.when(i >= ago):
                        cta.store(out, tile.back(ago), (row + (2 - ago) * ROWS, col))
                cta.store(out, tile, (row + 2 * ROWS, col))


@windows.recipe
def windows_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    x, src, out = arguments(dev, x, 3 * ROWS)
    padded = np.pad(x, ((2 * ROWS, -len(x) % ROWS), (0, 0)))
    expected = np.concatenate([padded[i : i + 3 * ROWS] for i in range(0, len(x), ROWS)])
    return ox.Recipe(launch=windows[-(-x.shape[1] // 32)].bind(src, out), outputs={"out": out}, expected={"out": expected})


# ---- broken on purpose: nothing before the first
# `tile.back(1)` of tile 0 is a stage that has not been loaded: whatever shared memory holds.
@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def broken_first(cta: ox.Cta, src: Source, out: Result) -> None:
    ring = cta.ring(stages=STAGES, tiles=(src,))
    col = cta.block_idx.x * 32
    n = (src.shape[0] + ROWS - 1) // ROWS
    with cta.producer() as leader:
        for i in cta.range(n):
            with ring.produce(leader) as (slot,):
                slot.load(src, (i * ROWS, col))
    with cta.consumers() as group:
        for i in cta.range(n):
            with ring.consume(group, keep=1) as (tile,):
                # the edit: no `with cta.when(i >= 1):`
                last = tile.back(1).part(ROWS // HALO - 1, of=ROWS // HALO)
                cta.store(out, last, (i * (HALO + ROWS), col))
                cta.store(out, tile, (i * (HALO + ROWS) + HALO, col))


@broken_first.recipe(refused="OX3040")
def broken_first_recipe(dev: ox.Device) -> ox.Recipe:
    _, src, out = arguments(dev, None, HALO + ROWS)
    return ox.Recipe(launch=broken_first[4].bind(src, out), outputs={"out": out})


# ---- broken on purpose: not kept
# The stage before has been given back: the producer may have loaded another tile over it.
@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def broken_back(cta: ox.Cta, src: Source, out: Result) -> None:
    ring = cta.ring(stages=STAGES, tiles=(src,))
    col = cta.block_idx.x * 32
    n = (src.shape[0] + ROWS - 1) // ROWS
    with cta.producer() as leader:
        for i in cta.range(n):
            with ring.produce(leader) as (slot,):
                slot.load(src, (i * ROWS, col))
    with cta.consumers() as group:
        for i in cta.range(n):
            with ring.consume(group) as (tile,):  # the edit: no `keep=1`
                with cta.when(i >= 1):
                    last = tile.back(1).part(ROWS // HALO - 1, of=ROWS // HALO)
                    cta.store(out, last, (i * (HALO + ROWS), col))
                cta.store(out, tile, (i * (HALO + ROWS) + HALO, col))


@broken_back.recipe(refused="OX1108")
def broken_back_recipe(dev: ox.Device) -> ox.Recipe:
    _, src, out = arguments(dev, None, HALO + ROWS)
    return ox.Recipe(launch=broken_back[4].bind(src, out), outputs={"out": out})


# ---- broken on purpose: all stages kept
# With three stages and three kept, none is left for the producer to load into.
@ox.pipeline(warps=ox.roles(producer=1, consumers=4))
def broken_keep(cta: ox.Cta, src: Source, out: Result) -> None:
    ring = cta.ring(stages=STAGES, tiles=(src,))
    col = cta.block_idx.x * 32
    n = (src.shape[0] + ROWS - 1) // ROWS
    with cta.producer() as leader:
        for i in cta.range(n):
            with ring.produce(leader) as (slot,):
                slot.load(src, (i * ROWS, col))
    with cta.consumers() as group:
        for i in cta.range(n):
            with ring.consume(group, keep=STAGES) as (tile,):  # the edit: not `keep=1`
                with cta.when(i >= 1):
                    last = tile.back(1).part(ROWS // HALO - 1, of=ROWS // HALO)
                    cta.store(out, last, (i * (HALO + ROWS), col))
                cta.store(out, tile, (i * (HALO + ROWS) + HALO, col))


@broken_keep.recipe(refused="OX1108")
def broken_keep_recipe(dev: ox.Device) -> ox.Recipe:
    _, src, out = arguments(dev, None, HALO + ROWS)
    return ox.Recipe(launch=broken_keep[4].bind(src, out), outputs={"out": out})


def main(argv: Sequence[str] | None = None) -> int:
    return ox.run_recipes(__doc__, haloed, windows, broken_first, broken_back, broken_keep, argv=argv)


if __name__ == "__main__":
    raise SystemExit(main())
