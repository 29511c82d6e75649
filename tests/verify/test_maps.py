"""Maps of tiles: what they read must be there, what they write must be free, and who reads the result must be ordered after."""

from __future__ import annotations

from itertools import product

import pytest

from oxidecopy.errors import Diagnostic
from oxidecopy.isa.elem import Input
from oxidecopy.verify import rule_ids as ids
from tests.helpers.programs import Builder, lt, mod
from tests.helpers.verdicts import Make, accepted, made, refused, report

BYTES = 64 * 64 * 4
BOTH = (False, True)
COPY = Input(0, "f32")


def lines(d: Diagnostic) -> set[int]:
    """Of the two ops: which of them a report is made for hangs on the order in which the verifier runs the groups."""
    return {site.line for site in (d.site, *(c.site for c in d.causes)) if site is not None}


def found_at(b: Builder, rule: str, tag: str) -> None:
    """`rule` is broken at the tagged line; what follows from the same mistake may be told too: in place, a map reads and writes."""
    found = report(b).violations
    assert any(d.rule == rule and b.tags[tag] in lines(d) for d in found), [str(d) for d in found]
    assert {d.rule for d in found} <= {rule, ids.RACE, ids.OVERWRITE_READ}, [str(d) for d in found]


def start(b: Builder, *, tiles: int = 2, stages: int = 1) -> None:
    b.map()
    b.array()
    for i in range(tiles):
        b.tile(f"tile{i}", stages=stages)
    b.bar()
    b.init()


def sync_after_fill(b: Builder, broken: bool) -> None:
    start(b)
    b.fill()
    if not broken:
        b.sync()
    b.compute(COPY, b.ref(0), out=b.ref(1), tag="bad")


def sync_after_map(b: Builder, broken: bool) -> None:
    start(b)
    b.fill()
    b.sync()
    b.compute(COPY, b.ref(0), out=b.ref(1))
    if not broken:
        b.sync()
    b.store(tile=1, tag="bad")


def in_place_then_read(b: Builder, broken: bool) -> None:
    start(b)
    b.fill()
    b.sync()
    b.compute()
    if not broken:
        b.sync()
    b.store(tag="bad")


def another_group(b: Builder, broken: bool) -> None:
    start(b)
    b.fill(1)
    b.sync()
    with b.scope((0, 64)):
        b.fill()
        b.sync(64, number=1)
        b.compute(COPY, b.ref(0), out=b.ref(1))
    if not broken:
        b.sync()
    with b.scope((64, 128)):
        b.compute(COPY, b.ref(1), out=b.ref(1), tag="bad")


def second_input(b: Builder, broken: bool) -> None:
    """Only the second input is not ordered."""
    start(b, tiles=3)
    b.fill()
    b.fill(1)
    b.sync()
    with b.scope((0, 64)):
        b.fill(1)
    if not broken:
        b.sync()
    b.compute(COPY, b.ref(0), b.ref(1), out=b.ref(2), tag="bad")


def not_in_place_without_sync(b: Builder, broken: bool) -> None:
    """The next map overwrites what other threads may still have to read; in place it would be their own elements."""
    start(b)
    b.fill()
    b.fill(1)
    b.sync()
    b.compute(COPY, b.ref(0), out=b.ref(1))
    if not broken:
        b.sync()
    b.fill(tag="bad")


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (sync_after_fill, ids.RACE),
        (sync_after_map, ids.RACE),
        (in_place_then_read, ids.RACE),
        (another_group, ids.RACE),
        (second_input, ids.RACE),
        (not_in_place_without_sync, ids.OVERWRITE_READ),
    ],
)
def test_a_missing_sync_is_found(make: Make, rule: str) -> None:
    accepted(made(make, False))
    found_at(made(make, True), rule, "bad")


@pytest.mark.parametrize(("fence", "sync"), list(product(BOTH, repeat=2)))
def test_a_map_then_a_store_by_one(fence: bool, sync: bool) -> None:
    """Right exactly when: fence and sync, as for a fill."""
    b = Builder()
    start(b)
    b.fill()
    b.sync()
    b.compute(tag="map")
    if fence:
        b.fence()
    if sync:
        b.sync()
    with b.elect():
        b.s2g()
        b.commit()
        b.wait_read()
    found = {d.rule for d in report(b).violations}
    assert (not found) == (fence and sync)
    assert ((ids.RACE in found), (ids.NO_FENCE in found)) == (not sync, not fence)


