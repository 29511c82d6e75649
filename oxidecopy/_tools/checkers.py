"""Which type checker catches which mistake: runs mypy, pyright, ty and pyrefly over marked files and writes docs/checkers.md.

`python -m oxidecopy._tools.checkers` rewrites the page, `--check` exits with 1 when it is out of date. A line marked `# E` must get an
error, any other line none. No checker gets a plugin; mypy and pyright run strict, pyrefly with its strict preset.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias, final

from oxidecopy._tools.check import ROOT

FOLDER: Final = ROOT / "tests" / "typing" / "contract"
PAGE: Final = ROOT / "docs" / "checkers.md"
FILES: Final = ("types_ok", "types_bad", "host", "rings", "rings_bad", "level1")
TIMEOUT_S: Final = 240

Lines: TypeAlias = Mapping[str, frozenset[int]]  # by file: the lines with an error


@final
@dataclass(frozen=True, slots=True)
class Verdict:
    """One checker on one file: marked lines it caught and missed, and lines without a mark that it flagged."""

    caught: frozenset[int]
    missed: frozenset[int]
    unexpected: frozenset[int]


def marked(file: str) -> dict[int, str]:
    """Marked lines and what their mark says."""
    found = {}
    for number, line in enumerate((FOLDER / f"{file}.py").read_text(encoding="utf-8").splitlines(), 1):
        mark = re.search(r"#\s*E\b\s*(.*)", line)
        if mark:
            found[number] = mark[1].strip() or line.split("#")[0].strip()
    return found


# ---- one function per checker: paths -> lines with an error
def run_mypy(paths: Sequence[Path], scratch: Path) -> Lines:
    """What `mypy --strict` finds."""
    config = scratch / "mypy.ini"
    config.write_text(f"[mypy]\nstrict = True\npretty = False\nmypy_path = {ROOT}\n")
    output = _output([sys.executable, "-m", "mypy", "--config-file", str(config), f"--cache-dir={scratch / 'cache'}", *map(str, paths)])
    return _by_file(re.findall(r"([^\s:]+\.py):(\d+):(?:\d+:)? error:", output))


def run_pyright(paths: Sequence[Path], scratch: Path) -> Lines:
    """What pyright finds, strict. It reads its settings and its files from one folder."""
    for path in paths:
        shutil.copy(path, scratch)
    settings = {"typeCheckingMode": "strict", "extraPaths": [str(ROOT)], "pythonVersion": "3.11"}
    (scratch / "pyrightconfig.json").write_text(json.dumps(settings))
    report = json.loads(_output([sys.executable, "-m", "pyright", "--outputjson", "-p", str(scratch)], errors=False))
    return _by_file((d["file"], d["range"]["start"]["line"] + 1) for d in report["generalDiagnostics"] if d["severity"] == "error")


def run_ty(paths: Sequence[Path], scratch: Path) -> Lines:
    """What ty finds as it comes."""
    del scratch
    command = [
        _beside("ty"),
        "check",
        "--output-format",
        "concise",
        "--python",
        sys.prefix,
        "--extra-search-path",
        str(ROOT),
        *map(str, paths),
    ]
    return _by_file(re.findall(r"([^\s:]+\.py):(\d+):\d+: error", _output(command)))


def run_pyrefly(paths: Sequence[Path], scratch: Path) -> Lines:
    """What pyrefly finds with its strict preset."""
    del scratch
    command = [
        _beside("pyrefly"),
        "check",
        "--preset",
        "strict",
        "--output-format",
        "min-text",
        "--search-path",
        str(ROOT),
        *map(str, paths),
    ]
    return _by_file(re.findall(r"ERROR ([^\s:]+\.py):(\d+):", _output(command)))


CHECKERS: Final[dict[str, Callable[[Sequence[Path], Path], Lines]]] = {
    "mypy": run_mypy,
    "pyright": run_pyright,
    "ty": run_ty,
    "pyrefly": run_pyrefly,
}


def _beside(program: str) -> str:
    """A program of this Python's environment."""
    return str(Path(sys.executable).parent / program)


