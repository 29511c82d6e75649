"""The end of a CTA: stores drained, loads waited for, peers' traffic over."""

from __future__ import annotations

import pytest

from oxidecopy.isa import expr
from oxidecopy.isa.expr import Const
from tests.helpers.programs import RANK, Builder, eq
from tests.helpers.verdicts import Make, accepted, made, refused

BYTES = 64 * 64 * 4


def not_committed(b: Builder, broken: bool) -> None:
    b.map()
    b.tile()
    with b.elect():
        b.fill()
        b.fence()
        b.s2g(tag="s2g")
        if not broken:
            b.commit()
            b.wait_group(0)


def one_pending(b: Builder, broken: bool) -> None:
    b.map()
    b.tile()
    with b.elect():
        b.fill()
        b.fence()
        b.s2g(tag="s2g")
        b.commit()
        b.wait_read(1 if broken else 0)


def waited_by_another(b: Builder, broken: bool) -> None:
    b.map()
    b.tile()
    with b.elect(0):
        b.fill()
        b.fence()
        b.s2g(tag="s2g")
        b.commit()
        if not broken:
            b.wait_read(0)


def load_unwaited(b: Builder, broken: bool) -> None:
    b.map()
    b.tile()
    b.bar()
    b.init()
    with b.elect():
        token = b.arm(BYTES)
        b.g2s(tag="load")
        if not broken:
            b.wait(token)


def exit_remote(b: Builder, broken: bool) -> None:
    """Rank 1 may be gone when rank 0 arrives there."""
    b.cluster, b.grid = (2, 1, 1), (2, 1, 1)
    b.bar()
    b.init()
    b.cluster_sync()
    with b.elect(), b.when(eq(RANK, 0)):
        b.arrive_remote(1, tag="remote")
    if not broken:
        b.cluster_sync()


def remote_waited(b: Builder, broken: bool) -> None:
    """A wait for the phase does as well as a cluster sync."""
    b.cluster, b.grid = (2, 1, 1), (2, 1, 1)
    b.bar()
    b.init()
    b.cluster_sync()
    with b.elect():
        b.arrive_remote(expr.sub(Const(1), RANK), tag="remote")
        if not broken:
            b.wait_phase(0)


def multicast_unwaited(b: Builder, broken: bool) -> None:
    b.cluster, b.grid = (2, 1, 1), (2, 1, 1)
    b.map()
    b.tile()
    b.bar()
    b.init()
    b.cluster_sync()
    with b.elect():
        b.arm(BYTES)
        with b.when(eq(RANK, 0)):
            b.multicast(0b11, tag="load")
        with b.when(eq(RANK, 0) if broken else expr.Bool(value=True)):
            b.wait_phase(0)


CASES: list[tuple[Make, str, str]] = [
    (not_committed, "OX3050", "s2g"),
    (one_pending, "OX3050", "s2g"),
    (waited_by_another, "OX3050", "s2g"),
    (load_unwaited, "OX3051", "load"),
    (exit_remote, "OX3052", "remote"),
    (remote_waited, "OX3052", "remote"),
    (multicast_unwaited, "OX3051", "load"),
]


@pytest.mark.parametrize(("make", "rule", "tag"), CASES, ids=lambda x: getattr(x, "__name__", None))
def test_refused_and_its_twin(make: Make, rule: str, tag: str) -> None:
    refused(made(make, True), rule, tag)
    accepted(made(make, False))


@pytest.mark.parametrize("other", [False, True])
def test_a_wait_before_the_first_commit_is_none(other: bool) -> None:
    """A ring of stores waits for a free stage before each store, the first ones too. Twin: another thread commits."""
    b = Builder()
    b.map()
    b.tile()
    with b.loop(3):
        with b.elect(0):
            b.wait_read(0, tag="wait")
        b.sync()
        with b.elect(1 if other else 0):
            if other:
                b.wait_read(0)
            b.fill()
            b.fence()
            b.s2g()
            b.commit()
    with b.elect(1 if other else 0):
        b.wait_read(0)
    accepted(b, *(["OX3104"] if other else []))


def test_waiting_for_groups_without_any_is_a_warning() -> None:
    b = Builder()
    with b.elect():
        b.wait_read(0, tag="wait")
    accepted(b, "OX3104")
