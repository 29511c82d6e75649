"""Modules type-checked by mypy's own API, for the plugin's parts that only need the typed tree: no plugin runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
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


def plugin_errors(name: str, source: str, cache: Path) -> list[tuple[int, str, str]]:
    """Line, code and message of every error of a module under the plugin and otherwise plain settings."""
    config = cache / "mypy.ini"
    config.write_text("[mypy]\nplugins = oxidecopy.mypy_plugin\n")
    path = cache / f"{name}.py"
    path.write_text(source)
    command = [sys.executable, "-m", "mypy", f"--config-file={config}", f"--cache-dir={cache}/mypy", "--output=json", str(path)]
    environment = {**os.environ, "MYPYPATH": str(ROOT), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=cache)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stdout + done.stderr)
    return [(row["line"], row["code"], row["message"]) for row in rows if row["severity"] == "error"]
