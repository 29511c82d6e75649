"""Functions and marks of modules whose marks name no code in full, as `# E tx`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mypy.nodes import FuncDef

from oxidecopy.mypy_plugin._features.literals_walk import Walker

if TYPE_CHECKING:
    from mypy.nodes import FuncItem, MypyFile

MARK = re.compile(r"# E (\w+)")


def functions(tree: MypyFile) -> list[FuncItem]:
    """Every function of a module, nested ones too."""
    found: list[FuncItem] = []

    def note(node: FuncDef) -> None:
        found.append(node)
        walker.deeper(node)

    walker = Walker({FuncDef: note})
    walker.all(tree.defs)
    return found


def marks(source: str) -> Iterator[tuple[int, str]]:
    """Line and kind of each `# E kind`."""
    for number, line in enumerate(source.splitlines(), 1):
        for kind in MARK.findall(line):
            yield number, kind
