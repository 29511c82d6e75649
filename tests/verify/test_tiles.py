"""Shared tiles: truth tables over the steps of tma.md G.2, then each rule with a refused program and its twin."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from oxidecopy.isa import expr
from oxidecopy.verify import inspect
from tests.helpers.programs import BX, Builder, add, div, e, lt, mod, mul
from tests.helpers.verdicts import Make, accepted, made, refused, report

BYTES = 64 * 64 * 4
BOTH = (False, True)


def start(b: Builder, *, stages: int = 1) -> None:
    b.map()
    b.array()
    b.tile(stages=stages)
    b.bar(stages=stages)
    b.init()


def rules(b: Builder) -> set[str]:
    return {d.rule for d in report(b).violations}


# ---- truth tables
@pytest.mark.parametrize(("fence", "sync", "commit", "wait"), list(product(BOTH, repeat=4)))
def test_store_by_all_then_one_copies(fence: bool, sync: bool, commit: bool, wait: bool) -> None:
    """Right exactly when: fence and sync and commit and wait."""
    b = Builder()
    start(b)
    b.fill(tag="fill")
    if fence:
        b.fence()
    if sync:
        b.sync()
    with b.elect():
        b.s2g(tag="s2g")
        if commit:
            b.commit()
        if wait:
            b.wait_read()
    found = rules(b)
    assert (not found) == (fence and sync and commit and wait)
    assert ("OX3045" in found) == (not sync)
    assert ("OX3046" in found) == (not fence)
    assert ("OX3050" in found) == (not (commit and wait))


@pytest.mark.parametrize(("fence", "sync"), list(product(BOTH, repeat=2)))
def test_one_thread_writes_and_copies(fence: bool, sync: bool) -> None:
    """Right exactly when: fence. One thread needs no sync with itself."""
    b = Builder()
    start(b)
    with b.elect():
        b.fill()
        if fence:
            b.fence()
    if sync:
        b.sync()
    with b.elect():
        b.s2g()
        b.commit()
        b.wait_read()
    assert rules(b) == (set() if fence else {"OX3046"})


@pytest.mark.parametrize(("writers", "order"), list(product(("writers", "leader", "none"), ("fence first", "sync first"))))
def test_which_threads_fence_and_when(writers: str, order: str) -> None:
    """Right exactly when: the writers fence, and before the sync."""
    b = Builder()
    start(b)
    b.fill()
    if order == "sync first":
        b.sync()
    if writers == "writers":
        b.fence()
    elif writers == "leader":
        with b.elect():
            b.fence()
    if order == "fence first":
        b.sync()
    with b.elect():
        b.s2g()
        b.commit()
        b.wait_read()
    assert rules(b) == (set() if (writers, order) == ("writers", "fence first") else {"OX3046"})


@pytest.mark.parametrize(("all_wait", "leader_waits", "sync"), list(product(BOTH, repeat=3)))
def test_load_then_read(all_wait: bool, leader_waits: bool, sync: bool) -> None:
    """Right exactly when: all wait, or the leader waits and then all sync."""
    b = Builder()
    start(b)
    with b.elect():
        token = b.arm(BYTES)
        b.g2s()
        if leader_waits:
            b.wait_phase(0)
    if all_wait:
        b.wait(token)
    if sync:
        b.sync()
    b.store(tag="store")
    found = rules(b)
    assert ("OX3040" in found) == (not (all_wait or (leader_waits and sync)))
    assert found <= {"OX3040", "OX3044", "OX3051"}


@pytest.mark.parametrize(("read_wait", "sync", "fence"), list(product(BOTH, repeat=3)))
def test_refill_after_a_store(read_wait: bool, sync: bool, fence: bool) -> None:
    """A plain write over a tile being stored is right exactly when: the storing thread waits, and then all sync."""
    b = Builder()
    start(b)
    b.fill()
    b.fence()
    b.sync()
    with b.elect():
        b.s2g()
        b.commit()
        if read_wait:
            b.wait_read()
    if fence:
        b.fence()
    if sync:
        b.sync()
    b.fill(tag="again")
    with b.elect():
        b.wait_read()
    found = rules(b)
    assert (not found) == (read_wait and sync)
    assert found <= {"OX3043", "OX3045"}  # without the sync either access can come first, and both are reported as what they are
    assert not sync or found <= {"OX3043"}


@pytest.mark.parametrize(("sync", "arrive"), list(product(BOTH, repeat=2)))
def test_reload_after_plain_reads(sync: bool, arrive: bool) -> None:
    """A load over a tile that threads read is right exactly when: a sync, or arrivals that the loading thread waits for, come between."""
    b = Builder()
    start(b)
    b.bar("empty")
    b.init(1, count=128)
    with b.elect():
        first = b.arm(BYTES)
        b.g2s()
    b.wait(first)
    b.store()
    if sync:
        b.sync()
    freed = b.arrive(1) if arrive else None
    with b.elect():
        if freed is not None:
            b.wait(freed, bar=1)
        second = b.arm(BYTES)
        b.g2s(tag="reload")
    b.wait(second)
    # Without either, a slow reader can also find the barrier two phases on.
    assert rules(b) == (set() if sync or arrive else {"OX3044", "OX3014"})


@pytest.mark.parametrize(("pending", "stages"), list(product(range(4), (1, 2, 3))))
def test_pending_groups_against_stages(pending: int, stages: int) -> None:
    """With S staging tiles, a refill is right exactly when at most S - 1 groups stay pending."""
    b = Builder()
    start(b, stages=stages)
    with b.loop(20) as i:
        with b.elect():
            b.wait_read(pending)
        b.sync()
        b.fill(stage=mod(i, stages), tag="fill")
        b.fence()
        b.sync()
        with b.elect():
            b.s2g(stage=mod(i, stages))
            b.commit()
    with b.elect():
        b.wait_read(0)
    assert rules(b) == (set() if pending <= stages - 1 else {"OX3043"})


# ---- one rule, one edit
def overwrite_load(b: Builder, broken: bool) -> None:
    start(b)
    with b.elect():
        token = b.arm(BYTES)
        b.g2s()
        if not broken:
            b.wait(token)
        b.fill(tag="fill")
        if broken:
            b.wait(token)


def read_unwritten(b: Builder, broken: bool) -> None:
    start(b)
    if not broken:
        b.fill()
        b.sync()
    b.store(tag="store")


def part_unwritten(b: Builder, broken: bool) -> None:
    start(b)
    for rank in range(3 if broken else 4):
        b.fill(part=rank, of=4)
    b.sync()
    b.store(tag="store")


def small_copy(b: Builder, broken: bool) -> None:
    """A box smaller than the tile leaves the rest unwritten."""
    b.map(box=(32, 64) if broken else (64, 64))
    b.array()
    b.tile()
    b.bar()
    b.init()
    with b.elect():
        token = b.arm(32 * 64 * 4 if broken else BYTES)
        b.g2s()
    b.wait(token)
    b.store(tag="store")


def group_race(b: Builder, broken: bool) -> None:
    """Threads of one group are not ordered among themselves."""
    start(b)
    with b.scope((0, 64)):
        b.fill()
        if not broken:
            b.sync(threads=64, number=1)
        b.store(tag="store")


def two_writers(b: Builder, broken: bool) -> None:
    start(b)
    with b.scope((1, 65)):
        b.fill()
    if not broken:
        b.sync()
    with b.scope((65, 97)):
        b.fill(tag="second")


def fence_before_load(b: Builder, broken: bool) -> None:
    """A load over plain writes needs their fence too."""
    start(b)
    b.fill()
    if not broken:
        b.fence()
    b.sync()
    with b.elect():
        token = b.arm(BYTES)
        b.g2s(tag="load")
    b.wait(token)


def tile_index(b: Builder, broken: bool) -> None:
    start(b, stages=2)
    with b.loop(3 if broken else 2) as i:
        b.fill(stage=i, tag="fill")
    b.sync()


def part_index(b: Builder, broken: bool) -> None:
    start(b)
    b.fill(part=4 if broken else 3, of=4, tag="fill")


def fence_in_an_empty_loop(b: Builder, broken: bool) -> None:
    n = b.index("n", 0 if broken else 1)
    start(b)
    b.fill()
    with b.loop(n):
        b.fence()
    b.sync()
    with b.elect():
        b.s2g(tag="s2g")
        b.commit()
        b.wait_read()


def refill_still_read(b: Builder, broken: bool) -> None:
    """A ring whose empty barrier counts one consumer too few; broken: the last one's reads are not waited for."""
    b.map(dims=(256, 64 * 16))
    b.array(shape=(256, 64 * 16))
    b.tile(stages=2)
    b.bar("full", 2)
    b.bar("empty", 2)
    b.init(0)
    b.init(1, count=32)
    with b.elect(0), b.loop(16) as i:
        s = mod(i, 2)
        b.wait_phase(add(div(i, 2), -1), bar=1, i=s)
        b.arm(BYTES, i=s)
        b.g2s((0, expr.mul(i, e(64))), stage=s, i=s, tag="load")
    with b.scope((32, 64)), b.loop(16) as i:
        s = mod(i, 2)
        b.wait_phase(div(i, 2), i=s)
        if broken:
            b.arrive(1, s)
        b.store((mul(BX, 64), expr.mul(i, e(64))), stage=s)
        if not broken:
            b.arrive(1, s)


