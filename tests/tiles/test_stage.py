"""What a stage's block gives: slots are loaded once whatever a condition says, and what is no tile is no tile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.errors import OxidecopyError
from oxidecopy.isa import ops
from oxidecopy.isa.expr import evaluate
from oxidecopy.program.expansion import told_ranks
from oxidecopy.tiles.sharing import AXES, Sharing
from oxidecopy.verify.verifier import inspect
from tests.helpers.edits import changed, edited

F32: TypeAlias = ox.TmaDescriptor[ox.f32, ox.D2]
Out: TypeAlias = ox.GlobalArray[ox.f32, ox.D2]
Load: TypeAlias = Callable[[ox.Cta, Any, F32, F32, Any], None]

A = np.random.default_rng(3).random((64, 64), np.float32)
B = -A


@pytest.fixture
def dev() -> ox.Device:
    return ox.Device.open("sim")


def loaded(dev: ox.Device, load: Load) -> np.ndarray[Any, Any]:
    """What comes out of a ring whose slot is loaded by `load(cta, slot, a, b, at)`."""

    @ox.pipeline(warps=ox.roles(producer=1, consumers=1))
    def copy(cta: ox.Cta, a: F32, b: F32, out: Out) -> None:
        ring = cta.ring(stages=2, tiles=(a,))
        with cta.producer() as leader:
            for at in cta.tiles(a):
                with ring.produce(leader) as (slot,):
                    load(cta, slot, a, b, at)
        with cta.consumers() as group:
            for at in cta.tiles(a):
                with ring.consume(group) as (tile,):
                    cta.store(out, tile, at)

    out = dev.zeros(A.shape, ox.f32)
    a, b = (ox.TmaDescriptor.tiled(dev.array(x), box=(32, 32)) for x in (A, B))
    copy[2](a, b, out)
    return out.numpy()


def rule(dev: ox.Device, load: Load) -> str:
    with pytest.raises(OxidecopyError) as caught:
        loaded(dev, load)
    return caught.value.rule


# ---- loads and conditions
def test_a_condition_may_choose_between_two_sources(dev: ox.Device) -> None:
    def load(cta: ox.Cta, slot: Any, a: F32, b: F32, at: Any) -> None:
        with cta.when(at[0] < 32):
            slot.load(a, at)
        with cta.when(~(at[0] < 32)):
            slot.load(b, at)

    np.testing.assert_array_equal(loaded(dev, load), np.vstack((A[:32], B[32:])))


def test_conditions_that_leave_a_gap_are_refused_by_the_verifier(dev: ox.Device) -> None:
    def load(cta: ox.Cta, slot: Any, a: F32, b: F32, at: Any) -> None:
        with cta.when(at[0] < 32):
            slot.load(a, at)
        with cta.when(at[0] > 32):
            slot.load(b, at)

    assert rule(dev, load).startswith("OX30")


def test_conditions_that_overlap_are_refused_by_the_verifier(dev: ox.Device) -> None:
    def load(cta: ox.Cta, slot: Any, a: F32, b: F32, at: Any) -> None:
        with cta.when(at[0] <= 32):
            slot.load(a, at)
        with cta.when(at[0] >= 32):
            slot.load(b, at)

    assert rule(dev, load).startswith("OX30")


def test_a_load_under_one_condition_is_none_where_it_does_not_hold(dev: ox.Device) -> None:
    def load(cta: ox.Cta, slot: Any, a: F32, b: F32, at: Any) -> None:
        del b
        with cta.when(at[0] < 32):
            slot.load(a, at)

    assert rule(dev, load) == "OX1107"


def test_a_load_under_a_condition_decided_while_recording(dev: ox.Device) -> None:
    def load(cta: ox.Cta, slot: Any, a: F32, b: F32, at: Any) -> None:
        del b
        with cta.when(True):
            slot.load(a, at)

    np.testing.assert_array_equal(loaded(dev, load), A)


@pytest.mark.parametrize("first", [False, True])
def test_a_load_beside_a_conditional_one(dev: ox.Device, first: bool) -> None:
    def load(cta: ox.Cta, slot: Any, a: F32, b: F32, at: Any) -> None:
        if first:
            slot.load(a, at)
        with cta.when(at[0] < 32):
            slot.load(b, at)
        if not first:
            slot.load(a, at)

    assert rule(dev, load) == "OX1107"


@pytest.mark.parametrize("trips", [1, 2])
def test_a_load_in_a_loop_inside_the_block(dev: ox.Device, trips: int) -> None:
    def load(cta: ox.Cta, slot: Any, a: F32, b: F32, at: Any) -> None:
        del b
        for _ in cta.range(trips):
            slot.load(a, at)

    assert rule(dev, load) == "OX1107"


# ---- handles of the wrong sort, and what they are told
def test_a_stage_is_a_tuple(dev: ox.Device) -> None:
    @ox.pipeline(warps=ox.roles(producer=1, consumers=1))
    def wrong(cta: ox.Cta, src: F32) -> None:
        ring = cta.ring(stages=2, tiles=(src,))
        with cta.producer() as leader, ring.produce(leader) as slot:
            slot.load(src, (0, 0))  # type: ignore[attr-defined]

    with pytest.raises(OxidecopyError, match=r"as \(a,\)") as caught:
        wrong[1].bind(ox.TmaDescriptor.tiled(dev.array(A), box=(32, 32)))
    assert caught.value.rule == "OX1009"


def test_a_stage_of_two_tiles_says_so(dev: ox.Device) -> None:
    @ox.pipeline(warps=ox.roles(producer=1, consumers=1))
    def wrong(cta: ox.Cta, src: F32) -> None:
        ring = cta.ring(stages=2, tiles=(src, src))
        with cta.consumers() as group, ring.consume(group) as tile:
            _ = tile.shape  # type: ignore[attr-defined]

    with pytest.raises(OxidecopyError, match=r"as \(a, b\)"):
        wrong[1].bind(ox.TmaDescriptor.tiled(dev.array(A), box=(32, 32)))


Wrong: TypeAlias = Callable[[Any, Any, Any], object]


@pytest.mark.parametrize(
    "call",
    [
        lambda cta, out, _: cta.ring(stages=2, tiles=(out,)),
        lambda cta, out, _: cta.store_ring(out, stages=2),
        lambda cta, out, _: list(cta.tiles(out)),
        lambda cta, _, __: list(cta.tiles(None)),
        lambda cta, out, _: cta.schedule(out),
        lambda cta, out, ring: next(iter(ring.produce(cta.producer().__enter__()).__enter__())).load(out, (0, 0)),
        lambda cta, out, ring: ring.forward(cta.producer().__enter__(), out, (0, 0)),
        lambda cta, _, ring: list(ring.stages(cta.consumers().__enter__(), range(3))),
        lambda cta, _, ring: list(ring.visits(cta.producer().__enter__(), cta.tiles)),
        lambda cta, _, ring: ring.prodce,
    ],
    ids=["ring", "store_ring", "tiles", "none", "schedule", "load", "forward", "stages", "visits", "attribute"],
)
def test_what_is_no_descriptor_or_schedule(dev: ox.Device, call: Wrong) -> None:
    @ox.pipeline(warps=ox.roles(producer=1, consumers=1))
    def wrong(cta: ox.Cta, src: F32, out: Out) -> None:
        call(cta, out, cta.ring(stages=2, tiles=(src,)))

    a = dev.array(A)
    with pytest.raises(OxidecopyError) as caught:
        wrong[1].bind(ox.TmaDescriptor.tiled(a, box=(32, 32)), a)
    assert caught.value.rule == "OX1009"
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.site is not None
    assert diagnostic.site.file == __file__


# ---- held stages
@pytest.mark.parametrize(
    ("keep", "back", "held"), [(2, (1, 1), True), (2, (2,), True), (2, (2, 1), False), (1, (1, 1), False), (1, (0,), False)]
)
def test_steps_back_add_up(dev: ox.Device, keep: int, back: tuple[int, ...], held: bool) -> None:
    @ox.pipeline(warps=ox.roles(producer=1, consumers=1))
    def halo(cta: ox.Cta, src: F32, out: Out) -> None:
        ring = cta.ring(stages=3, tiles=(src,))
        with cta.producer() as leader:
            for i in cta.range(4):
                with ring.produce(leader) as (slot,):
                    slot.load(src, (0, i * 16))
        with cta.consumers() as group:
            for i in cta.range(4):
                with ring.consume(group, keep=keep) as (tile,), cta.when(i >= 2):
                    for n in back:
                        tile = tile.back(n)  # noqa: PLW2901  # the tile further back
                    cta.store(out, tile, (0, i * 16))

    a, out = dev.array(A), dev.zeros(A.shape, ox.f32)
    launch = (ox.TmaDescriptor.tiled(a, box=(64, 16)), out)
    if not held:
        with pytest.raises(OxidecopyError) as caught:
            halo[1].bind(*launch)
        assert caught.value.rule == "OX1108"
        return
    halo[1](*launch)
    np.testing.assert_array_equal(out.numpy()[:, 32:], A[:, :32])


# ---- slots that are loaded in parts
@pytest.mark.parametrize(
    ("fault", "rule"),
    [
        ("", ""),
        ("three of four", "OX3030"),
        ("one twice", "OX3042"),
        ("after a whole load", "OX1107"),
        ("other parts", "OX1103"),
        ("no number", "OX1103"),
        ("a rank beyond", "OX1042"),
        ("another box", "OX1103"),
        ("behind the block", "OX1102"),
    ],
)
def test_parts_of_a_slot(dev: ox.Device, fault: str, rule: str) -> None:
    of: Any = {"other parts": 2, "no number": "4"}.get(fault, 4)
    rows = 3 if fault == "three of four" else 4

    @ox.pipeline(warps=ox.roles(producer=1, consumers=1))
    def reversed_rows(cta: ox.Cta, src: F32, row: F32, out: Out) -> None:
        ring = cta.ring(stages=2, tiles=(src,))
        with cta.producer() as leader:
            for i in cta.range(3):
                with ring.produce(leader) as (slot,):
                    if fault == "after a whole load":
                        slot.load(src, (0, 0))
                    for r in cta.range(rows):
                        rank: Any = {"a rank beyond": 4, "one twice": r % 3}.get(fault, r)
                        slot.load_part(src if fault == "another box" else row, (i * 4 + 3 - r, 0), rank, of=of)
                if fault == "behind the block":
                    slot.load_part(row, (0, 0), 0, of=4)  # type: ignore[oxidecopy-scope]
        with cta.consumers() as group:
            for i in cta.range(3):
                with ring.consume(group) as (tile,):
                    cta.store(out, tile, (i * 4, 0))

    out = dev.zeros((12, 64), ox.f32)
    a = dev.array(A)
    launch = (ox.TmaDescriptor.tiled(a, box=(4, 64)), ox.TmaDescriptor.tiled(a, box=(1, 64)), out)
    if rule:
        with pytest.raises(OxidecopyError) as caught:
            reversed_rows[1](*launch)
        assert rule in caught.value.rules
        return
    reversed_rows[1](*launch)
    np.testing.assert_array_equal(out.numpy(), A[:12].reshape(3, 4, 64)[:, ::-1].reshape(12, 64))


def test_a_whole_load_behind_parts(dev: ox.Device) -> None:
    @ox.pipeline(warps=ox.roles(producer=1, consumers=1))
    def wrong(cta: ox.Cta, src: F32) -> None:
        ring = cta.ring(stages=2, tiles=(src,))
        with cta.producer() as leader, ring.produce(leader) as (slot,):
            slot.load_part(src, (0, 0), 0, of=1)
            slot.load(src, (0, 0))

    with pytest.raises(OxidecopyError) as caught:
        wrong[1].bind(ox.TmaDescriptor.tiled(dev.array(A), box=(8, 16)))
    assert caught.value.rule == "OX1107"


def test_shared_tiles_of_a_cluster_are_not_loaded_in_parts(dev: ox.Device) -> None:
    @ox.pipeline(warps=ox.roles(producer=1, consumers=1), cluster=2)
    def wrong(cta: ox.ClusterCta, src: F32) -> None:
        ring = cta.multicast_ring(stages=2, tiles=(src,))
        with cta.producer() as leader, ring.produce(leader) as (slot,):
            slot.load_part(src, (0, 0), cta.cta_rank, of=2)

    with pytest.raises(OxidecopyError) as caught:
        wrong[2].bind(ox.TmaDescriptor.tiled(dev.array(A), box=(8, 16)))
    assert caught.value.rule == "OX1103"


# ---- multicast: one tile for all CTAs of a cluster
@pytest.mark.parametrize("cluster", [(2, 1, 1), (1, 2, 1), (1, 1, 2), (2, 2, 1)])
@pytest.mark.parametrize("way", ["cluster", "cta", "rank", "halves"])
def test_a_multicast_corner_is_the_same_for_the_cluster(dev: ox.Device, cluster: tuple[int, int, int], way: str) -> None:
    count = cluster[0] * cluster[1] * cluster[2]

    @ox.pipeline(warps=ox.roles(producer=1, consumers=1), cluster=cluster)
    def copy(cta: ox.ClusterCta, src: F32, out: Out) -> None:
        ring = cta.multicast_ring(stages=2, tiles=(src,))
        per: Any = "cta" if way == "cta" else "cluster"
        with cta.producer() as leader:
            for y, x in cta.tiles(src, per=per, box=(8 * count, 32)):
                with ring.produce(leader) as (slot,):
                    off = {"rank": cta.cta_rank * 8, "halves": cta.cta_rank // count}.get(way, 0)
                    slot.load(src, (y + off, x))
        with cta.consumers() as group:
            for at in cta.tiles(src, per=per, box=(8 * count, 32)):
                with ring.consume(group) as (tile,), cta.when(cta.cta_rank == 0):
                    cta.store(out, tile, at)

    out = dev.zeros(A.shape, ox.f32)
    launch = (ox.TmaDescriptor.tiled(dev.array(A), box=(8, 32)), out)
    if way in ("cta", "rank"):
        with pytest.raises(OxidecopyError) as caught:
            copy[cluster].bind(*launch)
        assert caught.value.rule == "OX1147"
        return
    copy[cluster](*launch)
    np.testing.assert_array_equal(out.numpy(), A)


@pytest.mark.parametrize("fault", ["", "shared corner", "own slice"])
def test_a_multicast_ring_with_tiles_of_each_cta(dev: ox.Device, fault: str) -> None:
    @ox.pipeline(warps=ox.roles(producer=1, consumers=1), cluster=2)
    def both(cta: ox.ClusterCta, src: F32, out: Out) -> None:
        ring = cta.multicast_ring(stages=2, tiles=(src,), own=(src,))
        with cta.producer() as leader:
            for i in cta.range(4):
                with ring.produce(leader) as (together, alone):
                    together.load(src, (cta.block_idx.x * 8 if fault == "shared corner" else 0, i * 16))
                    alone.load(src, (16 + cta.cta_rank * 8, i * 16))
        with cta.consumers() as group:
            for i in cta.range(4):
                with ring.consume(group) as (together, alone):
                    group.map(lambda a, b: a + b, together.part(cta.cta_rank, of=2), alone, out=alone)
                    group.sync()
                    cta.store(out, alone if fault != "own slice" else alone.part(0, of=2), (cta.cta_rank * 8, i * 16))

    out = dev.zeros((16, 64), ox.f32)
    launch = (ox.TmaDescriptor.tiled(dev.array(A), box=(8, 16)), out)
    if fault == "shared corner":
        with pytest.raises(OxidecopyError) as caught:
            both[2].bind(*launch)
        assert caught.value.rule == "OX1147"
        return
    both[2](*launch)
    assert np.array_equal(out.numpy(), A[:16] + A[16:32]) == (not fault)


def rows_and_columns(dev: ox.Device, *, wrong: bool = False) -> tuple[Any, Any]:
    """Two by three CTAs: those of a row load rows of one tile together, those of a column rows of the other; and the output."""

    @ox.pipeline(warps=ox.roles(producer=1, consumers=1), cluster=(2, 3))
    def both(cta: ox.ClusterCta, src: F32, out: Out) -> None:
        ring = cta.multicast_ring(stages=2, tiles=(src, src), along=("x", "y"), axis=-2)
        x, y = cta.cta_rank % 2, cta.cta_rank // 2
        with cta.producer() as leader:
            for i in cta.range(5):
                with ring.produce(leader) as (row, column):
                    row.load(src, ((x if wrong else y) * 16, i * 4))
                    column.load(src, (x * 24, i * 4))
        with cta.consumers() as group:
            for i in cta.range(5):
                with ring.consume(group) as (row, column):
                    cta.store(out, row, (y * 16, x * 32 + i * 4))
                    cta.store(out, column, (64 + x * 24, y * 32 + i * 4))

    out = dev.zeros((128, 96), ox.f32)
    return both[2, 3].bind(ox.TmaDescriptor.tiled(dev.array(A), box=(8, 4)), out), out


def test_tiles_that_rows_and_columns_of_a_cluster_share(dev: ox.Device) -> None:
    bound, out = rows_and_columns(dev)
    bound()
    got = out.numpy()
    for x, y in np.ndindex(2, 3):
        assert np.array_equal(got[y * 16 : y * 16 + 16, x * 32 : x * 32 + 20], A[y * 16 : y * 16 + 16, :20])
        assert np.array_equal(got[64 + x * 24 : 88 + x * 24, y * 32 : y * 32 + 20], A[x * 24 : x * 24 + 24, :20])


def test_who_shares_nothing_with_a_cta_does_not_release_its_stages(dev: ox.Device) -> None:
    """It does not wait for that CTA either, so it may be a phase ahead."""
    bound, _ = rows_and_columns(dev)
    to_all = changed(peers=lambda _: 6, told=lambda _: "cluster")
    program = edited(bound.program, lambda op: isinstance(op, ops.ConsumeStage), to_all)
    assert "OX3010" in {v.rule for v in inspect(program, bound.launch).violations}


def test_the_corner_of_a_row_s_tile_is_the_same_for_the_row(dev: ox.Device) -> None:
    with pytest.raises(OxidecopyError) as caught:
        rows_and_columns(dev, wrong=True)
    assert caught.value.rule == "OX1147"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"along": ("x",)}, "along=('x',)"),
        ({"along": ("x", "z")}, "along=('x', 'z')"),
        ({"along": "xy"}, "along='xy'"),
        ({"axis": 1}, "dimension 1, a box of"),
        ({"axis": -3}, "dimension -3 of 2"),
        ({"axis": None}, "axis=None"),
    ],
)
def test_no_such_slices(dev: ox.Device, options: dict[str, Any], words: str) -> None:
    @ox.pipeline(warps=ox.roles(producer=1, consumers=1), cluster=(2, 2))
    def wrong(cta: ox.ClusterCta, src: F32) -> None:
        cta.multicast_ring(stages=2, tiles=(src, src), **options)

    with pytest.raises(OxidecopyError) as caught:
        wrong[2, 2].bind(ox.TmaDescriptor.tiled(dev.array(A), box=(8, 16)))
    assert caught.value.rule == "OX1113"
    assert words in caught.value.diagnostics[0].got


@pytest.mark.parametrize("x", [1, 2, 3, 4])
@pytest.mark.parametrize("y", [1, 2, 3, 4])
def test_who_shares_a_tile(x: int, y: int) -> None:
    """Masks and parts against what the two axes mean."""
    for along in AXES:
        sharing = Sharing((x, y, 1), along)
        for rank in range(x * y):
            mine = [r for r in range(x * y) if (r // x == rank // x if along == "x" else r % x == rank % x)]
            env = {"cta_rank": rank}
            assert evaluate(sharing.mask, env) == sum(1 << r for r in mine)
            assert mine[evaluate(sharing.part, env)] == rank
            assert sorted(evaluate(e, env) for e in told_ranks((x, y, 1), along)) == mine
    crossed = [sorted(evaluate(e, {"cta_rank": r}) for e in told_ranks((x, y, 1), "xy")) for r in range(x * y)]
    assert crossed == [[o for o in range(x * y) if o // x == r // x or o % x == r % x] for r in range(x * y)]


@pytest.mark.parametrize(("tiles", "own"), [(0, 1), (2, 2), (1, 3), (0, 0)])
def test_no_such_multicast_ring(dev: ox.Device, tiles: int, own: int) -> None:
    @ox.pipeline(warps=ox.roles(producer=1, consumers=1), cluster=2)
    def wrong(cta: ox.ClusterCta, src: F32) -> None:
        made: Any = cta
        made.multicast_ring(stages=2, tiles=(src,) * tiles, own=(src,) * own)

    with pytest.raises(OxidecopyError) as caught:
        wrong[2].bind(ox.TmaDescriptor.tiled(dev.array(A), box=(8, 16)))
    assert caught.value.rule == "OX1113"
    assert ("tiles=()" in caught.value.diagnostics[0].got) == (not tiles)


@pytest.mark.parametrize("cluster", [1, 2])
def test_stages_that_cannot_be_forwarded(dev: ox.Device, cluster: int) -> None:
    @ox.pipeline(warps=ox.roles(producer=1, consumers=1), cluster=2)
    def wrong(cta: ox.ClusterCta, src: F32) -> None:
        made: Any = cta
        ring = made.multicast_ring(stages=2, tiles=(src,)) if cluster == 2 else made.ring(stages=2, tiles=(src, src))
        with cta.producer() as leader, ring.produce(leader) as slots:
            for slot in slots:
                slot.load(src, (0, 0))
        with cta.consumers() as group, group.elect() as leader:
            ring.forward(leader, src, (0, 0))

    with pytest.raises(OxidecopyError, match="cannot be forwarded") as caught:
        wrong[2].bind(ox.TmaDescriptor.tiled(dev.array(A), box=(8, 16)))
    assert caught.value.rule == "OX1103"


def test_slices_of_a_multicast_ring_are_aligned(dev: ox.Device) -> None:
    @ox.pipeline(warps=ox.roles(producer=1, consumers=1), cluster=2)
    def wrong(cta: ox.ClusterCta, src: F32) -> None:
        cta.multicast_ring(stages=2, tiles=(src,))

    with pytest.raises(OxidecopyError, match="a multiple of 128 bytes") as caught:
        wrong[2].bind(ox.TmaDescriptor.tiled(dev.array(A), box=(3, 32 // 4)))
    assert caught.value.rule == "OX1113"


@pytest.mark.parametrize("own", [False, True])
def test_rows_that_a_cluster_gathers_are_the_same_for_all_its_ctas(dev: ox.Device, own: bool) -> None:
    @ox.pipeline(warps=ox.roles(producer=1, consumers=1), cluster=2)
    def gather(cta: ox.ClusterCta, src: F32, rows: ox.GlobalArray[ox.i32, ox.D1], out: Out) -> None:
        ring = cta.multicast_ring(stages=2, tiles=(src,))
        place = cta.block_idx.x if own else cta.block_idx.x // 2
        with cta.producer() as leader, ring.produce(leader) as (slot,):
            slot.load(src, (cta.load_index(rows, place, below=64), 0))
        with cta.consumers() as group, ring.consume(group) as (tile,), cta.when(cta.cta_rank == 0):
            cta.store(out, tile, (cta.block_idx.x // 2 * 2, 0))

    out = dev.zeros((4, 64), ox.f32)
    launch = (ox.TmaDescriptor.tiled(dev.array(A), box=(1, 64)), dev.array(np.array([7, 3, 9, 9], np.int32), ox.i32), out)
    if own:
        with pytest.raises(OxidecopyError) as caught:
            gather[4].bind(*launch)
        assert caught.value.rule == "OX1147"
        return
    gather[4](*launch)
    np.testing.assert_array_equal(out.numpy(), np.vstack((A[7:9], A[3:5])))


# ---- a condition around all that is done with a ring
@pytest.mark.parametrize("multicast", [False, True])
def test_blocks_with_nothing_to_do_stay_out(dev: ox.Device, multicast: bool) -> None:
    @ox.pipeline(warps=ox.roles(producer=1, consumers=1), cluster=2)
    def copy(cta: ox.ClusterCta, src: F32, out: Out) -> None:
        ring = cta.multicast_ring(stages=2, tiles=(src,)) if multicast else cta.ring(stages=2, tiles=(src,))
        rows = 32 if multicast else 16
        with cta.when(cta.block_idx.x < 4):
            with cta.producer() as leader:
                for y in cta.range(64 // rows):
                    with ring.produce(leader) as (slot,):
                        slot.load(src, (y * rows, cta.block_idx.x // 2 * 32))
            with cta.consumers() as group:
                for y in cta.range(64 // rows):
                    with ring.consume(group) as (tile,), cta.when(cta.cta_rank == 0):
                        cta.store(out, tile, (y * rows, cta.block_idx.x // 2 * 32))

    out = dev.zeros(A.shape, ox.f32)
    copy[6](ox.TmaDescriptor.tiled(dev.array(A), box=(16, 32)), out)
    np.testing.assert_array_equal(out.numpy(), A)


# ---- a group's work is that of all its threads
@pytest.mark.parametrize(
    "use",
    [
        lambda ring, outs, dst, group: ring.consume(group).__enter__(),
        lambda ring, outs, dst, group: outs.put(group, (0, 0)).__enter__(),
        lambda ring, outs, dst, group: group.store(dst, ring.consume, (0, 0)),
    ],
    ids=["consume", "put", "store"],
)
@pytest.mark.parametrize("warps", [True, False])
def test_not_in_a_narrower_block(dev: ox.Device, use: Callable[..., object], warps: bool) -> None:
    @ox.pipeline(warps=ox.roles(producer=1, consumers=2))
    def wrong(cta: ox.Cta, src: F32) -> None:
        ring, outs = cta.ring(stages=2, tiles=(src,)), cta.store_ring(src, stages=2)
        with cta.consumers() as group, cta.warps(0, 1) if warps else group.elect():
            use(ring, outs, src, group)

    with pytest.raises(OxidecopyError, match="some of its threads") as caught:
        wrong[1].bind(ox.TmaDescriptor.tiled(dev.array(A), box=(32, 32)))
    assert caught.value.rule == "OX1121"
    assert len(caught.value.diagnostics[0].causes) == 1
