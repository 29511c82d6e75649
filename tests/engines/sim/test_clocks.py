"""Truth tables: toggle each wait, fence and sync, and the findings follow a one-line formula, on every schedule."""

from __future__ import annotations

from itertools import product

import pytest

from oxidecopy.isa import ops
from oxidecopy.isa.expr import Const
from tests.engines.sim.harness import check, rules
from tests.helpers.programs import RANK, Builder, add, eq, mul

TILE = 64 * 64 * 4


def loading(*, wait: bool = True, nbytes: int = TILE) -> Builder:
    b = Builder(grid=(1, 1, 1))
    b.map()
    b.array()
    b.tile()
    b.bar()
    b.init()
    with b.elect():
        token = b.arm(nbytes)
        b.g2s(tag="load")
    if wait:
        b.wait(token)
    return b


# ---- loads
def test_a_load_that_is_waited_for_is_clean() -> None:
    b = loading()
    b.store(tag="read")
    check(b, set())


def test_read_before_landing() -> None:
    b = loading(wait=False)
    b.store(tag="read")
    check(b, {("OX4102", b.tags["read"]), ("OX4113", b.tags["load"])})


def test_only_the_threads_that_waited_may_read() -> None:
    b = loading(wait=False)
    with b.elect():
        b.wait(1)
        b.store()
    with b.others():
        b.store(tag="read")
    check(b, {("OX4102", b.tags["read"])})


def test_what_one_thread_waited_for_travels_by_sync() -> None:
    b = loading(wait=False)
    with b.elect():
        b.wait(1)
    b.sync()
    b.store()
    check(b, set())


def test_overwriting_a_landing_tile() -> None:
    b = loading(wait=False)
    b.fill(tag="write")
    b.wait(1)
    check(b, {("OX4103", b.tags["write"])})


def test_two_loads_into_one_tile() -> None:
    b = loading(wait=False, nbytes=2 * TILE)
    with b.elect():
        b.g2s(tag="again")
    b.wait(1)
    b.store()
    check(b, {("OX4103", b.tags["again"])})


def test_announcing_too_little_is_found_even_when_it_ends_well() -> None:
    b = loading(nbytes=0, wait=False)
    b.op(ops.MbarrierTestToken(form="try_wait", bar=ops.BarrierRef(0, RANK), token=1, pred=0))
    assert {"OX4113", "OX4114"} <= rules(b)


# ---- plain accesses
@pytest.mark.parametrize("sync", [True, False])
def test_threads_of_one_class_do_not_know_each_other(sync: bool) -> None:
    b = Builder(grid=(1, 1, 1))
    b.array()
    b.tile()
    b.fill()
    if sync:
        b.sync()
    b.store(tag="read")
    check(b, set() if sync else {("OX4101", b.tags["read"])})


def test_one_thread_knows_what_it_did() -> None:
    b = Builder(grid=(1, 1, 1), threads=1)
    b.array()
    b.tile()
    b.fill()
    b.store()
    b.fill()
    b.store()
    check(b, set())


def test_reading_what_nobody_wrote() -> None:
    b = Builder(grid=(1, 1, 1))
    b.array()
    b.tile()
    b.store(tag="read")
    check(b, {("OX4107", b.tags["read"])})


def test_half_a_tile_written_is_not_enough() -> None:
    b = Builder(grid=(1, 1, 1))
    b.array()
    b.tile()
    b.fill(part=0, of=2)
    b.sync()
    b.store(tag="read")
    check(b, {("OX4107", b.tags["read"])})
    b = Builder(grid=(1, 1, 1))
    b.array()
    b.tile()
    b.fill(part=0, of=2)
    b.fill(part=1, of=2)
    b.sync()
    b.store()
    check(b, set())


@pytest.mark.parametrize("threads", [64, 96])
def test_a_named_barrier_orders_only_its_threads(threads: int) -> None:
    b = Builder(grid=(1, 1, 1))
    b.array()
    b.tile()
    with b.scope((0, 32)):
        b.fill()
    with b.scope((0, threads)):
        b.sync(threads=threads, number=1)
    with b.scope((64, 96)):
        b.store(tag="read")
    check(b, set() if threads == 96 else {("OX4101", b.tags["read"])})


