"""Every refused function of the cases has an accepted twin in its file that is one edit away."""

from __future__ import annotations

import ast
import re
from difflib import SequenceMatcher
from pathlib import Path

import pytest

from tests.mypy_plugin.analysed import CASES, MARK

FILES = sorted(CASES.glob("*.py"))
EDIT_MAX = 2  # lines that are changed, added or taken away; a line that moves is two
ALIKE_MIN = 0.75  # of their text

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(source: str) -> dict[str, list[str]]:
    """The lines of every function and method, by name; of functions inside others only the outer one."""
    lines, found = source.splitlines(), dict[str, list[str]]()

    def look(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, Function):
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                found[prefix + node.name] = lines[first - 1 : node.end_lineno]
            elif isinstance(node, ast.ClassDef):
                look(node.body, f"{prefix}{node.name}.")

    look(ast.parse(source).body, "")
    return found


def bare(name: str, lines: list[str]) -> list[str]:
    """Without comments, and without the function's own name."""
    own = re.compile(rf"\b{name.rpartition('.')[2]}\(")
    return [own.sub("function(", re.sub(r"\s+#.*$", "", line)) for line in lines]


def near(one: list[str], other: list[str]) -> bool:
    """One edit away: few lines differ, and what they say is mostly the same (all lines of a short function may differ)."""
    steps = SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
    if sum(max(i2 - i1, j2 - j1) for tag, i1, i2, j1, j2 in steps if tag != "equal") > EDIT_MAX:
        return False
    return SequenceMatcher(None, "\n".join(one), "\n".join(other), autojunk=False).ratio() >= ALIKE_MIN


def alone(source: str) -> list[str]:
    """Functions with a mark that no function without one is close to."""
    found = functions(source)
    refused = {name for name, lines in found.items() if any(MARK.search(line) for line in lines)}
    accepted = [bare(name, lines) for name, lines in found.items() if name not in refused]
    return [name for name in found if name in refused and not any(near(bare(name, found[name]), one) for one in accepted)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_refused_function_has_an_accepted_twin(path: Path) -> None:
    assert alone(path.read_text()) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_names_say_which_is_which(path: Path) -> None:
    found = functions(path.read_text())
    marked = {name for name, lines in found.items() if any(MARK.search(line) for line in lines)}
    assert {name for name in found if name.endswith("_bad")} == marked
    assert marked, "a file of cases without a refused one"


BAD = "def f_bad(b):\n    b.inval()\n    b.arrive()  # E: [oxidecopy-moved]\n"
FAR = "def f_ok(b):\n    for x in b:\n        print(x)\n"


def test_what_counts_as_a_twin() -> None:
    assert alone(BAD) == ["f_bad"]
    assert alone(BAD + FAR) == ["f_bad"]
    assert alone(BAD + "def f_ok(b):\n    b.arrive()\n    b.inval()\n") == []
    assert alone(BAD + "def f_ok(b):\n    b.inval()\n") == []
    assert alone(BAD + BAD.replace("f_bad", "g_bad")) == ["f_bad", "g_bad"], "refused ones are no twins"
