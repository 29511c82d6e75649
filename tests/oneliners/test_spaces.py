"""Index spaces and boxes, and the table that ways are chosen from."""

from __future__ import annotations

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oxidecopy._tools import measured_copies
from oxidecopy.oneliners.measured import measured, ways_for
from oxidecopy.oneliners.pipelines import SHARED_SM
from oxidecopy.oneliners.spaces import Space, box_of, boxes, joint


def test_dimensions_that_follow_each_other_in_all_views_are_one() -> None:
    assert joint((4, 1, 8, 16), ((512, 0, 64, 4), (1024, 7, 128, 8)), leader=0, sizes=(4, 8)) == Space((512,), ((4,), (8,)))
    assert joint((4, 8), ((32, 4), (64, 4)), leader=0, sizes=(4, 4)) == Space((4, 8), ((32, 4), (64, 4)))
    assert joint((4, 8), ((4, 16), (4, 16)), leader=0, sizes=(4, 4)) == Space((32,), ((4,), (4,)))  # in the order of memory
    assert joint((1, 1), ((9, 9), (9, 9)), leader=0, sizes=(2, 4)) == Space((1,), ((2,), (4,)))
    assert joint((3, 8), ((0, 4), (32, 4)), leader=0, sizes=(4, 4)).extents == (3, 8)  # repeated elements stay


def test_permuted_rows_are_visited_along_the_shorter_dimension() -> None:
    heads = Space((2, 8, 512, 64), ((8 * 512 * 256, 512 * 256, 256, 4), (512 * 8 * 256, 256, 8 * 256, 4)))
    walked = heads.walked()
    assert walked.extents == (2, 512, 8, 64)
    assert box_of(walked, 4096, unit=4, element_bytes=4) == (1, 16, 4, 64)
    assert Space((4, 8, 64), ((2048, 256, 4),) * 2).walked().extents == (4, 8, 64)


@given(
    extents=st.lists(st.integers(1, 700), min_size=1, max_size=5),
    elements=st.sampled_from((256, 1024, 4096, 16_384)),
    size=st.sampled_from((1, 2, 4, 8)),
)
def test_a_box_is_one_that_a_map_takes(extents: list[int], elements: int, size: int) -> None:
    strides = tuple(size * prod(extents[k + 1 :]) for k in range(len(extents)))
    space, unit = Space(tuple(extents), (strides, strides)), 16 // size
    box = box_of(space, elements, unit=unit, element_bytes=size)
    assert all(1 <= n <= 256 for n in box)
    assert box[-1] % unit == 0
    assert prod(box) <= max(elements, box[-1])
    assert boxes(extents, box) == prod(-(-n // b) for n, b in zip(extents, box, strict=True))
    assert boxes(extents[-1:], box[-1:]) == -(-extents[-1] // 256)  # rows are not cut more often than they must be


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_ways_are_fastest_first_and_have_boxes_enough(rank: int) -> None:
    large = ways_for(rank, 4 << 30, 132)
    assert [w.tb_s for w in large] == sorted((w.tb_s for w in large), reverse=True)
    assert all(w.rank == rank and w.stages * w.box_bytes * w.per_sm <= SHARED_SM for w in large)
    assert max(w.box_bytes for w in ways_for(rank, 2 << 20, 132)) <= (2 << 20) // 132 // 2
    assert len({w.box_bytes for w in ways_for(rank, 1, 132)}) == 1  # for less than any of them the smallest


def test_the_table_is_derived_from_the_measured_copies() -> None:
    head = ["schedule", "rank", "box", "box_bytes", "swizzle", "stages", "per_sm", "tb_s", "of_memcpy"]
    lines = (
        "one-shot,2,4x256,4096,None,,,4.2,0.97", "one-shot,2,4x256,4096,None,,12,4.3,0.99", "one-shot,2,32x32,4096,128B,,12,9.9,2.0",
        "counter,2,4x256,4096,None,4,4,4.1,0.96",
    )  # fmt: skip
    rows = measured_copies.compact(dict(zip(head, line.split(","), strict=True)) for line in lines)
    assert rows == [["counter", 2, 4096, 4, 4, 4.1, 0.96], ["one-shot", 2, 4096, 0, 12, 4.3, 0.99]]
    assert len(measured().ways) > 50
    assert measured().source == "docs/results/copies.csv"


def test_what_one_liners_know_is_what_the_results_say() -> None:
    of_results = measured_copies.written(measured_copies.ROOT / "docs" / "results" / "copies.csv")
    assert measured_copies.OUTPUT.read_text(encoding="utf-8") == of_results, "python -m oxidecopy._tools.measured_copies"
