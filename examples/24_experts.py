"""A mixture of experts: rows are gathered by number, into matrices of different sizes, by a table.

Each token is routed to an expert, whose tokens are to lie together. The host sorts the numbers and cuts them into blocks of 16, none of
which has tokens of two experts; the last block of each is filled up with a number that is no token's. A block's rows come by one copy each,
and leave by one copy, through the expert's own descriptor: it ends where the expert's tokens do, so what fills a block up is not
written. Three twins are broken on purpose: one row announced for sixteen, a stage given back too early, and experts that the table has not.

    python examples/24_experts.py --input x.npy --output y.npy     # any 2-D float32 array: the tokens; sorted by expert
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

import oxidecopy as ox

EXPERTS = 8
ROUTED = (0, 2, 3, 5, 7)  # those that tokens go to
BLOCK, COLUMNS = 16, 256  # of a tile: 16 copies of a kilobyte each
STAGES = 3
CTAS = 3
Rows = ox.TmaDescriptor[ox.f32, ox.D2]
Table = ox.DescriptorTable[ox.f32, ox.D2]
List = ox.GlobalArray[ox.i32, ox.D1]
Array = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.int32]


class Lists(NamedTuple):
    """The rows of all blocks; for each block whose it is, and which of that expert's blocks; a bound for the latter."""

    token: List
    expert: List
    place: List
    blocks: ox.Idx


