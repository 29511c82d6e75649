"""Long loops: proven as a whole, quickly, and no iteration is taken on trust."""

from __future__ import annotations

import time

import pytest

from oxidecopy.isa import expr, ops
from oxidecopy.isa.expr import Expr
from oxidecopy.verify import inspect, walk
from oxidecopy.verify.periods import Periods
from tests.helpers.programs import BX, Builder, E, add, div, e, eq, least, lt, mod, mul
from tests.helpers.verdicts import accepted, refused

BYTES = 64 * 64 * 4
MILLION = 1_000_000


def ring(b: Builder, trips: E, stages: int = 4, consumers: int = 96, late: Expr | None = None) -> None:
    """Producer and consumers; `late`: an iteration in which a consumer arrives twice."""
    b.map(dims=(256, 64 * MILLION))
    b.array(shape=(256, 64 * MILLION))
    b.tile(stages=stages)
    b.bar("full", stages)
    b.bar("empty", stages)
    b.init(0)
    b.init(1, count=consumers)
    with b.elect(0), b.loop(trips) as i:
        s = mod(i, stages)
        b.wait_phase(add(div(i, stages), -1), bar=1, i=s, tag="wait empty")
        b.arm(BYTES, i=s)
        b.g2s((mul(BX, 64), mul(i, 64)), stage=s, i=s, tag="load")
    with b.scope((32, 32 + consumers)), b.loop(trips) as i:
        s = mod(i, stages)
        b.wait_phase(div(i, stages), i=s)
        b.store((mul(BX, 64), mul(i, 64)), stage=s)
        b.arrive(1, s, tag="arrive")
        if late is not None:
            with b.when(eq(i, late)):
                b.arrive(1, s, tag="extra")


def prefetch(b: Builder, n: Expr, stages: int = 4) -> None:
    b.map(dims=(256, 64 * MILLION))
    b.array(shape=(256, 64 * MILLION))
    b.tile(stages=stages)
    b.bar(stages=stages)
    b.init()
    row = mul(BX, 64)
    with b.loop(least(n, stages - 1)) as j, b.elect():
        b.arm(BYTES, i=j)
        b.g2s((row, mul(j, 64)), stage=j, i=j)
    with b.loop(n) as i:
        with b.elect(), b.when(lt(add(i, stages - 1), n)):
            s = mod(add(i, stages - 1), stages)
            b.arm(BYTES, i=s)
            b.g2s((row, mul(add(i, stages - 1), 64)), stage=s, i=s)
        b.wait_phase(div(i, stages), i=mod(i, stages))
        b.store((row, mul(i, 64)), stage=mod(i, stages))
        b.sync()
    b.inval()


def seconds(b: Builder) -> float:
    program, launch = b.program(), b.launch()
    best = 1e9
    for _ in range(3):
        start = time.process_time()
        inspect(program, launch)
        best = min(best, time.process_time() - start)
    return best


def test_a_million_iterations_cost_little_more_than_a_hundred() -> None:
    short, long = Builder(), Builder()
    ring(short, short.index("n", 100))
    ring(long, long.index("n", MILLION))
    accepted(long)
    assert seconds(long) < 5 * seconds(short) + 0.1


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 9, 16, 63, 64, 65, 1000])
def test_every_length_of_prefetch_is_accepted(n: int) -> None:
    b = Builder()
    prefetch(b, b.index("n", n))
    accepted(b)


@pytest.mark.parametrize("at", [0, 1, 5, 63, 64, 65, 999, 123_456, MILLION - 1])
def test_one_bad_iteration_is_found_wherever_it_is(at: int) -> None:
    b = Builder()
    ring(b, MILLION, late=e(at))
    found = {d.site.line for d in inspect(b.program(), b.launch()).violations if d.site}
    assert found & {b.tags["extra"], b.tags["arrive"]}


def leak(b: Builder, every: int) -> None:
    """A consumer that skips its arrival now and then: passes until the producer runs out of free slots."""
    b.bar("full")
    b.bar("empty")
    b.init(0)
    b.init(1)
    with b.elect(0), b.loop(1000) as i:
        b.wait_phase(add(i, -1), bar=1, tag="wait empty")
        b.arrive(0)
    with b.elect(1), b.loop(1000) as i:
        b.wait_phase(i, bar=0)
        with b.when(expr.Not(eq(mod(i, every), every - 1))):
            b.arrive(1)


def test_a_leak_that_shows_at_iteration_64() -> None:
    b = Builder()
    leak(b, 65)
    found = inspect(b.program(), b.launch()).violations
    assert found[0].rule in {"OX3030", "OX3012"}
    assert "waits for" in found[0].what
    fine = Builder()
    leak(fine, 1001)
    accepted(fine)


def test_the_last_copy_out_of_bounds_is_found() -> None:
    for trips, scale in ((MILLION, 64), (MILLION, 64 * 64)):
        b = Builder()
        b.map(dims=(256, 64 * MILLION))
        b.tile()
        b.bar()
        b.init()
        with b.elect(), b.loop(trips) as i:
            token = b.arm(BYTES)
            b.g2s((0, mul(i, scale)), tag="load")
            b.wait(token)
        if scale == 64:
            accepted(b)
        else:
            refused(b, "OX3082", "load")