@pytest.mark.parametrize("wait", [True, False])
def test_an_mbarrier_orders_arrivals_before_the_wait(wait: bool) -> None:
    b = Builder(grid=(1, 1, 1))
    b.array()
    b.tile()
    b.bar()
    b.init(count=32)
    b.fill()
    b.sync()
    with b.scope((0, 32)):
        b.fill(tag="write")
        token = b.arrive()
    with b.scope((32, 64)):
        if wait:
            b.wait(token)
        b.store(tag="read")
    check(b, set() if wait else {("OX4101", b.tags["read"]), ("OX4101", b.tags["write"])})


# ---- stores
@pytest.mark.parametrize(("fence", "sync", "wait", "after"), list(product([True, False], repeat=4)))
def test_store_path(fence: bool, sync: bool, wait: bool, after: bool) -> None:
    b = Builder(grid=(1, 1, 1))
    b.map()
    b.tile()
    b.fill(tag="write")
    if fence:
        b.fence()
    if sync:
        b.sync()
    with b.elect():
        b.s2g(tag="store")
        b.commit()
        if wait:
            b.wait_read()
    if after:
        b.sync()
    b.fill(tag="again")
    with b.elect():
        b.wait_group()
    formula = {
        ("OX4106", b.tags["store"]): sync,
        ("OX4105", b.tags["store"]): fence,
        ("OX4104", b.tags["again"]): wait and after,
        ("OX4101", b.tags["again"]): sync or after,
    }
    check(b, {report for report, right in formula.items() if not right})


def test_store_without_any_wait_is_not_drained() -> None:
    for drain in (None, "read", "full", "uncommitted"):
        b = Builder(grid=(1, 1, 1), threads=1)
        b.map()
        b.tile()
        b.fill()
        b.fence()
        b.s2g(tag="store")
        if drain != "uncommitted":
            b.commit()
        if drain == "read":
            b.wait_read()
        elif drain:
            b.wait_group()
        check(b, set() if drain in ("read", "full") else {("OX4112", b.tags["store"])})


def test_pending_groups_are_counted_from_the_newest() -> None:
    for pending in (0, 1):
        b = Builder(grid=(1, 1, 1), threads=1)
        b.map()
        b.tile("a")
        b.tile("b")
        for tile in (0, 1):
            b.fill(tile)
        b.fence()
        for tile in (0, 1):
            b.s2g(tile=tile)
            b.commit()
        b.wait_read(pending)
        b.fill(0)
        b.fill(1, tag="second")
        b.wait_group()
        check(b, set() if pending == 0 else {("OX4104", b.tags["second"])})


def test_another_threads_wait_does_not_help() -> None:
    b = Builder(grid=(1, 1, 1), threads=64)
    b.map()
    b.tile()
    b.fill()
    b.fence()
    b.sync()
    with b.elect(0):
        b.s2g(tag="store")
        b.commit()
    with b.elect(1):
        b.wait_group()
    b.sync()
    b.fill(tag="again")
    check(b, {("OX4104", b.tags["again"]), ("OX4112", b.tags["store"])})


@pytest.mark.parametrize("fence", [True, False])
def test_a_load_over_plain_writes_needs_the_fence_too(fence: bool) -> None:
    b = Builder(grid=(1, 1, 1))
    b.map()
    b.tile()
    b.bar()
    b.init(sync=False)
    b.fill()
    if fence:
        b.fence()
    b.sync()
    with b.elect():
        token = b.arm(TILE)
        b.g2s(tag="load")
    b.wait(token)
    check(b, set() if fence else {("OX4105", b.tags["load"])})


@pytest.mark.parametrize("sync", [True, False])
def test_a_load_over_plain_reads_needs_a_sync_but_no_fence(sync: bool) -> None:
    b = loading()
    b.store()
    if sync:
        b.sync()
    with b.elect():
        token = b.arm(TILE)
        b.g2s(tag="second")
    b.wait(token)
    check(b, set() if sync else {("OX4106", b.tags["second"])})


