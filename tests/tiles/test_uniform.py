"""Expressions that are the same for all CTAs of a cluster, and those that are not."""

from __future__ import annotations

import pytest

from oxidecopy.isa.expr import Add, Const, Expr, FloorDiv, Max, Min, Mod, Mul, Sym, SymKind, add, floordiv, mod, mul
from oxidecopy.tiles.uniform import uneven

X, Y, Z = (Sym(f"block_idx.{a}", SymKind.BLOCK) for a in "xyz")
RANK = Sym("cta_rank", SymKind.RANK)
GRID = Sym("grid_dim.x", SymKind.GRID)
N, COUNTER = Sym("n", SymKind.PARAM), Sym("i0", SymKind.LOOP)
CLUSTER = (2, 1, 4)


@pytest.mark.parametrize(
    "e",
    [
        Const(3),
        add(mul(N, COUNTER), GRID),
        Y,
        floordiv(X, Const(2)),
        add(mul(floordiv(Z, Const(4)), GRID), floordiv(X, Const(2))),
        floordiv(RANK, Const(8)),
        mul(mod(RANK, Const(1)), N),
        add(X, mul(X, Const(-1))),
        add(RANK, mul(add(mod(X, Const(2)), mul(mod(Z, Const(4)), Const(2))), Const(-1))),  # the rank is made of these
        Mod(X, Const(0)),  # no value at all
    ],
)
def test_even(e: Expr) -> None:
    assert not uneven(e, CLUSTER, {})


@pytest.mark.parametrize(
    "e", [X, Z, RANK, Add(N, X), Mul(COUNTER, RANK), FloorDiv(X, Const(1)), Min(RANK, N), Max(Z, COUNTER), mod(Z, Const(4))]
)
def test_uneven(e: Expr) -> None:
    assert uneven(e, CLUSTER, {})


def test_without_a_cluster_everything_is_even() -> None:
    assert not uneven(add(X, RANK), (1, 1, 1), {})


def test_an_expression_that_is_too_large_is_left_to_others() -> None:
    e: Expr = X
    for _ in range(60):
        e = Add(e, e)
    assert not uneven(e, CLUSTER, {})


READ, NEXT = Sym("read0", SymKind.OPAQUE), Sym("read1", SymKind.OPAQUE)


@pytest.mark.parametrize(
    ("e", "reads", "wanted"),
    [
        (READ, {"read0": COUNTER}, False),
        (READ, {"read0": floordiv(X, Const(2))}, False),
        (READ, {"read0": X}, True),
        (NEXT, {"read0": RANK, "read1": Mul(READ, N)}, True),
        (NEXT, {"read0": RANK, "read1": COUNTER}, False),
        (add(READ, X), {"read0": COUNTER}, True),
    ],
)
def test_an_index_differs_where_its_place_does(e: Expr, reads: dict[str, Expr], wanted: bool) -> None:
    assert uneven(e, CLUSTER, reads) is wanted
