"""Coordinates as records: what they compute is what was written, and which values are none of that kind."""

from __future__ import annotations

from random import Random

import pytest

from oxidecopy.engines.cuda import abi
from oxidecopy.engines.cuda.code.coordinates import COORDINATE, NotPlacedError, Placement, magic_of, placement, total
from oxidecopy.engines.cuda.code.values import INT_MAX, Lin, Terms, Values
from oxidecopy.isa.expr import Add, Const, Expr, FloorDiv, Min, Mod, Mul, Sym, SymKind
from tests.helpers.device_emulator import fields

T, B, K = Sym("t", SymKind.LOOP), Sym("b", SymKind.LOOP), Sym("k", SymKind.LOOP)
BOUNDS = {"t": (0, 5000), "b": (-30, 100), "k": (0, 9)}
REG, BASE_REG = 7, 9


def values() -> Values:
    made = Values({})
    for name, (low, high) in BOUNDS.items():
        made.symbol(name, low, high)
    return made


def placed(v: Values, e: Expr) -> Placement:
    """`e` with t as what moves; k changes too, but no record may move by it."""
    return placement(v, v.of(e), {atom(v, "t"): 0}, v.symbols_of(known(v, "t")) | v.symbols_of(known(v, "k")))


def known(v: Values, name: str) -> Lin:
    found = v.named(name)
    assert found is not None
    return found


def atom(v: Values, name: str) -> int:
    return known(v, name)[1][0][0]


