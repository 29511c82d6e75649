"""Every place in the plugin that says something, switched off once: some case is then missed. The places are found in the source."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from oxidecopy.mypy_plugin import _codes
from oxidecopy.mypy_plugin._features import literals
from oxidecopy.mypy_plugin._report import Reports
from tests.mypy_plugin.analysed import ROOT, Checked

if TYPE_CHECKING:
    import pytest

PLUGIN: Final = ROOT / "oxidecopy" / "mypy_plugin"
Site = tuple[str, int, int]  # file, first and last line


def sites() -> list[Site]:
    """Every `reports.say(...)` and every `Problem(...)`; the driver's is the one that passes problems on."""
    found = []
    for path in sorted(PLUGIN.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and (_is_say(node.func) or (isinstance(node.func, ast.Name) and node.func.id == "Problem")):
                found.append((str(path), node.lineno, node.end_lineno or node.lineno))
    return found


def _is_say(called: ast.expr) -> bool:
    return isinstance(called, ast.Attribute) and called.attr == "say" and getattr(called.value, "attr", "") == "reports"


def of_frame(depth: int) -> tuple[str, int]:
    frame = sys._getframe(depth + 1)
    return frame.f_code.co_filename, frame.f_lineno


class Switch:
    """Lets one place say nothing, and notes in which file each place spoke."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.off: Site | None = None
        self.file = ""
        self.spoke: dict[Site, set[str]] = {}
        self._sites = sites()
        say, problem = Reports.say, literals.Problem

        def quiet(reports: Reports, code: Any, *rest: Any, **named: Any) -> None:
            if not self._is_off(of_frame(1)) and code is not None:
                say(reports, code, *rest, **named)

        def made(**fields: Any) -> literals.Problem:
            return problem(**{**fields, "code": None} if self._is_off(of_frame(1)) else fields)

        monkeypatch.setattr(Reports, "say", quiet)
        for name in {Path(path).stem for path, *_ in self._sites if Path(path).parent.name == "_features"}:
            module = import_module(f"oxidecopy.mypy_plugin._features.{name}")
            if hasattr(module, "Problem"):
                monkeypatch.setattr(module, "Problem", made)

    def _is_off(self, at: tuple[str, int]) -> bool:
        site = next((s for s in self._sites if s[0] == at[0] and s[1] <= at[1] <= s[2]), None)
        if site is not None:
            self.spoke.setdefault(site, set()).add(self.file)
        return site is not None and site == self.off


def test_without_it_a_case_is_missed(checked: Checked, monkeypatch: pytest.MonkeyPatch) -> None:
    switch = Switch(monkeypatch)
    run: Callable[[str], set[tuple[int, str]]] = lambda name: set(checked.kept[name].again())  # noqa: E731  # short
    whole = {}
    for name in checked.sources:
        switch.file = name
        whole[name] = run(name)
    known = {code for found in whole.values() for _, code in found}
    assert known == set(_codes.PAGES) - {_codes.PLUGIN.code}, "every code has a case"
    spoke = dict(switch.spoke)
    missed_nowhere: list[str] = []
    for site in sites():
        switch.off = site
        if not any(run(name) != whole[name] for name in sorted(spoke.get(site, ()))):
            missed_nowhere.append(f"{Path(site[0]).name}:{site[1]}")
    assert missed_nowhere == []
