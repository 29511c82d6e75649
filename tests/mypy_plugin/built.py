"""Modules type-checked by mypy's own API, for the plugin's parts that only need the typed tree: no plugin runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mypy.build import BuildResult, build
from mypy.modulefinder import BuildSource
from mypy.nodes import FuncDef
from mypy.options import Options

from oxidecopy.mypy_plugin._features.literals_walk import Walker

if TYPE_CHECKING:
    from mypy.nodes import FuncItem, MypyFile

ROOT = Path(__file__).resolve().parents[2]
MARK = re.compile(r"# E (\w+)")


def checked(sources: Mapping[str, str], cache: Path) -> BuildResult:
    """The modules by name; what plain mypy says of them is in `errors`."""
    options = Options()
    options.export_types = True
    options.preserve_asts = True
    options.strict_optional = True
    options.cache_dir = str(cache)
    options.mypy_path = [str(ROOT)]
    options.follow_imports = "silent"
    return build([BuildSource(f"{name}.py", name, text) for name, text in sources.items()], options=options)


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
