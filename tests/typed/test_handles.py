"""What an array parameter tells while a pipeline is recorded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.errors import ScopeError
from oxidecopy.program.program import ArrayParam
from oxidecopy.typed.handles import borrowing
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

    said = refused(pipe, "OX1046")
    assert said.got.startswith("GlobalArray, a parameter")
    assert said.fix == "make it before the launch, and pass it"


HOST: Any = ox.Device.open("sim").zeros((4, 4), ox.f32)


@ox.pipeline(threads=32)
def inner(cta: ox.Cta, out: ox.GlobalArray[ox.f32, ox.D2], n: ox.Idx) -> None:
    cta.range(n)


@pytest.mark.parametrize(
    "work",
    [
        lambda out, src, n: inner[1](out, 3),
        lambda out, src, n: inner[1].prepare(HOST, n),
        lambda out, src, n: inner[1].bind(out=src, n=3),
        lambda out, src, n: ox.copy(out, out),
        lambda out, src, n: ox.copy(None, src),
        lambda out, src, n: ox.reduce_into(out, out, ox.reduce.add),
        lambda out, src, n: ox.transform(lambda v: v, src),
        lambda out, src, n: ox.gather_rows(out, np.arange(3)),
        lambda out, src, n: ox.matmul(src, src),
    ],
)
def test_nothing_is_launched_while_recording(work: Any) -> None:
    """Else it would be refused for what the inside of a launch asks of an array, in words that no user knows."""

    def pipe(cta: ox.Cta, out: Any, src: Any, n: ox.Idx) -> None:
        work(out, src, n)

    with pytest.raises(ScopeError, match="is for the host") as caught:
        recorded(pipe)
    assert caught.value.rules == ("OX1060",)


@pytest.mark.parametrize("name", ["T", "select", "permute", "as_strided", "broadcast_to"])
def test_views_are_made_before(name: str) -> None:
    def pipe(cta: ox.Cta, out: Any) -> None:
        getattr(out, name)  # here

    assert "before the launch" in refused(pipe, "OX1060").fix


class Lent:
    """An array of another library."""

    ndim, dtype = 3, "torch.bfloat16"

    def __dlpack__(self) -> None: ...


def test_how_arrays_of_others_are_taken() -> None:
    assert borrowing(Lent()) == "dev.borrow(x, ox.bf16, rank=3)"
    assert borrowing(np.zeros(3)) == "dev.array(x)"
    assert borrowing([1.0]) == borrowing(3) == borrowing(ox.Device.open("sim").zeros((4,), ox.f32)) == ""


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
