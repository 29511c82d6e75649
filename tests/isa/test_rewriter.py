"""Expressions rewritten together are what each would be alone, and equal ones are one object."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from oxidecopy.isa import expr
from oxidecopy.isa.expr import Bool, Cmp, CmpOp, Const, Expr, Sym, SymKind, substitute, substitute_cond
from oxidecopy.isa.rewriter import Rewriter
from tests.helpers.program_strategy import conditions, expressions

X, N, I0 = Sym("block_idx.x", SymKind.BLOCK), Sym("n", SymKind.PARAM), Sym("i0", SymKind.LOOP)
VALUES = {"n": Const(3), "i0": expr.add(X, Const(2))}


@settings(max_examples=30)
@given(st.lists(expressions((X, N, I0), 4), min_size=1, max_size=4), conditions((X, N, I0), ()))
def test_it_is_substitution(some: list[Expr], cond: expr.Cond) -> None:
    known = Rewriter(VALUES)
    assert [known.expr(e) for e in some] == [substitute(e, VALUES) for e in some]
    assert known.cond(cond) == substitute_cond(cond, VALUES)


def test_equal_expressions_become_one_object() -> None:
    known = Rewriter({"n": Const(8)})
    one, other = (known.expr(expr.mul(expr.floordiv(X, Const(8)), Const(4))) for _ in range(2))
    folded = known.expr(expr.mul(expr.floordiv(X, N), Const(4)))
    assert one is other
    assert folded is one
    assert known.expr(N) is known.expr(Const(8))


def test_what_does_not_change_stays_the_object_it_was() -> None:
    e, cond = expr.add(X, I0), Cmp(CmpOp.LT, X, I0)
    known = Rewriter({})
    assert known.expr(e) is e
    assert known.cond(cond) is cond
    assert known.cond(Bool(value=True)) == Bool(value=True)