CASES: list[tuple[Make, str, str]] = [
    (read_unwritten, "OX3041", "store"),
    (part_unwritten, "OX3041", "store"),
    (small_copy, "OX3041", "store"),
    (overwrite_load, "OX3042", "fill"),
    (group_race, "OX3045", "store"),
    (two_writers, "OX3045", "second"),
    (fence_before_load, "OX3046", "load"),
    (tile_index, "OX3047", "fill"),
    (part_index, "OX3047", "fill"),
    (fence_in_an_empty_loop, "OX3046", "s2g"),
    (refill_still_read, "OX3044", "load"),
]


@pytest.mark.parametrize(("make", "rule", "tag"), CASES, ids=lambda x: getattr(x, "__name__", None))
def test_refused_and_its_twin(make: Make, rule: str, tag: str) -> None:
    refused(made(make, True), rule, tag)
    accepted(made(make, False))


def test_one_step_object_at_two_places_is_two_ops() -> None:
    b = Builder()
    start(b)
    b.fill(tag="fill")
    program = b.program()
    program = replace(program, steps=(*program.steps, program.steps[-1]))
    assert [d.rule for d in inspect(program, b.launch()).violations] == ["OX3045"]


def test_an_answer_opens_the_tile_only_inside_its_block() -> None:
    for outside in BOTH:
        b = Builder()
        start(b)
        with b.elect():
            token = b.arm(BYTES)
            b.g2s()
            answer = b.test_token(token, 0)
            with b.when(expr.And(answer, lt(0, 1))):
                b.store()
            if outside:
                b.store(tag="outside")
            b.wait(token)
        if outside:
            refused(b, "OX3040", "outside")
        else:
            accepted(b)