def test_parity_waits_repeat_with_both_parities() -> None:
    b = Builder()
    b.bar("full", 3)
    b.bar("empty", 3)
    b.init(0)
    b.init(1)
    with b.elect(0), b.loop(MILLION) as i:
        s = mod(i, 3)
        b.wait_parity(mod(add(div(i, 3), 1), 2), bar=1, i=s)
        b.arrive(0, s)
    with b.elect(1), b.loop(MILLION) as i:
        s = mod(i, 3)
        b.wait_parity(mod(div(i, 3), 2), bar=0, i=s)
        b.arrive(1, s)
    accepted(b)


def test_nested_loops_skip_inside_and_outside() -> None:
    b = Builder()
    b.map(dims=(1 << 20, 64 * 1000))
    b.array(shape=(1 << 20, 64 * 1000))
    b.tile()
    b.bar()
    b.init()
    with b.loop(1000) as tile, b.loop(500) as k:
        with b.elect():
            token = b.arm(BYTES)
            b.g2s((mul(tile, 64), mul(k, 64)))
            b.wait(token)
        b.sync()
        b.store((mul(tile, 64), mul(k, 64)))
        b.sync()
    accepted(b)
    assert seconds(b) < 1  # 500,000 iterations


def test_tokens_of_all_threads_in_a_long_loop() -> None:
    b = Builder()
    b.map()
    b.array()
    b.tile()
    b.bar()
    b.init(count=128)
    with b.loop(MILLION):
        with b.elect():
            mine = b.arm(BYTES)
            b.g2s()
        with b.others():
            theirs = b.arrive()
        b.wait(mine, theirs)
        b.store()
        b.sync()
    accepted(b)


@pytest.mark.parametrize("stages", [1, 2, 3, 4, 8, 16, 64, 100])
def test_a_ring_repeats_soon_after_it_was_filled(stages: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some four rounds of the million are run, with eight steps each: a state is looked for where the ring's size says."""
    b = Builder()
    ring(b, MILLION, stages=stages)
    monkeypatch.setattr(walk, "STEPS_MAX", 34 * stages + 50)
    assert {d.rule for d in inspect(b.program(), b.launch()).violations} <= {"OX3063"}  # so many tiles are too many for the hardware


def test_steps_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop that never repeats is refused at the bound, with the bound in the words."""
    monkeypatch.setattr(Periods, "edge", lambda *_: None)
    monkeypatch.setattr(walk, "STEPS_MAX", 2000)
    b = Builder()
    b.bar()
    b.init()
    with b.elect(), b.loop(100_000):
        b.wait(b.arrive())
    refused(b, "OX3091")


def test_skipping_changes_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """With and without skipping: the same findings, for right and wrong rings of many shapes."""

    def verdicts() -> list[object]:
        found: list[object] = []
        for stages in (1, 2, 3, 5):
            for trips in (1, 5, 40, 100):
                for late in (None, e(0), e(17), e(99)):
                    b = Builder()
                    ring(b, trips, stages=stages, late=late)
                    r = inspect(b.program(), b.launch())
                    found.append([(d.rule, d.site) for d in r.violations])
        return found

    with_skips = verdicts()
    monkeypatch.setattr(Periods, "edge", lambda *_: None)
    assert verdicts() == with_skips


def test_a_token_made_before_the_last_to_come_round_is_kept() -> None:
    """The watched agent reaches its edge last: the token of its next iteration is already there, and not to be forgotten."""
    b = Builder(threads=64)
    b.bar()
    b.init()
    with b.elect(63), b.loop(8):
        b.fence()
    with b.loop(40):
        with b.elect():
            token = b.arrive()
        b.wait(token)
        b.sync()
    accepted(b)


# ---- what is said of it
def test_a_skipped_loop_is_a_bound_of_the_proof_with_its_reason() -> None:
    b = Builder()
    ring(b, 1000)
    report = inspect(b.program(), b.launch())
    assert report.ok
    (loop,) = [bound for bound in report.bounds if bound.site is not None]
    assert loop.site is not None
    assert loop.site.line in {s.site.line for s in b.program().walk() if isinstance(s.op, ops.Loop) and s.site}
    assert loop.what == "iterations 14 to 997 of this loop are taken to run as 10 to 13 do"
    assert "after 13 iterations barriers, tiles and threads stand as after 9" in loop.why


def test_a_loop_that_is_run_is_none() -> None:
    b = Builder(grid=(1, 1, 1))
    ring(b, 8)
    assert inspect(b.program(), b.launch()).bounds == ()


def test_the_grid_is_bounded_by_boxes() -> None:
    for grid, found in ((1, []), (3, ["of 3 blocks 1 is run"])):
        b = Builder(grid=(grid, 1, 1))
        ring(b, 4)
        assert [bound.what for bound in inspect(b.program(), b.launch()).bounds] == found


def test_a_map_that_two_classes_share_does_not_keep_a_loop_from_repeating(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that never come to the map are not asked how far from it they are."""
    monkeypatch.setattr(walk, "STEPS_MAX", 2000)
    b = Builder(grid=(1, 1, 1), threads=128)
    b.map(box=(8, 32), dims=(8 * MILLION, 32))
    b.tile(shape=(8, 32))
    b.bar("full")
    b.bar("empty")
    b.init(0)
    b.init(1)
    with b.elect(), b.loop(MILLION) as i:
        b.wait_phase(add(i, -1), bar=1)
        b.arm(8 * 32 * 4)
        b.g2s((mul(i, 8), 0))
    with b.scope((32, 64)), b.loop(MILLION) as i:
        b.wait_phase(i)
        b.compute()
        b.sync(32, number=1)
        b.fence()
        b.sync(32, number=1)
        with b.elect(32):
            b.arrive(1)
    accepted(b)
