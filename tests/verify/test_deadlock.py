"""Nobody can go on: the report names who waits for whom, what is missing, and which line should have supplied it."""

from __future__ import annotations

import pytest

from oxidecopy.isa import expr
from oxidecopy.isa.expr import Const
from tests.helpers.programs import RANK, Builder, eq
from tests.helpers.verdicts import Make, accepted, made, refused, report

BYTES = 64 * 64 * 4


def too_few(b: Builder, broken: bool) -> None:
    b.bar()
    b.init(count=129 if broken else 128)
    token = b.arrive()
    b.wait(token, tag="wait")


def crossed(b: Builder, broken: bool) -> None:
    """Two threads, each waiting for the other first."""
    b.bar("left")
    b.bar("right")
    b.init(0)
    b.init(1)
    with b.elect(0):
        if not broken:
            b.arrive(0)
        b.wait_phase(0, bar=1, tag="wait right")
        if broken:
            b.arrive(0, tag="arrive left")
    with b.elect(1):
        b.wait_phase(0, bar=0, tag="wait left")
        b.arrive(1, tag="arrive right")


def full_ring(b: Builder, broken: bool) -> None:
    """A producer that waits for empty slots that nobody has freed yet."""
    b.bar("full")
    b.bar("empty")
    b.init(0)
    b.init(1)
    with b.elect(0), b.loop(8) as i:
        b.wait_phase(i if broken else expr.sub(i, Const(1)), bar=1, tag="wait empty")
        b.arrive(0)
    with b.elect(1), b.loop(8) as i:
        b.wait_phase(i, bar=0)
        b.arrive(1)


def miscounted(b: Builder, broken: bool) -> None:
    """One thread arrives, and `init` counts two."""
    b.bar()
    b.init(count=2 if broken else 1, tag="init")
    with b.loop(4) as i:
        with b.elect():
            b.arrive()
        b.wait_phase(i, tag="wait")
        b.sync()


def bytes_never_come(b: Builder, broken: bool) -> None:
    b.map()
    b.tile()
    b.bar()
    b.init()
    with b.elect():
        token = b.arm(BYTES + (16 if broken else 0), tag="arm")
        b.g2s()
    b.wait(token)


def nobody_waits(b: Builder, broken: bool) -> None:
    """The same, found at the end because no thread waits."""
    b.bar()
    b.init(count=2)
    with b.elect():
        b.arm(64, tag="arm")
        if not broken:
            b.complete(64)


def sync_in_elect(b: Builder, broken: bool) -> None:
    b.bar()
    if broken:
        with b.elect():
            b.sync(tag="sync")
    else:
        b.sync(tag="sync")


def sync_in_when(b: Builder, broken: bool) -> None:
    b.cluster = (2, 1, 1)
    with b.when(eq(RANK, 0) if broken else expr.Bool(value=True)):
        b.cluster_sync(tag="sync")


def named_sync(b: Builder, broken: bool) -> None:
    with b.scope((0, 64)):
        b.sync(threads=96 if broken else 64, number=1, tag="sync")


def multicast_one_expects(b: Builder, broken: bool) -> None:
    """Bytes land in both CTAs, but only rank 0 was told."""
    b.cluster, b.grid = (2, 1, 1), (4, 1, 1)
    b.map()
    b.array()
    b.tile()
    b.bar()
    b.init()
    b.cluster_sync()
    with b.elect():
        if broken:
            with b.when(eq(RANK, 0)):
                b.arm(BYTES)
            with b.when(eq(RANK, 1)):
                b.arrive(tag="arrive")
        else:
            b.arm(BYTES)
        with b.when(eq(RANK, 0)):
            b.multicast(0b11, tag="load")
    b.wait_phase(0)
    b.store()
    b.cluster_sync()


CASES: list[tuple[Make, str, str]] = [
    (too_few, "OX3012", "wait"),
    (crossed, "OX3030", "wait right"),
    (full_ring, "OX3030", ""),
    (miscounted, "OX3030", "wait"),
    (bytes_never_come, "OX3020", "arm"),
    (nobody_waits, "OX3020", "arm"),
    (sync_in_elect, "OX3031", "sync"),
    (sync_in_when, "OX3031", "sync"),
    (named_sync, "OX3031", "sync"),
    (multicast_one_expects, "OX3021", "load"),
]


@pytest.mark.parametrize(("make", "rule", "tag"), CASES, ids=lambda x: getattr(x, "__name__", None))
def test_refused_and_its_twin(make: Make, rule: str, tag: str) -> None:
    refused(made(make, True), rule, tag)
    accepted(made(make, False))


def test_the_chain_names_everybody() -> None:
    b = made(crossed, True)
    found = report(b).violations[0]
    lines = {c.site.line: c.what for c in found.causes if c.site}
    assert "waits for phase 0 of 'left'" in lines[b.tags["wait left"]]
    assert "waits for phase 0 of 'right'" in lines[b.tags["wait right"]]
    assert "1 of 1 arrivals" in lines[b.tags["wait right"]]
    assert {b.tags["arrive left"], b.tags["arrive right"]} <= set(lines)


def test_a_count_that_is_partly_reached_is_named() -> None:
    b = made(miscounted, True)
    found = refused(b, "OX3030")
    assert [(c.what, c.site.line) for c in found.causes if c.site][-1] == ("count set here", b.tags["init"])
    assert "lower the count of `init`" in found.fix
    assert "lower the count" not in refused(made(crossed, True), "OX3030").fix


def test_a_starved_wait_does_not_hide_what_comes_after() -> None:
    b = made(too_few, True)
    b.map()
    b.tile()
    with b.elect():
        b.fill()
        b.s2g(tag="s2g")
        b.commit()
        b.wait_read()
    assert {d.rule for d in report(b).violations} == {"OX3012", "OX3046"}


def test_numbers_are_reported() -> None:
    found = refused(made(bytes_never_come, True), "OX3020")
    assert found.got == f"{BYTES + 16} bytes expected, {BYTES} issued"
    found = refused(made(too_few, True), "OX3012")
    assert "1 of 129 arrivals" in found.what
    assert found.got == "128 arrivals"
