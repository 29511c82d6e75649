"""Boxes as types, alignments, swizzles."""

from __future__ import annotations

import itertools
from typing import Any, Literal

import pytest

import oxidecopy as ox
from oxidecopy.isa.swizzle import SWIZZLES
from oxidecopy.typed.geometry import box_extents

L8 = Literal[8]


@pytest.mark.parametrize(
    ("box", "extents"),
    [
        (ox.Box1[L8], (8,)),
        (ox.Box2[Literal[64], L8], (64, 8)),
        (ox.Box5[L8, L8, L8, L8, Literal[1]], (8, 8, 8, 8, 1)),
        (ox.Box2, None),
        (ox.Box2[int, int], None),
        (ox.Box2[L8, Any], None),
        (ox.Box2[L8, Literal[True]], None),
        (ox.Box2[L8, Literal[1, 2]], None),
        ((64, 8), None),
        (list[int], None),
        (None, None),
    ],
)
def test_extents_of_a_box_type(box: object, extents: tuple[int, ...] | None) -> None:
    assert box_extents(box) == extents


def test_stronger_alignments_are_weaker_ones_too() -> None:
    chain = (ox.A16, ox.A128, ox.A256, ox.A512, ox.A1024)
    for weak, strong in itertools.pairwise(chain):
        assert issubclass(strong, weak)
        assert strong.bytes > weak.bytes


def test_a_class_for_every_swizzle() -> None:
    modes = {mode.info.name: mode for mode in (ox.SwizzleNone, ox.Swizzle32B, ox.Swizzle64B, ox.Swizzle128B)}
    assert {name: mode.info for name, mode in modes.items()} == SWIZZLES
