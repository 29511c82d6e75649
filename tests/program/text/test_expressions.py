"""Precedence, grouping and the short forms, both ways; trees come back exactly as they were."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from oxidecopy.errors import ProgramTextError, Site
from oxidecopy.isa.expr import (
    Add,
    And,
    Answer,
    Bool,
    Cmp,
    CmpOp,
    Const,
    FloorDiv,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    Sym,
    SymKind,
    sub,
)
from oxidecopy.program.text.cursor import Cursor
from oxidecopy.program.text.expression_reader import read_cond, read_expr
from oxidecopy.program.text.expressions import format_node
from oxidecopy.program.text.lexer import tokenize
from tests.helpers.program_strategy import conditions, expressions

if TYPE_CHECKING:
    from oxidecopy.isa.expr import Cond, Expr

PLACE = Site("a.txt", 1)
x, y, n = Sym("block_idx.x", SymKind.BLOCK), Sym("src.dim[0]", SymKind.EXTENT), Sym("n", SymKind.PARAM)
odd, minimum = Sym('a "b', SymKind.PARAM), Sym("min", SymKind.PARAM)
SYMBOLS = {s.name: s.kind for s in (x, y, n, odd, minimum)}
one, two, minus_one = Const(1), Const(2), Const(-1)

EXPRESSIONS: list[tuple[Expr, str]] = [
    (Const(-3), "-3"),
    (Add(Add(x, y), n), "block_idx.x + src.dim[0] + n"),
    (Add(x, Add(y, n)), "block_idx.x + (src.dim[0] + n)"),
    (Mul(Add(x, one), two), "(block_idx.x + 1) * 2"),
    (Add(Mul(x, two), one), "block_idx.x * 2 + 1"),
    (Add(n, Const(-1)), "n - 1"),
    (Add(n, one), "n + 1"),
    (Add(n, Mul(x, minus_one)), "n - block_idx.x"),
    (Add(n, Mul(Mul(x, two), minus_one)), "n - block_idx.x * 2"),
    (Add(n, Mul(two, minus_one)), "n + 2 * -1"),
    (Add(n, Mul(Add(x, one), minus_one)), "n - (block_idx.x + 1)"),
    (Mul(n, minus_one), "-n"),
    (Mul(Mul(n, minus_one), minus_one), "--n"),
    (Mul(Mul(n, minus_one), two), "-n * 2"),
    (Mul(Mul(n, two), minus_one), "-(n * 2)"),
    (Mul(Const(-2), n), "-2 * n"),
    (FloorDiv(n, Mod(x, two)), "n // (block_idx.x % 2)"),
    (Mod(FloorDiv(n, x), two), "n // block_idx.x % 2"),
    (Mul(two, minus_one), "2 * -1"),
    (Min(n, Max(Add(x, one), two)), "min(n, max(block_idx.x + 1, 2))"),
    (Add(minimum, odd), 'min + "a \\"b"'),
]
CONDITIONS: list[tuple[Cond, str]] = [
    (Bool(True), "true"),
    (Cmp(CmpOp.LT, Add(n, one), Mul(x, two)), "n + 1 < block_idx.x * 2"),
    (And(Cmp(CmpOp.LE, n, one), Not(Answer(3))), "(n <= 1) & ~?3"),
    (Or(And(Answer(0), Answer(1)), Answer(2)), "?0 & ?1 | ?2"),
    (And(Or(Answer(0), Answer(1)), Answer(2)), "(?0 | ?1) & ?2"),
    (And(Answer(0), And(Answer(1), Answer(2))), "?0 & (?1 & ?2)"),
    (Not(And(Answer(0), Not(Not(Answer(1))))), "~(?0 & ~~?1)"),
    (Not(Cmp(CmpOp.NE, n, Const(-1))), "~(n != -1)"),
]


def cursor(text: str) -> Cursor:
    return Cursor(tokenize(text, PLACE)[0], PLACE)


@pytest.mark.parametrize(("node", "text"), EXPRESSIONS, ids=[t for _, t in EXPRESSIONS])
def test_expressions(node: Expr, text: str) -> None:
    assert format_node(node) == text
    assert read_expr(cursor(text), SYMBOLS) == node


@pytest.mark.parametrize(("node", "text"), CONDITIONS, ids=[t for _, t in CONDITIONS])
def test_conditions(node: Cond, text: str) -> None:
    assert format_node(node) == text
    assert read_cond(cursor(text), SYMBOLS) == node


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("((n))", n),
        ("n - (3)", Add(n, Mul(Const(3), minus_one))),
        ("n - 3 * 2", Add(n, Mul(Mul(Const(3), two), minus_one))),
        ("n - -3", Add(n, Mul(Const(-3), minus_one))),
        ("- 3", Const(-3)),
        ("-(3)", Mul(Const(3), minus_one)),
        ("n-1", Add(n, minus_one)),
    ],
)
def test_other_spellings(text: str, node: Expr) -> None:
    assert read_expr(cursor(text), SYMBOLS) == node


def test_a_minus_is_what_the_recorder_makes_of_it() -> None:
    assert read_expr(cursor("n - block_idx.x"), SYMBOLS) == sub(n, x)
    assert read_expr(cursor("n - 3"), SYMBOLS) == sub(n, Const(3))


@given(expressions((x, y, n, odd, minimum), 30))
def test_every_expression_comes_back(node: Expr) -> None:
    assert read_expr(cursor(format_node(node)), SYMBOLS) == node


@given(conditions((x, y, n, odd, minimum), (0, 7)))
def test_every_condition_comes_back(node: Cond) -> None:
    assert read_cond(cursor(format_node(node)), SYMBOLS) == node


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "OX1901"),
        ("n +", "OX1901"),
        ("(n", "OX1901"),
        ("(n, n)", "OX1901"),
        ("min(n)", "OX1901"),
        ("min(n, n, n)", "OX1901"),
        ("min(n, true)", "OX1901"),
        ("n & 1", "OX1901"),
        ("n < 1 < 2", "OX1901"),
        ("~n", "OX1901"),
        ("-true", "OX1901"),
        ("true", "OX1901"),
        ("k", "OX1917"),
        ("block_idx.w", "OX1917"),
        ("src.dim[1]", "OX1917"),
        ("src.dim[x]", "OX1901"),
        ("128B", "OX1901"),
        ("(" * 65 + "n" + ")" * 65, "OX1903"),
        ("n" + " + n" * 64, "OX1903"),
        ("-" * 64 + "n", "OX1903"),
    ],
)
def test_refused(text: str, rule: str) -> None:
    with pytest.raises(ProgramTextError) as caught:
        read_expr(cursor(text), SYMBOLS)
    assert caught.value.rules == (rule,)
    assert caught.value.diagnostics[0].site == PLACE


def test_the_limits_themselves_are_accepted() -> None:
    for text in ("(" * 64 + "n" + ")" * 64, "n" + " + n" * 63, "-" * 63 + "n"):
        read_expr(cursor(text), SYMBOLS)


def test_an_integer_is_no_condition() -> None:
    with pytest.raises(ProgramTextError) as caught:
        read_cond(cursor("n"), SYMBOLS)
    assert caught.value.rules == ("OX1901",)
