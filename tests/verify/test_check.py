"""The life of a barrier and its phases: each rule with a refused program and the accepted one a single edit away."""

from __future__ import annotations

import pytest

from oxidecopy.isa import expr, ops
from oxidecopy.isa.expr import Const
from oxidecopy.isa.ops import BarrierRef
from oxidecopy.verify.check import CHECKS
from oxidecopy.verify.requirements import Need
from tests.helpers.programs import BX, BY, RANK, Builder, eq, mul
from tests.helpers.verdicts import Make, accepted, made, refused

BYTES = 64 * 64 * 4


def start(b: Builder, *, count: int = 1, stages: int = 1, init: bool = True) -> None:
    b.map()
    b.array()
    b.tile(stages=stages)
    b.bar(stages=stages)
    if init:
        b.init(count=count)


def load_and_store(b: Builder, *, nbytes: int = BYTES) -> None:
    with b.elect():
        token = b.arm(nbytes, tag="arm")
        b.g2s((mul(BY, 64), mul(BX, 64)), tag="load")
    b.wait(token, tag="wait")
    b.store((mul(BY, 64), mul(BX, 64)), tag="store")


# ---- life
def before_init(b: Builder, broken: bool) -> None:
    start(b, init=not broken)
    load_and_store(b)


def after_inval(b: Builder, broken: bool) -> None:
    start(b)
    load_and_store(b)
    if broken:
        b.inval()
    b.sync()
    with b.elect():
        token = b.arrive(tag="late")
        b.wait(token)
    if not broken:
        b.inval()


def double_init(b: Builder, broken: bool) -> None:
    start(b)
    if broken:
        b.init(tag="again")
    load_and_store(b)


def init_in_loop(b: Builder, broken: bool) -> None:
    b.map()
    b.array()
    b.tile()
    b.bar()
    with b.loop(1 if not broken else 2):
        b.init(tag="again")
        load_and_store(b)
        b.sync()


def init_by_many(b: Builder, broken: bool) -> None:
    start(b, init=False)
    with b.scope((0, 32 if broken else 1)):
        b.op(ops.MbarrierInit(bar=BarrierRef(0, Const(0)), count=1), "again")
    b.sync()
    load_and_store(b)


def init_by_a_class(b: Builder, broken: bool) -> None:
    """Threads that are in the same blocks everywhere, so that none of them comes second."""
    start(b, init=False)
    with b.scope((32, 64 if broken else 33)):
        b.op(ops.MbarrierInit(bar=BarrierRef(0, Const(0)), count=1), "again")
    b.sync()
    load_and_store(b)


def reinit_unsynced(b: Builder, broken: bool) -> None:
    start(b)
    load_and_store(b)
    b.inval()
    if not broken:
        b.sync()
    b.init(thread=1, tag="again")


def init_unsynced(b: Builder, broken: bool) -> None:
    start(b, init=False)
    b.init(sync=not broken)
    with b.elect(1):
        token = b.arm(BYTES, tag="arm")
        b.g2s(tag="load")
        b.wait(token)


def inval_waiting(b: Builder, broken: bool) -> None:
    start(b)
    load_and_store(b)
    b.inval(sync=not broken, tag="inval")


def inval_in_flight(b: Builder, broken: bool) -> None:
    start(b)
    with b.elect():
        token = b.arm(BYTES)
        b.g2s()
        if not broken:
            b.wait(token)
    b.inval(tag="inval")


def barrier_index(b: Builder, broken: bool) -> None:
    start(b, stages=2)
    with b.elect(), b.loop(3 if broken else 2) as i:
        token = b.arrive(i=i, tag="arrive")
        b.wait(token, i=i)


# ---- clusters
def remote(b: Builder, broken: bool, *, fence: bool = True, sync: bool = True) -> None:
    b.cluster, b.grid = (2, 1, 1), (4, 2, 1)
    b.bar()
    b.init(fence=fence)
    if sync:
        b.cluster_sync()
    with b.elect():
        b.arrive_remote(expr.sub(Const(1), RANK), tag="remote")
    b.wait_phase(0)
    if not broken:
        b.cluster_sync()


def remote_early(b: Builder, broken: bool) -> None:
    remote(b, False, sync=not broken)


def remote_unfenced(b: Builder, broken: bool) -> None:
    remote(b, False, fence=not broken)


# ---- phases
def too_many(b: Builder, broken: bool) -> None:
    b.bar()
    b.init(count=127 if broken else 128)
    token = b.arrive(tag="arrive")
    b.wait(token)


def too_many_armed(b: Builder, broken: bool) -> None:
    """Armed twice while the bytes of the first time are still out."""
    start(b, count=1 if broken else 2)
    with b.elect():
        b.arm(BYTES)
        b.arm(0, tag="arm")
        b.g2s()
    b.wait_phase(0)


def ambiguous(b: Builder, broken: bool) -> None:
    """An arrival by somebody who did not see the phase before end could have counted there."""
    b.bar()
    b.init()
    with b.elect():
        token = b.arrive()
        if not broken:
            b.wait(token)
        b.arrive(tag="again")