# ---- blocks of sixteen rows
# A row number of `src.shape[0]` is behind the last token: its load fills with zeros. `announced` rows of a tile are told to its barrier; a
# stage is given back when `held` later stores are issued; a block's expert is one of `experts`.
def body(cta: ox.Cta, src: Rows, dst: Table, work: Lists, *, announced: int = BLOCK, held: int = 1, experts: int | None = None) -> None:
    tiles = cta.shared(dst[0], stages=STAGES, name="rows")
    full, empty = cta.barriers(STAGES, name="full").init(1), cta.barriers(STAGES, name="empty").init(1)
    across = (src.shape[1] + COLUMNS - 1) // COLUMNS
    first, ctas = cta.block_idx.x, cta.grid_dim.x
    turns = (work.expert.shape[0] * across - first + ctas - 1) // ctas

    with cta.producer() as leader:
        for i in cta.range(turns):
            block, column = (first + i * ctas) // across, (first + i * ctas) % across * COLUMNS
            tile = tiles[i % STAGES]
            empty[i % STAGES].wait_phase(i // STAGES - 1)
            landed = full[i % STAGES].arrive_expect_tx(leader, announced * tile.nbytes // BLOCK)
            for r in cta.range(BLOCK):
                row = cta.load_index(work.token, block * BLOCK + r, below=src.shape[0] + 1)
                src.g2s(leader, tile.part(r, of=BLOCK), (row, column), landed)

    with cta.storer() as leader:
        for i in cta.range(turns):
            block, column = (first + i * ctas) // across, (first + i * ctas) % across * COLUMNS
            whose = cta.load_index(work.expert, block, below=experts or len(dst))
            row = cta.load_index(work.place, block, below=work.blocks) * BLOCK
            full[i % STAGES].wait_phase(i // STAGES)
            dst[whose].s2g(leader, tiles[i % STAGES], (row, column))
            leader.commit_group()
            leader.wait_group_read(1)
            with cta.when(i >= held):
                empty[(i - held) % STAGES].arrive()
        leader.wait_group_read(0)


@ox.pipeline(warps=ox.roles(producer=1, consumers=(), store=1))
def dispatch(cta: ox.Cta, src: Rows, dst: Table, token: List, expert: List, place: List, blocks: ox.Idx) -> None:
    body(cta, src, dst, Lists(token, expert, place, blocks))


@dispatch.recipe
def dispatch_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    return recipe(dev, x, dispatch)


# ---- by a ring
# `load_part` loads a slot part by part, here in a loop, and `forward` stores it through whichever entry of the table.
@ox.pipeline(warps=ox.roles(producer=1, consumers=(), store=1))
def with_ring(cta: ox.Cta, src: Rows, dst: Table, token: List, expert: List, place: List, blocks: ox.Idx) -> None:
    ring = cta.ring(stages=STAGES, tiles=(dst[0],))
    across = (src.shape[1] + COLUMNS - 1) // COLUMNS
    first, ctas = cta.block_idx.x, cta.grid_dim.x
    turns = (expert.shape[0] * across - first + ctas - 1) // ctas
    with cta.producer() as leader:
        for i in cta.range(turns):
            block, column = (first + i * ctas) // across, (first + i * ctas) % across * COLUMNS
            with ring.produce(leader) as (slot,):
                for r in cta.range(BLOCK):
                    row = cta.load_index(token, block * BLOCK + r, below=src.shape[0] + 1)
                    slot.load_part(src, (row, column), r, of=BLOCK)
    with cta.storer() as leader:
        for i in cta.range(turns):
            block, column = (first + i * ctas) // across, (first + i * ctas) % across * COLUMNS
            whose = cta.load_index(expert, block, below=len(dst))
            row = cta.load_index(place, block, below=blocks) * BLOCK
            ring.forward(leader, dst[whose], (row, column))


@with_ring.recipe
def with_ring_recipe(dev: ox.Device, x: Array | None = None) -> ox.Recipe:
    return recipe(dev, x, with_ring)


def recipe(
    dev: ox.Device, x: Array | None, pipeline: ox.Pipeline[Rows, Table, List, List, List, ox.Idx], *, renumbered: bool = True
) -> ox.Recipe:
    if x is None:
        x = np.random.default_rng(24).standard_normal((150, 300), dtype=np.float32)
    a, out = dev.array(x, ox.f32, pad=True), dev.empty(x.shape, ox.f32, pad=True)
    route = np.random.default_rng(5).choice(ROUTED, len(x))  # what a router would say
    order = np.argsort(route, kind="stable").astype(np.int32)
    used, counts = np.unique(route, return_counts=True)  # an expert without a token has no matrix, so no descriptor
    ends = [0, *(int(end) for end in np.cumsum(counts))]
    dst = ox.DescriptorTable([ox.TmaDescriptor.tiled(out[start:stop], box=(BLOCK, COLUMNS)) for start, stop in pairwise(ends)])
    lists = blocks_of(order, ends, np.arange(len(used)) if renumbered else used)
    token, expert, place = (dev.array(numbers, ox.i32) for numbers in lists)
    launch = pipeline[CTAS].bind(ox.TmaDescriptor.tiled(a, box=(1, COLUMNS)), dst, token, expert, place, -(-len(x) // BLOCK))
    return ox.Recipe(launch=launch, outputs={"out": out}, expected={"out": x[order]})


def blocks_of(order: Numbers, ends: Sequence[int], entries: npt.NDArray[np.integer]) -> tuple[Numbers, Numbers, Numbers]:
    """Rows of all blocks; the table's entry of each block; which of its expert's blocks it is."""
    counts = [-(-(stop - start) // BLOCK) for start, stop in pairwise(ends)]
    token = np.full((sum(counts), BLOCK), len(order), np.int32)
    for first, count, (start, stop) in zip(np.cumsum([0, *counts]), counts, pairwise(ends), strict=False):
        token[first : first + count].reshape(-1)[: stop - start] = order[start:stop]
    place = np.concatenate([np.arange(n) for n in counts])
    return token.reshape(-1), np.repeat(entries, counts).astype(np.int32), place.astype(np.int32)


# ---- broken on purpose: one copy's bytes for sixteen
# The barrier's phase ends with the first row that lands; the store then takes a tile of which fifteen rows are still on their way.
@ox.pipeline(warps=ox.roles(producer=1, consumers=(), store=1))
def broken_bytes(cta: ox.Cta, src: Rows, dst: Table, token: List, expert: List, place: List, blocks: ox.Idx) -> None:
    body(cta, src, dst, Lists(token, expert, place, blocks), announced=1)  # the edit: not `BLOCK`


@broken_bytes.recipe(refused="OX3021")
def broken_bytes_recipe(dev: ox.Device) -> ox.Recipe:
    return recipe(dev, None, broken_bytes)


# ---- broken on purpose: given back while it is stored
# One store may be unread behind `wait_group_read(1)`: it is the newest, whose stage is the one given back.
@ox.pipeline(warps=ox.roles(producer=1, consumers=(), store=1))
def broken_release(cta: ox.Cta, src: Rows, dst: Table, token: List, expert: List, place: List, blocks: ox.Idx) -> None:
    body(cta, src, dst, Lists(token, expert, place, blocks), held=0)  # the edit: not 1


@broken_release.recipe(refused="OX3043")
def broken_release_recipe(dev: ox.Device) -> ox.Recipe:
    return recipe(dev, None, broken_release)


# ---- broken on purpose: the model's experts, not the table's
# The model has eight experts, and five of them have tokens and a place in the table. An entry behind it is memory that the copy engine
# takes for a descriptor.
@ox.pipeline(warps=ox.roles(producer=1, consumers=(), store=1))
def broken_table(cta: ox.Cta, src: Rows, dst: Table, token: List, expert: List, place: List, blocks: ox.Idx) -> None:
    body(cta, src, dst, Lists(token, expert, place, blocks), experts=EXPERTS)  # the edit: not `len(dst)`


@broken_table.recipe(refused="OX3089")
def broken_table_recipe(dev: ox.Device) -> ox.Recipe:
    return recipe(dev, None, broken_table, renumbered=False)


def main(argv: Sequence[str] | None = None) -> int:
    return ox.run_recipes(__doc__, dispatch, with_ring, broken_bytes, broken_release, broken_table, argv=argv)


if __name__ == "__main__":
    raise SystemExit(main())
