"""Work on tiles by many threads: how much a thread takes at once, and where it lies. The bytes are compared in `test_on_cpu`."""

from __future__ import annotations

import pytest

from oxidecopy.engines.cuda.emit.elements import Elements
from oxidecopy.engines.cuda.emit.tiles import Tiles, view_of
from oxidecopy.isa import ops
from oxidecopy.isa.expr import Const
from oxidecopy.program.program import ArrayInfo, Program, TileDecl


def program(dtype: str, shape: tuple[int, ...], swizzle: str = "none", offset: int = 0) -> Program:
    tile = TileDecl(name="t", dtype=dtype, shape=shape, align=16, swizzle=swizzle, stages=1, offset=offset, stage_bytes=0)
    return Program(name="p", threads=32, cluster=(1, 1, 1), params=(), tiles=(tile,), barriers=(), shared_bytes=1 << 16, steps=())


@pytest.mark.parametrize(
    ("dtype", "shape", "offset", "unit"),
    [
        ("f32", (8, 32), 0, 16),
        ("f32", (8, 6), 0, 8),
        ("u8", (4, 20), 0, 4),
        ("u8", (3, 7), 0, 1),
        ("f64", (4, 3), 0, 8),
        ("f32", (8, 32), 8, 8),
        ("f16", (32,), 2, 2),
    ],
)
def test_a_thread_takes_what_no_row_and_no_address_breaks(dtype: str, shape: tuple[int, ...], offset: int, unit: int) -> None:
    assert view_of(program(dtype, shape, offset=offset), ops.TileRef(0, Const(0))).unit == unit


def test_a_part_has_fewer_rows() -> None:
    view = view_of(program("f32", (8, 32)), ops.TileRef(0, Const(0), ops.Part(Const(1), 4)))
    assert (view.shape, view.rows, view.unit) == ((2, 32), 2, 16)


def test_swizzled_rows_lie_a_span_apart() -> None:
    tiles = Tiles(Elements())
    assert tiles.fill(view_of(program("f32", (8, 16), "128B"), ops.TileRef(0, Const(0))), "t") == "coop::fill_t"
    assert "shared + swizzle_128B(tile + row * 128 + x * 4)" in tiles.text()
    assert "at ^ ((at >> 7 & 7) << 4)" in tiles.text()


def test_the_same_work_is_one_function() -> None:
    tiles = Tiles(Elements())
    view = view_of(program("f32", (8, 16)), ops.TileRef(0, Const(0)))
    assert [tiles.iota(view, 0, "t"), tiles.iota(view, 1, "t"), tiles.iota(view, 0, "t")] == [
        "coop::iota_t",
        "coop::iota_t_2",
        "coop::iota_t",
    ]


@pytest.mark.parametrize(
    ("strides", "there"), [((64, 4), "reinterpret_cast<u8*>(array) + at0 * stride0) + at1"), ((64, 8), "+ at1 * stride1")]
)
def test_only_dense_rows_are_stored_whole(strides: tuple[int, ...], there: str) -> None:
    tiles = Tiles(Elements())
    view = view_of(program("f32", (8, 16)), ops.TileRef(0, Const(0)))
    tiles.store(view, "out", ArrayInfo(dtype="f32", shape=(8, 16), strides_bytes=strides), wide=False, names=("t", "out"))
    assert there in tiles.text()
    assert ("% sizeof(Vec<u32, 4>) == 0" in tiles.text()) == (strides[1] == 4)


def test_nothing_is_written_where_nothing_is_needed() -> None:
    assert Tiles(Elements()).text() == ""
