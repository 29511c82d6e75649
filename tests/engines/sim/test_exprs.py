"""Expressions as closures give what `isa.expr` evaluates."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oxidecopy.engines.sim.exprs import Scope
from oxidecopy.isa.expr import (
    Add,
    And,
    Answer,
    Bool,
    Cmp,
    CmpOp,
    Cond,
    Const,
    Expr,
    FloorDiv,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    Sym,
    SymKind,
    evaluate,
    holds,
)

SLOTS = {"block_idx.x": 0, "i": 1}
CONSTANTS = {"n": 7}
LEAVES = st.one_of(
    st.integers(-9, 9).map(Const),
    st.sampled_from([Sym("block_idx.x", SymKind.BLOCK), Sym("i", SymKind.LOOP), Sym("n", SymKind.PARAM)]),
)
BINARY = (Add, Mul, FloorDiv, Mod, Min, Max)
EXPRS: st.SearchStrategy[Expr] = st.recursive(LEAVES, lambda e: st.one_of([st.builds(kind, e, e) for kind in BINARY]), max_leaves=8)
CONDS: st.SearchStrategy[Cond] = st.recursive(
    st.one_of(
        st.builds(Cmp, st.sampled_from(list(CmpOp)), EXPRS, EXPRS), st.builds(Answer, st.integers(0, 1)), st.builds(Bool, st.booleans())
    ),
    lambda c: st.one_of(st.builds(And, c, c), st.builds(Or, c, c), st.builds(Not, c)),
    max_leaves=4,
)


@given(EXPRS, st.integers(-5, 5), st.integers(-5, 5))
def test_values(e: Expr, x: int, i: int) -> None:
    env = {"block_idx.x": x, "i": i, **CONSTANTS}
    value = Scope(CONSTANTS, SLOTS).value(e)
    try:
        wanted = evaluate(e, env)
    except ZeroDivisionError:
        with pytest.raises(ZeroDivisionError):
            value([x, i])
        return
    assert value([x, i]) == wanted


@given(CONDS, st.integers(-5, 5), st.integers(-5, 5))
def test_conditions(c: Cond, x: int, i: int) -> None:
    answers = {0: True, 1: False}
    truth = Scope(CONSTANTS, SLOTS).truth(c)
    try:
        wanted = holds(c, {"block_idx.x": x, "i": i, **CONSTANTS}, answers)
    except ZeroDivisionError:
        with pytest.raises(ZeroDivisionError):
            truth([x, i], answers)
        return
    assert truth([x, i], answers) == wanted


def test_an_answer_nobody_asked_for_is_false() -> None:
    assert Scope({}, {}).truth(Answer(3))([], {}) is False


def test_launch_constants_are_folded() -> None:
    scope = Scope(CONSTANTS, SLOTS)
    n, i = Sym("n", SymKind.PARAM), Sym("i", SymKind.LOOP)
    assert scope.constant(Add(Mul(n, Const(3)), FloorDiv(n, Const(2)))) == 24
    assert scope.constant(Mul(i, n)) is None
    assert scope.constant(Mul(i, Const(0))) == 0