def ambiguous_copy(b: Builder, broken: bool) -> None:
    """A copy by somebody who did not see the phase before end could report its bytes there."""
    start(b, stages=2)
    with b.elect(0):
        b.arm(BYTES)
        b.g2s()
        b.wait_phase(0)
        b.arm(BYTES)
    with b.elect(1):
        if not broken:
            b.wait_phase(0)
        b.g2s(stage=1, tag="load")
    with b.scope((0, 2)):
        b.wait_phase(1)


def one_token_for_two_phases(b: Builder, broken: bool) -> None:
    """Two threads run one `arrive`, the second one when the phase of the first is over."""
    b.threads = 2
    start(b, init=False)
    b.init(count=1 if broken else 2)
    if broken:
        with b.scope((1, 2)):
            b.wait_phase(0)
    b.wait(b.arrive(tag="arrive"))


def leaking(b: Builder, broken: bool) -> None:
    """One arrival too many per round: each phase still ends, some of them early."""
    b.bar("full")
    b.bar("empty")
    b.init(0)
    b.init(1, count=32)
    with b.elect(0), b.loop(64) as i:
        b.wait_phase(expr.sub(i, Const(1)), bar=1)
        b.arrive(0)
    with b.scope((32, 65 if broken else 64)), b.loop(64) as i:
        b.wait_phase(i, bar=0)
        b.arrive(1, tag="arrive")


def last_iteration(b: Builder, broken: bool) -> None:
    b.bar()
    b.init()
    n = b.index("n", 1_000_000)
    with b.elect(), b.loop(n) as i:
        token = b.arrive()
        b.wait(token)
        if broken:
            with b.when(eq(i, 999_999)):
                b.arrive()
                b.arrive(tag="extra")


def drop_to_zero(b: Builder, broken: bool) -> None:
    b.bar()
    b.init(count=1 if broken else 2)
    with b.elect(0):
        b.arrive_drop(tag="drop")
    if not broken:
        with b.elect(1):
            b.arrive()


def wait_ahead(b: Builder, broken: bool) -> None:
    """Phase 1 is asked for by someone who has not seen phase 0 end: parity cannot tell it from phase -1."""
    b.bar("full")
    b.bar("empty")
    b.init(0)
    b.init(1)
    with b.elect(0):
        b.wait(b.arrive())
        b.wait_phase(0, bar=1)
        b.arrive()
    with b.elect(1):
        if not broken:
            b.wait_phase(0)
        b.arrive(1)
        b.wait_phase(1, tag="wait")


def wait_behind(b: Builder, broken: bool) -> None:
    """Two phases can be over before the slow waiter looks."""
    b.bar()
    b.init()
    with b.elect(0):
        for _ in range(2):
            token = b.arrive()
            b.wait(token)
            if not broken:
                b.sync(threads=32, number=1)
    with b.scope((1, 32)):
        for k in range(2):
            b.wait_phase(k, tag=f"wait{k}")
            if not broken:
                b.sync(threads=32, number=1)


def fresh_parity(b: Builder, broken: bool) -> None:
    """A fresh barrier lets parity 1 pass at once, and parity 0 wait."""
    b.bar()
    b.init()
    with b.elect():
        b.wait_parity(0 if broken else 1, tag="wait")
        b.arrive()


def guarded(b: Builder, broken: bool) -> None:
    start(b)
    with b.elect():
        token = b.arm(BYTES)
        b.g2s()
        answer = b.test_token(token, 0)
        with b.when(answer):
            if broken:
                b.arrive(tag="arrive")
            b.store()
        b.wait(token)


def other_token(b: Builder, broken: bool) -> None:
    b.bar("left")
    b.bar("right")
    b.init(0)
    b.init(1)
    with b.elect():
        left = b.arrive(0)
        right = b.arrive(1)
        b.wait(left, bar=0)
        b.wait(left if broken else right, bar=1, tag="wait")


def inval_owing_bytes(b: Builder, broken: bool) -> None:
    b.bar()
    b.init(count=2)
    with b.elect():
        b.arm(64, tag="arm")
        if not broken:
            b.complete(64)
    b.inval()