# ---- barriers
def test_a_barrier_is_not_seen_before_a_sync() -> None:
    for sync in (True, False):
        b = Builder(grid=(1, 1, 1), threads=64)
        b.bar()
        b.init(sync=sync)
        with b.elect():
            b.arrive()
        with b.scope((32, 64)):
            b.wait_phase(0, tag="unseen")
        check(b, set() if sync else {("OX4110", b.tags["unseen"])})


def test_the_initialising_thread_needs_no_sync() -> None:
    b = Builder(grid=(1, 1, 1), threads=1)
    b.bar()
    b.init(sync=False)
    b.wait(b.arrive())
    check(b, set())


def test_use_after_inval() -> None:
    b = Builder(grid=(1, 1, 1), threads=1)
    b.bar()
    b.init()
    b.inval()
    b.expect(0, tag="dead")
    check(b, {("OX4110", b.tags["dead"])})


@pytest.mark.parametrize("sync", [True, False])
def test_inval_while_others_wait(sync: bool) -> None:
    b = loading()
    b.inval(sync=sync, tag="inval")
    check(b, set() if sync else {("OX4111", b.tags["inval"])})


def test_arrivals_of_a_class_in_two_phases() -> None:
    b = Builder(grid=(1, 1, 1), threads=64)
    b.bar()
    b.init(count=32)
    b.arrive(tag="split")
    check(b, {("OX4109", b.tags["split"])})


@pytest.mark.parametrize("wait", [True, False])
def test_arrivals_wait_for_the_phase_before(wait: bool) -> None:
    b = Builder(grid=(1, 1, 1), threads=32)
    b.bar()
    b.init(count=2)
    for thread in (0, 1):
        with b.elect(thread):
            b.arrive()
            if wait:
                b.wait_phase(0)
            b.arrive(tag=f"second{thread}")
    check(b, set() if wait else {("OX4109", b.tags["second0"]), ("OX4109", b.tags["second1"])})


@pytest.mark.parametrize("wait", [True, False])
def test_announcements_wait_for_the_phase_before(wait: bool) -> None:
    b = Builder(grid=(1, 1, 1), threads=1)
    b.bar()
    b.init(sync=False)
    token = b.arrive()
    if wait:
        b.wait(token)
    b.expect(16, tag="expect")
    b.complete(16)
    check(b, set() if wait else {("OX4109", b.tags["expect"])})


def test_a_second_life_of_a_barrier_starts_anew() -> None:
    b = Builder(grid=(1, 1, 1), threads=1)
    b.bar()
    for _ in range(2):
        b.init(sync=False)
        b.arrive()
        b.inval(sync=False)
    check(b, set())


@pytest.mark.parametrize("sync", [True, False])
def test_nobody_may_fall_two_phases_behind(sync: bool) -> None:
    b = Builder(grid=(1, 1, 1), threads=64)
    b.bar()
    b.init()
    for k in range(3):
        with b.elect():
            token = b.arrive()
            b.wait(token)
        with b.scope((32, 64)):
            b.wait(token, tag=f"wait{k}")
        if sync:
            b.sync()
    check(b, set() if sync else {("OX4108", b.tags["wait0"]), ("OX4108", b.tags["wait1"])})


def test_a_wait_two_phases_late() -> None:
    b = Builder(grid=(1, 1, 1), threads=1)
    b.bar()
    b.init(count=1)
    for k in range(3):
        b.arrive()
        b.wait_phase(k)
    b.wait_phase(0, tag="late")
    check(b, {("OX4108", b.tags["late"])})


def test_bytes_left_over() -> None:
    b = Builder(grid=(1, 1, 1), threads=1)
    b.bar()
    b.init(count=1)
    b.expect(16)
    check(b, {("OX4114", 0)})


# ---- clusters
def clustered(*, start: bool = True, end: bool = True, fence: bool = True, drain: bool = False) -> Builder:
    """Each CTA arrives on the barrier of the other."""
    b = Builder(grid=(2, 1, 1), cluster=(2, 1, 1), threads=32)
    b.bar()
    b.init(fence=fence)
    if start:
        b.cluster_sync()
    with b.elect():
        b.arrive_remote(add(1, mul(RANK, -1)), tag="remote")
    if drain:
        b.wait_phase(0)
    if end:
        b.cluster_sync()
    return b


def test_cluster_rules() -> None:
    b = clustered()
    check(b, set())


