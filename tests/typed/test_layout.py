"""The layout of shared memory: alignments by swizzle and request, stages, barriers behind the tiles, the total."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import oxidecopy as ox
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.swizzle import SWIZZLES
from oxidecopy.program.program import BarrierDecl, MapParam
from oxidecopy.typed.layout import TileRequest, place
from tests.helpers.recordings import recorded, refused


def request(shape: tuple[int, ...], dtype: str = "f32", align: int = 16, stages: int = 1, swizzle: str | None = None) -> TileRequest:
    return TileRequest(name="t", dtype=dtype, shape=shape, align=align, stages=stages, site=None, swizzle=swizzle)


def barrier(stages: int = 1) -> BarrierDecl:
    return BarrierDecl(name="b", kind="TmaBarrier", stages=stages, offset=0)


@pytest.mark.parametrize(("swizzle", "align"), [(None, 16), ("none", 128), ("32B", 256), ("64B", 512), ("128B", 1024)])
def test_alignment_by_swizzle(swizzle: str | None, align: int) -> None:
    tiles, _, _ = place([request((1, 4)), request((4, 8), swizzle=swizzle)], [])
    assert (tiles[1].align, tiles[1].offset) == (align, align)


def test_a_stronger_request_wins() -> None:
    tiles, _, _ = place([request((1, 4)), request((4, 8), swizzle="32B", align=1024)], [])
    assert (tiles[1].align, tiles[1].offset) == (1024, 1024)


def test_stages_are_aligned_each_and_the_last_one_is_not_padded() -> None:
    tiles, barriers, total = place([request((3, 8), align=1024, stages=3)], [barrier()])
    assert (tiles[0].stage_bytes, barriers[0].offset, total) == (1024, 2 * 1024 + 96, 2 * 1024 + 96 + 8)


def test_short_swizzled_rows_occupy_whole_spans() -> None:
    # 5 rows of 16 bytes under a 64-byte swizzle lie 64 bytes apart: 272 bytes, in whole lines of 128.
    tiles, barriers, _ = place([request((5, 4), swizzle="64B")], [barrier()])
    assert (tiles[0].layout.footprint_bytes, tiles[0].layout.nbytes, barriers[0].offset) == (384, 80, 384)


def test_barriers_lie_behind_the_tiles() -> None:
    _, barriers, total = place([request((3,), dtype="u8")], [barrier(2), barrier()])
    assert ([b.offset for b in barriers], total) == ([8, 24], 32)


def test_nothing_at_all() -> None:
    assert place([], []) == ((), (), 0)


REQUESTS = st.builds(
    request,
    shape=st.lists(st.integers(1, 9), min_size=1, max_size=5).map(tuple),
    dtype=st.sampled_from([name for name, info in DTYPES.items() if info.bits % 8 == 0]),
    align=st.sampled_from([16, 128, 256, 512, 1024]),
    stages=st.integers(1, 4),
    swizzle=st.sampled_from([None, *SWIZZLES]),
)


@given(st.lists(REQUESTS, max_size=5), st.lists(st.integers(1, 5).map(barrier), max_size=4))
def test_nothing_overlaps(tiles: list[TileRequest], barriers: list[BarrierDecl]) -> None:
    placed, located, total = place(tiles, barriers)
    end = 0
    for asked, tile in zip(tiles, placed, strict=True):
        for stage in range(tile.stages):
            at = tile.offset + stage * tile.stage_bytes
            assert at % asked.align == 0
            assert at % (SWIZZLES[tile.swizzle].repeat_bytes if asked.swizzle else 1) == 0
            assert at >= end
            end = at + tile.layout.footprint_bytes
    for b in located:
        assert b.offset % 8 == 0
        assert b.offset >= end
        end = b.offset + 8 * b.stages
    assert total == end or (not located and total == -(-end // 8) * 8)


# ---- swizzles are those of the copies
def test_the_first_copy_decides_the_swizzle() -> None:
    def pipe(cta: ox.Cta, dst: Any, out: Any) -> None:
        tile = cta.shared(ox.f32, (64, 32), align=ox.A1024)
        cta.store(out, tile, (0, 0))
        with cta.elect() as leader:
            dst.s2g(leader, tile, (0, 0))

    assert recorded(pipe).tiles[0].swizzle == "128B"


def test_two_swizzles() -> None:
    def pipe(cta: ox.Cta, src: Any, dst: Any) -> None:
        tile = cta.shared(src)
        with cta.elect() as leader:
            dst.s2g(leader, tile, (0, 0))  # here

    diagnostic = refused(pipe, "OX1037")
    assert diagnostic.got == "128B after none"
    recorded(pipe, src=MapParam(name="src", dtype="f32", box_dim=(64, 32), element_strides=(1, 1), swizzle="128B"))
