"""`oxidecopy explain`."""

from __future__ import annotations

import pytest

from oxidecopy.rules import all_rules
from tests.helpers.command import command, json_of

RULE = all_rules()["OX6009"]


@pytest.mark.parametrize("name", ["OX6009", "ox6009", "6009"])
def test_a_page(name: str) -> None:
    result = command("explain", name)
    assert result.exit_code == 0
    assert RULE.title in result.stdout
    assert RULE.why in result.stdout
    assert RULE.source in result.stdout
    assert f"oxidecopy.errors.{RULE.error}" in result.stdout
    assert '  invoke("explain", "OX9999")' in result.stdout.splitlines()


@pytest.mark.unmeasured  # rich's work, page by page
def test_pages_print_their_scripts_unchanged() -> None:
    """Those with the longest lines, which would be wrapped first, and some others."""
    rules = sorted(all_rules().values(), key=lambda rule: -max(map(len, f"{rule.wrong}\n{rule.right}".splitlines())))
    for rule in (*rules[:40], *rules[40::20]):
        lines = command("explain", rule.id).stdout.splitlines()
        for script in (rule.wrong, rule.right):
            assert {f"  {line}".rstrip() for line in script.strip("\n").splitlines()} <= set(lines), rule.id


def test_all_rules() -> None:
    result = command("explain")
    assert result.exit_code == 0
    assert all(rule.id in result.stdout and rule.title in result.stdout for rule in all_rules().values())


def test_json() -> None:
    assert json_of(command("explain", "OX6009", "--json"))["wrong"] == RULE.wrong
    assert [row["id"] for row in json_of(command("explain", "--json"))] == list(all_rules())


def test_unknown_id_with_near_ones() -> None:
    result = command("explain", "OX6099")
    assert result.exit_code == 2
    assert "[OX6009]" in result.stderr
    assert "did you mean OX60" in result.stderr
    assert "`oxidecopy explain` lists all" in command("explain", "zzz").stderr
    assert json_of(command("explain", "zzz", "--json"))["diagnostics"][0]["rule"] == "OX6009"


def test_only_ids_that_look_alike_are_proposed() -> None:
    assert "lists all" in command("explain", "OX9999").stderr
    assert "OX2001" in command("explain", "OX20001").stderr


def test_pages_say_who_shows_the_script() -> None:
    assert "Wrong  (for a type checker)" in command("explain", "oxidecopy-moved").stdout
    assert command("explain", "moved").stdout == command("explain", "OX7001").stdout
    assert "Wrong  (it runs: see `warnings`)" in command("explain", "OX3101").stdout
    assert json_of(command("explain", "OX3101", "--json"))["shown"] == "warned"
