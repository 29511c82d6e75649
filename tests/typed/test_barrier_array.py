"""Arrays of barriers: their elements are borrowed, and end with the array."""

from __future__ import annotations

from typing import Any

import pytest

import oxidecopy as ox
from tests.helpers.recordings import recorded, refused


def test_elements() -> None:
    def pipe(cta: ox.Cta, n: ox.Idx) -> None:
        bars = cta.barriers(3, kind=ox.MmaBarrier).init_by(1, 2)
        assert len(bars) == 3
        for bar in bars:
            bar.wait(bar.arrive())
        bars[n % 3].wait_phase(0)

    refs = [repr(step.op.bar) for step in recorded(pipe).walk() if step.op.mnemonic == "mbarrier.arrive"]  # type: ignore[union-attr]  # as asked
    assert refs == [f"BarrierRef(barrier=0, index=Const(value={i}))" for i in range(3)]


@pytest.mark.parametrize("i", [-1, 3])
def test_no_such_element(i: int) -> None:
    def pipe(cta: ox.Cta) -> None:
        cta.barriers(3).init(1)[i]  # here

    assert refused(pipe, "OX1042").required == "0 to 2"


def test_an_element_does_not_end_alone() -> None:
    def pipe(cta: ox.Cta) -> None:
        cta.barriers(2).init(1)[0].inval()  # here

    assert refused(pipe, "OX1041").got == "bar0[0]"


def test_elements_end_with_the_array() -> None:
    def pipe(cta: ox.Cta) -> None:
        bars = cta.barriers(2).init(1)
        first = bars[0]
        bars.inval()
        first.arrive()  # here

    refused(pipe, "OX1003")


def test_states_of_arrays() -> None:
    def before(cta: Any) -> None:
        cta.barriers(2)[0]  # here

    def twice(cta: Any) -> None:
        cta.barriers(2).init(1).init(1)  # here

    def stale(cta: Any) -> None:
        bars = cta.barriers(2)
        bars.init(1)
        bars.init(1)  # here

    def after(cta: Any) -> None:
        cta.barriers(2).init(1).inval().inval_by(0)  # here

    for pipe, rule in ((before, "OX1001"), (twice, "OX1054"), (stale, "OX1003"), (after, "OX1002")):
        refused(pipe, rule)


def test_tokens_of_elements() -> None:
    def same(cta: ox.Cta, n: ox.Idx) -> None:
        bars = cta.barriers(2).init(1)
        bars[n % 2].wait(bars[n % 2].arrive())

    def other(cta: ox.Cta, n: ox.Idx) -> None:
        bars = cta.barriers(2).init(1)
        bars[0].wait(bars[1].arrive())  # type: ignore[oxidecopy-token]  # here

    def maybe(cta: ox.Cta, n: ox.Idx) -> None:
        bars = cta.barriers(2).init(1)
        bars[n % 2].wait(bars[0].arrive())  # here

    recorded(same)
    assert "another element" in refused(other, "OX1005").got
    refused(maybe, "OX1005")
