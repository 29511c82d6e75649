"""Instructions of integers: what is shared, in which order, and what does not fit."""

from __future__ import annotations

import pytest

from oxidecopy.engines.cuda.abi import STACK_DEPTH, EvalFn
from oxidecopy.engines.cuda.code.scalars import Found, OverflowingError, Scalars, Token, TooDeepError
from oxidecopy.engines.cuda.code.values import Lin, Terms, Values
from oxidecopy.engines.cuda.code.values import Test as Question


def sym(v: Values, name: str, high: int = 1000) -> Lin:
    return v.symbol(name, 0, high)


class Case:
    """Values, symbols in registers 4, 5, ..., and the code that is made."""

    def __init__(self, *names: str, high: int = 1000) -> None:
        self.values = Values({})
        self.symbols = [sym(self.values, name, high) for name in names]
        self.registers = {symbol[1]: 4 + i for i, symbol in enumerate(self.symbols)}
        self.taken = 40
        self.scalars = Scalars(self.values, self.find, self.take)

    def find(self, terms: Terms) -> Found | None:
        register = self.registers.get(terms)
        return None if register is None else (register, 0)

    def take(self) -> Token:
        self.taken += 1
        return self.taken

    def code(self, *keys: Lin | Question) -> list[tuple[str, object, int]]:
        for key in keys:
            self.scalars.count(key)
        for i, key in enumerate(keys):
            self.scalars.store(key, 20 + i)
        return [(i.fn.name, i.reg if i.fn not in IMMEDIATE else None, i.imm) for i in self.scalars.code]

    def depth(self) -> int:
        deepest = now = 0
        for i in self.scalars.code:
            now += i.fn in (EvalFn.IMM, EvalFn.REG, EvalFn.COUNTER)
            now -= i.fn is EvalFn.STORE or i.fn.name.endswith("_POP")
            deepest = max(deepest, now)
        assert now == 0
        return deepest


IMMEDIATE = {EvalFn.IMM, EvalFn.ADD, EvalFn.MUL, EvalFn.SHR, EvalFn.AND, EvalFn.MOD, EvalFn.FLOORDIV, EvalFn.LT, EvalFn.MIN}


def test_sums() -> None:
    case = Case("i", "j")
    i, j = case.symbols
    v = case.values
    assert case.code(v.add(v.add(i, j), (5, ()))) == [("REG", 4, 5), ("ADD_REG", 5, 0), ("STORE", 20, 0)]
    assert case.code(v.add(j, i, 3))[3:] == [("REG", 4, 0), ("MUL", None, 3), ("ADD_REG", 5, 0), ("STORE", 20, 0)]


def test_powers_of_two() -> None:
    case = Case("i")
    (i,) = case.symbols
    code = case.code(case.values.div(i, 8), case.values.mod(i, 8), case.values.div(i, 7), case.values.mod(i, 7))
    assert [c for c in code if c[0] not in ("REG", "STORE")] == [
        ("SHR", None, 3), ("AND", None, 7), ("FLOORDIV", None, 7), ("MOD", None, 7),
    ]  # fmt: skip


def test_what_is_there_already_is_used() -> None:
    case = Case("i", "j")
    v, (i, j) = case.values, case.symbols
    tile = v.add(i, j, 2)
    code = case.code(tile, v.add(v.div(tile, 5), (1, ())), v.scale(v.mod(tile, 5), 32))
    assert [c for c in code if c[0] == "REG"] == [("REG", 5, 0), ("REG", 20, 0), ("REG", 20, 0)]


def test_a_common_part_gets_a_register_when_that_saves_something() -> None:
    case = Case("i", "j")
    v, (i, j) = case.values, case.symbols
    part = v.div(v.add(v.scale(i, 3), j, 5), 7)
    code = case.code(*[v.mod(v.scale(part, k), 11) for k in (1, 2, 3)])
    assert [c for c in code if c[0] == "FLOORDIV"] == [("FLOORDIV", None, 7)]
    assert ("STORE", 41, 0) in code