def _output(command: Sequence[str], *, errors: bool = True) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, cwd=ROOT)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{' '.join(command[:4])} ended with {done.returncode}: {done.stderr[-500:]}")
    return done.stdout + (done.stderr if errors else "")


def _by_file(found: Iterable[tuple[str, int | str]]) -> Lines:
    lines: dict[str, set[int]] = {}
    for path, line in found:
        lines.setdefault(Path(path).stem, set()).add(int(line))
    return {file: frozenset(numbers) for file, numbers in lines.items()}


def verdicts(checker: str) -> dict[str, Verdict]:
    """What one checker says of every file."""
    with tempfile.TemporaryDirectory() as scratch:
        lines = CHECKERS[checker]([FOLDER / f"{file}.py" for file in FILES], Path(scratch))
    out = {}
    for file in FILES:
        wanted, found = frozenset(marked(file)), lines.get(file, frozenset())
        out[file] = Verdict(wanted & found, wanted - found, found - wanted)
    return out


# ---- the page
def page(results: Mapping[str, Mapping[str, Verdict]]) -> str:
    """docs/checkers.md."""
    rows = ["| file | marks | " + " | ".join(results) + " |", "|---|---|" + "---|" * len(results)]
    for file in FILES:
        cells = [_cell(results[checker][file]) for checker in results]
        rows.append(f"| `{file}.py` | {len(marked(file))} | " + " | ".join(cells) + " |")
    text = _HEAD + "\n".join(rows) + "\n" + _MIDDLE
    for checker, by_file in results.items():
        for file, verdict in by_file.items():
            known = marked(file)
            text += "".join(f"- {checker} misses `{file}.py` line {n}: {known[n]}\n" for n in sorted(verdict.missed))
            text += "".join(f"- {checker} flags `{file}.py` line {n}, which is right\n" for n in sorted(verdict.unexpected))
    return text if not text.endswith(_MIDDLE) else text + "None.\n"


def _cell(verdict: Verdict) -> str:
    total = len(verdict.caught) + len(verdict.missed)
    extra = f", {len(verdict.unexpected)} false" if verdict.unexpected else ""
    return f"{len(verdict.caught)} of {total}{extra}"


_HEAD: Final = """# What the type checkers catch

The files of `tests/typing/contract` are user code in which every mistake is a line marked `# E`: wrong barrier states, kinds and brands,
alignments, ranks, boxes, element types, swizzles, thread roles, reductions, ring arity, launch arguments. The table says how many marked
lines each checker flags, and how many right lines. No plugin is used; mypy and pyright run strict, pyrefly with its strict preset, ty as
it comes. A test runs all four and holds this page equal (`python -m oxidecopy._tools.checkers`).

"""
_MIDDLE: Final = """
What no checker sees without a plugin, and the recorder or the verifier refuses: use of a handle after it was taken, a token waited for
twice or on another unbranded barrier, a leader or tile outside its block, numbers of bytes, boxes given as values, a float for an integer
`Scalar`.

## Differences from the marks

"""


def main(argv: Sequence[str] | None = None) -> int:
    """Rewrites the page, or checks it."""
    parser = argparse.ArgumentParser(prog="python -m oxidecopy._tools.checkers", description=__doc__)
    parser.add_argument("--check", action="store_true", help="say whether the page is up to date; write nothing")
    options = parser.parse_args(argv)
    text = page({checker: verdicts(checker) for checker in CHECKERS})
    if options.check:
        same = PAGE.exists() and PAGE.read_text(encoding="utf-8") == text
        print(f"{PAGE.name} is {'up to date' if same else 'out of date: run python -m oxidecopy._tools.checkers'}")
        return 0 if same else 1
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
