"""Strided intervals hold every true value; decisions and shifts agree with plain evaluation."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product

import pytest

from oxidecopy.isa import expr
from oxidecopy.isa.expr import Add, And, Bool, Cmp, CmpOp, Cond, Const, Expr, FloorDiv, Max, Min, Mod, Mul, Not, Or, Sym, SymKind
from oxidecopy.verify.affine import Range, Ranges, decide, moduli, periods, point, range_of, shift_of, steady, strided

X, Y = Sym("x", SymKind.LOOP), Sym("y", SymKind.BLOCK)


def random_expr(rng: random.Random, depth: int) -> Expr:
    if depth == 0 or rng.random() < 0.2:
        leaves: list[Expr] = [X, Y, Const(rng.randint(-5, 9))]
        return rng.choice(leaves)
    kinds: list[Callable[[Expr, Expr], Expr]] = [Add, Add, Mul, FloorDiv, Mod, Min, Max]
    kind = rng.choice(kinds)
    a = random_expr(rng, depth - 1)
    if kind is Mul:
        return Mul(a, Const(rng.randint(-4, 6)))
    if kind in (FloorDiv, Mod):
        return kind(a, Const(rng.choice([-3, -1, 1, 2, 3, 4, 8])))
    return kind(a, random_expr(rng, depth - 1))


def values(r: Range) -> range:
    return range(r.lo, r.hi + 1, r.step or 1)


def random_range(rng: random.Random) -> Range:
    return strided(rng.randint(-9, 9), rng.randint(-9, 20), rng.randint(0, 4))


def random_cond(rng: random.Random, depth: int) -> Cond:
    if depth == 0:
        return Cmp(rng.choice(list(CmpOp)), random_expr(rng, 2), random_expr(rng, 1))
    a, b = random_cond(rng, depth - 1), random_cond(rng, depth - 1)
    made: list[Cond] = [And(a, b), Or(a, b), Not(a), Bool(value=rng.random() < 0.5)]
    return rng.choice(made)


@pytest.mark.parametrize("seed", range(20))
def test_ranges_hold_every_value(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(200):
        e, env = random_expr(rng, 3), {"x": random_range(rng), "y": random_range(rng)}
        r = range_of(e, env)
        assert (r.step == 0) == (r.lo == r.hi)
        assert Ranges(env).of(e) == r
        for x, y in product(values(env["x"]), values(env["y"])):
            assert expr.evaluate(e, {"x": x, "y": y}) in values(r), (e, env, r, x, y)


@pytest.mark.parametrize("seed", range(20))
def test_decisions_hold_for_every_value(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(200):
        c, env = random_cond(rng, 2), {"x": random_range(rng), "y": random_range(rng)}
        decided = decide(c, env)
        if decided is not None:
            assert all(expr.holds(c, {"x": x, "y": y}, {}) is decided for x, y in product(values(env["x"]), values(env["y"])))


@pytest.mark.parametrize("seed", range(20))
def test_shifts_hold_everywhere(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(200):
        e, c, d = random_expr(rng, 3), random_cond(rng, 1), rng.choice([0, 1, 2, 4, 12, -8, 24])
        moved = shift_of(e, {"x": d})
        for x, y in product(range(-30, 31, 7), (-3, 0, 5)):
            now, then = {"x": x, "y": y}, {"x": x + d, "y": y}
            if moved is not None:
                assert expr.evaluate(e, then) - expr.evaluate(e, now) == moved
            if steady(c, {"x": d}):
                assert expr.holds(c, then, {}) is expr.holds(c, now, {})


def test_what_pipelines_need_is_exact() -> None:
    """Stage and phase of a ring, over a whole period and from one period to the next."""
    assert shift_of(Mod(Add(X, Const(3)), Const(4)), {"x": 8}) == 0
    assert shift_of(FloorDiv(X, Const(4)), {"x": 8}) == 2
    assert shift_of(Mod(X, Const(4)), {"x": 2}) is None
    assert range_of(Mul(Mod(X, Const(4)), Const(64)), {"x": Range(0, 96, 4)}) == point(0)
    assert range_of(Add(Mul(X, Const(64)), Const(8)), {"x": Range(0, 9, 1)}) == Range(8, 584, 64)
    assert decide(Cmp(CmpOp.EQ, Mod(X, Const(2)), Const(1)), {"x": Range(0, 100, 2)}) is False


def test_a_divisor_of_zero_raises_and_a_symbolic_one_says_nothing() -> None:
    for e in (Mod(X, Const(0)), FloorDiv(X, Const(0))):
        with pytest.raises(ZeroDivisionError):
            range_of(e, {"x": point(3)})
    for e in (Mod(X, Y), FloorDiv(X, Y)):
        assert range_of(e, {"x": point(3), "y": Range(1, 2, 1)}).hi > 1 << 40


def test_moduli() -> None:
    assert moduli(Cmp(CmpOp.LT, Mod(X, Const(6)), FloorDiv(Y, Const(4)))) == {4, 6}
    assert moduli(Not(Cmp(CmpOp.EQ, X, Y))) == frozenset()


@pytest.mark.parametrize(
    ("e", "wanted"),
    [
        (Mod(X, Const(4)), {4}),
        (Mod(Mul(X, Const(8)), Const(4)), {1}),
        (FloorDiv(Add(Mul(X, Const(6)), Y), Const(4)), {2}),
        (Mod(Y, Const(4)), {1}),
        (Mod(Mod(X, Const(6)), Const(4)), {4, 6}),
        (Add(FloorDiv(X, Const(3)), Mod(Mul(X, Const(2)), Const(8))), {3, 4}),
        (Add(X, Y), set()),
    ],
)
def test_after_how_many_turns_divisors_are_where_they_were(e: Expr, wanted: set[int]) -> None:
    assert periods(e, {"x": 1}) == wanted
