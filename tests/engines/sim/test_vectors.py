"""The measured vectors of an H200 on `explore`: images, stores, reductions, barriers, faults."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import vectors
from tests.helpers.vectors import Bench, Row, Skip

CASES = Path(__file__).parents[2] / "cases" / "h200"
FILES = {
    "loads": "loads",
    "random_loads": "loads",
    "stores": "stores",
    "reduce_shapes": "stores",
    "mbarrier": "runtime",
    "runtime": "runtime",
    "bulk_sizes": "bulk",
}
# Rows that describe a situation in words; those that a program can express are in test_faults.py.
TEXT = {"runtime": 16}


@cache
def case_file(name: str) -> Any:
    return json.loads((CASES / f"{name}.json").read_text())


def rows(section: str) -> list[Row]:
    found: list[Row] = case_file(FILES[section])[section]
    return found


def in_words(section: str, row: Row) -> bool:
    """No program is given."""
    return section == "runtime" and "text" in row


def todo() -> Iterator[Any]:
    for section in FILES:
        for row in rows(section):
            if not in_words(section, row):
                yield pytest.param(section, row, id=f"{section}:{row.get('id', row.get('size'))}")


@pytest.mark.parametrize("hazards", [True, False], ids=["hazards", "fast"])
@pytest.mark.parametrize(("section", "row"), list(todo()))
def test_row(section: str, row: Row, hazards: bool) -> None:
    assert vectors.run(section, row, hazards=hazards) == []


@pytest.mark.parametrize("section", FILES)
def test_nothing_else_is_left_out(section: str) -> None:
    assert sum(in_words(section, row) for row in rows(section)) == TEXT.get(section, 0)


def test_adapter_refuses_what_it_cannot_express() -> None:
    for row in rows("runtime"):
        if in_words("runtime", row):
            with pytest.raises(Skip):
                vectors.run("runtime", row)


@pytest.mark.parametrize("hazards", [True, False], ids=["hazards", "fast"])
@pytest.mark.parametrize("row", case_file("stores")["reduces"], ids=lambda r: f"{r['op']}-{r['data_type']}")
def test_reduce_operands(row: Row, hazards: bool) -> None:
    assert vectors.run_reduce(Bench(hazards=hazards, seed=0), row, case_file("stores")["reduce_operands"]["operands"]) == []


@pytest.mark.parametrize("row", case_file("stores")["reduce_illegal"], ids=lambda r: f"{r['op']}-{r['data_type']}")
def test_illegal_reductions_fault(row: Row) -> None:
    assert vectors.run_reduce(Bench(), row, case_file("stores")["reduce_operands"]["operands"]) == []


@pytest.mark.parametrize(("data_type", "rounds"), [(11, True), (12, True), (7, False), (10, False)])
def test_tf32_rounds_on_load_only(data_type: int, rounds: bool) -> None:
    assert vectors.run_tf32(Bench(), case_file("loads")["tf32_conversion"]["pairs"], data_type, rounds=rounds) == []


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("section", ["loads", "stores", "reduce_shapes"])
def test_other_schedules_give_the_same_bytes(section: str, seed: int) -> None:
    for row in rows(section)[seed::17]:
        if not in_words(section, row):
            assert vectors.run(section, row, seed=seed + 1) == []


def test_a_wrong_image_is_noticed() -> None:
    row = dict(rows("loads")[0])
    row["smem"] = "00" + row["smem"][2:]
    assert "shared image: 1 bytes differ" in vectors.run("loads", row)[0]


def test_a_wrong_byte_count_is_noticed() -> None:
    row = dict(rows("loads")[0])
    row["tx_bytes"] += 16
    assert "deadlock" in vectors.run("loads", row)[0]
