"""docs/patterns.md: its tables name every lesson and twin of the patterns, the rule of each, and what the simulator sees of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import oxidecopy as ox
from oxidecopy.engines.sim import explore
from oxidecopy.host.recipe import RecipeFunction
from tests.test_examples import EXAMPLES, TWINS

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "patterns.md").read_text()
ROWS = re.findall(r"^\| (\d\d) \| (\w+) \| .* \| (OX3\d{3}) \| .*\((OX4\d{3})\) \|$", PAGE, re.MULTILINE)
PATTERNS = range(18, 26)  # numbers of lessons; those behind have pages of their own
LISTED = {(path.stem[:2], recipe.name.removesuffix("_recipe")): recipe for path, recipe in TWINS if int(path.stem[:2]) in PATTERNS}


def test_every_pattern_is_listed() -> None:
    named = re.findall(r"^\| \[(\w+)\]\(\.\./examples/(\w+)\.py\) \|", PAGE, re.MULTILINE)
    assert [name for name, _ in named] == [name for _, name in named] == [path.stem for path in EXAMPLES if int(path.stem[:2]) in PATTERNS]


def test_every_twin_is_listed_with_its_rule() -> None:
    assert [(lesson, twin, rule) for lesson, twin, rule, _ in ROWS] == [(*key, recipe.refused) for key, recipe in LISTED.items()]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}-{row[1]}")
def test_what_happens_without_the_proof(row: tuple[str, str, str, str]) -> None:
    lesson, twin, _, seen = row
    recipe: RecipeFunction = LISTED[lesson, twin]
    found: set[str] = set()
    for seed in range(3):
        launch = recipe(ox.Device.open("sim")).launch
        told = explore(launch.program, launch.bindings, seed=seed)
        found |= {d.rule for d in (*told.diagnostics, *told.findings)}
        if seen in found:
            return
    pytest.fail(f"{seen} is not among {sorted(found)}")
