"""Degrees of conflict of a tile's reads, against a brute-force count over all its elements."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oxidecopy.draw.reads import Read, reads, under_each_swizzle
from oxidecopy.draw.tile import PlacedTile
from oxidecopy.isa.swizzle import EVERY_SWIZZLE


def tile(shape: tuple[int, ...], dtype: str, swizzle: str, at: int = 0x400, **more: bool) -> PlacedTile:
    return PlacedTile(shape=shape, dtype=dtype, swizzle=swizzle, address=at, **more)


def by_name(found: tuple[Read, ...]) -> dict[str, Read]:
    return {read.name: read for read in found}


def served(addresses: list[int], nbytes: int) -> int:
    """Words of the busiest bank, phase by phase."""
    lanes, worst = max(1, 128 // max(4, nbytes)), 0
    for phase in [addresses[i : i + lanes] for i in range(0, len(addresses), lanes)]:
        words = {byte // 4 for a in phase for byte in range(a, a + nbytes)}
        worst = max(worst, *Counter(word % 32 for word in words).values())
    return worst


def brute_force(of: PlacedTile) -> dict[str, tuple[int, int]]:
    """Best and worst degree of each read, element by element, without any shortcut."""
    inner, size = of.shape[-1], max(1, of.element_bits // 8)
    where = [[of.position(r, i)[0] for i in range(inner)] for r in range(of.rows)]
    flat = [a for row in where for a in row]
    found = {
        "row": [served(flat[i : i + 32], size) for i in range(0, len(flat), 32)],
        "column": [served([row[i] for row in where[r : r + 32]], size) for r in range(0, of.rows, 32) for i in range(inner)],
        "ldmatrix": [
            served([a // 16 * 16 for a in chunk], 16)
            for r in range(0, of.rows, 8)
            for i in range(0, inner, 16 // of.group[1] * of.group[0])
            for chunk in [[row[i] for row in where[r : r + 8]]]
        ],
    }
    return {name: (min(degrees), max(degrees)) for name, degrees in found.items()}


@settings(max_examples=50, deadline=None)
@given(
    rows=st.integers(1, 70),
    chunks=st.integers(1, 8),
    dtype=st.sampled_from(["u8", "f16", "f32", "f64"]),
    swizzle=st.sampled_from(list(EVERY_SWIZZLE)),
    line=st.integers(0, 9),
)
def test_against_brute_force(rows: int, chunks: int, dtype: str, swizzle: str, line: int) -> None:
    span = EVERY_SWIZZLE[swizzle].span_bytes
    chunks = min(chunks, span // 16) if span else chunks
    box = tile((rows, chunks * {"u8": 16, "f16": 8, "f32": 4, "f64": 2}[dtype]), dtype, swizzle, 0x400 + 128 * line)
    assert {read.name: (read.best, read.worst) for read in reads(box)} == brute_force(box)


@pytest.mark.parametrize("dtype", ["u4x16_align8b", "u4x16_align16b", "u6x16_align16b"])
def test_packed_types_against_brute_force(dtype: str) -> None:
    for swizzle, found in under_each_swizzle(tile((40, 128), dtype, "none")).items():
        if found:
            assert {read.name: (read.best, read.worst) for read in found} == brute_force(tile((40, 128), dtype, swizzle)), swizzle


def test_what_each_swizzle_is_for() -> None:
    """128-byte rows: a column of 16-byte chunks is free of conflicts under the widest swizzle alone."""
    worst = {
        name: tuple(read.worst for read in found) for name, found in under_each_swizzle(tile((64, 32), "f32", "none")).items() if found
    }
    assert worst == {
        "none": (1, 32, 8),
        "128B": (1, 4, 1),
        "128B_ATOM_32B": (1, 8, 2),
        "128B_ATOM_32B_FLIP_8B": (1, 8, 2),
        "128B_ATOM_64B": (1, 16, 4),
    }


def test_the_narrow_swizzles_serve_their_spans() -> None:
    for name, inner in (("32B", 8), ("64B", 16), ("128B", 32)):
        assert by_name(reads(tile((64, inner), "f32", name)))["ldmatrix"].worst == 1
        assert by_name(reads(tile((64, inner), "f32", "none")))["ldmatrix"].worst == inner // 4


def test_a_worst_access_is_where_it_is_said_to_be() -> None:
    box = tile((10, 32), "f32", "none")
    read = by_name(reads(box))["ldmatrix"]
    assert (read.best, read.worst, read.degree, read.at) == (2, 8, "2 to 8", (0, 0))
    assert by_name(reads(box))["row"].degree == "1"


def test_ldmatrix_needs_whole_chunks() -> None:
    assert set(by_name(reads(tile((8, 3), "f32", "none")))) == {"row", "column"}
    assert set(by_name(reads(tile((8, 8), "f32", "none", at=0x404)))) == {"row", "column"}


def test_lanes_and_bytes() -> None:
    found = by_name(reads(tile((5, 64), "f16", "128B")))
    assert [(r.lanes, r.nbytes) for r in found.values()] == [(32, 2), (5, 2), (5, 16)]
    assert by_name(reads(tile((5, 128), "u6x16_align16b", "none", stored=True)))["row"].nbytes == 1
