"""What the plugin refuses and accepts: each case file's marks, and nothing else. Without a rule's row, a mark is missed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from mypy.nodes import ConditionalExpr

from oxidecopy.mypy_plugin import _domain, _names, _types, _values
from oxidecopy.mypy_plugin._assigns import Assigns
from oxidecopy.mypy_plugin._expressions import Expressions
from oxidecopy.mypy_plugin._features import CALLS, blocks, leak_paths, overloads
from oxidecopy.mypy_plugin._statements import Statements
from oxidecopy.mypy_plugin._takes import Takes
from oxidecopy.mypy_plugin._values import Core
from tests.mypy_plugin.analysed import Checked, case_files, marks

WANTED = {name: marks(text) for name, text in case_files().items()}
FILES = sorted(WANTED)


@pytest.mark.parametrize("name", FILES)
def test_marks(checked: Checked, name: str) -> None:
    assert WANTED[name]
    assert checked.found.get(name, set()) == WANTED[name], "\n".join(checked.output)


@pytest.mark.parametrize("name", FILES)
def test_the_pass_over_a_kept_file_finds_the_same(checked: Checked, name: str) -> None:
    assert checked.kept[name].again() == WANTED[name]


# ---- without a rule
# What no case file shows, by the reason.
ELSEWHERE = {"copies": "tests/mypy_plugin/test_copies.py"}


def rows() -> list[tuple[str, int]]:
    """Every act of every function, but those with tests of their own."""
    return [(name, i) for name, acts in CALLS.items() for i, act in enumerate(acts) if act.__module__.rpartition(".")[2] not in ELSEWHERE]


def differs(checked: Checked, hint: str = "") -> bool:
    """Does the pass find anything else now? One file that shows it is enough: first the one that the hint names, then short ones."""
    order = sorted(FILES, key=lambda name: (name != f"case_{hint}", len(checked.sources[name])))
    return any(checked.kept[name].again() != WANTED[name] for name in order)


def missed(checked: Checked) -> bool:
    """Does the pass find less now, and nothing else?"""
    found = {name: checked.kept[name].again() for name in FILES}
    return all(found[name] <= WANTED[name] for name in FILES) and found != WANTED


def added(checked: Checked) -> bool:
    """Does the pass find more now?"""
    return any(checked.kept[name].again() - WANTED[name] for name in FILES)


@pytest.mark.parametrize(("name", "i"), rows(), ids=str)
def test_a_call_without_its_row_is_missed(checked: Checked, monkeypatch: pytest.MonkeyPatch, name: str, i: int) -> None:
    acts = CALLS[name]
    monkeypatch.setitem(CALLS, name, (*acts[:i], *acts[i + 1 :]))
    assert differs(checked, acts[i].__module__.rpartition(".")[2])


@pytest.mark.parametrize("name", sorted(_names.RECORDED_LOOPS))
def test_a_recorded_loop_without_its_row_is_missed(checked: Checked, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.delitem(_names.RECORDED_LOOPS, name)
    assert differs(checked)


@pytest.mark.parametrize("noun", [_names.BARRIER, _names.LEADER, _names.GROUP, _names.LANDED, _names.TILE])
def test_a_class_without_its_row_is_missed(checked: Checked, monkeypatch: pytest.MonkeyPatch, noun: str) -> None:
    base = {_names.TILE: [_names.TILE, _names.BLOCK_TILE, _names.LANDED], _names.LANDED: [_names.LANDED, _names.BLOCK_TILE, _names.TILE]}
    base |= {_names.GROUP: [_names.GROUP, _names.BASE_GROUP], _names.BARRIER: [_names.BARRIER]}
    for name in base.get(noun, [noun]):
        monkeypatch.delitem(_names.NOUNS, name)
    monkeypatch.setattr(_types, "_takes_its_object", lambda _: False)
    assert differs(checked)


@pytest.mark.parametrize("kind", sorted(_names.SYMBOLIC))
def test_a_kind_of_recorded_value_without_its_row_is_missed(checked: Checked, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.delitem(_names.SYMBOLIC, kind)
    assert missed(checked)


def test_tokens_without_their_classes_are_missed(checked: Checked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_names, "TOKENS", frozenset())
    assert missed(checked)


def test_blocks_that_raise_without_their_classes(checked: Checked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_names, "RAISES", frozenset())
    assert added(checked)


@pytest.mark.parametrize("rule", ["go", "end", "check_loops", "check_left", "take_elements"])
def test_a_rule_of_moves_that_does_nothing_is_missed(checked: Checked, monkeypatch: pytest.MonkeyPatch, rule: str) -> None:
    monkeypatch.setattr(Takes, rule, lambda *_, **__: None)
    assert differs(checked)


place_of = Core.place_of


def _both(flow: Any, e: Any, state: Any, where: str) -> tuple[Any, Any]:
    """A condition after which nothing is known of what its parts did."""
    flow.condition(e, state, where)
    other = state.copy()
    leak_paths.assume(flow, e, state, so=True)
    leak_paths.assume(flow, e, other, so=False)
    return state, other


# What keeps false alarms away, or sees through what a value is in: without it, the cases are not what they are.
KEEPS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "pairs that stay apart at a join": (_domain, "_apart", lambda *_: _domain.NO_PAIRS),
    "pairs that stay apart when values age": (Core, "_still_apart", lambda *_: ()),
    "pairs that change places": (_domain.State, "rebound", lambda *_: None),
    "elements that are apart": (Assigns, "_apart_elements", lambda *_: ()),
    "parts of what is apart": (Takes, "_spare", lambda *_: None),
    "the overload that is called": (overloads, "called", lambda declared, *_, **__: declared),
    "the rest of an unpacking": (Assigns, "_rest", lambda _self, _star, values, *_: values),
    "names of a tuple's elements": (_values, "fields_of", lambda _: []),
    "parts of a loop's target": (Core, "_behind", lambda _self, value, _state: value.containers),
    "slices that are lists of their own": (Expressions, "_slice", lambda _self, _e, _cut, base, _state: base),
    "what a slice by constants has": (Expressions, "_cut", lambda *_: None),
    "elements that go one by one": (Assigns, "_part_of", lambda self, owner, part, state, t: self.slot(owner, part, state, t)),
    "what nothing leads to": (Statements, "_alive", lambda _self, state: state),
    "one of several containers": (_values, "written_out", lambda _: False),
    "what a choice is until it has a name": (
        Core,
        "place_of",
        lambda self, e, state: None if type(e) is ConditionalExpr else place_of(self, e, state),
    ),
    "the two ways out of a condition": (Expressions, "branches", _both),
    "what is taken and lent at once": (Takes, "check_lent", lambda *_: None),
    "conditions of several parts": (leak_paths, "_compound", lambda *_: ""),
}


@pytest.mark.parametrize("what", KEEPS)
def test_what_keeps_the_cases_as_they_are(checked: Checked, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    owner, name, without = KEEPS[what]
    monkeypatch.setattr(owner, name, without)
    assert differs(checked)


def test_a_stage_that_does_not_end_is_missed(checked: Checked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "end_of_iteration", lambda *_: None)
    assert missed(checked)


def test_python_containers_without_their_methods(checked: Checked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_names, "ADDING", frozenset())
    assert any(WANTED[name] - checked.kept[name].again() for name in FILES)
    monkeypatch.undo()
    monkeypatch.setattr(_names, "FORGETTING", frozenset())
    assert added(checked)
