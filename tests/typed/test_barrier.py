"""The life of a barrier: every method in every state, stale handles, and what each method asks of its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import oxidecopy as ox
from tests.helpers.recordings import marked_line, recorded, refused

# What can be called on a barrier in each state, with arguments that are right.
CALLS: dict[str, Callable[[Any, Any], object]] = {
    "init": lambda bar, leader: bar.init(1),
    "init_by": lambda bar, leader: bar.init_by(1, 0),
    "inval": lambda bar, leader: bar.inval(),
    "inval_by": lambda bar, leader: bar.inval_by(0),
    "arrive": lambda bar, leader: bar.arrive(),
    "arrive_drop": lambda bar, leader: bar.arrive_drop(),
    "arrive_remote": lambda bar, leader: bar.arrive_remote(0),
    "arrive_expect_tx": lambda bar, leader: bar.arrive_expect_tx(leader, 16),
    "arrive_expect_tx_remote": lambda bar, leader: bar.arrive_expect_tx_remote(leader, 16, cta_rank=0),
    "expect_tx": lambda bar, leader: bar.expect_tx(leader, 16),
    "complete_tx": lambda bar, leader: bar.complete_tx(leader, 16),
    "wait": lambda bar, leader: bar.wait(bar.arrive()),
    "wait of any token": lambda bar, leader: bar.wait(None),
    "wait_phase": lambda bar, leader: bar.wait_phase(0),
    "wait_parity": lambda bar, leader: bar.wait_parity(0),
    "try_wait": lambda bar, leader: bar.try_wait(None),
    "test_wait": lambda bar, leader: bar.test_wait(None),
    "try_wait_parity": lambda bar, leader: bar.try_wait_parity(0),
    "test_wait_parity": lambda bar, leader: bar.test_wait_parity(0),
}
STARTS = ("init", "init_by")


def rule_of(use: Callable[[ox.ClusterCta, Any], object]) -> str:
    """The rule that refuses `use` of a CTA of one thread, and its leader; "" when none does."""

    def pipe(cta: ox.ClusterCta) -> None:
        with cta.elect() as leader:
            use(cta, leader)

    try:
        recorded(pipe, threads=1, cluster=(2, 1, 1))
    except ox.errors.RecordError as error:
        return error.rule
    return ""


@pytest.mark.parametrize("name", CALLS)
def test_before_init(name: str) -> None:
    assert rule_of(lambda cta, leader: CALLS[name](cta.barrier(), leader)) == ("" if name in STARTS else "OX1001")


@pytest.mark.parametrize("name", CALLS)
def test_ready(name: str) -> None:
    rules = dict.fromkeys(STARTS, "OX1054") | dict.fromkeys(("wait of any token", "try_wait", "test_wait"), "OX1055")
    assert rule_of(lambda cta, leader: CALLS[name](cta.barrier().init(1), leader)) == rules.get(name, "")


@pytest.mark.parametrize("name", CALLS)
def test_after_inval(name: str) -> None:
    assert rule_of(lambda cta, leader: CALLS[name](cta.barrier().init(1).inval(), leader)) == "OX1002"


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("end", [lambda bar: bar, lambda bar: bar.init(1)])
def test_a_handle_that_was_taken(name: str, end: Callable[[Any], Any]) -> None:
    def use(cta: ox.ClusterCta, leader: Any) -> None:
        bar: Any = end(cta.barrier())
        bar.init(1) if bar._state is ox.Uninit else bar.inval()
        CALLS[name](bar, leader)

    assert rule_of(use) == "OX1003"


@pytest.mark.parametrize("kind", [ox.MmaBarrier, ox.GeneralBarrier])
@pytest.mark.parametrize("name", CALLS)
def test_kinds_that_count_no_bytes(name: str, kind: type[ox.Kind]) -> None:
    expected = "OX1008" if "tx" in name else None
    rule = rule_of(lambda cta, leader: CALLS[name](cta.barrier(kind=kind).init(1), leader))
    assert rule != "OX1008" if expected is None else rule == expected


def test_what_took_a_handle_is_named() -> None:
    def pipe(cta: ox.Cta) -> None:
        bar = cta.barrier()
        bar.init(1)
        bar.init(1)  # type: ignore[oxidecopy-moved]  # here

    (cause,) = refused(pipe, "OX1003").causes
    assert "`init` took it here" in cause.what
    assert cause.site
    assert cause.site.line == marked_line(pipe) - 1


def test_a_use_after_inval_is_told_to_come_before() -> None:
    def pipe(cta: ox.Cta) -> None:
        bar = cta.barrier().init(1)
        bar.inval()
        bar.arrive()  # type: ignore[oxidecopy-moved]  # here

    assert refused(pipe, "OX1003").fix == "move `inval` behind the last use"


def test_an_inval_that_was_refused_takes_nothing() -> None:
    def pipe(cta: ox.Cta) -> None:
        full = cta.barrier().init(1)
        with pytest.raises(ox.errors.ScopeError), cta.elect():
            full.inval()
        full.inval()

    recorded(pipe)


# ---- arguments
@pytest.mark.parametrize("count", [0, -1, 1 << 20, 1.0, True, None, "1"])
def test_counts(count: Any) -> None:
    def pipe(cta: ox.Cta) -> None:
        cta.barrier().init(count)  # here

    refused(pipe, "OX1044")


@pytest.mark.parametrize("nbytes", [-1, 1 << 20, 1.0, True, None, "16", [16]])
def test_bytes(nbytes: Any) -> None:
    def pipe(cta: ox.Cta) -> None:
        full = cta.barrier().init(1)
        with cta.elect() as leader:
            full.arrive_expect_tx(leader, nbytes)  # here

    refused(pipe, "OX1039")


def test_bytes_in_all() -> None:
    def pipe(cta: ox.Cta, more: int) -> None:
        full = cta.barrier().init(1)
        tile = cta.shared(ox.u8, (1 << 12,), align=ox.A16)
        with cta.elect() as leader:
            full.arrive_expect_tx(leader, tile, (1 << 20) - (1 << 13), tile.nbytes - 1 + more)  # here

    recorded(pipe)
    refused(pipe, "OX1039", more=1)


@pytest.mark.parametrize("wrong", [None, 0, "leader", ox.Leader])
def test_no_leader(wrong: Any) -> None:
    def pipe(cta: ox.Cta) -> None:
        cta.barrier().init(1).expect_tx(wrong, 16)  # here

    refused(pipe, "OX1014")


@pytest.mark.parametrize("parity", [-1, 2])
def test_parities(parity: int) -> None:
    def wait(cta: ox.Cta) -> None:
        cta.barrier().init(1).wait_parity(parity)  # here

    def test(cta: ox.Cta) -> None:
        cta.barrier().init(1).test_wait_parity(parity)  # here

    refused(wait, "OX1070")
    refused(test, "OX1070")


def test_remote_arrivals_need_a_cluster() -> None:
    def arrive(cta: ox.Cta) -> None:
        cta.barrier().init(1).arrive_remote(0)  # here

    def announce(cta: ox.Cta) -> None:
        full = cta.barrier().init(1)
        with cta.elect() as leader:
            full.arrive_expect_tx_remote(leader, 16, cta_rank=0)  # here

    refused(arrive, "OX1017")
    refused(announce, "OX1017")
