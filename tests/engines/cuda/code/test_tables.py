"""Copies through entries of tables: which slot a record names, and which loops over them still run as one record."""

from __future__ import annotations

import re
from typing import Any

import pytest

import oxidecopy as ox
from oxidecopy.conformance.run import cases
from oxidecopy.engines.cuda.code import Image
from oxidecopy.engines.cuda.code.listing import listing
from oxidecopy.program.program import ArrayInfo, Launch
from oxidecopy.program.tensor_map import TensorMap
from oxidecopy.program.text import from_text
from tests.helpers.device_agreement import check

DEV = ox.Device.open("sim-fast")
MAP = TensorMap(dtype="f32", global_dim=(800, 640), global_strides=(2560,), box_dim=(8, 32), element_strides=(1, 1))
HEAD = """\
program ring threads=64 cluster=(1, 1, 1) shared=8192:
  map table: f32 box=(8, 32) entries={entries}
  map dst: f32 box=(8, 32)
  array list: i32 rank=1
  idx n
  tile t: f32 (8, 32) align=1024 stages=4 at=0 step=1024
  barrier full: TmaBarrier stages=4 at=8000
  barrier empty: TmaBarrier stages=4 at=8032
"""
PRODUCE = """\
  scope producer {{0}}:
    loop i, start=0, stop=n, step=1:
      mbarrier.wait.phase empty[i % 4], phase=i // 4 - 1
      mbarrier.arrive.expect_tx full[i % 4], nbytes=1024 -> %0
      cp.async.bulk.tensor.g2s {source}, t[i % 4], [i * 8, block_idx.x * 32], full[i % 4]
"""
STORE = "  scope elect {{0}}:\n    cp.async.bulk.tensor.s2g {target}, t, [0, 0]\n    cp.async.bulk.tensor.s2g dst, t, [0, 0]\n"


def image_of(body: str, *, entries: int = 3, n: int = 11) -> Image:
    maps = {"dst": MAP, **{f"table[{i}]": MAP for i in range(entries)}}
    arrays = (("list", ArrayInfo(dtype="i32", shape=(64,), strides_bytes=(4,))),)
    launch = Launch(grid=(2, 1, 1), maps=tuple(sorted(maps.items())), arrays=arrays, idx=(("n", n),))
    return check(from_text(HEAD.format(entries=entries) + body), launch)


@pytest.mark.parametrize("case", cases("tables"), ids=lambda case: case.name)
def test_every_way_to_choose_an_entry(case: Any) -> None:
    bound = case.make(DEV).launch
    image = check(bound.program, bound.launch)
    assert len(image.maps) == len(bound.bindings.maps) - ("queue" in bound.bindings.maps)
    listing(image)


def test_single_maps_come_first_and_entries_in_their_order() -> None:
    image = image_of(STORE.format(target="table[1]"))
    assert image.maps == ("dst", "table[0]", "table[1]", "table[2]")
    assert "map 2: table[1]" in listing(image)


@pytest.mark.parametrize(
    ("target", "shown"),
    [
        ("table[2]", r"tensor_s2g table\[2\] "),
        ("table[299]", r"tensor_s2g table\[299\] "),
        ("table[block_idx.x]", r"tensor_s2g map 1 \+ r0 "),
        ("table[block_idx.x + 290]", r"tensor_s2g map 291 \+ r0 "),
        ("table[block_idx.x * 7]", r"tensor_s2g map 1 \+ r[0-9]+ "),
    ],
)
def test_what_a_record_names(target: str, shown: str) -> None:
    text = listing(image_of(STORE.format(target=target), entries=300))
    assert re.search(shown, text), text


def test_an_index_below_the_first_slot_counts_up_to_it() -> None:
    """The part that is known is negative: slot 0 - 5, and the rest is at least 5."""
    body = "  loop i, start=5, stop=n, step=1:\n    scope elect {0}:\n      cp.async.bulk.tensor.s2g table[i - 5], t, [0, 0]\n"
    text = listing(image_of(body, entries=6))
    assert re.search(r"map -5 \+ r[0-9]+", text), text


def test_an_entry_that_is_read() -> None:
    body = "  ld.global.index read, list, index=block_idx.x, below=3\n" + STORE.format(target="table[read]")
    assert "map 1 + r" in listing(image_of(body))


@pytest.mark.parametrize(
    ("source", "entries", "why"),
    [
        ("table[1]", 3, ""),
        ("table[253]", 300, ""),
        ("table[299]", 300, "entry of a table"),
        ("table[block_idx.x]", 3, "entry of a table"),
        ("table[i % 3]", 3, "entry of a table"),
    ],
)
def test_loops_with_an_entry_that_is_known_are_one_record(source: str, entries: int, why: str) -> None:
    image = image_of(PRODUCE.format(source=source), entries=entries)
    (note,) = [loop for loop in image.loops if "0" in loop.agent]
    assert bool(note.fused) == (not why), note
    assert why in note.why


def test_a_counter_deals_nothing_where_entries_follow_its_tiles() -> None:
    """Its tiles are then a fixed share of each block, which the program allows as well."""
    case = next(c for c in cases("tables") if c.name == "tiles of a counter, five")
    bound = case.make(DEV).launch
    image = check(bound.program, bound.launch)
    assert not image.counted
    assert "entry of a table" in next(iter(image.shares.values()))


def test_entries_count_for_the_form_of_the_parameter() -> None:
    assert image_of(STORE.format(target="table[0]"), entries=1).form == "small"
    image = image_of(STORE.format(target="table[block_idx.x]"), entries=20)
    assert image.form == "large"
    assert image.table_maps == tuple(f"table[{i}]" for i in range(7, 20))


def test_a_table_that_nothing_goes_through_takes_no_slots() -> None:
    assert image_of("  scope elect {0}:\n    cp.async.bulk.tensor.s2g dst, t, [0, 0]\n").maps == ("dst",)
