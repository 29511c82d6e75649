"""The state machine: invariants over random sequences, and the word. Measured sequences are in test_vectors.py."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oxidecopy.engines.sim.faults import Fault
from oxidecopy.engines.sim.mbarrier import COUNT_MOD, TX_HIGH, TX_LOW, Mbarrier

OPS = st.one_of(
    st.tuples(st.just("arrive"), st.integers(1, 4)),
    st.tuples(st.just("expect_tx"), st.sampled_from([0, 16, 48, 1 << 19])),
    st.tuples(st.just("complete_tx"), st.sampled_from([0, 16, 48, 1 << 19])),
)


def made(count: int) -> Mbarrier:
    bar = Mbarrier(0x400)
    bar.init(count)
    return bar


@given(st.integers(1, COUNT_MOD - 1))
def test_init(count: int) -> None:
    bar = made(count)
    assert (bar.phase, bar.pending, bar.expected, bar.tx) == (0, count, count, 0)


@given(st.integers(1, 6), st.lists(OPS, max_size=40))
def test_phases_end_exactly_when_nothing_is_missing(count: int, sequence: list[tuple[str, int]]) -> None:
    bar = made(count)
    arrivals = phase = tx = 0
    for name, operand in sequence:
        before = bar.phase
        try:
            getattr(bar, name)(operand)
        except Fault:
            return
        if name == "arrive":
            arrivals += operand
        else:
            tx += operand if name == "expect_tx" else -operand
        phase = bar.phase
        assert phase - before in (0, 1) or name == "arrive"
        assert bar.tx == tx
        assert TX_LOW <= bar.tx <= TX_HIGH
        assert bar.pending == count * (phase + 1) - arrivals  # every phase took exactly its count
        assert 0 <= bar.pending <= count
        assert not (bar.pending == 0 and bar.tx == 0)  # such a phase is over at once


@given(st.integers(1, 50), st.lists(OPS, max_size=20))
def test_the_word_keeps_all_but_the_full_phase(count: int, sequence: list[tuple[str, int]]) -> None:
    bar = made(count)
    for name, operand in sequence:
        try:
            getattr(bar, name)(operand)
        except Fault:
            return
    other = Mbarrier(0)
    other.load_word(bar.word)
    assert (other.pending, other.expected, other.tx, other.phase) == (bar.pending, bar.expected, bar.tx, bar.phase & 1)
    assert other.word == bar.word
    assert not other.broken


@pytest.mark.parametrize("threads", [1, 2, 5, 32])
def test_threads_arrive_one_by_one(threads: int) -> None:
    bar = made(2)
    assert bar.arrive(threads) == (threads - 1) // 2
    assert (bar.phase, bar.pending) == (threads // 2, 2 - threads % 2)


def test_an_arrival_of_more_than_is_pending_faults() -> None:
    with pytest.raises(Fault) as caught:
        made(2).arrive_count(3)
    assert caught.value.code == 719


def test_drop_lowers_later_phases_only() -> None:
    bar = made(3)
    bar.arrive_drop(1)
    assert (bar.pending, bar.expected) == (2, 2)
    bar.arrive(2)
    assert (bar.phase, bar.pending) == (1, 2)


def test_announcement_and_arrival_are_one_step() -> None:
    bar = made(1)
    bar.complete_tx(64)
    assert bar.arrive_expect_tx(64, 1) == 0
    assert bar.phase == 1


@pytest.mark.parametrize("name", ["arrive", "expect_tx", "complete_tx", "is_over"])
def test_a_word_that_never_was_a_barrier_faults(name: str) -> None:
    bar = Mbarrier(0)
    bar.load_word((1 << 64) - 1)
    with pytest.raises(Fault):
        getattr(bar, name)(0)


@given(st.integers(0, 5))
def test_parity_sees_one_bit(phase: int) -> None:
    bar = made(1)
    bar.arrive(phase)
    assert bar.is_over(phase) is False
    assert bar.is_over(phase + 1) is True
    assert bar.is_over(phase + 2) is False