def test_a_negated_answer_opens_nothing() -> None:
    b = Builder()
    start(b)
    with b.elect():
        token = b.arm(BYTES)
        b.g2s()
        answer = b.test_token(token, 0)
        with b.when(expr.Not(answer)):
            b.store(tag="early")
        b.wait(token)
    refused(b, "OX3040", "early")


def test_an_answer_that_never_comes_is_no_deadlock() -> None:
    b = Builder()
    start(b)
    with b.elect():
        answer = b.test_parity(0, 0)
        with b.when(answer):
            b.fill()
        token = b.arrive()
        b.wait(token)
    accepted(b)


@pytest.mark.parametrize("stale", [True, False])
def test_an_answer_may_be_about_the_phase_before(stale: bool) -> None:
    """In phase 1 a test of parity 0 says yes at once: phase 0 is over, and nothing is known of the load that phase 1 waits for."""
    b = Builder(threads=1)
    b.map()
    b.array()
    b.tile()
    b.bar()
    b.init()
    with b.loop(2) as i:
        b.arm(64 * 64 * 4)
        b.g2s()
        with b.when(b.test_parity(0 if stale else mod(i, 2), 0)):
            b.store(tag="early")
        b.wait_phase(i)
        b.store()
    if stale:
        refused(b, "OX3040", "early")
    else:
        accepted(b)
