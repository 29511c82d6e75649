"""Every rule's page is true: its wrong script breaks the rule as the page says that it shows, its right script does not.

The scripts run from a real file, so that call sites exist, in a folder of their own, with `ox`, `np` and `dev` (the simulator) in scope.
Those for type checkers are checked in tests/mypy_plugin/test_pages.py.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy import errors
from oxidecopy.rules import all_rules, cuda_driver, cuda_engine, plugin, simulator, verifier
from oxidecopy.rules.beyond import BEYOND
from oxidecopy.rules.on_gpu import ON_GPU
from oxidecopy.rules.played import PLAYED, PLAYED_ON_GPU
from oxidecopy.rules.rule import Rule
from oxidecopy.rules.typed import TYPED
from oxidecopy.rules.warned import WARNED
from tests.helpers.fake_engine import fake_device

RULES = list(all_rules().values())
GATES = (verifier, simulator, plugin, cuda_driver, cuda_engine)
# How the `why` of a rule that no script can break begins to say what shows it instead.
NO_SCRIPT = "No script shows this rule: "

with_scripts = pytest.mark.parametrize("rule", [r for r in RULES if r.wrong and r.shown == "raised"], ids=lambda r: r.id)
on_gpus = pytest.mark.parametrize("rule", [r for r in RULES if r.shown == "gpu"], ids=lambda r: r.id)
with_warnings = pytest.mark.parametrize("rule", [r for r in RULES if r.shown == "warned"], ids=lambda r: r.id)


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def execute(script: str, folder: Path, dev: ox.Device | None = None) -> dict[str, Any]:
    path = folder / "page.py"
    path.write_text(script)
    scope: dict[str, Any] = {"__name__": "page", "ox": ox, "np": np, "dev": dev or ox.Device.open("sim")}
    exec(compile(script, str(path), "exec"), scope)  # the pages are ours
    return scope


@with_scripts
def test_wrong_breaks_the_rule(rule: Rule, tmp_path: Path) -> None:
    error = getattr(errors, rule.error)
    with pytest.raises(error) as caught:
        execute(rule.wrong, tmp_path)
    assert isinstance(caught.value, errors.OxidecopyError)
    assert rule.id in caught.value.rules
    assert type(caught.value) is error
    for diagnostic in caught.value.diagnostics:
        in_users_file = diagnostic.site is None or Path(diagnostic.site.file).parent == tmp_path
        of_text = "from_text" in rule.wrong  # sites are lines of the text
        assert in_users_file or of_text or rule.id.startswith("OX19"), "a site outside the user's file"


@with_scripts
def test_right_runs(rule: Rule, tmp_path: Path) -> None:
    execute(rule.right, tmp_path)


@with_warnings
def test_wrong_is_warned_of_and_right_is_not(rule: Rule, tmp_path: Path) -> None:
    assert rule.id in {warning.rule for warning in execute(rule.wrong, tmp_path)["warnings"]}
    assert rule.id not in {warning.rule for warning in execute(rule.right, tmp_path)["warnings"]}


@on_gpus
def test_a_page_of_gpus_is_true_on_a_driver_that_is_none(rule: Rule, tmp_path: Path) -> None:
    for folder in ("wrong", "right"):
        (tmp_path / folder).mkdir()
    with pytest.raises(getattr(errors, rule.error)) as caught:
        execute(rule.wrong, tmp_path, fake_device(tmp_path / "wrong", gpus=2)[0])
    assert rule.id in caught.value.rules
    execute(rule.right, tmp_path, fake_device(tmp_path / "right", gpus=2)[0])


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.id)
def test_the_page_is_complete(rule: Rule) -> None:
    assert rule.title
    assert rule.why
    assert rule.source
    assert issubclass(getattr(errors, rule.error), errors.OxidecopyError)
    assert bool(rule.wrong) == bool(rule.right)
    assert bool(rule.wrong) != (NO_SCRIPT in rule.why)


def test_a_rule_without_a_script_has_a_test() -> None:
    tests = "\n".join(path.read_text() for path in Path(__file__).parents[1].rglob("*.py"))
    assert [rule.id for rule in RULES if not rule.wrong and rule.id not in tests] == []


def test_scripts_apart_from_their_pages_are_of_rules_that_have_none_there() -> None:
    apart = [*BEYOND, *PLAYED, *WARNED, *TYPED, *ON_GPU, *PLAYED_ON_GPU]
    assert len(apart) == len(set(apart))
    assert set(apart) <= all_rules().keys()
    assert [rule.id for m in GATES for rule in m.RULES if rule.wrong and rule.id in apart] == []


def test_ids_are_in_their_gates() -> None:
    for rule in RULES:
        assert len(rule.id) == 6
        assert rule.id.startswith("OX")
        assert rule.id[2] in "1234567"
        assert rule.id[3:].isdigit()


def test_every_id_that_an_error_can_carry_has_a_page_and_every_page_an_error() -> None:
    package = Path(ox.__file__).parent
    sources = [path for path in package.rglob("*.py") if path.parent != package / "rules"]
    used = {word for path in sources for word in re.findall(r"\bOX\d{4}\b", path.read_text())}
    gates = {rule.id[2] for rule in RULES}
    assert sorted(word for word in used if word[2] in gates and word not in all_rules()) == []
    assert sorted(rule.id for rule in RULES if rule.id not in used) == []
