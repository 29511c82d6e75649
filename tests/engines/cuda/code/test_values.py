"""The normal form of integers: the same value as the expression, one form for equal ones, and bounds that hold."""

from __future__ import annotations

from random import Random

import pytest

from oxidecopy.engines.cuda.code.values import DivisionByZeroError, Lin, Truth, Values, negated
from oxidecopy.engines.cuda.code.values import Test as Question
from oxidecopy.isa.expr import Add, And, Cmp, CmpOp, Cond, Const, Expr, FloorDiv, Max, Min, Mod, Mul, Not, Or, Sym, SymKind, evaluate, holds

I_, J = Sym("i", SymKind.LOOP), Sym("j", SymKind.LOOP)
BOUNDS = {"i": (0, 13), "j": (-4, 6)}
DIVISORS = [1, 2, 3, 4, 8, -2, -5]


def values() -> Values:
    made = Values({"n": 5})
    for name, (low, high) in BOUNDS.items():
        made.symbol(name, low, high)
    return made


def number(v: Values, value: Lin, env: dict[str, int]) -> int:
    """What a normal form means."""
    total = value[0]
    for at, k in value[1]:
        atom = v.atoms[at]
        match atom.kind:
            case "sym":
                found = env[atom.name]
            case "group":
                found = number(v, atom.a, env)
            case "div":
                found = number(v, atom.a, env) // atom.by
            case "mod":
                found = number(v, atom.a, env) % atom.by
            case "min":
                found = min(number(v, atom.a, env), number(v, atom.b, env))
            case _:
                found = number(v, atom.a, env) * number(v, atom.b, env)
        assert atom.low <= found <= atom.high
        total += k * found
    return total


def true(v: Values, test: Truth, env: dict[str, int]) -> bool:
    if isinstance(test, bool):
        return test
    a, b = number(v, test.a, env), number(v, test.b, env)
    parts = [true(v, part, env) for part in test.parts]
    table = {"less": a < test.bound, "same": a == test.bound, "other": a != test.bound, "less2": a < b, "same2": a == b, "other2": a != b}
    return {"and": all(parts), "or": any(parts), "not": not all(parts)}.get(test.kind, table.get(test.kind, False))


def expression(random: Random, depth: int) -> Expr:
    if not depth or random.random() < 0.2:
        leaf: Expr = random.choice([I_, J, Sym("n", SymKind.PARAM)])
        return Const(random.randint(-20, 20)) if random.random() < 0.3 else leaf
    a = expression(random, depth - 1)
    match random.randrange(6):
        case 0:
            return Mul(a, expression(random, depth - 1))
        case 1:
            return FloorDiv(a, Const(random.choice(DIVISORS)))
        case 2:
            return Mod(a, Const(random.choice(DIVISORS)))
        case 3:
            return Min(a, expression(random, depth - 1))
        case 4:
            return Max(a, expression(random, depth - 1))
        case _:
            return Add(a, expression(random, depth - 1))


@pytest.mark.parametrize("seed", range(200))
def test_means_what_the_expression_means(seed: int) -> None:
    random, v = Random(seed), values()
    e, other = expression(random, 4), expression(random, 2)
    made, bits = v.of(e), v.symbols_of(v.of(J))
    low, high = v.interval(made)
    c = random.choice([Cmp(op, e, other) for op in CmpOp])
    conds: list[Cond] = [c, Not(c), And(c, Cmp(CmpOp.LT, I_, J)), Or(c, Cmp(CmpOp.NE, J, Const(3)))]
    cond = random.choice(conds)
    test, opposite = v.truth(cond), negated(v.truth(cond))
    grouped, moved = v.grouped(made, bits), v.replaced(made, v.of(J), v.add(v.of(I_), (-3, ())))
    for i in range(BOUNDS["i"][0], BOUNDS["i"][1] + 1):
        for j in range(BOUNDS["j"][0], BOUNDS["j"][1] + 1):
            env = {"i": i, "j": j, "n": 5}
            found = evaluate(e, env)
            assert number(v, made, env) == found
            assert low <= found <= high
            assert number(v, grouped, env) == found
            assert true(v, test, env) == holds(cond, env, {}) != true(v, opposite, env)
            if BOUNDS["j"][0] <= i - 3 <= BOUNDS["j"][1]:
                assert number(v, moved, env) == evaluate(e, {"i": i, "j": i - 3, "n": 5})


FOUR = Const(4)
SAME = [
    (Mod(Add(I_, Const(-4)), FOUR), Mod(I_, FOUR)),
    (FloorDiv(Add(I_, Const(-4)), FOUR), Add(FloorDiv(I_, FOUR), Const(-1))),
    (Mod(Add(Mul(I_, Const(9)), J), FOUR), Mod(Add(J, I_), FOUR)),
    (FloorDiv(FloorDiv(I_, Const(2)), Const(3)), FloorDiv(I_, Const(6))),
    (Mod(Mod(I_, Const(12)), FOUR), Mod(I_, FOUR)),
    (Mod(I_, Const(14)), I_),
    (FloorDiv(I_, Const(14)), Const(0)),
    (Mod(Add(J, Const(40)), Const(64)), Add(J, Const(40))),
    (Min(I_, Const(13)), I_),
    (Max(I_, Const(-1)), I_),
    (Max(I_, J), Max(J, I_)),
    (Mul(Add(I_, Const(1)), Sym("n", SymKind.PARAM)), Add(Mul(I_, Const(5)), Const(5))),
    (FloorDiv(I_, Const(-2)), FloorDiv(Mul(I_, Const(-1)), Const(2))),
]


@pytest.mark.parametrize(("a", "b"), SAME)
def test_one_form_for_equal_values(a: Expr, b: Expr) -> None:
    v = values()
    assert v.of(a) == v.of(b)


def test_what_is_decided() -> None:
    v = values()
    assert v.compare(CmpOp.LE, v.of(I_), (13, ())) is True
    assert v.compare(CmpOp.LT, v.of(I_), (0, ())) is False
    assert v.compare(CmpOp.EQ, v.of(I_), (20, ())) is False
    assert v.compare(CmpOp.NE, v.of(I_), (20, ())) is True
    assert v.compare(CmpOp.EQ, v.add(v.of(I_), v.of(J)), v.add(v.of(J), v.of(I_))) is True
    assert v.compare(CmpOp.LT, v.of(I_), (7, ())) == Question("less", v.of(I_), bound=7)
    wide = v.symbol("wide", 0, (1 << 31) - 1)
    other = v.symbol("other", -(1 << 31) + 2, 0)
    found = v.compare(CmpOp.LT, wide, other)
    assert found is False
    assert isinstance(v.compare(CmpOp.LE, wide, other), Question)


def test_divisors_that_are_none() -> None:
    v = values()
    with pytest.raises(DivisionByZeroError):
        v.of(FloorDiv(I_, Add(Sym("n", SymKind.PARAM), Const(-5))))
    with pytest.raises(DivisionByZeroError):
        v.of(Mod(I_, J))


def test_words() -> None:
    v = values()
    text = v.text(v.of(Add(Mul(FloorDiv(I_, FOUR), Const(8)), Add(Min(I_, J), Const(-3)))))
    assert text == "8 * ((i) // 4) + min(i, j) - 3"
