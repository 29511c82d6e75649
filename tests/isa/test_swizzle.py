"""The permutations against the tables of PTX 5.5.7, and the measured rule that they act on absolute addresses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oxidecopy.isa.swizzle import ATOM_SWIZZLES, EVERY_SWIZZLE, SWIZZLES

# Which logical 16-byte chunk lies at physical slot 0..7 of 128-byte line 0..7.
SLOTS = {
    "none": ["01234567"] * 8,
    "32B": ["01234567", "10325476"] * 4,
    "64B": ["01234567", "10325476", "23016745", "32107654"] * 2,
    "128B": ["01234567", "10325476", "23016745", "32107654", "45670123", "54761032", "67452301", "76543210"],
    "128B_ATOM_32B": ["01234567", "23016745", "45670123", "67452301"] * 2,
    "128B_ATOM_64B": ["01234567", "45670123"] * 4,
}
# Where chunk x of row y goes, base 0, rows one span apart.
ROWS_64B = [[0x00, 0x10, 0x20, 0x30], [0x40, 0x50, 0x60, 0x70], [0x90, 0x80, 0xB0, 0xA0], [0xD0, 0xC0, 0xF0, 0xE0]]
ROWS_64B += [[0x120, 0x130, 0x100, 0x110], [0x160, 0x170, 0x140, 0x150], [0x1B0, 0x1A0, 0x190, 0x180], [0x1F0, 0x1E0, 0x1D0, 0x1C0]]
ROWS_32B = [[0x00, 0x10], [0x20, 0x30], [0x40, 0x50], [0x60, 0x70], [0x90, 0x80], [0xB0, 0xA0], [0xD0, 0xC0], [0xF0, 0xE0]]
ROWS_128B = [
    [0x000, 0x010, 0x020, 0x030, 0x040, 0x050, 0x060, 0x070],
    [0x090, 0x080, 0x0B0, 0x0A0, 0x0D0, 0x0C0, 0x0F0, 0x0E0],
    [0x120, 0x130, 0x100, 0x110, 0x160, 0x170, 0x140, 0x150],
    [0x1B0, 0x1A0, 0x190, 0x180, 0x1F0, 0x1E0, 0x1D0, 0x1C0],
    [0x240, 0x250, 0x260, 0x270, 0x200, 0x210, 0x220, 0x230],
    [0x2D0, 0x2C0, 0x2F0, 0x2E0, 0x290, 0x280, 0x2B0, 0x2A0],
    [0x360, 0x370, 0x340, 0x350, 0x320, 0x330, 0x300, 0x310],
    [0x3F0, 0x3E0, 0x3D0, 0x3C0, 0x3B0, 0x3A0, 0x390, 0x380],
]

every_mode = pytest.mark.parametrize("name", EVERY_SWIZZLE)


@pytest.mark.parametrize(("name", "lines"), SLOTS.items(), ids=list(SLOTS))
def test_slots(name: str, lines: list[str]) -> None:
    permute = EVERY_SWIZZLE[name].permute
    for line, logical in enumerate(lines):
        stored_at = {permute(line * 128 + chunk * 16): chunk for chunk in range(8)}
        assert "".join(str(stored_at[line * 128 + slot * 16]) for slot in range(8)) == logical


@pytest.mark.parametrize(("name", "rows"), [("32B", ROWS_32B), ("64B", ROWS_64B), ("128B", ROWS_128B)], ids=["32B", "64B", "128B"])
def test_rows_one_span_apart(name: str, rows: list[list[int]]) -> None:
    info = SWIZZLES[name]
    assert [[info.permute(y * info.span_bytes + x * 16) for x in range(len(row))] for y, row in enumerate(rows)] == rows


def test_a_base_aligned_to_128_only_sees_a_rotated_pattern() -> None:
    permute = SWIZZLES["128B"].permute
    assert [permute(0x080 + x * 16) for x in range(8)] == ROWS_128B[1]


def test_rows_of_the_table() -> None:
    columns = {n: (s.driver_enum, s.span_bytes, s.repeat_bytes) for n, s in SWIZZLES.items()}
    assert columns == {"none": (0, 0, 128), "32B": (1, 32, 256), "64B": (2, 64, 512), "128B": (3, 128, 1024)}
    assert all(name == info.name for name, info in SWIZZLES.items())


@every_mode
@given(address=st.integers(0, (1 << 28) - 1))
def test_each_is_its_own_inverse_and_stays_in_its_line_and_chunk(name: str, address: int) -> None:
    info = EVERY_SWIZZLE[name]
    moved = info.permute(address)
    assert info.permute(moved) == address
    assert moved >> 7 == address >> 7
    assert moved % info.grain_bytes == address % info.grain_bytes


@every_mode
@given(address=st.integers(0, 1 << 20))
def test_the_pattern_repeats(name: str, address: int) -> None:
    info = EVERY_SWIZZLE[name]
    assert info.permute(address + info.repeat_bytes) == info.permute(address) + info.repeat_bytes


def test_the_atoms_came_later() -> None:
    assert {n: (s.driver_enum, s.repeat_bytes, s.min_sm) for n, s in ATOM_SWIZZLES.items()} == {
        "128B_ATOM_32B": (4, 512, 100),
        "128B_ATOM_32B_FLIP_8B": (5, 1024, 100),
        "128B_ATOM_64B": (6, 256, 100),
    }
    assert not SWIZZLES.keys() & ATOM_SWIZZLES.keys()


@given(address=st.integers(0, 1 << 20))
def test_flip_swaps_halves_on_odd_lines(address: int) -> None:
    plain, flipped = (ATOM_SWIZZLES[n].permute(address) for n in ("128B_ATOM_32B", "128B_ATOM_32B_FLIP_8B"))
    assert flipped == plain ^ (8 if address // 128 % 2 else 0)
