"""Lines and cells: what a terminal and a picture both show."""

from __future__ import annotations

from oxidecopy.draw.grid import box_grid, memory_grid
from oxidecopy.draw.tile import PlacedTile


def tile(shape: tuple[int, ...], dtype: str = "f32", swizzle: str = "128B", at: int = 0x400) -> PlacedTile:
    return PlacedTile(shape=shape, dtype=dtype, swizzle=swizzle, address=at)


def test_the_box_says_where_each_piece_went() -> None:
    grid = box_grid(tile((64, 32)), 4)
    assert [line.label for line in grid.lines] == ["0", "1", "2", "3"]
    first, second = (line.cells[0] for line in grid.lines[:2])
    assert first is not None
    assert second is not None
    assert (first.text, first.colour) == ("0x00400", 0)
    assert (second.text, second.colour) == ("0x00490", 1)
    assert second.title == "row 1, elements 0 to 3: bytes 0x490 to 0x49f, banks 4 to 7"
    assert grid.columns == ("+0", "+4", "+8", "+12", "+16", "+20", "+24", "+28")
    assert grid.more == "and 60 more rows: the pattern repeats every 8 rows"


def test_memory_says_what_lies_there() -> None:
    grid = memory_grid(tile((64, 32)), 2)
    assert [(line.label, [cell.text for cell in line.cells if cell]) for line in grid.lines] == [
        ("0x00400", ["0:0", "0:4", "0:8", "0:12", "0:16", "0:20", "0:24", "0:28"]),
        ("0x00480", ["1:4", "1:0", "1:12", "1:8", "1:20", "1:16", "1:28", "1:24"]),
    ]
    assert {cell.colour for line in grid.lines for cell in line.cells if cell} == {0, 1}
    assert grid.more == "and 62 more lines: the pattern repeats every 8 lines"


def test_nothing_is_left_out_where_there_is_room() -> None:
    for grid in (box_grid(tile((3, 32)), 3), memory_grid(tile((3, 32)), 3)):
        assert (len(grid.lines), grid.more) == (3, "")


def test_both_views_show_the_same_pieces() -> None:
    for of in (tile((5, 3, 8), "f16", "32B"), tile((9, 16), "u8", "64B", 0x480), tile((6, 32), "u4x16_align8b", "128B_ATOM_32B_FLIP_8B")):
        titles = [
            sorted(title for line in grid.lines for cell in line.cells if cell for title in cell.title.split("; "))
            for grid in (box_grid(of, 1000), memory_grid(of, 1000))
        ]
        assert titles[0] == titles[1]


def test_gaps_and_crowds() -> None:
    grid = memory_grid(tile((4, 8), "u8", "none", 0x410), 9)  # two rows in each 16 bytes
    texts = [cell.text if cell else None for cell in grid.lines[0].cells]
    assert texts == [None, "0:0+", "2:0+", None, None, None, None, None]
    narrow = memory_grid(tile((4, 16), "u8", "64B"), 9)
    assert [cell.text if cell else None for cell in narrow.lines[1].cells] == [None, "2:0", None, None, None, "3:0", None, None]


def test_wide_rows_are_folded() -> None:
    grid = box_grid(tile((2, 64), "f32", "none"), 2)
    assert [line.label for line in grid.lines] == ["0", "", "1", ""]
    assert [len(line.cells) for line in grid.lines] == [8, 8, 8, 8]
    assert memory_grid(tile((2, 32), "f32", "128B_ATOM_32B_FLIP_8B"), 2).lines[1].label == ""
