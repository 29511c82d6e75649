"""Requirements of a launch: what they may be about, and when they are unmet."""

from __future__ import annotations

from dataclasses import replace

import pytest

from oxidecopy.errors import Site
from oxidecopy.isa.expr import Add, And, Answer, Bool, Cmp, CmpOp, Cond, Const, Expr, FloorDiv, Mod, Not, Sym, SymKind
from oxidecopy.program.binary import from_bytes, to_bytes
from oxidecopy.program.check import check_operands
from oxidecopy.program.program import IdxParam, Launch, Program, Requirement
from oxidecopy.program.required import unmet
from oxidecopy.program.text import from_text, to_text

GRID, N = Sym("grid_dim.x", SymKind.GRID), Sym("n", SymKind.PARAM)
ENOUGH = Cmp(CmpOp.LE, N, GRID)


def program(cond: Cond) -> Program:
    asked = Requirement(cond=cond, what="more boxes than CTAs", fix='launch "n"', site=Site("a.py", 3, "f"))
    return Program(
        name="f",
        threads=32,
        cluster=(1, 1, 1),
        params=(IdxParam(name="n"),),
        tiles=(),
        barriers=(),
        shared_bytes=0,
        requires=(asked,),
        steps=(),
    )


def numbers(cond: Cond, grid: int, n: int) -> list[str]:
    return [got for _, got in unmet(program(cond), Launch(grid=(grid, 1, 1), idx=(("n", n),)))]


@pytest.mark.parametrize(("grid", "n", "found"), [(3, 3, []), (4, 3, []), (3, 4, ["4 <= 3"]), (1, 0, [])])
def test_what_is_unmet_is_said_in_numbers(grid: int, n: int, found: list[str]) -> None:
    assert numbers(ENOUGH, grid, n) == found


def test_conditions_without_a_comparison_or_a_value() -> None:
    assert numbers(Bool(value=False), 1, 1) == ["a condition that never holds"]
    assert numbers(Cmp(CmpOp.EQ, FloorDiv(GRID, N), GRID), 1, 0) == ["a division by zero"]
    assert numbers(And(Bool(value=True), Not(ENOUGH)), 3, 2) == ["2 <= 3"]


@pytest.mark.parametrize("cond", [ENOUGH, Not(And(ENOUGH, Bool(value=True))), Cmp(CmpOp.NE, Mod(N, GRID), Const(-1))])
def test_requirements_come_back(cond: Cond) -> None:
    made = program(cond)
    assert check_operands(made) == []
    assert from_text(to_text(made)) == made
    assert from_bytes(to_bytes(made)) == made


def about(e: Expr) -> Cond:
    return Cmp(CmpOp.LT, e, Const(4))


@pytest.mark.parametrize(
    ("cond", "rule"),
    [
        (about(Sym("block_idx.x", SymKind.BLOCK)), "OX1917"),
        (about(Sym("cta_rank", SymKind.RANK)), "OX1917"),
        (about(Sym("m", SymKind.PARAM)), "OX1917"),
        (about(Sym("n", SymKind.GRID)), "OX1917"),
        (Answer(0), "OX1917"),
        (about(Const(1 << 63)), "OX1910"),
        (about(FloorDiv(N, Const(0))), "OX1910"),
        (about(Mod(N, Const(0))), "OX1910"),
    ],
)
def test_what_no_launch_can_be_asked(cond: Cond, rule: str) -> None:
    assert [d.rule for d in check_operands(program(cond))] == [rule]


def test_requirements_are_no_larger_than_other_expressions() -> None:
    e: Expr = N
    for _ in range(70):
        e = Add(e, N)
    assert [d.rule for d in check_operands(program(about(e)))] == ["OX1903"]
    for _ in range(70):
        e = Add(e, e)
    assert [d.rule for d in check_operands(replace(program(about(e))))] == ["OX1903"]
