"""Trees of a program have bounds, and looking at one costs no more than its bound."""

from __future__ import annotations

import pytest

from oxidecopy.errors import ProgramTextError, Site
from oxidecopy.isa import ops
from oxidecopy.isa.expr import Add, And, Bool, Cmp, CmpOp, Cond, Const, Expr, Not, Sym, SymKind
from oxidecopy.program.nesting import NESTING_MAX, NODES_MAX, all_nodes, check_nesting, expressions, fits, nodes
from oxidecopy.program.program import Program, Step
from oxidecopy.program.text import to_text

X = Sym("block_idx.x", SymKind.BLOCK)


def chain(levels: int) -> Expr:
    e: Expr = X
    for _ in range(levels - 1):
        e = Add(e, X)
    return e


def balanced(levels: int) -> Expr:
    e: Expr = X
    for _ in range(levels - 1):
        e = Add(e, e)
    return e


def program(*steps: Step) -> Program:
    return Program(name="f", threads=1, cluster=(1, 1, 1), params=(), tiles=(), barriers=(), shared_bytes=0, steps=steps)


def test_depth() -> None:
    assert fits(chain(NESTING_MAX))
    assert not fits(chain(NESTING_MAX + 1))
    assert not fits(chain(100_000))


def test_size() -> None:
    assert fits(balanced(12))  # 4,095 nodes
    assert not fits(balanced(13))
    assert not fits(balanced(NESTING_MAX))
    assert NODES_MAX == 4096


def test_all_nodes_are_those_that_come_one_by_one() -> None:
    cond: Cond = And(Not(Bool(True)), Cmp(CmpOp.LT, balanced(3), Const(1)))
    found = all_nodes(cond)
    assert found is not None
    assert sorted(map(id, found)) == sorted(id(node) for node, _ in nodes(cond))
    assert all_nodes(balanced(13)) is None


def test_nodes_come_left_to_right_with_their_level() -> None:
    cond: Cond = And(Not(Bool(True)), Cmp(CmpOp.LT, X, Const(1)))
    assert [(type(node).__name__, level) for node, level in nodes(cond)] == [
        ("And", 1),
        ("Not", 2),
        ("Bool", 3),
        ("Cmp", 2),
        ("Sym", 3),
        ("Const", 3),
    ]


def test_expressions_are_found_in_every_kind_of_operand() -> None:
    load = ops.TensorG2SMulticast(
        map=ops.MapRef("m"),
        tile=ops.TileRef(0, Const(1), ops.Part(Const(2), 4)),
        coords=(Const(3), Const(4)),
        bar=ops.BarrierRef(0, Const(5)),
        cta_mask=Const(6),
    )
    assert [(name, e) for name, e in expressions(load)] == [
        ("tile", Const(1)),
        ("tile", Const(2)),
        ("coords", Const(3)),
        ("coords", Const(4)),
        ("bar", Const(5)),
        ("cta_mask", Const(6)),
    ]
    assert list(expressions(ops.When(cond=Bool(True)))) == [("cond", Bool(True))]


def blocks(levels: int) -> Step:
    step = Step(ops.CommitGroup(), Site("k.py", levels))
    for line in range(levels - 1, 0, -1):
        step = Step(ops.When(cond=Bool(True)), Site("k.py", line), (step,))
    return step


def test_blocks() -> None:
    assert check_nesting(program(blocks(NESTING_MAX))) == []
    (found,) = check_nesting(program(blocks(NESTING_MAX + 10)))
    assert (found.rule, found.site) == ("OX1903", Site("k.py", NESTING_MAX + 1))


def test_what_is_too_large_is_not_printed() -> None:
    with pytest.raises(ProgramTextError) as caught:
        to_text(program(blocks(500), Step(ops.When(cond=Cmp(CmpOp.LT, balanced(60), X)))))
    assert caught.value.rules == ("OX1903", "OX1903")
