"""Tables of maps in programs: what may refer to an entry, what an entry is bound as, and the forms that keep it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from oxidecopy.errors import ProgramTextError
from oxidecopy.isa import ops
from oxidecopy.isa.expr import ONE, ZERO, Add, Const, Expr, Sym, SymKind
from oxidecopy.isa.limits import TABLE_ENTRIES_MAX
from oxidecopy.isa.ops import MapRef, TileRef
from oxidecopy.isa.rewrite import rewrite
from oxidecopy.isa.rewriter import Rewriter
from oxidecopy.program.binary import from_bytes, to_bytes
from oxidecopy.program.check import check_operands
from oxidecopy.program.nesting import expressions, steering
from oxidecopy.program.program import IdxParam, Launch, MapParam, Param, Program, Step, TileDecl
from oxidecopy.program.tensor_map import TensorMap
from oxidecopy.program.text import from_text, to_text

N = Sym("n", SymKind.PARAM)
TABLE = MapParam(name="src", dtype="f32", box_dim=(8, 32), element_strides=(1, 1), entries=3)
ONE_MAP = replace(TABLE, name="dst", entries=None)
TILE = TileDecl(name="t", dtype="f32", shape=(8, 32), align=128, swizzle="none", stages=1, offset=0, stage_bytes=1024)


def program(*refs: MapRef, params: tuple[Param, ...] = (TABLE, ONE_MAP, IdxParam(name="n"))) -> Program:
    steps = tuple(Step(ops.TensorS2G(map=ref, tile=TileRef(0, ZERO), coords=(ZERO, ZERO))) for ref in refs)
    return Program(name="f", threads=32, cluster=(1, 1, 1), params=params, tiles=(TILE,), barriers=(), shared_bytes=1024, steps=steps)


@pytest.mark.parametrize("index", [ZERO, Const(2), N, Add(N, ONE), Sym("src[2].dim[1]", SymKind.EXTENT)])
def test_an_entry_by_any_integer(index: Expr) -> None:
    made = program(MapRef("src", index), MapRef("dst"))
    assert check_operands(made) == []
    assert from_text(to_text(made)) == made
    assert from_bytes(to_bytes(made)) == made


@pytest.mark.parametrize(
    ("ref", "rule"),
    [
        (MapRef("src"), "OX1912"),
        (MapRef("src", Const(3)), "OX1912"),
        (MapRef("src", Const(-1)), "OX1912"),
        (MapRef("dst", ZERO), "OX1912"),
        (MapRef("n", ZERO), "OX1912"),
        (MapRef("src", Sym("m", SymKind.PARAM)), "OX1917"),
        (MapRef("src", Sym("src.dim[0]", SymKind.EXTENT)), "OX1917"),
        (MapRef("src", Sym("src[3].dim[0]", SymKind.EXTENT)), "OX1917"),
    ],
)
def test_what_refers_to_no_entry(ref: MapRef, rule: str) -> None:
    assert [d.rule for d in check_operands(program(ref))] == [rule]


@pytest.mark.parametrize("entries", [0, -1, TABLE_ENTRIES_MAX + 1, True, 1 << 70])
def test_a_table_has_entries_and_not_too_many(entries: int) -> None:
    assert {d.rule for d in check_operands(program(params=(replace(TABLE, entries=entries),)))} == {"OX1919"}
    assert check_operands(program(params=(replace(TABLE, entries=TABLE_ENTRIES_MAX),))) == []


def test_no_parameter_is_named_as_an_entry() -> None:
    other = replace(ONE_MAP, name="src[1]")
    assert "OX1916" in [d.rule for d in check_operands(program(params=(TABLE, other)))]
    assert check_operands(program(params=(TABLE, replace(other, name="src[3]")))) == []


def test_text() -> None:
    text = to_text(program(MapRef("src", Add(N, Sym("src[0].dim[1]", SymKind.EXTENT)))))
    assert "  map src: f32 box=(8, 32) entries=3\n" in text
    assert "s2g src[n + src[0].dim[1]], t, [0, 0]" in text
    odd = program(MapRef("a b", N), params=(replace(TABLE, name="a b"), IdxParam(name="n")))
    assert from_text(to_text(odd)) == odd
    for wrong in (text.replace("src[n +", "src[n + ]"), text.replace("entries=3", "entries=0"), text.replace("src[0].dim", "src[3].dim")):
        with pytest.raises(ProgramTextError):
            from_text(wrong)


def test_an_index_is_an_operand_that_steers_nothing() -> None:
    (step,) = program(MapRef("src", N)).steps
    assert ("map", N) in list(expressions(step.op))
    assert N not in list(steering(step.op))


def test_an_index_is_rewritten() -> None:
    first, second = (step.op for step in program(MapRef("src", Add(N, ONE)), MapRef("dst")).steps)
    made = rewrite(first, Rewriter({"n": Const(1)}))
    assert isinstance(made, ops.TensorS2G)
    assert made.map == MapRef("src", Const(2))
    assert rewrite(second, Rewriter({"n": Const(1)})) == second


def test_a_launch_knows_the_extents_of_every_entry() -> None:
    assert TABLE.bound_names == ("src[0]", "src[1]", "src[2]")
    assert ONE_MAP.bound_names == ("dst",)
    maps = tuple(
        (name, TensorMap(dtype="f32", global_dim=(8 + i, 32), global_strides=(128,), box_dim=(8, 32), element_strides=(1, 1)))
        for i, name in enumerate(TABLE.bound_names)
    )
    env = Launch(grid=(1, 1, 1), maps=maps).environment()
    assert [env[f"src[{i}].dim[0]"] for i in range(3)] == [8, 9, 10]
