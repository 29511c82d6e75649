"""Each rule of the verifier counts: without it, a program that it alone refuses would be accepted.

The programs are the smallest ones that any test of the verifier makes; `python -m oxidecopy._tools.rule_mutants --store` writes them, and
without `--store` takes each rule away under all of those tests.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from oxidecopy._tools.rule_mutants import lowered
from oxidecopy.program.program import ArrayInfo, Launch
from oxidecopy.program.tensor_map import TensorMap
from oxidecopy.program.text import from_text
from oxidecopy.verify import inspect, rule_ids
from oxidecopy.verify.report import WARNING_PREFIX, Collector, Report

STORED: Final[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "cases" / "verifier_rules.json").read_text(encoding="utf-8"))
RULES: Final = sorted(value for name, value in vars(rule_ids).items() if name.isupper())


def tupled(value: Any) -> Any:
    return tuple(map(tupled, value)) if isinstance(value, list) else value


def fields(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tupled(value) for name, value in data.items()}


def launch_of(data: Mapping[str, Any]) -> Launch:
    maps = tuple((name, TensorMap(**fields(of))) for name, of in data["maps"])
    arrays = tuple((name, ArrayInfo(**fields(of))) for name, of in data["arrays"])
    return Launch(**{**fields(data), "maps": maps, "arrays": arrays})


def inspected(rule: str) -> Report:
    stored = STORED[rule]
    program = replace(from_text("\n".join(stored["program"]) + "\n"), **fields(stored["changes"]))  # to what has no text form
    with lowered(stored["bounds"]):
        return inspect(program, launch_of(stored["launch"]))


def silence(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    original = Collector.add

    def add(collector: Collector, broken: str, what: str, **words: Any) -> None:
        if broken != rule:
            original(collector, broken, what, **words)

    monkeypatch.setattr(Collector, "add", add)


@pytest.mark.parametrize("rule", RULES)
def test_a_program_is_refused_by_it_alone(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rule in STORED, "store a program for it: python -m oxidecopy._tools.rule_mutants --store"
    warns = rule.startswith(WARNING_PREFIX)
    found = inspected(rule)
    assert {d.rule for d in (found.warnings if warns else found.violations)} == {rule}
    assert found.ok == warns
    silence(rule, monkeypatch)
    left = inspected(rule)
    assert sorted({d.rule for d in left.violations}) == STORED[rule]["others"], "what else refuses the program once the rule is gone"
    assert rule not in {d.rule for d in left.warnings}


def test_no_other_rule_covers_for_one() -> None:
    """Each stored program is accepted once its rule is gone, so none is refused twice over."""
    assert {rule: entry["others"] for rule, entry in STORED.items() if entry["others"]} == {}
    assert sorted(STORED) == RULES
