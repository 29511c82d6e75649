"""Holds type checkers against marked user code, and writes who catches what into docs/checkers.md. `--check` only compares.

The code is `tests/typing/contract` and the matrix of `typing_matrix`: a line marked `# E` must get an error, a line without a mark none.
It knows the checkers as command lines and works on the checkout that holds this file. Each is run once, on all files, in its strictest
mode and without a plugin.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, final

from oxidecopy._tools.typing_matrix import matrix

ROOT: Final = Path(__file__).resolve().parents[2]
CONTRACT: Final = ROOT / "tests" / "typing" / "contract"
FILES: Final = ("types_ok", "inferred", "types_bad", "host", "level1", "rings", "rings_bad", "cubins", "tables", "interop", "oneliners")
PAGE: Final = ROOT / "docs" / "checkers.md"
_TABLES: Final = re.compile(r"(?<=<!-- checkers -->\n)(?P<body>.*)(?=<!-- /checkers -->\n)", re.DOTALL)
# Functions that show several mistakes of one kind, in words; others say by their names what is wrong in them.
_WORDS: Final = {
    "prefetch": "Python's `range` over a symbol",
    "scalar_index": "a `Scalar` as trip count and in index arithmetic",
    "call": "arguments of a launch",
    "declarations": "declarations of pipelines",
    "hosts": "descriptors, arrays and devices",
    "host_bad": "boxes, launches and arrays",
    "any_copy": "arguments of a pipeline that is passed on",
    "pipelines_passed_on": "pipelines passed on to a helper",
    "store_bad": "plain stores",
    "idx_bad": "symbolic integers as Python's",
    "wait_nothing": "a wait for nothing",
    "states": "every method of a barrier in the wrong state",
    "arrays": "arrays of barriers",
    "kinds": "barrier kinds, and arguments of barriers",
    "tokens": "tokens of other barriers, and arguments of waits",
    "written": "annotations, and handles given away",
    "tiles": "tiles and boxes",
    "plain_accesses": "fill, iota and store",
    "scopes": "leaders, groups, threads, no cluster",
    "multicast": "multicast",
    "symbols": "index arithmetic and conditions",
    "scale": "maps of tiles and store rings",
    "bad": "slots, tiles, groups and leaders of rings",
    "calls": "arguments of a launch with rings",
    "tables_bad": "tables of descriptors, and launches with them",
    "table_copies": "copies through entries of tables",
    "own_kernels": "arguments of own kernels",
    "own_declarations": "declarations of own kernels",
    "reductions": "reduction x element type (all pairs)",
    "element_types": "element type of map x tile (all pairs)",
    "scalars": "element type of tile x scalar (all pairs)",
    "coordinates": "rank of map x coordinates (all pairs, every copy)",
    "boxes": "rank of array x box (all pairs)",
    "alignments": "swizzle x alignment (all pairs, every copy)",
    "borrowed": "memory of other libraries",
    "viewed": "views of arrays",
    "lent": "arrays handed to other libraries",
    "oneliners_bad": "one-liners",
}

Lines = dict[str, set[int]]  # file -> lines with an error


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A line that must get an error; `kind` is the function it stands in."""

    file: str
    line: int
    kind: str
    code: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Checker:
    """A type checker: what to write beside the files, what to run there, and how to read its answer."""

    name: str
    arguments: tuple[str, ...]
    read: Callable[[str], Iterator[tuple[str, int]]]
    config: Mapping[str, str] = field(default_factory=dict)


# ---- the checkers
_COLUMNS: Final = re.compile(r"^(?P<file>[^\s:]+):(?P<line>\d+):(?:\d+:)? error\b", re.MULTILINE)


def _lines(output: str) -> Iterator[tuple[str, int]]:
    return ((Path(m["file"]).stem, int(m["line"])) for m in _COLUMNS.finditer(output))


def _pyright(output: str) -> Iterator[tuple[str, int]]:
    found: list[dict[str, Any]] = json.loads(output)["generalDiagnostics"]
    return ((Path(d["file"]).stem, d["range"]["start"]["line"] + 1) for d in found if d["severity"] == "error")


def _pyrefly(output: str) -> Iterator[tuple[str, int]]:
    found: list[dict[str, Any]] = json.loads(output)["errors"]
    return ((Path(e["path"]).stem, e["line"]) for e in found if e["severity"] == "error")


_PYRIGHT: Final = {"typeCheckingMode": "strict", "include": ["."], "extraPaths": [str(ROOT)], "stubPath": str(ROOT / "stubs")}
CHECKERS: Final = (
    Checker(
        name="mypy",
        arguments=("--config-file=mypy.ini", f"--cache-dir={ROOT / '.mypy_cache' / 'checkers'}", "."),
        read=_lines,
        config={"mypy.ini": f"[mypy]\nstrict = True\npretty = False\nmypy_path = {ROOT},{ROOT / 'stubs'}\n"},
    ),
    Checker(
        name="pyright",
        arguments=("--pythonpath", sys.executable, "--outputjson", "-p", "."),
        read=_pyright,
        config={"pyrightconfig.json": json.dumps(_PYRIGHT)},
    ),
    Checker(
        name="ty",
        arguments=("check", "--python", sys.prefix, "--extra-search-path", str(ROOT), "--output-format", "concise", "--no-progress", "."),
        read=_lines,
    ),
    Checker(
        name="pyrefly",
        arguments=(
            *("check", "--preset", "strict", "--python-interpreter-path", sys.executable),
            *("--search-path", str(ROOT), "--search-path", str(ROOT / "stubs"), "--output-format", "json", "."),
        ),
        read=_pyrefly,
    ),
)