def test_missing_mbarrier_fence() -> None:
    b = clustered(fence=False)
    check(b, {("OX4110", b.tags["remote"])})


def test_exit_with_remote_arrivals_pending() -> None:
    b = clustered(end=False)
    check(b, {("OX4116", b.tags["remote"])})


def test_peer_not_started() -> None:
    b = clustered(start=False)
    check(b, {("OX4115", b.tags["remote"])})


def multicast(*, wait: bool = True, start: bool = True, release: bool = True) -> Builder:
    """CTA 0 loads a tile into both CTAs twice."""
    b = Builder(grid=(2, 1, 1), cluster=(2, 1, 1), threads=64)
    b.map()
    b.array()
    b.tile()
    b.bar()
    b.init()
    if start:
        b.cluster_sync()
    for i in range(2):
        with b.elect():
            token = b.arm(TILE)
            with b.when(eq(RANK, 0)):
                b.multicast(3, tag=f"load{i}")
        if wait:
            b.wait(token)
        b.store(tag=f"read{i}")
        if release:
            b.cluster_sync()
    b.cluster_sync()
    return b


def test_multicast() -> None:
    check(multicast(), set())


def test_multicast_into_a_peer_that_still_reads() -> None:
    b = multicast(release=False)
    check(b, {("OX4106", b.tags["load1"])})


def test_multicast_not_waited_for() -> None:
    b = multicast(wait=False)
    check(b, {("OX4102", b.tags["read0"])})


def test_findings_are_kept_once() -> None:
    b = Builder(grid=(8, 1, 1))
    b.array()
    b.tile()
    b.store(tag="read")
    check(b, {("OX4107", b.tags["read"])})


# ---- misuse that only hand-written programs can hold
@pytest.mark.parametrize("own", [True, False])
def test_a_token_is_of_the_barrier_waited_on(own: bool) -> None:
    """The instruction gets a parity, and asks the barrier it names."""
    b = Builder(grid=(1, 1, 1), threads=1)
    for bar in range(2):
        b.bar(f"b{bar}")
        b.init(bar, sync=False)
    token = b.arrive(0)
    b.arrive(1)
    b.wait(token, bar=0 if own else 1, tag="wait")
    check(b, set() if own else {("OX4108", b.tags["wait"])})


def test_a_foreign_token_waits_for_the_named_barrier() -> None:
    b = Builder(grid=(1, 1, 1), threads=1)
    for bar in range(2):
        b.bar(f"b{bar}")
        b.init(bar, sync=False)
    b.wait(b.arrive(0), bar=1, tag="wait")
    assert "OX4001" in rules(b)


@pytest.mark.parametrize("inval", [True, False])
def test_a_live_barrier_is_not_initialised_again(inval: bool) -> None:
    b = Builder(grid=(1, 1, 1), threads=1)
    b.bar()
    b.init(sync=False)
    if inval:
        b.inval(sync=False)
    b.init(sync=False, tag="again")
    check(b, set() if inval else {("OX4110", b.tags["again"])})


@pytest.mark.parametrize("init", [True, False])
def test_a_test_is_a_use_also_before_its_token_is_made(init: bool) -> None:
    b = Builder(grid=(1, 1, 1), threads=1)
    b.bar()
    if init:
        b.init(sync=False)
    b.test_token(1, 0, tag="test")
    if not init:
        b.init(sync=False)
    b.wait(b.arrive())
    check(b, set() if init else {("OX4110", b.tags["test"])})


@pytest.mark.parametrize("threads", [1, 2])
def test_one_thread_initialises(threads: int) -> None:
    b = Builder(grid=(1, 1, 1), threads=threads)
    b.bar()
    b.op(ops.MbarrierInit(bar=ops.BarrierRef(0, Const(0)), count=1), "init")
    check(b, set() if threads == 1 else {("OX4110", b.tags["init"])})


@pytest.mark.parametrize("sync", [True, False])
def test_a_wait_that_passes_at_once_is_a_use(sync: bool) -> None:
    b = Builder(grid=(1, 1, 1), threads=2)
    b.bar()
    b.init(sync=sync)
    b.wait_phase(-1, tag="wait")
    check(b, set() if sync else {("OX4110", b.tags["wait"])})
