"""Plain bulk copies as they are recorded, and the mistakes that a checker would have refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import oxidecopy as ox
from oxidecopy.isa import ops
from oxidecopy.isa.bulk import REDUCES_IN_GLOBAL, REDUCES_IN_SHARED
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.expr import Const, Sym, SymKind
from oxidecopy.isa.ops import ArrayRef, CacheHint
from oxidecopy.program.program import ArrayParam, MapParam
from tests.helpers.recordings import recorded, refused

BX = Sym("block_idx.x", SymKind.BLOCK)
CLUSTER = (2, 1, 1)


def copies(fn: Callable[..., Any], **given: Any) -> list[Any]:
    return [s.op for s in recorded(fn, **given).walk() if isinstance(s.op, ops.Copy)]


def test_what_is_recorded() -> None:
    def pipe(cta: ox.ClusterCta, out: Any) -> None:
        tile = cta.shared(ox.f32, (16, 4), align=ox.A16)
        full = cta.barrier().init(1)
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile)
            at = (cta.block_idx.x, 4)
            ox.bulk_prefetch(leader, out, at, nbytes=32)
            ox.bulk_g2s(leader, tile, out, at, token, cache_hint=ox.cache.evict_first)
            ox.bulk_g2s(leader, tile.part(1, of=4), out, at, token)
            ox.bulk_g2s_multicast(leader, tile, out, at, token, cta_mask=3, nbytes=48)
            ox.bulk_s2g(leader, tile, out, at)
            ox.bulk_reduce(ox.reduce.add, leader, tile, out, at)
            ox.bulk_s2s(leader, tile, tile, full, cta_rank=1)

    prefetch, load, part, many, store, reduction, send = copies(pipe, cluster=CLUSTER)
    array, coords = ArrayRef("out"), (BX, Const(4))
    assert prefetch == ops.BulkPrefetch(array=array, coords=coords, nbytes=32)
    assert load == ops.BulkG2S(
        array=array, coords=coords, tile=load.tile, nbytes=256, bar=ops.BarrierRef(0, Const(0)), hint=CacheHint("evict_first")
    )
    assert (part.nbytes, part.tile.part) == (64, ops.Part(Const(1), 4))
    assert (many.nbytes, many.cta_mask) == (48, Const(3))
    assert (store.nbytes, store.coords) == (256, coords)
    assert reduction.op == "add"
    assert (send.rank, send.nbytes, send.into) == (Const(1), 256, send.tile)


def runs(dtype: type[Any], op: str, *, between: bool) -> str:
    """The rule that refuses a reduction; "" when none does."""

    def pipe(cta: ox.ClusterCta, out: Any) -> None:
        tile = cta.shared(dtype, (16,), align=ox.A16)
        full = cta.barrier().init(1)
        with cta.elect() as leader:
            reduce: Any = getattr(ox.reduce, op)
            if between:
                combine: Any = ox.bulk_reduce_s2s
                combine(reduce, leader, tile, tile, full, cta_rank=1)
            else:
                ox.bulk_reduce(reduce, leader, tile, out, (0,))

    try:
        recorded(pipe, cluster=CLUSTER, out=ArrayParam(name="out", dtype=dtype.info.name, rank=1))
    except ox.errors.RecordError as error:
        return error.rule
    return ""


@pytest.mark.parametrize("between", [False, True])
@pytest.mark.parametrize("dtype", [name for name, row in DTYPES.items() if row.bits % 8 == 0])
def test_reductions_that_ptx_has(dtype: str, between: bool) -> None:
    legal = (REDUCES_IN_SHARED if between else REDUCES_IN_GLOBAL).get(dtype, frozenset())
    for op in ops.REDUCE.words:
        assert runs(getattr(ox, dtype), op, between=between) == ("" if op in legal else "OX1016"), op


@pytest.mark.parametrize("nbytes", [0, -16, 8, 24, 272, 16.0, True])
def test_sizes(nbytes: Any) -> None:
    def pipe(cta: ox.Cta, out: Any) -> None:
        tile = cta.shared(ox.f32, (64,), align=ox.A16)
        with cta.elect() as leader:
            ox.bulk_s2g(leader, tile, out, (0, 0), nbytes=nbytes)  # here

    refused(pipe, "OX1163")


def test_a_tile_of_no_whole_units() -> None:
    def pipe(cta: ox.Cta, out: Any) -> None:
        tile = cta.shared(ox.f32, (63,), align=ox.A16)
        with cta.elect() as leader:
            ox.bulk_s2g(leader, tile, out, (0, 0))  # here

    refused(pipe, "OX1163")


def mistakes() -> list[tuple[str, str, Callable[..., Any]]]:  # noqa: C901 - one function per mistake
    """Name, rule and pipeline of one mistake each."""

    def rank(cta: ox.Cta, out: Any) -> None:
        tile = cta.shared(ox.f32, (64,), align=ox.A16)
        with cta.elect() as leader:
            at: Any = (0,)
            ox.bulk_s2g(leader, tile, out, at)  # here

    def dtype(cta: ox.Cta, out: Any) -> None:
        tile = cta.shared(ox.u32, (64,), align=ox.A16)
        with cta.elect() as leader:
            ox.bulk_s2g(leader, tile, out, (0, 0))  # here

    def map_for_array(cta: ox.Cta, src: Any) -> None:
        tile = cta.shared(ox.f32, (64,), align=ox.A16)
        with cta.elect() as leader:
            ox.bulk_s2g(leader, tile, src, (0, 0))  # here

    def no_leader(cta: ox.Cta, out: Any) -> None:
        tile = cta.shared(ox.f32, (64,), align=ox.A16)
        nobody: Any = None
        ox.bulk_s2g(nobody, tile, out, (0, 0))  # here

    def after_block(cta: ox.Cta, out: Any) -> None:
        tile = cta.shared(ox.f32, (64,), align=ox.A16)
        with cta.elect() as leader:
            pass
        ox.bulk_s2g(leader, tile, out, (0, 0))  # type: ignore[oxidecopy-scope]  # here

    def unarmed(cta: ox.Cta, out: Any) -> None:
        tile = cta.shared(ox.f32, (64,), align=ox.A16)
        full = cta.barrier().init(1)
        with cta.elect() as leader:
            token: Any = full.arrive()
            ox.bulk_g2s(leader, tile, out, (0, 0), token)  # here

    def swizzled(cta: ox.Cta, out: Any, dst: Any) -> None:
        tile = cta.shared(dst)
        with cta.elect() as leader:
            ox.bulk_s2g(leader, tile, out, (0, 0))  # here

    def no_cluster(cta: ox.Cta) -> None:
        tile = cta.shared(ox.f32, (64,), align=ox.A16)
        full = cta.barrier().init(1)
        with cta.elect() as leader:
            one: Any = leader
            ox.bulk_s2s(one, tile, tile, full, cta_rank=0)  # here

    return [
        ("rank", "OX1013", rank),
        ("dtype", "OX1011", dtype),
        ("map for an array", "OX1009", map_for_array),
        ("no leader", "OX1014", no_leader),
        ("after its block", "OX1018", after_block),
        ("unarmed", "OX1006", unarmed),
        ("swizzled tile", "OX1037", swizzled),
        ("no cluster", "OX1017", no_cluster),
    ]


@pytest.mark.parametrize(("rule", "pipe"), [(rule, pipe) for _, rule, pipe in mistakes()], ids=[name for name, _, _ in mistakes()])
def test_mistakes(rule: str, pipe: Callable[..., Any]) -> None:
    refused(pipe, rule)


def test_a_barrier_that_is_not_ready() -> None:
    def pipe(cta: ox.ClusterCta) -> None:
        tile = cta.shared(ox.f32, (64,), align=ox.A16)
        bar: Any = cta.barrier()
        with cta.elect() as leader:
            ox.bulk_s2s(leader, tile, tile, bar, cta_rank=0)  # here

    refused(pipe, "OX1001", cluster=CLUSTER)


def test_a_barrier_that_counts_no_bytes() -> None:
    def pipe(cta: ox.ClusterCta) -> None:
        tile = cta.shared(ox.f32, (64,), align=ox.A16)
        bar: Any = cta.barrier(kind=ox.GeneralBarrier).init(1)
        with cta.elect() as leader:
            ox.bulk_s2s(leader, tile, tile, bar, cta_rank=0)  # here

    refused(pipe, "OX1008", cluster=CLUSTER)


# ---- four rows at once
def test_gathers_are_recorded() -> None:
    def pipe(cta: ox.Cta, row: Any) -> None:
        tile = cta.shared(ox.f32, (4, 32), align=ox.A1024)
        full = cta.barrier().init(1)
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile)
            row.gather4(leader, tile, (3, cta.block_idx.x, 1, 0), 8, token)
            row.scatter4(leader, tile, (0, 1, 2, 3), 0, cache_hint=ox.cache.evict_last)

    row = recorded_row(32)
    gather, scatter = copies(pipe, row=row)
    assert gather.coords == (Const(3), BX, Const(1), Const(0), Const(8))
    assert scatter == ops.TensorScatter4(
        map=ops.MapRef("row"), tile=scatter.tile, coords=tuple(map(Const, (0, 1, 2, 3, 0))), hint=CacheHint("evict_last")
    )


def recorded_row(n: int, rows: int = 1) -> Any:
    return MapParam(name="row", dtype="f32", box_dim=(rows, n), element_strides=(1, 1))


@pytest.mark.parametrize(("box", "tile", "rows", "rule"), [(2, 4, 4, "OX1162"), (1, 8, 4, "OX1012"), (1, 4, 3, "OX1013")])
def test_gathers_refused(box: int, tile: int, rows: int, rule: str) -> None:
    def pipe(cta: ox.Cta, row: Any) -> None:
        target = cta.shared(ox.f32, (tile, 32), align=ox.A1024)
        with cta.elect() as leader:
            row.scatter4(leader, target, tuple(range(rows)), 0)  # here

    refused(pipe, rule, row=recorded_row(32, box))
