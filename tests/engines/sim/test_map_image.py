"""What the simulator makes of tensormap.replace against what an H200 made."""

from __future__ import annotations

import pytest

import oxidecopy as ox
from oxidecopy.engines.sim.map_image import encoded, replaced
from oxidecopy.isa.ops import FIELDS_BY_ORD, MAP_FIELDS
from oxidecopy.program.map_bytes import decode
from oxidecopy.program.tensor_map import TensorMap
from tests.helpers.map_edits import ROWS, edit_of, image_of, ran


@pytest.mark.parametrize("name", ["sim", "sim-fast"])
def test_every_measured_edit(name: str) -> None:
    made = ran(ox.Device.open(name), [edit_of(row) for row, _ in ROWS])
    assert {row for (row, changes), data in zip(ROWS, made, strict=True) if data != image_of(changes)} == set()
    assert len(ROWS) == 75


def test_a_map_that_is_built_field_by_field() -> None:
    """All fields of a host encode, on zeros (measured): its first 64 bytes, but for the promotion, which no instruction writes."""
    map_ = TensorMap(
        dtype="bf16", global_dim=(7, 5, 40), global_strides=(512, 96), box_dim=(2, 3, 16), element_strides=(1, 2, 1), swizzle="32B",
        l2_promotion=0, oob_fill="nan",
    )  # fmt: skip
    data = bytes(128)
    words = {"global_address": 0x7F0000001230, "rank": 2, "elemtype": 10, "interleave_layout": 0, "swizzle_mode": 1, "fill_mode": 1}
    entries = {"box_dim": (16, 3, 2), "global_dim": (40, 5, 7), "global_stride": (96, 512), "element_stride": (1, 2, 1)}
    assert {*words, *entries} == set(MAP_FIELDS)
    assert set(entries) == set(FIELDS_BY_ORD)
    for field, value in words.items():
        data = replaced(data, field, 0, value)
    for field, values in entries.items():
        for i, value in enumerate(values):
            data = replaced(data, field, i, value)
    assert data[:64] == encoded(map_, 0x7F0000001230)[:64]
    assert decode(data).tensor_map == map_


def test_an_edit_leaves_all_else_as_it_was() -> None:
    ones = b"\xff" * 128
    for field in set(MAP_FIELDS) - {"elemtype"}:  # which also says whether loads round
        value, entry = int(field in ("box_dim", "global_dim", "element_stride")), int(field in FIELDS_BY_ORD)
        changed = [a ^ b for a, b in zip(ones, replaced(ones, field, entry, value), strict=True)]
        assert any(changed)
        assert [a ^ b for a, b in zip(ones, replaced(bytes(128), field, entry, -1 if not value else 0), strict=True)] == [
            a ^ 255 for a in changed
        ]