def test_the_deeper_side_comes_first_and_what_is_too_deep_is_split() -> None:
    case = Case(*"abcdefgh")
    v = case.values

    def least(values: list[Lin]) -> Lin:
        if len(values) == 1:
            return values[0]
        half = len(values) // 2
        return v.least(v.add(least(values[:half]), (1, ())), v.add(least(values[half:]), (3, ())))

    remainders = [v.mod(x, n) for x in case.symbols for n in (100, 120, 140, 160)]
    case.code(least(remainders[:8]))
    assert case.depth() == STACK_DEPTH
    assert case.taken == 40
    case.code(least(remainders))
    assert case.depth() <= STACK_DEPTH
    assert case.taken > 40


def test_where_no_register_may_be_written_too_deep_is_an_error() -> None:
    case = Case(*"abcdefgh")
    v = case.values
    deep = case.symbols[0]
    for n, x in enumerate(case.symbols * 4):
        deep = v.add(v.least(v.mod(x, 200 + n), v.mod(deep, 400 + n)), (n, ()))
    Scalars(v, case.find, None).value(deep)
    pairs = [
        v.least(v.mod(a, 300 + n), v.mod(b, 300 - n)) for n, (a, b) in enumerate(zip(case.symbols * 2, case.symbols[::-1] * 2, strict=True))
    ]
    while len(pairs) > 1:
        pairs = [v.least(v.add(a, (1, ())), b) for a, b in zip(pairs[::2], pairs[1::2], strict=True)]
    with pytest.raises(TooDeepError):
        Scalars(v, case.find, None).value(pairs[0])


def test_conditions() -> None:
    case = Case("i", "j")
    i, j = case.symbols
    both = Question("and", parts=(Question("less", i, bound=3), Question("not", parts=(Question("same", j, bound=4),))))
    names = [c[0] for c in case.code(both)]
    assert names == ["REG", "LT", "REG", "EQ", "NOT", "AND_POP", "STORE"]
    swapped = Case("i", "j")
    v, (i, j) = swapped.values, swapped.symbols
    deep = v.least(v.mod(i, 30), v.mod(j, 40))
    assert [c[0] for c in swapped.code(Question("less2", i, deep))][-4:] == ["REG", "LE_POP", "NOT", "STORE"]


def test_thirty_two_bits() -> None:
    case = Case("i", "j", high=1 << 20)
    v, (i, j) = case.values, case.symbols
    case.code(v.scale(i, (1 << 11) - 1))
    for value in (v.scale(i, 1 << 11), v.add(v.scale(i, 1 << 10), j, 1 << 10), (1 << 31, ()), v.div(v.scale(i, (1 << 31) + 1), 1 << 31)):
        with pytest.raises(OverflowingError):
            case.code(value)
    # Each term alone fits, and so does their sum in the order that is taken.
    case.code(v.add(v.scale(i, 1 << 10), j, -(1 << 10)))


def test_products_and_conditions_that_are_too_deep() -> None:
    case = Case(*"abcd", high=30)
    v, (a, b, c, d) = case.values, case.symbols
    assert [x[0] for x in case.code(v.mul(v.add(a, (1, ())), b))] == ["REG", "REG", "MUL_POP", "STORE"]
    deep = v.least(v.add(v.least(v.mod(a, 7), v.mod(b, 8)), (1, ())), v.add(v.least(v.mod(c, 9), v.mod(d, 10)), (2, ())))
    test = Question("less2", deep, v.add(deep, v.mul(a, b)))
    for kind in ("and", "or", "and"):
        test = Question(kind, parts=(test, test._replace(kind="or" if test.parts else "same2")))
    case.code(test)
    assert case.depth() <= STACK_DEPTH
    again = len(case.scalars.code)
    case.code(Question("or", parts=(test, Question("not", parts=(test,)))))
    assert [i.fn.name for i in case.scalars.code[again:]] == ["REG", "REG", "NOT", "OR_POP", "STORE"]


def test_a_condition_of_an_answer() -> None:
    answer = Question("answer", register=3)
    assert Case("i").code(Question("not", parts=(answer,)))[0] == ("REG", answer, 0)
