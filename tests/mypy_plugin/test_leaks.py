"""Leaks: the options, every rule removed once, and the paths of debts by themselves."""

from __future__ import annotations

import pytest

from oxidecopy.mypy_plugin import _debts, _names
from oxidecopy.mypy_plugin._config import Config
from oxidecopy.mypy_plugin._debts import BARRIER, GIVEN_UP, TOKEN, Debt, Path
from oxidecopy.mypy_plugin._domain import Value
from oxidecopy.mypy_plugin._features import leak_paths, leak_report, leaks
from tests.mypy_plugin.analysed import Checked, Kept, marks

NAME = "case_leaks"


@pytest.fixture
def kept(checked: Checked) -> Kept:
    return checked.kept[NAME]


def function_of(checked: Checked, name: str) -> range:
    """The lines of a function of the case file."""
    lines = checked.sources[NAME].splitlines()
    first = next(i for i, line in enumerate(lines, 1) if line.startswith(f"def {name}("))
    return range(first, next((i for i in range(first + 1, len(lines)) if lines[i - 1].startswith(("def ", "@", "class "))), len(lines) + 1))


# ---- options
def test_nothing_is_said_unless_it_is_asked_for(kept: Kept) -> None:
    assert kept.again(Config()) == set()
    assert kept.texts == []


def test_barriers_at_the_end_of_a_pipeline_have_an_option_of_their_own(checked: Checked, kept: Kept) -> None:
    everything = marks(checked.sources[NAME])
    at_end = {(line, code) for line, code in everything if line in function_of(checked, "ends_ready_bad")}
    assert len(at_end) == 1
    assert kept.again(Config(leaks="error")) == everything - at_end
    assert kept.again(Config(leaks_at_end="error")) == at_end
    assert kept.again(Config(leaks="error", leaks_at_end="error")) == everything


def test_a_note_is_no_error(checked: Checked, kept: Kept) -> None:
    assert kept.again(Config(leaks="note", leaks_at_end="note")) == set()
    assert sum(text.startswith(("Token ", "Barrier ", "This commit group ")) for text in kept.texts) == len(marks(checked.sources[NAME]))


def test_the_words(kept: Kept) -> None:
    kept.again()
    said = set(kept.texts)
    assert 'Token "token" is never waited for' in said
    assert 'Token "token" is never waited for on some path' in said
    assert 'Barrier "bar" is Ready and never invalidated on some path' in said
    assert "This commit group is never waited for" in said
    assert "end it with `bar.inval()`, return it, or give it to somebody who does" in said


# ---- without a rule
RULES = [
    (leaks, "settle"),
    (leaks, "escape"),
    (leaks, "passed"),
    (leaks, "discarded"),
    (leaks, "_given_away"),
    (leaks, "_groups_elsewhere"),
    (leak_paths, "assume"),
    (leak_paths, "matched"),
    (leak_paths, "bound"),
    (leak_paths, "rebound"),
    (leak_paths, "only_if_in_any"),
    (leak_paths, "interrupted"),
    (leak_paths, "restore"),
    (leak_paths, "kept"),
    (leak_paths, "captured"),
]


@pytest.mark.parametrize(("module", "rule"), RULES, ids=[rule for _, rule in RULES])
def test_a_rule_that_does_nothing_is_missed(
    checked: Checked, kept: Kept, monkeypatch: pytest.MonkeyPatch, module: object, rule: str
) -> None:
    monkeypatch.setattr(module, rule, lambda *_, **__: None)
    assert kept.again() != marks(checked.sources[NAME])


def test_loops_that_use_up_nothing_are_missed(checked: Checked, kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leak_paths, "enter_loop", lambda *_: None)
    monkeypatch.setattr(leak_paths, "leave_loop", lambda *_: None)
    assert kept.again() > marks(checked.sources[NAME])


@pytest.mark.parametrize(("rule", "answer"), [("_is_lost", True), ("_vague", False), ("_left", {})])
def test_a_question_with_one_answer_is_missed(
    checked: Checked, kept: Kept, monkeypatch: pytest.MonkeyPatch, rule: str, answer: object
) -> None:
    monkeypatch.setattr(leak_report, rule, lambda *_: answer)
    assert kept.again() != marks(checked.sources[NAME])


@pytest.mark.parametrize("name", ["PIPELINE", "PASS_ON", "ADDING", "VIEWS", "UNINIT", "READY"])
def test_a_name_that_is_not_known_is_missed(checked: Checked, kept: Kept, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(_names, name, "" if isinstance(getattr(_names, name), str) else frozenset())
    assert kept.again(Config(leaks="error")) != marks(checked.sources[NAME]) - at_end(checked)


def at_end(checked: Checked) -> set[tuple[int, str]]:
    return {(line, code) for line, code in marks(checked.sources[NAME]) if line in function_of(checked, "ends_ready_bad")}


# ---- paths
A, NOT_A, B = ("a", True), ("a", False), ("b", True)


def paths(*many: set[tuple[str, bool]]) -> frozenset[Path]:
    return frozenset(map(frozenset, many))


def test_both_ways_of_a_condition_are_one_path() -> None:
    assert _debts.simple(paths({A, B}, {NOT_A, B})) == paths({B})
    assert _debts.simple(paths({A}, {A, B})) == paths({A})
    assert _debts.simple(paths({A}, {B})) == paths({A}, {B})


def test_too_many_paths_are_given_up() -> None:
    many = paths(*({(str(i), True)} for i in range(_debts.PATHS_MAX + 1)))
    assert _debts.simple(many) == GIVEN_UP
    value = Value("x")
    assert _debts.join({value: Debt(TOKEN, many)}, {value: Debt(TOKEN, GIVEN_UP)})[value].paths == GIVEN_UP


def test_a_path_that_contradicts_itself_is_none() -> None:
    value = Value("x")
    owed = {value: Debt(BARRIER, paths({A}, {B}))}
    assert _debts.assume(owed, [NOT_A]) == {value: Debt(BARRIER, paths({NOT_A, B}))}
    assert _debts.assume({value: Debt(BARRIER, paths({A}))}, [NOT_A]) == {}


def test_a_changed_condition_is_forgotten() -> None:
    value = Value("x")
    assert _debts.forget({value: Debt(BARRIER, paths({A, B}))}, frozenset({"a"})) == {value: Debt(BARRIER, paths({B}))}


def test_an_older_value_is_carried() -> None:
    new, old = Value("new"), Value("old")
    owed = {new: Debt(TOKEN, paths(set()))}
    assert _debts.renamed(owed, {new: old}) == {old: Debt(TOKEN, paths(set()), carried=True)}
