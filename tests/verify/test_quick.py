"""Settled expressions and their closures say what the expressions say, and fail where those fail."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oxidecopy.isa import expr
from oxidecopy.isa.expr import CmpOp, Cond, Const, Expr, Sym, SymKind
from oxidecopy.verify.affine import Range, decide, point, range_of
from oxidecopy.verify.quick import Quick, number, truth

I = Sym("i", SymKind.LOOP)  # noqa: E741  as in the programs
J = Sym("j", SymKind.LOOP)
BX = Sym("block_idx.x", SymKind.BLOCK)
RANK = Sym("cta_rank", SymKind.RANK)
RANGES = {"block_idx.x": Range(0, 6, 2), "cta_rank": point(1)}
ENV = {"cta_rank": 1, "i": 7, "j": -3}

_NODES: tuple[Callable[[Expr, Expr], Expr], ...] = (expr.Add, expr.Mul, expr.FloorDiv, expr.Mod, expr.Min, expr.Max)


def _expressions(*leaves: Expr) -> st.SearchStrategy[Expr]:
    return st.recursive(
        st.one_of(st.sampled_from(leaves), st.integers(-4, 4).map(Const)),
        lambda inner: st.builds(lambda make, a, b: make(a, b), st.sampled_from(_NODES), inner, inner),
        max_leaves=8,
    )


def _conditions(*leaves: Expr) -> st.SearchStrategy[Cond]:
    compared = st.builds(expr.Cmp, st.sampled_from(CmpOp), _expressions(*leaves), _expressions(*leaves))
    return st.recursive(
        st.one_of(compared, st.booleans().map(lambda v: expr.Bool(value=v))),
        lambda inner: st.one_of(st.builds(expr.And, inner, inner), st.builds(expr.Or, inner, inner), st.builds(expr.Not, inner)),
        max_leaves=5,
    )


def _outcome(call: Callable[[], object]) -> object:
    """What it gives, or how it fails."""
    try:
        return call()
    except (ZeroDivisionError, KeyError) as failure:
        return type(failure)


@given(_expressions(I, J, RANK))
def test_a_number_is_the_expressions_value(e: Expr) -> None:
    wanted = _outcome(lambda: expr.evaluate(e, ENV))
    assert _outcome(lambda: number(e)(ENV)) == wanted
    assert _outcome(lambda: Quick(dict(RANGES)).number(e)(ENV)) == wanted


@given(_conditions(I, J, RANK))
def test_a_truth_is_the_conditions_truth(c: Cond) -> None:
    wanted = _outcome(lambda: expr.holds(c, ENV, {}))
    assert _outcome(lambda: truth(c)(ENV)) == wanted
    assert _outcome(lambda: Quick(dict(RANGES)).truth(c)(ENV)) == wanted


@given(_expressions(I, BX, RANK))
def test_a_range_is_that_of_the_expression(e: Expr) -> None:
    counters = {"i": Range(2, 10, 4)}

    def quick() -> Range:
        found = Quick(dict(RANGES))
        found.number(e)
        return found.range(e, counters)

    assert _outcome(quick) == _outcome(lambda: range_of(e, {**RANGES, **counters}))


@given(_conditions(I, BX, RANK))
def test_a_decision_is_that_of_the_condition(c: Cond) -> None:
    counters = {"i": Range(2, 10, 4)}

    def quick() -> bool | None:
        found = Quick(dict(RANGES))
        found.truth(c)
        return found.decided(c, counters)

    assert _outcome(quick) == _outcome(lambda: decide(c, {**RANGES, **counters}))


def test_what_has_one_value_over_all_blocks_is_settled() -> None:
    quick = Quick(dict(RANGES))
    e = expr.Add(I, expr.FloorDiv(BX, Const(8)))  # 0 to 6 over 8
    assert quick.number(e)({"i": 5}) == 5
    assert quick.settled[id(e)] == expr.Add(I, Const(0))


def test_what_has_several_is_not() -> None:
    quick = Quick(dict(RANGES))
    e = expr.Add(I, expr.FloorDiv(BX, Const(4)))
    with pytest.raises(KeyError):
        quick.number(e)({"i": 5})
    assert quick.range(e, {"i": point(5)}) == Range(5, 6, 1)


def test_a_symbol_that_is_left_out_moves() -> None:
    """The share of a counter is one number in a walk, and not to be settled: periods ask for other ones."""
    share = Sym("share", SymKind.TRIPS)
    quick = Quick(dict(RANGES))
    more = expr.Cmp(CmpOp.LT, I, share)
    assert quick.truth(more)({"i": 3, "share": 4})
    assert quick.decided(more, {"i": point(3), "share": Range(3, 9, 1)}) is None


def test_a_divisor_of_0_that_is_not_asked_for_harms_nobody() -> None:
    bad = expr.Cmp(CmpOp.EQ, expr.Mod(RANK, Const(0)), Const(0))
    assert not Quick(dict(RANGES)).truth(expr.And(expr.Bool(value=False), bad))(ENV)
    with pytest.raises(ZeroDivisionError):
        Quick(dict(RANGES)).truth(expr.And(expr.Bool(value=True), bad))(ENV)


def test_an_answer_is_no_condition_of_the_program() -> None:
    with pytest.raises(TypeError):
        truth(expr.Answer(0))
