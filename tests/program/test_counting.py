"""Sums over loop counters: exact, or refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oxidecopy.isa.expr import Add, Const, Expr, Mod, Mul, Sym, SymKind, evaluate, floordiv
from oxidecopy.isa.ops import Loop
from oxidecopy.program.counting import CannotCount, Sum, distance, passes, product, ring_of, sum_of, trips, turns, visits_before

LOOP_I, J, N = Sym("i", SymKind.LOOP), Sym("j", SymKind.LOOP), Sym("n", SymKind.PARAM)


def loop(counter: str, stop: Expr, start: int = 0, step: int = 1) -> Loop:
    return Loop(counter=counter, start=Const(start), stop=stop, step=step)


@given(st.integers(-20, 20), st.integers(-20, 20), st.integers(-30, 30), st.integers(1, 7), st.integers(-9, 9))
def test_whole_multiples_leave_a_division(a: int, b: int, c: int, by: int, i: int) -> None:
    total = sum_of(Add(Add(Mul(LOOP_I, Const(a)), Mul(J, Const(b))), Const(c)))
    assert evaluate(total.divided(by), {"i": i, "j": 3}) == (a * i + b * 3 + c) // by


def test_a_division_that_goes_out_even_is_gone() -> None:
    assert sum_of(Add(Mul(LOOP_I, Const(4)), Const(6))).divided(2) == Add(Mul(LOOP_I, Const(2)), Const(3))
    assert sum_of(Mul(LOOP_I, Const(3))).divided(2) == Add(LOOP_I, floordiv(LOOP_I, Const(2)))


@pytest.mark.parametrize(("start", "stop", "step"), [(0, 5, 1), (2, 9, 3), (9, 0, -2), (5, 5, 1), (7, 2, 1)])
def test_trips_and_turns(start: int, stop: int, step: int) -> None:
    made = loop("i", Const(stop), start, step)
    counters = range(start, stop, step)
    assert evaluate(trips(made), {}) == len(counters)
    assert [evaluate(turns([made]).expr(), {"i": i}) for i in counters] == list(range(len(counters)))


def test_nested_loops_must_not_depend_on_each_other() -> None:
    outer = loop("i", Const(3))
    assert evaluate(passes([outer, loop("j", N)]), {"n": 4}) == 12
    with pytest.raises(CannotCount):
        passes([outer, loop("j", LOOP_I)])
    with pytest.raises(CannotCount):
        turns([outer, loop("j", LOOP_I)])


def test_factors_are_constants_of_the_launch() -> None:
    assert product(Sum({LOOP_I: 2}, 1), N).expr() == Add(N, Mul(Mul(LOOP_I, N), Const(2)))
    with pytest.raises(CannotCount):
        product(Sum({LOOP_I: 2}), Sym("block_idx.x", SymKind.BLOCK))


# ---- rings
def test_an_index_that_stays_is_no_ring() -> None:
    assert ring_of(Const(2), [loop("i", N)], {}) is None
    assert ring_of(Mod(N, Const(4)), [loop("i", N)], {}) is None


@pytest.mark.parametrize(
    "index", [Mod(Mul(LOOP_I, LOOP_I), Const(4)), Mod(floordiv(LOOP_I, Const(2)), Const(4)), Add(LOOP_I, J), Mod(LOOP_I, Const(-4))]
)
def test_indices_that_go_no_round(index: Expr) -> None:
    with pytest.raises(CannotCount):
        ring_of(index, [loop("i", Const(4)), loop("j", Const(4))], {})


def test_two_loops_that_go_round_as_one() -> None:
    loops = [loop("i", Const(3)), loop("j", Const(6))]
    flat = Mod(Add(Mul(LOOP_I, Const(6)), J), Const(4))
    ring = ring_of(flat, loops, {})
    assert ring is not None
    seen = [0] * 4
    for i in range(3):
        for j in range(6):
            env = {"i": i, "j": j}
            assert evaluate(visits_before(ring, 0, {}).expr(), env) == seen[evaluate(flat, env)]
            seen[evaluate(flat, env)] += 1
    with pytest.raises(CannotCount):
        ring_of(Mod(Add(Mul(LOOP_I, Const(5)), J), Const(4)), loops, {})


@pytest.mark.parametrize("by", [1, 3, 5])
@pytest.mark.parametrize("apart", range(-3, 5))
def test_distances_count_earlier_visits(by: int, apart: int) -> None:
    loops = [loop("i", Const(20))]
    point = ring_of(Mod(Mul(LOOP_I, Const(by)), Const(4)), loops, {})
    other = ring_of(Mod(Add(Mul(LOOP_I, Const(by)), Const(apart)), Const(4)), loops, {})
    assert point is not None
    assert other is not None
    counted = visits_before(point, distance(point, other), {}).expr()
    for i in range(20):
        assert evaluate(counted, {"i": i}) == sum((by * k + apart) % 4 == by * i % 4 for k in range(i))


def test_elements_that_never_meet() -> None:
    loops = [loop("i", Const(20))]
    even, odd = (ring_of(Mod(Add(Mul(LOOP_I, Const(2)), Const(k)), Const(4)), loops, {}) for k in (0, 1))
    assert even is not None
    assert odd is not None
    assert distance(even, odd) is None
    assert visits_before(even, None, {}) == Sum()
