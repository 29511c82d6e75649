"""Loops that are over after one turn of the pass: nothing is found or missed by that, and what needs a second turn gets one."""

from __future__ import annotations

from pathlib import Path

import pytest
from mypy.nodes import ForStmt, FuncDef, NameExpr, WhileStmt

from oxidecopy.mypy_plugin import _settled, _statements
from oxidecopy.mypy_plugin._config import Config
from oxidecopy.mypy_plugin._features.literals_walk import statements
from oxidecopy.mypy_plugin._index import Index
from tests.mypy_plugin.analysed import Checked, check


def without_leaks(checked: Checked) -> dict[str, tuple[set[tuple[int, str]], list[str]]]:
    """Lines, codes and words. Where leaks are looked for, every loop has its turns."""
    return {name: (checked.kept[name].again(Config()), checked.kept[name].texts) for name in checked.sources}


def test_the_short_way_finds_the_same(checked: Checked, monkeypatch: pytest.MonkeyPatch) -> None:
    short = without_leaks(checked)
    turns = [0, 0]
    decide = _settled.nothing_for_the_next

    def counted(*given: object) -> bool:
        found = decide(*given)  # type: ignore[arg-type]
        turns[found] += 1
        return found

    monkeypatch.setattr(_statements, "nothing_for_the_next", counted)
    assert without_leaks(checked) == short
    assert min(turns) > 100
    monkeypatch.setattr(_statements, "nothing_for_the_next", lambda *_: False)
    assert without_leaks(checked) == short


@pytest.mark.parametrize("part", ["bound_anew", "_changed"])
def test_a_second_turn_that_is_not_made_is_missed(checked: Checked, monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    before = without_leaks(checked)
    if part == "bound_anew":
        monkeypatch.setattr(Index, part, lambda *_: True)
    else:
        monkeypatch.setattr(_settled, part, lambda *_: ())
    assert without_leaks(checked) != before


# Each function has one loop; `x` is bound in it before anything reads it, or not.
SHAPES = """\
from contextlib import suppress
from typing import Any
def f(*_: Any) -> Any: ...
def yes_first(n: int) -> None:
    for i in range(n):
        x = f(i)
        f(x)
def yes_target(xs: list[int]) -> None:
    for x in xs:
        f(x)
def yes_unpacked(n: int) -> None:
    while f():
        x, (y, *z) = f(), f()
        f(x, y, z)
def yes_with(n: int) -> None:
    for i in range(n):
        with f(i) as x:
            f(x)
        f(x)
def yes_in_a_block(n: int) -> None:
    for i in range(n):
        with f(i):
            x = f()
        f(x)
def yes_in_one_branch(n: int) -> None:
    for i in range(n):
        if f(i):
            x = f()
            f(x)
def yes_held_back_inside(n: int) -> None:
    for i in range(n):
        with suppress(ValueError):
            x = f()
            f(x)
def yes_inner_loop(n: int) -> None:
    for i in range(n):
        for x in f(i):
            f(x)
def yes_handled(n: int) -> None:
    for i in range(n):
        try:
            x = f()
            f(x)
        except ValueError:
            f(i)
def yes_matched(n: int) -> None:
    for i in range(n):
        match f(i):
            case 1:
                x = f()
                f(x)
def no_read_first(n: int) -> None:
    x = f()
    for i in range(n):
        f(x)
        x = f()
def no_in_its_own_value(n: int) -> None:
    x = f()
    for i in range(n):
        x = f(x)
def no_condition(n: int) -> None:
    x = f()
    while f(x):
        x = f()
def no_branch_and_behind(n: int) -> None:
    x = f()
    for i in range(n):
        if f(i):
            x = f()
        f(x)
def no_two_branches(n: int) -> None:
    x = f()
    for i in range(n):
        if f(i):
            x = f()
        else:
            f(x)
def no_added(n: int) -> None:
    x = f()
    for i in range(n):
        x += f()
def no_part(n: int) -> None:
    x = f()
    for i in range(n):
        x.part = f()
def no_element(n: int) -> None:
    x = f()
    for x[0] in range(n):
        f()
def no_source(n: int) -> None:
    x = f()
    for x in f(x):
        f()
def no_inner_source(n: int) -> None:
    x = f()
    for i in range(n):
        for x in f(x):
            f()
def no_opened(n: int) -> None:
    x = f()
    for i in range(n):
        with f(x) as x:
            f()
def no_held_back(n: int) -> None:
    x = f()
    for i in range(n):
        with suppress(ValueError):
            x = f()
        f(x)
def no_inner_loop(n: int) -> None:
    x = f()
    for i in range(n):
        for j in range(n):
            x = f()
        f(x)
def no_handled(n: int) -> None:
    x = f()
    for i in range(n):
        try:
            x = f()
        except ValueError:
            f(x)
def no_walrus(n: int) -> None:
    x = f()
    while (x := f(x)):
        f(x)
"""


def test_names_that_each_iteration_binds_anew(cache: Path) -> None:
    kept = check({"shapes": f"import oxidecopy as ox\n{SHAPES}def g(cta: ox.Cta) -> None:\n    cta.barrier()\n"}, cache).kept["shapes"]
    index = Index(kept.types, ())
    found = {}
    for function in kept.tree.defs:
        if isinstance(function, FuncDef) and function.name.startswith(("yes_", "no_")):
            loop = next(s for s in statements([function.body]) if isinstance(s, ForStmt | WhileStmt))
            x = next(
                e.node
                for e in kept.types
                if isinstance(e, NameExpr) and e.name == "x" and function.line < e.line <= (function.end_line or 0)
            )
            swallowing = [s for s in statements([function.body]) if "held_back" in function.name and hasattr(s, "target")]
            assert x is not None
            found[function.name] = index.bound_anew(x, loop, swallowing)
    assert len(found) == 25
    assert {name for name, bound in found.items() if bound} == {name for name in found if name.startswith("yes_")}
