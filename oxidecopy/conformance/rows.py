"""Rows that are loaded by number, as `oxidecopy.engines.cuda.code.rows` makes records of them: an index and a load for each lane."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

import numpy as np

import oxidecopy as ox
from oxidecopy.conformance.case import Case, Made, random_bits

if TYPE_CHECKING:
    from oxidecopy.host.device import Device
    from oxidecopy.typed.dtypes import DType

Map = ox.TmaDescriptor[Any, Any, Any, Any]
List = ox.GlobalArray[Any, ox.D1]
_STAGES: Final = 3
_CTAS: Final = 2
_NUMBERS: Final[tuple[type[DType], ...]] = (ox.u8, ox.u16, ox.u32, ox.i32, ox.i64, ox.u64)


@final
class Plan(NamedTuple):
    """How boxes of `out` are filled, one below the other.

    Attributes:
        shape: of the table; of its output all but the first extent, which is `boxes` times `rows`.
        rows: of a box, each by a load of its own.
        page: rows of a load; what is read is then the number of a page.
        numbers: their type.
        boxes: how many there are.
    """

    shape: tuple[int, ...]
    rows: int = 16
    page: int = 1
    numbers: type[DType] = ox.i32
    boxes: int = 7


PLANS: Final = {
    "a warp's rows": Plan((50, 64), rows=32),
    "more rows than a warp has lanes": Plan((50, 64), rows=48, boxes=3),
    "two": Plan((50, 256), rows=2),
    "of rank 3": Plan((40, 3, 32)),
    "of rank 4": Plan((40, 2, 2, 32), rows=5),
    "of rank 5": Plan((40, 2, 2, 2, 32), rows=7),
    "pages": Plan((96, 32), rows=6, page=8),
    **{f"numbers of {t.__name__}": Plan((50, 64), numbers=t) for t in _NUMBERS},
}


def _ring(plan: Plan) -> ox.Pipeline[...]:
    still = (0,) * (len(plan.shape) - 1)

    @ox.pipeline(threads=64)
    def by_ring(cta: ox.Cta, table: Map, out: Map, numbers: List) -> None:
        """A producer and a storing role, over a ring of stages."""
        tiles = cta.shared(out, stages=_STAGES)
        full, empty = cta.barriers(_STAGES).init(1), cta.barriers(_STAGES).init(1)
        cta.sync()
        turns = (plan.boxes - cta.block_idx.x + _CTAS - 1) // _CTAS
        with cta.warps(0, 1) as group, group.elect() as leader:
            for i in cta.range(turns):
                empty[i % _STAGES].wait_phase(i // _STAGES - 1)
                token = full[i % _STAGES].arrive_expect_tx(leader, tiles[0].nbytes)
                first = (cta.block_idx.x + i * _CTAS) * plan.rows
                for r in cta.range(plan.rows):
                    row = cta.load_index(numbers, first + r, below=table.shape[0] // plan.page)
                    table.g2s(leader, tiles[i % _STAGES].part(r, of=plan.rows), (row * plan.page, *still), token)
        with cta.warps(1, 2) as group, group.elect() as leader:
            for i in cta.range(turns):
                full[i % _STAGES].wait_phase(i // _STAGES)
                out.s2g(leader, tiles[i % _STAGES], ((cta.block_idx.x + i * _CTAS) * plan.rows * plan.page, *still))
                leader.commit_group()
                leader.wait_group_read(0)
                empty[i % _STAGES].arrive()

    return by_ring


def _made(plan: Plan, dev: Device) -> Made:
    pages = plan.shape[0] // plan.page
    at = np.random.default_rng(3).integers(0, pages, plan.boxes * plan.rows)
    at[:3] = pages - 1, 0, pages - 1
    table: Any = dev.array(random_bits(ox.f32, plan.shape, 5), ox.f32)
    out: Any = dev.empty((plan.boxes * plan.rows * plan.page, *plan.shape[1:]), ox.f32)
    numbers: Any = dev.array(at.astype(plan.numbers.info.numpy), plan.numbers)
    load: Any = (plan.page, *plan.shape[1:])
    store: Any = (plan.rows * plan.page, *plan.shape[1:])
    maps = ox.TmaDescriptor.tiled(table, box=load), ox.TmaDescriptor.tiled(out, box=store)
    return Made(launch=_ring(plan)[_CTAS].bind(*maps, numbers), outputs={"out": out})


@ox.pipeline(threads=32)
def two_tables(cta: ox.Cta, keys: Map, values: Map, out: Map, numbers: List) -> None:
    """One index for a load each from two tables, the last row again and again where the list ends."""
    tile, full = cta.shared(out), cta.barrier().init(1)
    last = numbers.shape[0] - 1
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        for r in cta.range(8):
            row = cta.load_index(numbers, ox.minimum(cta.block_idx.x * 8 + r, last), below=keys.shape[0])
            keys.g2s(leader, tile.part(r, of=16), (row, 0), token)
            values.g2s(leader, tile.part(8 + r, of=16), (row, 0), token)
        full.wait(token)
        out.s2g(leader, tile, (cta.block_idx.x * 16, 0))
        leader.commit_group()
        leader.wait_group(0)


def _two(dev: Device) -> Made:
    keys, values = (dev.array(random_bits(ox.f32, (30, 64), seed), ox.f32) for seed in (1, 2))
    numbers = dev.array(np.random.default_rng(4).integers(0, 30, 21).astype(np.int32), ox.i32)
    out = dev.empty((3 * 16, 64), ox.f32)
    k, v = (ox.TmaDescriptor.tiled(table, box=(1, 64)) for table in (keys, values))
    return Made(launch=two_tables[3].bind(k, v, ox.TmaDescriptor.tiled(out, box=(16, 64)), numbers), outputs={"out": out})


def cases() -> Iterator[Case]:
    """All of this module."""
    for name, plan in PLANS.items():
        yield Case(name=name, group="rows by number", make=partial(_made, plan))
    yield Case(name="from two tables", group="rows by number", make=_two)
