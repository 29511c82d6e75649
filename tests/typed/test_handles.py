"""What an array parameter tells while a pipeline is recorded."""

from __future__ import annotations

from typing import Any

import pytest

import oxidecopy as ox
from oxidecopy.program.program import ArrayParam
from tests.helpers.recordings import recorded, refused


def test_type_and_extents() -> None:
    def pipe(cta: ox.Cta, out: Any, src: Any) -> None:
        assert out.dtype is ox.bf16
        assert [repr(n) for n in out.shape] == ["SymIdx(out.dim[0])", "SymIdx(out.dim[1])", "SymIdx(out.dim[2])"]
        assert [repr(n) for n in src.shape] == ["SymIdx(src.dim[0])", "SymIdx(src.dim[1])"]

    recorded(pipe, out=ArrayParam(name="out", dtype="bf16", rank=3))


@pytest.mark.parametrize("name", ["numpy", "strides_bytes", "buffer", "device", "offset_bytes", "sm"])
def test_what_is_known_at_launch(name: str) -> None:
    def pipe(cta: ox.Cta, out: Any) -> None:
        getattr(out, name)  # here

    assert name in refused(pipe, "OX1060").what


@pytest.mark.parametrize("name", ["tensor_map", "array"])
def test_what_a_descriptor_knows_at_launch(name: str) -> None:
    def pipe(cta: ox.Cta, src: Any) -> None:
        getattr(src, name)  # here

    assert name in refused(pipe, "OX1060").what


def test_what_no_array_has() -> None:
    def pipe(cta: ox.Cta, out: Any) -> None:
        out.nunpy()  # here

    assert refused(pipe, "OX1009").got == "'GlobalArray' object has no attribute 'nunpy'"


def test_no_descriptor_of_a_recorded_array() -> None:
    def pipe(cta: ox.Cta, out: Any) -> None:
        ox.TmaDescriptor.tiled(out, box=(64, 64))  # here

    assert refused(pipe, "OX1046").got == "GlobalArray"


def test_handles_say_what_they_are_when_printed() -> None:
    said: list[str] = []

    def say(*handles: object) -> None:
        said.extend(map(repr, handles))

    def pipe(cta: ox.Cta, src: Any, out: Any) -> None:
        bar, bars, tile, tiles = cta.barrier(name="full"), cta.barriers(2).init(1), cta.shared(src), cta.shared(src, stages=2)
        full = bar.init(1)
        say(out, bar)  # type: ignore[oxidecopy-moved]  # as asked
        say(full, bars, bars[1], tile, tile.part(1, of=2), tiles, tiles[cta.block_idx.x % 2])
        full.inval()
        bars.inval()

    recorded(pipe)
    assert said == [
        "GlobalArray('out', f32, rank 2)",
        "ManagedBarrier('full', taken)",
        "ManagedBarrier('full', Ready)",
        "ManagedBarriers('bar1', Ready, 2)",
        "ManagedBarrier(bar1[1], Ready)",
        "SharedArray('src_tile', f32, (64, 32))",
        "SharedArray('src_tile', f32, (64, 32), part 1 of 2)",
        "SharedArrays('src_tile1', f32, (64, 32), 2)",
        "SharedArray('src_tile1[block_idx.x % 2]', f32, (64, 32))",
    ]