class BrokenCheckerError(Exception):
    """A checker that is not there or gives no answer."""


def run(checker: Checker) -> Lines:
    """The lines that a checker finds fault with, in all files at once."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in sources().items():
            (folder / f"{file}.py").write_text(text)
        for file, text in checker.config.items():
            (folder / file).write_text(text)
        command = [sys.executable, "-m", checker.name, *checker.arguments]
        environment = os.environ | {"NO_COLOR": "1", "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode not in (0, 1) or (done.returncode and not done.stdout.strip()):
        raise BrokenCheckerError(f"{checker.name} gives no answer:\n{done.stdout}{done.stderr}")
    found: Lines = {}
    for file, line in checker.read(done.stdout):
        found.setdefault(file, set()).add(line)
    return found


# ---- the marked code
def sources() -> dict[str, str]:
    """All files by name."""
    return {name: (CONTRACT / f"{name}.py").read_text() for name in FILES} | {"matrix": matrix()}


def marks(files: Mapping[str, str]) -> list[Mark]:
    """Every marked line, in order."""
    found: list[Mark] = []
    for file, text in files.items():
        kind = ""
        for number, line in enumerate(text.splitlines(), 1):
            if header := re.match(r"def (?P<name>\w+)", line):
                kind = header["name"].partition("__")[0]
            if re.search(r"#\s*E\b", line):
                found.append(Mark(file=file, line=number, kind=kind, code=line.split("  # E", maxsplit=1)[0].strip()))
    return found


# ---- the page
def column(wanted: Sequence[Mark], found: Lines) -> list[str]:
    """A checker's column of the table: for each kind all, or how many of its marks were caught; the number of all at the end."""
    cells: list[str] = []
    for kind in dict.fromkeys(mark.kind for mark in wanted):
        lines = [mark for mark in wanted if mark.kind == kind]
        caught = sum(mark.line in found.get(mark.file, ()) for mark in lines)
        cells.append("all" if caught == len(lines) else f"{caught} of {len(lines)}")
    return [*cells, f"**{sum(mark.line in found.get(mark.file, ()) for mark in wanted)}**"]


def differences(wanted: Sequence[Mark], found: Lines, files: Mapping[str, str]) -> list[str]:
    """What a checker misses, and what it reports without need: one line each."""
    marked = {(mark.file, mark.line) for mark in wanted}
    missed = [f"misses `{mark.code}` ({_label(mark.kind)})" for mark in wanted if mark.line not in found.get(mark.file, ())]
    extra = [
        f"reports `{files[file].splitlines()[line - 1].strip()}` ({file}.py)"
        for file in files
        for line in sorted(found.get(file, ()))
        if (file, line) not in marked
    ]
    return missed + extra


def _label(kind: str) -> str:
    return _WORDS.get(kind, kind.replace("_", " "))


def tables(results: Mapping[str, Lines]) -> str:
    """The generated part of the page."""
    files = sources()
    wanted = marks(files)
    kinds = list(dict.fromkeys(mark.kind for mark in wanted))
    counts = [*(str(sum(mark.kind == kind for mark in wanted)) for kind in kinds), f"**{len(wanted)}**"]
    columns = [column(wanted, found) for found in results.values()]
    rows = [("kind of mistake", "lines", *results), ("---",) * (2 + len(results))]
    rows += zip([*map(_label, kinds), "**all**"], counts, *columns, strict=True)
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    notes = [f"- {name} {what}\n" for name, found in results.items() for what in differences(wanted, found, files)]
    return table + "\n" + ("".join(notes) or "No checker misses a marked line, and none reports a line without a mark.\n")


def main(arguments: Sequence[str] | None = None, checkers: Sequence[Checker] = CHECKERS, page: Path = PAGE) -> int:
    """0 when the page is up to date (or was written), 1 when `--check` finds that it is not, 2 when a checker gives no answer."""
    parser = argparse.ArgumentParser(
        prog="python -m oxidecopy._tools.checker_table", description="Writes who catches what into docs/checkers.md."
    )
    parser.add_argument("--check", action="store_true", help="write nothing, end with 1 when the page is out of date")
    options = parser.parse_args(arguments)
    try:
        made = tables({checker.name: run(checker) for checker in checkers})
    except BrokenCheckerError as problem:
        print(problem, file=sys.stderr)
        return 2
    old = page.read_text()
    new = _TABLES.sub(lambda _: made, old)
    if new == old:
        return 0
    if not options.check:
        page.write_text(new)
        return 0
    lines = difflib.unified_diff(old.splitlines(keepends=True), new.splitlines(keepends=True), page.name, "what it should be")
    print(f"{page.name} is out of date: python -m oxidecopy._tools.checker_table\n{''.join(lines)}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