# ---- bytes
def under_expected(b: Builder, broken: bool) -> None:
    start(b)
    load_and_store(b, nbytes=BYTES // 2 if broken else BYTES)


def second_copy(b: Builder, broken: bool) -> None:
    """Two copies, one announced: the second may land in either phase."""
    start(b, stages=2)
    with b.elect():
        token = b.arm(BYTES if broken else 2 * BYTES)
        b.g2s(stage=0)
        b.g2s(stage=1, tag="load")
    b.wait(token)


def over_expected(b: Builder, broken: bool) -> None:
    start(b)
    load_and_store(b, nbytes=BYTES * 2 if broken else BYTES)


def expect_late(b: Builder, broken: bool) -> None:
    """Without the sync, the only arrival can come before the bytes are announced."""
    start(b)
    with b.elect(0):
        b.expect(BYTES, tag="expect")
        b.g2s()
    if not broken:
        b.sync()
    with b.elect(1):
        b.arrive()
    b.wait_phase(0)


def tx_range(b: Builder, broken: bool) -> None:
    b.bar()
    b.init(count=2)
    half = 1 << 19
    with b.elect():
        b.arm(half)
        b.arm(half if broken else half - 1, tag="arm")
        b.complete(half)
        b.complete(half - 1)
    b.wait_phase(0)


def copy_threads(b: Builder, broken: bool) -> None:
    start(b)
    n = 2 if broken else 1
    with b.elect():
        token = b.arm(BYTES * n)
    with b.scope((0, n)):
        b.g2s(tag="load")
    b.wait(token)


CASES: list[tuple[Make, str, str]] = [
    (before_init, "OX3001", "arm"),
    (after_inval, "OX3002", "late"),
    (double_init, "OX3003", "again"),
    (init_in_loop, "OX3003", "again"),
    (init_by_many, "OX3003", "again"),
    (init_by_a_class, "OX3003", "again"),
    (reinit_unsynced, "OX3003", "again"),
    (init_unsynced, "OX3004", "arm"),
    (inval_waiting, "OX3005", "inval"),
    (inval_in_flight, "OX3005", "inval"),
    (remote_early, "OX3006", "remote"),
    (remote_unfenced, "OX3006", "remote"),
    (barrier_index, "OX3007", "arrive"),
    (too_many, "OX3010", "arrive"),
    (too_many_armed, "OX3010", "arm"),
    (ambiguous, "OX3011", "again"),
    (ambiguous_copy, "OX3011", "load"),
    (one_token_for_two_phases, "OX3011", "arrive"),
    (leaking, "OX3010", "arrive"),
    (last_iteration, "OX3011", "extra"),
    (drop_to_zero, "OX3015", "drop"),
    (wait_ahead, "OX3013", "wait"),
    (wait_behind, "OX3014", "wait0"),
    (fresh_parity, "OX3030", "wait"),
    (guarded, "OX3016", "arrive"),
    (other_token, "OX3017", "wait"),
    (inval_owing_bytes, "OX3020", "arm"),
    (under_expected, "OX3021", "load"),
    (second_copy, "OX3021", "load"),
    (over_expected, "OX3020", "arm"),
    (expect_late, "OX3022", "expect"),
    (tx_range, "OX3023", "arm"),
    (copy_threads, "OX3053", "load"),
]


@pytest.mark.parametrize(("make", "rule", "tag"), CASES, ids=lambda x: getattr(x, "__name__", None))
def test_refused_and_its_twin(make: Make, rule: str, tag: str) -> None:
    refused(made(make, True), rule, tag)
    accepted(made(make, False))


def test_every_need_has_a_check() -> None:
    assert set(CHECKS) == set(Need) - {Need.UNGUARDED}  # the walk's own: such an op does not run


# ---- what a cluster knows of its peers
def test_a_later_init_keeps_what_an_earlier_fence_gave() -> None:
    """Another barrier is made, and fenced, after the cluster sync that the first one's remote users rely on."""
    b = Builder(cluster=(2, 1, 1), grid=(2, 1, 1))
    b.bar("first")
    b.bar("second")
    b.init()
    b.cluster_sync()
    b.init(1)
    with b.elect():
        b.arrive_remote(expr.sub(Const(1), RANK))
    b.wait_phase(0)
    b.cluster_sync()
    accepted(b)


def refilled_by_a_peer(b: Builder, broken: bool) -> None:
    """Rank 0 fills the tiles of both CTAs again once one thread of each has released it; the others look at phases, but never arrive."""
    b.cluster, b.grid, b.threads = (2, 1, 1), (2, 1, 1), 64
    b.map()
    b.array()
    b.tile()
    b.bar("full")
    b.bar("empty")
    b.init()
    b.init(1, count=2)
    b.cluster_sync()
    with b.elect(), b.loop(3) as i:
        with b.when(eq(RANK, 0)):
            b.wait_phase(expr.sub(i, Const(1)), bar=1)
        with b.when(eq(RANK, 1)):
            b.wait_phase(expr.sub(i, Const(1)))
        b.arm(BYTES)
        with b.when(eq(RANK, 0)):
            b.multicast(3)
    with b.scope((32, 64)), b.loop(3) as i:
        b.wait_phase(i, tag="look")
        b.store((mul(RANK, 64), 0))
        b.sync(threads=32, number=1)
        with b.elect(32):
            b.arrive_remote(0, bar=1)
        if broken:
            b.wait_phase(i, tag="late")
    b.cluster_sync()


def test_a_copy_follows_all_that_its_issuer_waited_for() -> None:
    """CTA 1's full barrier ends its phase by bytes of rank 0, which had to wait for the readers of CTA 1."""
    accepted(made(refilled_by_a_peer, False))
    refused(made(refilled_by_a_peer, True), "OX3014", "late")
