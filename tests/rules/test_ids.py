"""One id, one meaning: wherever the recorder raises a rule, it raises the class that the rule's page names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import oxidecopy as ox
from oxidecopy.rules import all_rules
from oxidecopy.rules.rule import Rule

PACKAGE = Path(ox.__file__).parent
RECORDER = re.compile(r"\bOX1[0-8]\d\d\b")
RULES = [rule for rule in all_rules().values() if RECORDER.fullmatch(rule.id)]
ROOMS = ("typed", "tiles", "host")


def refusals() -> Iterator[tuple[str, str, str]]:
    """Where a rule of the recorder is raised by `refuse`: id, class and place."""
    for path in sorted(path for room in ROOMS for path in (PACKAGE / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and len(node.args) > 2 and getattr(node.func, "id", "") == "refuse":
                error, rule = node.args[:2]
                if isinstance(error, ast.Name) and isinstance(rule, ast.Constant):
                    yield str(rule.value), error.id, f"{path.name}:{node.lineno}"


def test_every_id_of_the_code_has_a_page_and_every_page_is_used() -> None:
    sources = [path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE / "rules"]
    used = {word for path in sources for word in RECORDER.findall(path.read_text())}
    assert used == {rule.id for rule in RULES}


def test_ids_of_the_tests_and_documents_exist() -> None:
    root = PACKAGE.parent
    texts = [*root.glob("*.md"), *(root / "docs").glob("*.md"), *(root / "examples").glob("*.py"), *(root / "tests").rglob("*.py")]
    known = all_rules().keys()
    unknown = {(path.name, word) for path in texts for word in RECORDER.findall(path.read_text()) if word not in known}
    assert unknown == set()


def test_an_id_has_one_class() -> None:
    pages = {rule.id: rule.error for rule in RULES}
    found = [(rule, error, place) for rule, error, place in refusals() if rule in pages]
    assert len(found) > 60
    assert [entry for entry in found if pages[entry[0]] != entry[1]] == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_page_is_about_one_mistake(rule: Rule) -> None:
    wrong, right = rule.wrong.splitlines(), rule.right.splitlines()
    changed = sum(a != b for a, b in zip(wrong, right, strict=False)) + abs(len(wrong) - len(right))
    same = len(set(wrong) & set(right))
    assert wrong != right
    assert same or changed <= 2, "wrong and right have nothing in common"
    assert len(wrong) <= 24, "a page is short"
    assert not rule.title.endswith("."), "a title is a line, not a sentence"


def test_a_refusal_with_a_bound_says_what_it_was_given() -> None:
    silent = []
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                given = {word.arg: word.value for word in node.keywords}
                if "required" in given and "got" not in given and "at most" in ast.unparse(given["required"]):
                    silent.append(f"{path.name}:{node.lineno}")
    assert silent == []
