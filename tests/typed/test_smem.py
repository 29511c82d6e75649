"""Tiles: shapes and bytes, parts, stages."""

from __future__ import annotations

from typing import Any

import pytest

import oxidecopy as ox
from tests.helpers.recordings import recorded, refused

Src = ox.TmaDescriptor[ox.f32, ox.D2]


def test_parts() -> None:
    def pipe(cta: ox.Cta, src: Src, n: ox.Idx) -> None:
        tile = cta.shared(src)
        part = tile.part(n % 4, of=4)
        assert (tile.shape, tile.nbytes) == ((64, 32), 8192)
        assert (part.shape, part.nbytes) == ((16, 32), 2048)
        assert tile.part(0, of=1).shape == (64, 32)
        cta.fill(part, 0)
        cta.fill(cta.shared(src, stages=2)[n % 2].part(1, of=2), 0)

    tiles = [repr(step.op.tile.part) for step in recorded(pipe).steps]  # type: ignore[union-attr]  # fills
    assert "of=4" in tiles[0]
    assert tiles[1] == "Part(rank=Const(value=1), of=2)"


@pytest.mark.parametrize("of", [0, -1, 3, 128, 2.0, True, None])
def test_no_equal_parts(of: Any) -> None:
    def pipe(cta: ox.Cta, src: Src) -> None:
        cta.shared(src).part(0, of=of)  # here

    refused(pipe, "OX1038")


def test_parts_of_parts() -> None:
    def pipe(cta: ox.Cta, src: Src) -> None:
        cta.shared(src).part(0, of=2).part(0, of=2)  # here

    refused(pipe, "OX1038")


@pytest.mark.parametrize("i", [-1, 2])
def test_plain_indices(i: int) -> None:
    def part(cta: ox.Cta, src: Src) -> None:
        cta.shared(src).part(i, of=2)  # here

    def stage(cta: ox.Cta, src: Src) -> None:
        cta.shared(src, stages=2)[i]  # here

    for pipe in (part, stage):
        diagnostic = refused(pipe, "OX1042")
        assert (diagnostic.got, diagnostic.required) == (str(i), "0 to 1")