def meaning(v: Values, terms: Terms, env: dict[str, int]) -> int:
    total = 0
    for number, k in terms:
        one = v.atoms[number]
        inner = env.get(one.name, 0) if one.kind == "sym" else one.a[0] + meaning(v, one.a[1], env)
        total += k * {"sym": inner, "div": inner // max(one.by, 1), "mod": inner % max(one.by, 1)}[one.kind]
    return total


def by_the_kernel(data: bytes, t: int, registers: dict[int, int]) -> int:
    """What the kernels make of a record."""
    c = fields(data, abi.COORDINATE)
    x = c["offset"] + c["step_x"] * t + registers.get(c["reg"], 0)
    if c["magic"] or c["modulus"]:
        assert 0 <= x <= INT_MAX
    q = (x * c["magic"] >> 32) >> c["shift"] if c["magic"] else x
    r = q - ((q * c["modulus_magic"] >> 32) >> c["modulus_shift"]) * c["modulus"]
    found: int = r * c["scale"] + c["base"] + registers.get(c["base_reg"], 0)
    return found


def plus(*terms: Expr) -> Expr:
    total = terms[0]
    for term in terms[1:]:
        total = Add(total, term)
    return total


def evaluated(e: Expr, env: dict[str, int]) -> int:
    match e:
        case Const(value):
            return value
        case Sym(name):
            return env[name]
        case Add(a, b):
            return evaluated(a, env) + evaluated(b, env)
        case Mul(a, b):
            return evaluated(a, env) * evaluated(b, env)
        case FloorDiv(a, b):
            return evaluated(a, env) // evaluated(b, env)
        case Mod(a, b):
            return evaluated(a, env) % evaluated(b, env)
        case _:
            return min(evaluated(e.a, env), evaluated(e.b, env))


def check(e: Expr) -> Placement:
    v = values()
    found = placed(v, e)
    data = found.packed(REG if found.reg else abi.NO_REG, BASE_REG if found.base_reg else abi.NO_REG)
    assert len(data) == COORDINATE.size == abi.COORDINATE_BYTES
    for t in (0, 1, 2, 62, 63, 64, 65, 257, 4999, 5000):
        for b in (-30, -1, 0, 1, 17, 100):
            env = {"t": t, "b": b}
            registers = {REG: meaning(v, found.reg, env), BASE_REG: meaning(v, found.base_reg, env)}
            assert by_the_kernel(data, t, registers) == evaluated(e, env), (t, b, found)
    return found


def of(x: Expr, divisor: int = 0, modulus: int = 0, scale: int = 1) -> Expr:
    x = FloorDiv(x, Const(divisor)) if divisor else x
    x = Mod(x, Const(modulus)) if modulus else x
    return Mul(x, Const(scale))


PLACED: dict[str, Expr] = {
    "a constant": Const(-7),
    "what does not move": plus(Mul(B, Const(32)), Const(5)),
    "affine": plus(Mul(T, Const(-3)), B, Const(5)),
    "a quotient": of(T, 64, scale=8),
    "a remainder": of(T, modulus=64, scale=256),
    "both": of(T, 16, 9, 32),
    "of a block's own tiles": of(plus(Mul(T, Const(264)), B, Const(30)), 64, scale=16),
    "the remainder of those": of(plus(Mul(T, Const(264)), B, Const(30)), 64, 48, 16),
    "one that goes down": of(plus(Mul(T, Const(-1)), B), 7, 5, -2),
    "beside what does not move": plus(of(T, 5, scale=3), Mul(B, Const(2)), Const(-1)),
    "beside a quotient that does not move": plus(of(T, 5, 4, 3), FloorDiv(B, Const(9))),
    "whole turns beside a quotient": plus(of(T, 5, scale=4), Mul(T, Const(8))),
    "a quotient below zero": of(plus(B, Mul(T, Const(-2))), 6, scale=5),
    "a remainder of a quotient and more": Mod(plus(FloorDiv(T, Const(6)), Mul(T, Const(2)), B), Const(7)),
}


@pytest.mark.parametrize("e", PLACED.values(), ids=list(PLACED))
def test_records_compute_what_is_written(e: Expr) -> None:
    check(e)


def test_random_ones() -> None:
    random = Random(4)
    for _ in range(300):
        x = plus(Mul(T, Const(random.randint(-300, 300))), Mul(B, Const(random.randint(-9, 9))), Const(random.randint(-999, 999)))
        e = of(x, random.choice([0, 1, 3, 8, 100]), random.choice([0, 2, 7, 64]), random.choice([-8, 1, 32]))
        check(plus(e, Mul(B, Const(random.randint(-1, 1))), Const(random.randint(-5, 5))))


OTHER: dict[str, Expr] = {
    "a quotient and a remainder": plus(of(T, 5), of(T, modulus=5)),
    "a remainder and more": plus(of(T, modulus=5), T),
    "a quotient and parts of a turn": plus(of(T, 5, scale=4), Mul(T, Const(2))),
    "a quotient of a remainder": FloorDiv(Mod(T, Const(9)), Const(2)),
    "a remainder of twice a quotient": Mod(Mul(FloorDiv(T, Const(4)), Const(2)), Const(5)),
    "a least": Min(T, Const(9)),
    "a product": Mul(T, B),
    "one that moves by something else": plus(T, K),
    "one that is divided and moves by something else": of(plus(T, K), 3),
    "one whose sum does not fit": of(plus(Mul(T, Const(400_000)), Mul(B, Const(1_600_000))), 3),
    "a register that does not fit": plus(
        T, Mul(B, Const(1 << 30)), Mul(B, Const(-(1 << 30) + 1)), Mul(FloorDiv(B, Const(3)), Const(1 << 27))
    ),
}


@pytest.mark.parametrize("e", OTHER.values(), ids=list(OTHER))
def test_other_values_are_left_to_instructions(e: Expr) -> None:
    with pytest.raises(NotPlacedError):
        placed(values(), e)


def test_one_edit_makes_it_fit() -> None:
    check(of(plus(Mul(T, Const(400_000)), Mul(B, Const(1_000_000))), 3))


@pytest.mark.parametrize("divisor", [2, 3, 5, 7, 8, 63, 64, 65, 100, 641, 1000003, (1 << 30) - 1, 1 << 30, (1 << 30) + 1, (1 << 31) - 1])
def test_quotients_by_multiplication(divisor: int) -> None:
    magic, shift = magic_of(divisor)
    assert magic < 1 << 32
    for k in {0, 1, 2, 1000, ((1 << 31) - 1) // divisor - 1, ((1 << 31) - 1) // divisor}:
        for x in {k * divisor - 1, k * divisor, k * divisor + 1, k * divisor + divisor - 1, (1 << 31) - 1}:
            if 0 <= x < 1 << 31:
                assert x * magic >> 32 >> shift == x // divisor, (x, divisor)


def test_nothing_is_divided_by_one() -> None:
    assert magic_of(0) == magic_of(1) == (0, 0)


def test_sums_of_registers_that_are_there() -> None:
    v = values()
    quotient = v.of(of(T, 64, scale=8))
    held = {known(v, "b")[1]: 4, known(v, "k")[1]: 40, quotient[1]: 5}  # the quotient times 8 lies in a register as it is

    def find(terms: Terms) -> tuple[int, int] | None:
        return (held[terms], 0) if terms in held else None

    def record(e: Expr) -> dict[str, int]:
        found = total(v, v.of(e), find)
        assert found is not None
        return fields(found, abi.COORDINATE)

    made = record(plus(of(T, 64, scale=8), Mul(B, Const(128)), K, Const(-3)))
    steps = {made[reg]: made[step] for reg, step in (("reg", "step_x"), ("base_reg", "step_y"), ("reg_z", "step_z"))}
    assert steps == {5: 1, 4: 128, 40: 1}
    assert (made["offset"], made["magic"], made["modulus_magic"], made["scale"], made["base"]) == (-3, 0, 0, 1, 0)
    assert total(v, v.of(plus(B, FloorDiv(T, Const(3)))), find) is None  # no register holds the quotient
    assert total(v, v.of(plus(Mul(B, Const(1 << 30)), K)), find) is None  # may leave 32 bits
    assert total(v, (5, ()), find) is None