# ---- against copies
def before_landing(b: Builder, broken: bool) -> None:
    start(b)
    with b.elect():
        token = b.arm(BYTES)
        b.g2s()
    if not broken:
        b.wait(token)
    b.compute(COPY, b.ref(0), out=b.ref(1), tag="bad")
    if broken:
        b.wait(token)


def over_a_load(b: Builder, broken: bool) -> None:
    start(b)
    b.fill(1)
    b.sync()
    with b.elect():
        token = b.arm(BYTES)
        b.g2s()
    b.sync()
    if not broken:
        b.wait(token)
    b.compute(COPY, b.ref(1), out=b.ref(0), tag="bad")
    if broken:
        b.wait(token)


def over_a_store(b: Builder, broken: bool) -> None:
    start(b)
    b.fill()
    b.fill(1)
    b.fence()
    b.sync()
    with b.elect():
        b.s2g()
        b.commit()
        if not broken:
            b.wait_read()
    b.sync()
    b.compute(COPY, b.ref(1), out=b.ref(0), tag="bad")
    if broken:
        with b.elect():
            b.wait_read()


@pytest.mark.parametrize(
    ("make", "rule"), [(before_landing, ids.READ_EARLY), (over_a_load, ids.OVERWRITE_LOAD), (over_a_store, ids.OVERWRITE_STORE)]
)
def test_a_missing_wait_is_found(make: Make, rule: str) -> None:
    accepted(made(make, False))
    refused(made(make, True), rule, "bad")


def test_a_map_of_what_a_store_reads_is_fine() -> None:
    b = Builder()
    start(b)
    b.fill()
    b.fence()
    b.sync()
    with b.elect():
        b.s2g()
        b.commit()
    b.compute(COPY, b.ref(0), out=b.ref(1))
    with b.elect():
        b.wait_read()
    accepted(b)


def test_an_input_that_nobody_wrote_is_found() -> None:
    b = Builder()
    start(b)
    b.compute(COPY, b.ref(1), out=b.ref(0), tag="bad")
    refused(b, ids.READ_UNWRITTEN, "bad")


def test_what_a_map_writes_is_written() -> None:
    b = Builder()
    start(b)
    b.fill()
    b.sync()
    b.compute(COPY, b.ref(0), out=b.ref(1))
    b.sync()
    b.store(tile=1)
    accepted(b)


# ---- who runs it
def classes_in_place(b: Builder, broken: bool) -> None:
    """Several classes share the map out: each reads and writes its own elements, in every iteration."""
    start(b)
    b.fill()
    b.sync()
    with b.loop(5):
        b.compute(tag="bad")
        if not broken:
            b.sync()
        with b.elect():
            b.fence()


def test_classes_do_not_race_with_each_other_in_place() -> None:
    accepted(made(classes_in_place, False))
    found_at(made(classes_in_place, True), ids.RACE, "bad")


def test_two_maps_in_a_row_need_a_sync() -> None:
    """Which thread does which element is not said, so the second may read what another thread writes."""
    b = Builder()
    start(b)
    b.fill()
    b.sync()
    b.compute()
    b.compute(tag="bad")
    found_at(b, ids.RACE, "bad")


def test_one_thread_needs_none() -> None:
    b = Builder()
    start(b)
    with b.elect():
        b.fill()
        b.compute()
        b.compute(COPY, b.ref(0), out=b.ref(1))
        b.store(tile=1)
    accepted(b)


@pytest.mark.parametrize("which", ["input", "out"])
def test_a_stage_that_is_not_there(which: str) -> None:
    b = Builder()
    start(b, stages=2)
    for stage in range(2):
        b.fill(stage=stage)
    b.sync()
    with b.loop(3) as i:
        inside = mod(i, 2)
        source, target = (i, inside) if which == "input" else (inside, i)
        b.compute(COPY, b.ref(0, source), out=b.ref(1, target), tag="bad")
        b.sync()
    found = report(b).violations
    assert {d.rule for d in found} == {ids.TILE_INDEX}


def test_an_answer_may_decide_about_a_map() -> None:
    b = Builder()
    start(b)
    b.fill()
    b.fill(1)
    with b.elect():
        token = b.arrive()
    b.sync()
    asked = b.test_token(token, 0)
    with b.when(asked):
        b.compute(COPY, b.ref(0), out=b.ref(1))
    b.wait(token)
    accepted(b)


def test_a_condition_decides() -> None:
    b = Builder()
    start(b)
    b.fill()
    b.sync()
    with b.when(lt(b.index("n", 3), 2)):
        b.compute(COPY, b.ref(1), out=b.ref(0))  # never runs, else it would read what nobody wrote
    b.store()
    accepted(b)
