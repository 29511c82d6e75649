"""Where elements lie: against the simulator's own layout, the tables of the PTX ISA, and packed streams written out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oxidecopy.draw.tile import PlacedTile
from oxidecopy.engines.sim.images import TileImage
from oxidecopy.engines.sim.memory import SharedMemory
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.swizzle import ATOM_SWIZZLES, EVERY_SWIZZLE, SWIZZLES
from oxidecopy.program.tensor_map import TileLayout

BYTE_TYPES = [name for name, info in DTYPES.items() if info.bits % 8 == 0]
# Which logical 16-byte chunk lies at physical slot 0..7 of each 128-byte line (PTX 5.5.7).
ATOM_SLOTS = {
    "128B_ATOM_32B": ["01234567", "23016745", "45670123", "67452301"] * 2,
    "128B_ATOM_64B": ["01234567", "45670123"] * 4,
}


@st.composite
def boxes(draw: st.DrawFn) -> PlacedTile:
    """Boxes of up to three dimensions that a map can have, with whole 16-byte rows, at any address of a tensor copy."""
    dtype = draw(st.sampled_from(BYTE_TYPES))
    swizzle = draw(st.sampled_from(list(SWIZZLES)))
    per_chunk = 16 // DTYPES[dtype].nbytes
    widest = (SWIZZLES[swizzle].span_bytes or 256) // 16
    inner = per_chunk * draw(st.integers(1, min(widest, 256 // per_chunk)))
    outer = tuple(draw(st.lists(st.integers(1, 12), max_size=2)))
    return PlacedTile(shape=(*outer, inner), dtype=dtype, swizzle=swizzle, address=0x400 + 128 * draw(st.integers(0, 20)))


def layout_of(tile: PlacedTile) -> TileLayout:
    return TileLayout(shape=tile.shape, element_bytes=tile.info.nbytes, swizzle=tile.swizzle)


@settings(max_examples=60, deadline=None)
@given(tile=boxes())
def test_positions_are_the_simulators(tile: PlacedTile) -> None:
    layout = layout_of(tile)
    memory = SharedMemory(1 << 16)
    image = TileImage(memory, layout, tile.address)
    index = image.index.reshape(tile.rows, -1) * image.unit
    for row in range(tile.rows):
        for inner in range(tile.shape[-1]):
            byte = inner * tile.info.nbytes
            assert tile.position(row, inner) == (index[row, byte // image.unit] + byte % image.unit, 0)
    assert (tile.row_bytes, tile.pitch_bytes, tile.rows) == (layout.row_bytes, layout.pitch_bytes, layout.rows)
    assert (tile.nbytes, tile.footprint_bytes) == (layout.nbytes, layout.footprint_bytes)


@settings(max_examples=60, deadline=None)
@given(tile=boxes(), atom=st.sampled_from([None, *ATOM_SWIZZLES]))
def test_pieces_cover_each_element_once_where_it_lies(tile: PlacedTile, atom: str | None) -> None:
    if atom is not None and tile.row_bytes <= 128:
        tile = PlacedTile(shape=tile.shape, dtype=tile.dtype, swizzle=atom, address=tile.address)
    size = tile.info.nbytes
    seen = set()
    for row in range(tile.rows):
        inner = 0
        for piece in tile.pieces(row):
            assert (piece.row, piece.first) == (row, inner)
            for i in range(piece.count):
                assert tile.position(row, inner + i) == (piece.address + i * size, 0)
                seen.add(piece.address + i * size)
            assert piece.nbytes == piece.count * size
            assert piece.address // 16 == (piece.address + piece.nbytes - 1) // 16
            inner += piece.count
        assert inner == tile.shape[-1]
    assert len(seen) == tile.rows * tile.shape[-1]
    assert all(tile.address // 128 * 128 <= a < tile.address + max(tile.footprint_bytes, tile.nbytes) for a in seen)


@pytest.mark.parametrize(("swizzle", "lines"), ATOM_SLOTS.items(), ids=list(ATOM_SLOTS))
def test_atoms_are_the_tables_of_the_isa(swizzle: str, lines: list[str]) -> None:
    tile = PlacedTile(shape=(8, 32), dtype="f32", swizzle=swizzle, address=0x800)
    for row, chunks in enumerate(lines):
        slots = {(tile.position(row, 4 * chunk)[0] - 0x800 - 128 * row) // 16: chunk for chunk in range(8)}
        assert "".join(str(slots[i]) for i in range(8)) == chunks


def test_flip_swaps_halves_on_odd_lines() -> None:
    flipped, plain = (
        PlacedTile(shape=(8, 16), dtype="f64", swizzle=name, address=0x400) for name in ("128B_ATOM_32B_FLIP_8B", "128B_ATOM_32B")
    )
    for row in range(8):
        for inner in range(16):
            assert flipped.position(row, inner)[0] == plain.position(row, inner)[0] ^ (8 * (row % 2))
    assert [piece.count for piece in flipped.pieces(1)] == [1] * 16


@pytest.mark.parametrize(
    ("dtype", "stored", "bits"),
    [
        # first bit of elements 0, 1, 15, 16 and 17 of a row, counted from its first byte
        ("u4x16_align8b", False, (0, 4, 60, 64, 68)),
        ("u4x16_align16b", False, (0, 4, 60, 128, 132)),  # 8 bytes of data, 8 of gap
        ("u6x16_align16b", False, (0, 6, 90, 128, 134)),  # 12 bytes of data, 4 of gap
        ("u6x16_align16b", True, (0, 8, 120, 128, 136)),  # a byte for each
    ],
)
def test_packed_groups(dtype: str, stored: bool, bits: tuple[int, ...]) -> None:
    tile = PlacedTile(shape=(4, 128), dtype=dtype, swizzle="none", address=0x400, stored=stored)
    for index, bit in zip((0, 1, 15, 16, 17), bits, strict=True):
        assert tile.position(0, index) == (0x400 + bit // 8, bit % 8)
    assert tile.row_bytes == (64 if dtype == "u4x16_align8b" else 128)
    assert sum(piece.count for piece in tile.pieces(3)) == 128


def test_packed_groups_move_with_their_chunk() -> None:
    tile = PlacedTile(shape=(4, 128), dtype="u6x16_align16b", swizzle="128B", address=0x400)
    assert tile.position(1, 16 * 3 + 5) == (0x400 + 128 + 16 * (3 ^ 1) + 30 // 8, 30 % 8)
    assert [piece.count for piece in tile.pieces(1)] == [16] * 8


def test_rows_that_are_no_whole_chunks() -> None:
    """A plain tile may have rows of any width: pieces end where 16 bytes do."""
    tile = PlacedTile(shape=(3, 3), dtype="f32", swizzle="none", address=0x410)
    assert [(p.row, p.first, p.count, p.address) for row in range(3) for p in tile.pieces(row)] == [
        (0, 0, 3, 0x410),
        (1, 0, 1, 0x41C),
        (1, 1, 2, 0x420),
        (2, 0, 2, 0x428),
        (2, 2, 1, 0x430),
    ]


def test_dense_rows_follow_each_other() -> None:
    padded, dense = (PlacedTile(shape=(8, 8), dtype="f16", swizzle="128B", address=0x400, dense=d) for d in (False, True))
    assert (padded.pitch_bytes, dense.pitch_bytes) == (128, 16)
    assert dense.footprint_bytes == TileLayout(shape=(8, 8), element_bytes=2, swizzle="128B", dense=True).footprint_bytes


def test_rows_are_counted_through_outer_dimensions() -> None:
    tile = PlacedTile(shape=(2, 3, 4), dtype="f32", swizzle="none", address=0)
    assert [tile.coordinates(row) for row in (0, 2, 3, 5)] == [(0, 0), (0, 2), (1, 0), (1, 2)]
    assert tile.rows == 6
    assert PlacedTile(shape=(4,), dtype="f32", swizzle="none", address=0).coordinates(0) == ()


@pytest.mark.parametrize("swizzle", EVERY_SWIZZLE)
def test_alignment_of_the_pattern(swizzle: str) -> None:
    repeat = EVERY_SWIZZLE[swizzle].repeat_bytes
    tiles = [PlacedTile(shape=(8, 8), dtype="f16", swizzle=swizzle, address=a) for a in (repeat, repeat + 128)]
    assert [tile.aligned for tile in tiles] == [True, repeat == 128]
