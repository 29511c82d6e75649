"""What is not drawn, with the twin that is."""

from __future__ import annotations

import pytest

from oxidecopy.draw.checks import address_faults, swizzle_faults, tile_faults
from oxidecopy.draw.tile import PlacedTile
from oxidecopy.isa.limits import TENSOR_SMEM_ALIGN


def box(shape: tuple[int, ...], dtype: str = "f32", swizzle: str = "none", at: int = 0x400, *, stored: bool = False) -> PlacedTile:
    return PlacedTile(shape=shape, dtype=dtype, swizzle=swizzle, address=at, stored=stored)


def rules(tile: PlacedTile) -> list[str]:
    return [fault.rule for fault in tile_faults(tile)]


@pytest.mark.parametrize(
    ("right", "wrong", "rule"),
    [
        (box((64, 32)), box((64, 33)), "OX2007"),
        (box((256, 4)), box((257, 4)), "OX2013"),
        (box((1, 4)), box((0, 4)), "OX2013"),
        (box((64, 32), swizzle="128B"), box((64, 64), swizzle="128B"), "OX2014"),
        (box((64, 32), swizzle="128B_ATOM_64B"), box((64, 36), swizzle="128B_ATOM_64B"), "OX2014"),
        (box((64, 8), swizzle="32B"), box((64, 12), swizzle="32B"), "OX2014"),
        (box((128, 256)), box((256, 256)), "OX2015"),
        (box((2, 2, 2, 2, 4)), box((2, 2, 2, 2, 2, 4)), "OX2001"),
        (box((8, 4), at=0x480), box((8, 4), at=0x440), "OX6021"),
        (box((8, 4), at=0), box((8, 4), at=-128), "OX6021"),
        (box((8, 4), at=(1 << 24) - 128), box((8, 4), at=1 << 24), "OX6021"),
        (box((8, 128), dtype="u4x16_align16b"), box((8, 64), dtype="u4x16_align16b"), "OX2038"),
        (box((8, 128), dtype="u6x16_align16b"), box((8, 256), dtype="u6x16_align16b"), "OX2038"),
        (box((8, 32), dtype="u4x16_align8b"), box((8, 16), dtype="u4x16_align8b"), "OX2007"),
        (box((8, 256), dtype="u4x16_align8b"), box((8, 288), dtype="u4x16_align8b"), "OX2013"),
        (box((8, 256), dtype="u4x16_align8b", swizzle="128B"), box((8, 256), dtype="u4x16_align8b", swizzle="64B"), "OX2014"),
        (box((256, 128), dtype="u4x16_align16b"), box((257, 128), dtype="u4x16_align16b"), "OX2013"),
        (box((7, 256, 128), dtype="u4x16_align16b"), box((8, 256, 128), dtype="u4x16_align16b"), "OX2015"),
        (
            box((8, 128), dtype="u4x16_align16b", swizzle="128B_ATOM_32B"),
            box((8, 128), dtype="u4x16_align16b", swizzle="128B_ATOM_64B"),
            "OX2040",
        ),
        (
            box((8, 128), dtype="u6x16_align16b", swizzle="128B_ATOM_64B", stored=True),
            box((8, 128), dtype="u6x16_align16b", swizzle="128B_ATOM_64B"),
            "OX6024",
        ),
    ],
)
def test_faults(right: PlacedTile, wrong: PlacedTile, rule: str) -> None:
    assert rules(right) == []
    assert rules(wrong) == [rule]


def test_all_at_once() -> None:
    assert set(rules(box((300, 34), swizzle="128B", at=8))) == {"OX2007", "OX2013", "OX2014", "OX6021"}
    assert set(rules(box((300, 100), "u6x16_align16b", "64B", 8))) == {"OX2013", "OX2014", "OX2038", "OX2040", "OX6021"}


def test_fixes_can_be_taken() -> None:
    [fault] = address_faults(0x444, TENSOR_SMEM_ALIGN)
    assert fault.fix == "--at 0x400 or 0x480"
    assert not address_faults(0x400, TENSOR_SMEM_ALIGN)
    assert address_faults(-5, TENSOR_SMEM_ALIGN)[0].fix == "--at 0x0"
    assert address_faults(1 << 24, TENSOR_SMEM_ALIGN)[0].fix == "--at 0xffff80"
    [fault] = swizzle_faults(PlacedTile(shape=(8, 64), dtype="f32", swizzle="64B", address=0))
    assert fault.fix == "box inner 16, or swizzle=ox.SwizzleNone"
