"""The measured vectors of an H200 on `explore`: images, stores, reductions, barriers, faults."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import vectors
from tests.helpers.vectors import Row, Skip

CASES = Path(__file__).parents[2] / "cases" / "h200"
FILES = {
    "loads": "loads",
    "random_loads": "loads",
    "stores": "stores",
    "reduce_shapes": "stores",
    "mbarrier": "runtime",
    "runtime": "runtime",
}
# Rows of these categories come with later features; the numbers make sure that nothing else slips through.
LATER = {
    "loads": {"im2col": 74, "interleave": 15},
    "random_loads": {"im2col": 98, "interleave": 28},
    "stores": {"im2col": 4},
    "reduce_shapes": {"im2col": 1},
    "mbarrier": {},
    # "text" rows describe a situation in words; those that a program can express are in test_faults.py.
    "runtime": {"im2col": 21, "interleave": 2, "prefetch": 4, "text": 30},
}


@cache
def case_file(name: str) -> Any:
    return json.loads((CASES / f"{name}.json").read_text())


def rows(section: str) -> list[Row]:
    found: list[Row] = case_file(FILES[section])[section]
    return found


def category(section: str, row: Row) -> str:
    """What a row needs that is not there yet; empty for rows that must pass."""
    m = row.get("map")
    if m is None:
        return "" if section == "mbarrier" else "text"
    if m["kind"] != "tiled":
        return str(m["kind"])
    if m["interleave"]:
        return "interleave"
    return "prefetch" if row.get("op") == "prefetch" else ""


def todo() -> Iterator[Any]:
    for section in FILES:
        for row in rows(section):
            if not category(section, row):
                yield pytest.param(section, row, id=f"{section}:{row['id']}")


@pytest.mark.parametrize("hazards", [True, False], ids=["hazards", "fast"])
@pytest.mark.parametrize(("section", "row"), list(todo()))
def test_row(section: str, row: Row, hazards: bool) -> None:
    assert vectors.run(section, row, hazards=hazards) == []


@pytest.mark.parametrize("section", FILES)
def test_skipped_categories_are_complete(section: str) -> None:
    skipped = Counter(category(section, row) for row in rows(section))
    del skipped[""]
    assert dict(skipped) == LATER[section]


@pytest.mark.parametrize("section", FILES)
def test_adapter_refuses_what_it_cannot_express(section: str) -> None:
    for row in rows(section):
        if category(section, row):
            with pytest.raises(Skip):
                vectors.run(section, row)


@pytest.mark.parametrize("hazards", [True, False], ids=["hazards", "fast"])
@pytest.mark.parametrize("row", case_file("stores")["reduces"], ids=lambda r: f"{r['op']}-{r['data_type']}")
def test_reduce_operands(row: Row, hazards: bool) -> None:
    assert vectors.run_reduce(row, case_file("stores")["reduce_operands"]["operands"], hazards=hazards) == []


@pytest.mark.parametrize("row", case_file("stores")["reduce_illegal"], ids=lambda r: f"{r['op']}-{r['data_type']}")
def test_illegal_reductions_fault(row: Row) -> None:
    assert vectors.run_reduce(row, case_file("stores")["reduce_operands"]["operands"]) == []


@pytest.mark.parametrize(("data_type", "rounds"), [(11, True), (12, True), (7, False), (10, False)])
def test_tf32_rounds_on_load_only(data_type: int, rounds: bool) -> None:
    assert vectors.run_tf32(case_file("loads")["tf32_conversion"]["pairs"], data_type, rounds=rounds) == []


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("section", ["loads", "stores", "reduce_shapes"])
def test_other_schedules_give_the_same_bytes(section: str, seed: int) -> None:
    for row in rows(section)[seed::17]:
        if not category(section, row):
            assert vectors.run(section, row, seed=seed + 1) == []


def test_a_wrong_image_is_noticed() -> None:
    row = dict(rows("loads")[0])
    row["smem"] = "00" + row["smem"][2:]
    assert "shared image: 1 bytes differ" in vectors.run("loads", row)[0]


def test_a_wrong_byte_count_is_noticed() -> None:
    row = dict(rows("loads")[0])
    row["tx_bytes"] += 16
    assert "deadlock" in vectors.run("loads", row)[0]
