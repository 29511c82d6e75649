"""Launches in order of time: what the cost model says of small ones, to the nanosecond."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.engines.sim.costs import Costs
from oxidecopy.engines.sim.timed import stamped
from oxidecopy.isa import ops
from oxidecopy.isa.expr import Const
from oxidecopy.program.stamps import Cause, Stamp, Stamped
from oxidecopy.program.text import from_text
from tests.helpers.timelines import Map, computation, followed, two_loads

COSTS = Costs(op=10, wake=40, sync=20, load=700, store_read=300, store_write=500, sm=64, memory=4300)
NBYTES = 8 * 64 * 4


def of(run: Stamped, *kinds: type[ops.Instr], agent: int | None = None) -> list[Stamp]:
    return [s for s in run.stamps if isinstance(s.step.op, kinds) and agent in (None, s.agent)]


@pytest.fixture(scope="module")
def two() -> Stamped:
    return followed(two_loads(), costs=COSTS)


def test_copies_take_turns_and_land_a_latency_later(two: Stamped) -> None:
    first, second, store = two.flights
    issued = [two.stamps[f.stamp].came for f in two.flights]
    assert [f.issued for f in two.flights] == issued
    assert (first.begun, first.moved, first.end) == (issued[0], issued[0] + NBYTES / 64, issued[0] + NBYTES / 64 + 700)
    assert (second.begun, second.moved) == (first.moved, issued[0] + 2 * NBYTES / 64)
    assert second.end == issued[0] + 2 * NBYTES / 64 + 700
    assert store.read == issued[2] + NBYTES / 64 + 300
    assert store.end == store.read + 500
    assert {f.nbytes for f in two.flights} == {NBYTES}


def test_waits_end_a_little_after_what_they_wait_for_and_know_it(two: Stamped) -> None:
    waits = of(two, ops.MbarrierWait)
    assert len(waits) == 4  # two waits of two classes
    for stamp in waits[:2]:
        assert (stamp.woken, stamp.went) == (Cause(0, copy=True), (two.flights[0].end or 0) + 40)
    read, written = of(two, ops.WaitGroupRead, ops.WaitGroup)
    assert (read.went, read.woken) == ((two.flights[2].read or 0) + 40, Cause(2, copy=True))
    assert (written.went, written.woken) == ((two.flights[2].end or 0) + 40, Cause(2, copy=True))
    assert written.came == read.end == (read.went or 0) + 10


def test_who_comes_last_lets_the_others_of_a_sync_go() -> None:
    run = followed(computation(), costs=COSTS)
    whole = [s for s in of(run, ops.BarSync) if s.step.op.threads == 96]  # type: ignore[union-attr]  # a sync
    last = max(whole, key=lambda s: s.came)
    assert (last.waited, last.woken) == (0, None)
    for stamp in whole:
        if stamp is not last:
            assert stamp.woken == Cause(run.stamps.index(last))
            assert (stamp.went, stamp.end) == (last.came + 40, last.came + 60)


@pytest.mark.parametrize("counter", [False, True])
def test_nobody_does_two_things_at_a_time(counter: bool) -> None:
    run = followed(computation(3, ctas=2, counter=counter), ctas=2)
    assert run.outcome == "ok"
    assert run.cut == ""
    for cta in run.ctas:
        for agent in range(len(run.classes)):
            mine = [s for s in run.stamps if s.cta == cta and s.agent == agent]
            assert all(s.went is not None and s.end is not None and s.came <= s.went <= s.end for s in mine)
            assert all((a.end or 0) <= b.came for a, b in pairwise(mine))


def test_each_op_knows_the_integers_it_saw() -> None:
    run = followed(computation(3, ctas=2, counter=True), ctas=2)
    loads = [s for s in of(run, ops.TensorG2S) if s.cta == (1, 0, 0)]
    assert [s.names["i0"] for s in loads] == list(range(8))
    assert [s.names["read"] for s in loads] == [1, 3, 5, 7, 9, 11, 13, 15], "a counter deals in turn"
    assert {s.names["block_idx.x"] for s in loads} == {1}


def test_memory_is_as_before() -> None:
    dev = ox.Device.open("sim")

    @ox.pipeline(threads=32)
    def fill(cta: ox.Cta, dst: Map) -> None:
        tile = cta.shared(dst)
        cta.fill(tile, 7)
        cta.fence_proxy_async()
        cta.sync()
        with cta.elect() as leader:
            dst.s2g(leader, tile, (0, 0))
            leader.commit_group()
            leader.wait_group_read(0)

    array = dev.zeros((8, 64), ox.f32)
    launch = fill[1].bind(ox.TmaDescriptor.tiled(array, box=(8, 64)))
    assert followed(launch).outcome == "ok"
    assert not np.asarray(array.numpy()).any()
    launch()
    assert np.asarray(array.numpy()).all()


def test_a_long_launch_is_cut_off_and_says_so() -> None:
    run = followed(computation(), ops_max=60)
    assert 60 <= len(run.stamps) <= 60 + len(run.classes)
    assert "60 ops" in run.cut
    assert sum(s.end is None for s in run.stamps) >= 1, "who waits then is seen to wait"
    whole = followed(computation(rows=16, ctas=2), ctas=2, ops_max=100)
    assert {s.cta for s in whole.stamps} == {(0, 0, 0), (1, 0, 0)}, "each cluster has its share"


def test_a_launch_that_hangs_is_shown_hanging() -> None:
    @ox.pipeline(threads=32)
    def hangs(cta: ox.Cta, src: Map) -> None:
        tile, full = cta.shared(src), cta.barrier().init(1)
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile.nbytes + 16)
            src.g2s(leader, tile, (0, 0), token)
        full.wait(token)

    dev = ox.Device.open("sim")
    run = followed(hangs[1].bind(ox.TmaDescriptor.tiled(dev.zeros((8, 64), ox.f32), box=(8, 64))))
    assert (run.outcome, {d.rule for d in run.diagnostics}) == ("deadlock", {"OX4001"})
    open_ones = [s for s in run.stamps if s.end is None]
    assert [(type(s.step.op), s.went) for s in open_ones] == [(ops.MbarrierWait, None)] * 2
    assert run.flights[0].end is not None, "the copy itself landed"


def test_a_multicast_has_one_turn_and_lands_everywhere() -> None:
    @ox.pipeline(threads=32, cluster=(2, 1, 1))
    def both(cta: ox.ClusterCta, src: Map) -> None:
        tile, full = cta.shared(src), cta.barrier().init(1)
        cta.cluster_sync()
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile.nbytes)
            with cta.when(cta.cta_rank == 0):
                src.g2s_multicast(leader, tile, (0, 0), token, cta_mask=3)
        full.wait(token)
        cta.cluster_sync()

    dev = ox.Device.open("sim")
    launch = both[2].bind(ox.TmaDescriptor.tiled(dev.zeros((8, 64), ox.f32), box=(8, 64)))
    run = stamped(launch.program, launch.bindings, ctas=[(1, 0, 0)])
    assert run.outcome == "ok"
    assert [f.into for f in run.flights] == [(0, 0, 0), (1, 0, 0)], "the whole cluster is followed"
    assert len({(f.begun, f.moved, f.end) for f in run.flights}) == 1


def test_ctas_share_the_memory_as_far_as_they_are_there_at_a_time() -> None:
    program = computation().program
    assert program.shared_bytes < 17 * 1024
    assert COSTS.resident(program) == 132 * 13
    assert COSTS.rate(program, (1, 1, 1)) == 64
    assert COSTS.rate(program, (132, 1, 1)) == 4300 / 132
    assert COSTS.rate(program, (264, 1, 1)) == 4300 / 264
    assert COSTS.rate(program, (1 << 20, 1, 1)) == 4300 / (132 * 13)


def test_what_threads_compute_takes_its_elements_share_of_the_lanes() -> None:
    run = followed(computation(), costs=COSTS)
    maps = of(run, ops.MapTiles)
    each = 2 + 3  # two tiles; two operands and a sum
    assert {round((s.end or 0) - s.came, 3) for s in maps} == {round(10 + 1024 * each * 2 / 220, 3)}


def test_products_take_their_share_of_the_tensor_cores() -> None:
    """Two operands of 64 x 64 16-bit elements: 64^3 products."""
    program = from_text(
        "program p threads=128 cluster=(1, 1, 1) shared=16384:\n"
        "  map src: bf16 box=(64, 64) swizzle=128B\n"
        "  tile a: bf16 (64, 64) align=1024 stages=2 at=0 step=8192\n"
    )
    tile = ops.TileRef(0, Const(0))
    step = ops.MmaStep(a=tile, b=tile, a_major="k", b_major="k", depth=64)
    assert COSTS.of(program, step, 128, 64) == 10 + 64**3 * 2 / 7500
