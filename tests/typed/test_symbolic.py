"""Symbolic integers mean what Python's integers mean, and never pretend to have a value."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oxidecopy as ox
from oxidecopy.errors import RecordError, ScopeError, SymbolicError
from oxidecopy.isa.expr import Sym, SymKind, evaluate, holds
from oxidecopy.typed.symbolic import Pred, SymIdx, extents, owner_of, to_cond, to_expr

OWNER = object()
X: Any = SymIdx(Sym("block_idx.x", SymKind.BLOCK), OWNER)
N: Any = SymIdx(Sym("n", SymKind.PARAM), OWNER)
ENV = {"block_idx.x": 7, "n": -3}


def value(i: Any) -> int:
    return evaluate(to_expr(i), ENV)


# ---- arithmetic
Pair = tuple[Any, int]  # a symbolic value and what it is


def pairs(env: dict[str, int]) -> st.SearchStrategy[Pair]:
    """Expressions in x (any value) and n (a launch constant), beside their values in `env`."""
    leaves = st.one_of(st.just((X, env["block_idx.x"])), st.just((N, env["n"])), st.integers(-9, 9).map(lambda k: (ox.minimum(k, k), k)))

    def grow(inner: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
        small = st.integers(-9, 9).filter(bool)
        return st.one_of(
            st.tuples(inner, inner).map(lambda p: (p[0][0] + p[1][0], p[0][1] + p[1][1])),
            st.tuples(inner, inner).map(lambda p: (p[0][0] - p[1][0], p[0][1] - p[1][1])),
            st.tuples(inner, inner).map(lambda p: (ox.minimum(p[0][0], p[1][0]), min(p[0][1], p[1][1]))),
            st.tuples(inner, inner).map(lambda p: (ox.maximum(p[0][0], p[1][0]), max(p[0][1], p[1][1]))),
            st.tuples(inner, small).map(lambda p: (p[0][0] + p[1], p[0][1] + p[1])),
            st.tuples(inner, small).map(lambda p: (p[1] - p[0][0], p[1] - p[0][1])),
            st.tuples(inner, small).map(lambda p: (p[1] * p[0][0], p[1] * p[0][1])),
            st.tuples(inner, small).map(lambda p: (p[0][0] // p[1], p[0][1] // p[1])),
            st.tuples(inner, small).map(lambda p: (p[0][0] % p[1], p[0][1] % p[1])),
            inner.map(lambda p: (p[0] * N, p[1] * env["n"])),
            inner.map(lambda p: (-p[0], -p[1])),
        )

    return st.recursive(leaves, grow, max_leaves=12)


@given(st.data(), st.integers(-100, 100), st.integers(-100, 100))
def test_arithmetic_is_pythons(data: st.DataObject, x: int, n: int) -> None:
    env = {"block_idx.x": x, "n": n}
    symbol, number = data.draw(pairs(env))
    assert evaluate(to_expr(symbol), env) == number


@pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne])
@given(st.integers(-3, 3), st.integers(-3, 3))
def test_comparisons_are_pythons(compare: Callable[[Any, Any], Any], x: int, n: int) -> None:
    env = {"block_idx.x": x, "n": n}
    for symbol, number in ((compare(X, N), compare(x, n)), (compare(X, n), compare(x, n)), (compare(x, N), compare(x, n))):
        assert holds(symbol.cond, env, {}) is number


@given(st.booleans(), st.booleans())
def test_conditions_combine_as_pythons(a: bool, b: bool) -> None:
    p, q = Pred(to_cond(a), OWNER), Pred(to_cond(b), OWNER)

    def truth(pred: Any) -> bool:
        return holds(pred.cond, {}, {})

    assert truth(p & q) is truth(p & b) is truth(a & q) is (a and b)
    assert truth(p | q) is truth(p | b) is truth(a | q) is (a or b)
    assert truth(~p) is (not a)


def test_constants_fold() -> None:
    assert to_expr(ox.minimum(3, 4) * 2 + 1) == to_expr(7)
    assert to_expr(X + 0) == to_expr(X * 1) == to_expr(X // 1) == to_expr(X)
    assert to_expr(X * 0) == to_expr(0)


def test_numpys_integers_count() -> None:
    three = np.int32(3)
    assert [value(i) for i in (X + three, three + X, three * X, X // three, three - X)] == [10, 10, 21, 2, -4]
    assert holds((three < X).cond, ENV, {})


def test_what_is_shown() -> None:
    assert repr(X * 64 + 1) == "SymIdx(block_idx.x * 64 + 1)"
    assert repr((X == 0) & ~(N < 3)) == "Pred((block_idx.x == 0) & ~(n < 3))"
    big: Any = X
    for _ in range(40):
        big = big + big
    assert repr(big) == "SymIdx(...)"


# ---- what is refused
def refuses(rule: str, use: Callable[[], object], error: type[Exception] = SymbolicError) -> None:
    with pytest.raises(error) as caught:
        use()
    assert isinstance(caught.value, RecordError)
    assert caught.value.rules == (rule,)
    site = caught.value.diagnostics[0].site
    assert site is not None
    assert site.file == __file__


@pytest.mark.parametrize("symbol", [X, X == 0])
@pytest.mark.parametrize("use", [bool, lambda i: not i, lambda i: i and 1, lambda i: 1 if i else 2, lambda i: any([i])])
def test_no_truth(symbol: Any, use: Callable[[Any], object]) -> None:
    refuses("OX1020", lambda: use(symbol))


@pytest.mark.parametrize("use", [lambda: X in (0, 1), lambda: min(X, N), lambda: sorted([X, N]), lambda: [X].index(N)])
def test_no_truth_of_comparisons_inside_python(use: Callable[[], object]) -> None:
    refuses("OX1020", use)


@pytest.mark.parametrize(
    "use",
    [
        range, int, float, complex, hex, [1].__getitem__, "ab".__mul__, math.sqrt, math.floor, hash,
        lambda i: [1][i:], lambda i: {i: 1}, lambda i: {i},
    ],
)  # fmt: skip
def test_no_number(use: Callable[[Any], object]) -> None:
    refuses("OX1021", lambda: use(X))


@pytest.mark.parametrize(
    "use",
    [
        lambda i: i**2, lambda i: 2**i, lambda i: i << 1, lambda i: 1 << i, lambda i: i & 1, lambda i: 1 | i,
        lambda i: i >> 1, lambda i: i ^ i,
        lambda i: i @ i, lambda i: ~i, abs, round, lambda i: divmod(i, 2), lambda i: divmod(2, i), lambda i: 4 // i, lambda i: 4 % i,
        lambda i: i // i, lambda i: i % i, lambda i: i * i, lambda i: (i + 1) * (2 - i), lambda i: i // (i + N),
    ],
)  # fmt: skip
def test_not_affine(use: Callable[[Any], object]) -> None:
    refuses("OX1022", lambda: use(X))


def test_launch_constants_may_be_factors_and_divisors() -> None:
    rows = extents(OWNER, "src", 2)[0]
    env = {**ENV, "src.dim[0]": 5}
    assert evaluate(to_expr(X * (rows + N) // rows % N), env) == 7 * 2 // 5 % -3
    assert evaluate(to_expr(17 // rows), env) == 17 // 5
    assert evaluate(to_expr(17 % N), env) == 17 % -3


def test_true_division() -> None:
    refuses("OX1023", lambda: X / 2)
    refuses("OX1023", lambda: 2 / X)


@pytest.mark.parametrize("other", [0.5, "1", None, True, 1j, np.float32(1), np.zeros(2), np.zeros((2, 2)), [1], 1 << 63, -(1 << 63) - 1])
def test_no_integer(other: Any) -> None:
    refuses("OX1029", lambda: X + other)
    refuses("OX1029", lambda: other - X)
    refuses("OX1029", lambda: other > X)
    refuses("OX1029", lambda: ox.minimum(X, other))


def test_division_by_zero() -> None:
    refuses("OX1062", lambda: X // 0)
    refuses("OX1062", lambda: X % ox.minimum(0, 1))


@pytest.mark.parametrize("other", [1, None, "x", X, 0.5])
def test_no_condition(other: Any) -> None:
    refuses("OX1027", lambda: (X == 0) & other)
    refuses("OX1027", lambda: other | (X == 0) if not isinstance(other, SymIdx) else (X == 0) | other)


def test_conditions_are_not_compared() -> None:
    refuses("OX1027", lambda: (X == 0) == (N == 0))
    refuses("OX1027", lambda: (X == 0) != True)  # noqa: E712  # the mistake
    refuses("OX1021", lambda: hash(X == 0))


def test_recordings_do_not_mix() -> None:
    other = SymIdx(Sym("n", SymKind.PARAM), object())
    for use in (lambda: X + other, lambda: ox.maximum(X, other), lambda: other == X, lambda: (X == 0) & (other == 0)):
        refuses("OX1019", use, ScopeError)
    assert owner_of(1, None) is None
    assert owner_of(ox.minimum(1, 2), X, N, X == N) is OWNER
