"""Construction folds, evaluation follows Python, and folding never changes a value."""

from __future__ import annotations

import operator
from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from oxidecopy.isa import expr
from oxidecopy.isa.expr import (
    LAUNCH_KINDS,
    ONE,
    ZERO,
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
    is_launch_constant,
    symbols,
)
from tests.helpers.program_strategy import conditions, expressions

SYMBOLS = (Sym("block_idx.x", SymKind.BLOCK), Sym("n", SymKind.PARAM), Sym("i0", SymKind.LOOP))
X, N, I0 = SYMBOLS
environments = st.fixed_dictionaries({s.name: st.integers(-50, 50) for s in SYMBOLS})
operands = st.integers(-12, 12).map(Const) | expressions(SYMBOLS, 4)

BINARY: list[tuple[Callable[[Expr, Expr], Expr], Callable[[int, int], int]]] = [
    (expr.add, operator.add),
    (expr.sub, operator.sub),
    (expr.mul, operator.mul),
    (expr.floordiv, operator.floordiv),
    (expr.mod, operator.mod),
    (expr.minimum, min),
    (expr.maximum, max),
]


def value(e: Expr, env: dict[str, int]) -> int | None:
    try:
        return evaluate(e, env)
    except ZeroDivisionError:
        return None


@pytest.mark.parametrize(("make", "meaning"), BINARY, ids=lambda f: f.__name__)
@given(a=operands, b=operands, env=environments)
def test_building_means_what_python_means(
    make: Callable[[Expr, Expr], Expr], meaning: Callable[[int, int], int], a: Expr, b: Expr, env: dict[str, int]
) -> None:
    x, y = value(a, env), value(b, env)
    assume(x is not None and y is not None)
    assert x is not None
    assert y is not None
    if meaning in (operator.floordiv, operator.mod) and y == 0:
        with pytest.raises(ZeroDivisionError):
            evaluate(make(a, b), env)
    else:
        assert evaluate(make(a, b), env) == meaning(x, y)


@pytest.mark.parametrize(("make", "meaning"), BINARY, ids=lambda f: f.__name__)
@given(a=st.integers(-99, 99), b=st.integers(-99, 99).filter(bool))
def test_two_constants_fold(make: Callable[[Expr, Expr], Expr], meaning: Callable[[int, int], int], a: int, b: int) -> None:
    assert make(Const(a), Const(b)) == Const(meaning(a, b))


@pytest.mark.parametrize(
    ("made", "folded"),
    [
        (expr.add(X, ZERO), X),
        (expr.add(ZERO, X), X),
        (expr.add(Const(3), X), Add(X, Const(3))),
        (expr.add(expr.add(X, Const(3)), Const(4)), Add(X, Const(7))),
        (expr.add(expr.add(X, Const(3)), Const(-3)), X),
        (expr.sub(X, Const(3)), Add(X, Const(-3))),
        (expr.sub(X, ZERO), X),
        (expr.sub(X, N), Add(X, Mul(N, Const(-1)))),
        (expr.mul(X, ONE), X),
        (expr.mul(ONE, X), X),
        (expr.mul(Const(4), X), Mul(X, Const(4))),
        (expr.mul(X, ZERO), ZERO),
        (expr.mul(ZERO, X), ZERO),
        (expr.floordiv(X, ONE), X),
        (expr.floordiv(X, N), FloorDiv(X, N)),
        (expr.floordiv(Const(3), ZERO), FloorDiv(Const(3), ZERO)),
        (expr.mod(X, ONE), ZERO),
        (expr.mod(Const(3), ZERO), Mod(Const(3), ZERO)),
        (expr.mod(FloorDiv(X, ZERO), ONE), Mod(FloorDiv(X, ZERO), ONE)),
        (expr.mul(Add(X, Mod(X, ZERO)), ZERO), Mul(Add(X, Mod(X, ZERO)), ZERO)),
        (expr.minimum(X, ONE), Min(X, ONE)),
        (expr.maximum(X, ONE), Max(X, ONE)),
    ],
)
def test_folding(made: Expr, folded: Expr) -> None:
    assert made == folded


@pytest.mark.parametrize(
    ("a", "b", "quotient", "remainder"), [(7, 2, 3, 1), (-7, 2, -4, 1), (7, -2, -4, -1), (-7, -2, 3, -1), (-1, 64, -1, 63)]
)
def test_division_rounds_down(a: int, b: int, quotient: int, remainder: int) -> None:
    env = {"n": a}
    assert evaluate(FloorDiv(N, Const(b)), env) == quotient
    assert evaluate(Mod(N, Const(b)), env) == remainder
    assert expr.floordiv(Const(a), Const(b)) == Const(quotient)
    assert expr.mod(Const(a), Const(b)) == Const(remainder)


@given(expressions(SYMBOLS), environments)
def test_division_and_remainder_fit_each_other(e: Expr, env: dict[str, int]) -> None:
    a = value(e, env)
    assume(a is not None)
    assert evaluate(Add(Mul(FloorDiv(e, Const(7)), Const(7)), Mod(e, Const(7))), env) == a
    assert 0 <= evaluate(Mod(e, Const(7)), env) < 7


def test_an_unknown_symbol_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        evaluate(Add(X, N), {"n": 1})


def test_symbols_come_with_repeats_from_everywhere() -> None:
    cond = And(Not(Cmp(CmpOp.LT, X, Min(N, X))), Or(Answer(0), Bool(True)))
    assert sorted(s.name for s in symbols(cond)) == ["block_idx.x", "block_idx.x", "n"]
    assert list(symbols(Const(1))) == []


@pytest.mark.parametrize("kind", SymKind)
def test_launch_constants(kind: SymKind) -> None:
    constant = kind in {SymKind.GRID, SymKind.PARAM, SymKind.EXTENT}
    assert (kind in LAUNCH_KINDS) == constant
    assert is_launch_constant(Sym("s", kind)) == constant
    assert is_launch_constant(Add(Mul(N, Const(2)), Sym("s", kind))) == constant
    assert is_launch_constant(Const(1))


@pytest.mark.parametrize(
    ("op", "truths"),
    [(CmpOp.LT, (True, False, False)), (CmpOp.LE, (True, True, False)), (CmpOp.EQ, (False, True, False)), (CmpOp.NE, (True, False, True))],
)
def test_comparisons(op: CmpOp, truths: tuple[bool, ...]) -> None:
    assert tuple(holds(Cmp(op, Const(a), N), {"n": 0}, {}) for a in (-1, 0, 1)) == truths


@given(conditions(SYMBOLS, (0, 1)), conditions(SYMBOLS, (0, 1)), environments, st.booleans(), st.booleans())
def test_conditions_are_boolean_algebra(a: Cond, b: Cond, env: dict[str, int], p: bool, q: bool) -> None:
    answers = {0: p, 1: q}
    try:
        x, y = holds(a, env, answers), holds(b, env, answers)
    except ZeroDivisionError:
        return
    assert holds(And(a, b), env, answers) == (x and y)
    assert holds(Or(a, b), env, answers) == (x or y)
    assert holds(Not(a), env, answers) == (not x)
    assert holds(Not(And(a, b)), env, answers) == holds(Or(Not(a), Not(b)), env, answers)


def test_the_second_condition_is_not_looked_at_in_vain() -> None:
    fails = Cmp(CmpOp.EQ, FloorDiv(N, ZERO), ZERO)
    assert not holds(And(Bool(False), fails), {"n": 1}, {})
    assert holds(Or(Bool(True), fails), {"n": 1}, {})
