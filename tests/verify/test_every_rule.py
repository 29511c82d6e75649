"""Each rule of the verifier counts: without it, a program that it alone refuses would be accepted.

The programs are the smallest ones that any test of the verifier makes; `python -m oxidecopy._tools.rule_mutants --store` writes them, and
without `--store` takes each rule away under all of those tests.
"""

from __future__ import annotations

from typing import Any

import pytest

from oxidecopy._tools.rule_mutants import lowered
from oxidecopy.verify import inspect
from oxidecopy.verify.report import WARNING_PREFIX, Collector, Report
from tests.helpers.stored_rules import RULES, STORED, launch_of, program_of


def inspected(rule: str) -> Report:
    with lowered(STORED[rule]["bounds"]):
        return inspect(program_of(rule), launch_of(rule))


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
