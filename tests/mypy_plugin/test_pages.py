"""The pages of the plugin's rules are true: wrong gets the rule's code, right gets nothing."""

from __future__ import annotations

import pytest

from oxidecopy.rules import all_rules
from oxidecopy.rules.rule import Rule
from tests.mypy_plugin.analysed import Checked
from tests.mypy_plugin.page_sources import PAGES

TYPED = [rule for rule in all_rules().values() if rule.shown == "typed"]


@pytest.mark.parametrize("rule", TYPED, ids=lambda rule: rule.id)
def test_a_page_of_the_plugin_is_true(checked: Checked, rule: Rule) -> None:
    wrong, right = (f"page_{rule.id}_{side}" for side in ("wrong", "right"))
    assert {wrong, right} <= PAGES.keys()
    code = rule.title.partition(": ")[0]
    silent = {"oxidecopy-leak"} - {code}  # off unless it is asked for, as it is here
    assert {found for _, found in checked.found.get(wrong, set())} - silent == {code}
    assert {found for _, found in checked.found.get(right, set())} - silent == set(), checked.said(right)


def test_every_rule_of_the_plugin_but_for_its_own_failures_is_shown() -> None:
    assert {rule.id for rule in all_rules().values() if rule.id.startswith("OX7")} - {rule.id for rule in TYPED} == {"OX7010"}
