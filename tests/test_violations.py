"""Every way to break a pipeline that we know of: the right program is accepted and does what numpy says, its twin one line away is refused
by the rule that it breaks, and shown to go wrong by the simulator, which knows nothing of the verifier.
"""

from __future__ import annotations

import pytest

from oxidecopy.rules import all_rules
from oxidecopy.verify import inspect
from oxidecopy.verify.report import WARNING_PREFIX
from tests.helpers.violations import FOLDER, GROUPS, MARK, NAMES, PAGE, SEEDS, case, page

each = pytest.mark.parametrize("name", NAMES)


@each
def test_the_right_one_is_accepted_and_runs_clean(name: str) -> None:
    ready = case(name).fixed()
    report = inspect(ready.program, ready.launch)
    assert [*report.violations, *report.warnings] == []
    for seed in range(3):
        ready = case(name).fixed()
        result = ready.explore(seed)
        assert result.outcome == "ok", result.diagnostics
        assert [*result.findings, *result.notes] == []
        assert ready.right()


@each
def test_the_broken_one_is_refused_and_the_edit_is_named(name: str) -> None:
    c = case(name)
    ready = c.broken()
    report = inspect(ready.program, ready.launch)
    found = report.warnings if c.rule.startswith(WARNING_PREFIX) else report.violations
    assert c.rule in {d.rule for d in found}
    if c.rule.startswith(WARNING_PREFIX):
        assert not report.violations


@each
def test_the_simulator_shows_it_on_every_schedule(name: str) -> None:
    c = case(name)
    shown: set[str] = set()
    for seed in SEEDS:
        result = c.broken().explore(seed)
        rules = {d.rule for d in (*result.diagnostics, *result.findings, *result.notes)}
        assert rules & set(c.simulator), (seed, result)
        shown |= rules
    assert set(c.simulator) <= shown


@each
def test_there_is_one_edit_and_a_page_for_each_rule(name: str) -> None:
    c = case(name)
    assert len(MARK.findall(c.source)) == 1
    assert c.source.count("# broken:") == 1
    for rule in (c.rule, *c.simulator, *([c.earlier] if c.earlier else [])):
        assert rule in all_rules()


def test_some_are_right_for_few_iterations() -> None:
    """Arrivals that leak: nothing shows in 4 iterations, on the hardware 64 hang. The verifier refuses both."""
    c = case("arrivals_leak")
    for n, outcome in ((4, "ok"), (64, "deadlock")):
        ready = c.broken(n)
        assert ready.explore(0, hazards=False).outcome == outcome
        assert outcome != "ok" or ready.right()
        assert "OX3011" in {d.rule for d in inspect(ready.program, ready.launch).violations}


def test_every_case_is_in_a_group_and_the_page_is_up_to_date() -> None:
    assert sorted(name for names in GROUPS.values() for name in names) == NAMES
    assert page() == PAGE.read_text(), "python -m tests.helpers.violations"


def test_the_cases_are_files_of_their_own() -> None:
    assert len(NAMES) == len(list(FOLDER.glob("*.py")))
