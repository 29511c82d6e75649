"""Bounds of declarations, and the integers that parameters make known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from oxidecopy.errors import Site
from oxidecopy.isa.expr import SymKind
from oxidecopy.isa.ops import ThreadSet
from oxidecopy.program.declared import Places, check_declarations, known_symbols
from oxidecopy.program.program import ArrayParam, BarrierDecl, IdxParam, MapParam, Param, Program, RegisterHint, ScalarParam, TileDecl

MAP = MapParam(name="src", dtype="f32", box_dim=(8, 32), element_strides=(1, 2))
ARRAY = ArrayParam(name="out", dtype="f32", rank=3)
IDX, SCALAR = IdxParam(name="n"), ScalarParam(name="alpha", dtype="e4m3")
TILE = TileDecl(name="t", dtype="f32", shape=(8, 32), align=128, swizzle="128B", stages=2, offset=0, stage_bytes=1024)
BARRIER = BarrierDecl(name="full", kind="MmaBarrier", stages=2, offset=2048)
PROGRAM = Program(
    name="f",
    threads=64,
    cluster=(2, 2, 4),
    params=(MAP, ARRAY, IDX, SCALAR),
    tiles=(TILE, TILE),
    barriers=(BARRIER, BARRIER),
    shared_bytes=4096,
    steps=(),
    site=Site("k.py", 3),
)


def rules(program: Program) -> list[str]:
    return [d.rule for d in check_declarations(program, Places.recorded(program))]


def test_a_program_within_all_bounds() -> None:
    assert rules(PROGRAM) == []


@pytest.mark.parametrize(
    "program",
    [
        replace(PROGRAM, threads=0),
        replace(PROGRAM, threads=1025),
        replace(PROGRAM, shared_bytes=-1),
        replace(PROGRAM, shared_bytes=(1 << 24) + 1),
        replace(PROGRAM, cluster=(0, 1, 1)),
        replace(PROGRAM, cluster=(17, 1, 1)),
        replace(PROGRAM, cluster=(2, 2, 5)),
    ],
)
def test_headers(program: Program) -> None:
    assert rules(program) == ["OX1919"]


def hint(low: int, high: int, registers: int) -> RegisterHint:
    return RegisterHint(ThreadSet(((low, high),)), registers)


@pytest.mark.parametrize("hints", [(), (hint(0, 64, 256),), (hint(0, 32, 24), hint(32, 64, 240)), (hint(5, 6, 32),)])
def test_register_hints(hints: tuple[RegisterHint, ...]) -> None:
    assert rules(replace(PROGRAM, registers=hints)) == []


@pytest.mark.parametrize(
    ("hints", "rule"),
    [
        ((hint(0, 65, 32),), "OX1914"),
        ((hint(8, 8, 32),), "OX1914"),
        ((RegisterHint(ThreadSet(()), 32),), "OX1914"),
        ((hint(0, 32, 24), hint(31, 64, 24)), "OX1914"),
        ((hint(32, 64, 24), hint(0, 32, 24)), "OX1914"),
        ((hint(0, 32, 16),), "OX1919"),
        ((hint(0, 32, 264),), "OX1919"),
        ((hint(0, 32, 36),), "OX1919"),
        ((hint(0, 32, True),), "OX1919"),
        ((hint(0, 32, "24"),), "OX1919"),  # type: ignore[arg-type]
    ],
)
def test_register_hints_that_cannot_be(hints: tuple[RegisterHint, ...], rule: str) -> None:
    assert rules(replace(PROGRAM, registers=hints)) == [rule]


def test_a_cta_has_64_k_registers() -> None:
    wide = replace(PROGRAM, threads=288)
    assert rules(replace(wide, registers=(hint(0, 256, 248),))) == []
    assert rules(replace(wide, registers=(hint(0, 256, 256),))) == ["OX1919"]  # the other 32 threads need some, too
    assert rules(replace(wide, threads=256, registers=(hint(0, 256, 256),))) == []


@pytest.mark.parametrize(
    "param",
    [
        replace(MAP, dtype="f33"),
        replace(MAP, box_dim=(8, 257)),
        replace(MAP, box_dim=(0, 32)),
        replace(MAP, element_strides=(1, 9)),
        replace(MAP, element_strides=(1,)),
        replace(MAP, interleave="64B"),
        replace(MAP, swizzle="96B"),
        replace(MAP, oob_fill="one"),
        replace(MAP, mode="gather"),
        replace(ARRAY, dtype="f33"),
        replace(ARRAY, rank=0),
        replace(ARRAY, rank=6),
        replace(SCALAR, dtype="f33"),
    ],
)
def test_params(param: Param) -> None:
    assert set(rules(replace(PROGRAM, params=(param,)))) == {"OX1919"}


@pytest.mark.parametrize(
    "tile",
    [
        replace(TILE, dtype="f33"),
        replace(TILE, dtype="u6x16_align16b"),
        replace(TILE, shape=()),
        replace(TILE, shape=(1,) * 6),
        replace(TILE, shape=(8, 0)),
        replace(TILE, align=0),
        replace(TILE, swizzle="96B"),
        replace(TILE, stages=0),
        replace(TILE, offset=-1),
        replace(TILE, stage_bytes=-1),
    ],
)
def test_tiles(tile: TileDecl) -> None:
    assert rules(replace(PROGRAM, tiles=(tile,))) == ["OX1919"]


@pytest.mark.parametrize("barrier", [replace(BARRIER, kind="Barrier"), replace(BARRIER, stages=0), replace(BARRIER, offset=-8)])
def test_barriers(barrier: BarrierDecl) -> None:
    assert rules(replace(PROGRAM, barriers=(barrier,))) == ["OX1919"]


def test_params_have_names_of_their_own() -> None:
    assert rules(replace(PROGRAM, params=(IDX, replace(SCALAR, name="n")))) == ["OX1916", "OX1916"]
    assert rules(replace(PROGRAM, params=(IdxParam(name=""),))) == ["OX1916"]
    for taken in ("cta_rank", "block_idx.x", "grid_dim.z", "src.dim[1]"):
        assert rules(replace(PROGRAM, params=(MAP, IdxParam(name=taken)))) == ["OX1916"]
    assert rules(replace(PROGRAM, params=(MAP, IdxParam(name="src.dim[2]")))) == []


def test_known_symbols() -> None:
    symbols = known_symbols(PROGRAM.params)
    assert {name for name, kind in symbols.items() if kind is SymKind.EXTENT} == {
        "src.dim[0]",
        "src.dim[1]",
        "out.dim[0]",
        "out.dim[1]",
        "out.dim[2]",
    }
    assert {name for name, kind in symbols.items() if kind is SymKind.BLOCK} == {"block_idx.x", "block_idx.y", "block_idx.z"}
    assert {name for name, kind in symbols.items() if kind is SymKind.GRID} == {"grid_dim.x", "grid_dim.y", "grid_dim.z"}
    assert symbols["cta_rank"] is SymKind.RANK
    assert symbols["n"] is SymKind.PARAM
    assert "alpha" not in symbols
