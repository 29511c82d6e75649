"""Keeps README and docs true: runs their programs and commands, and writes what these print into them. `--check` only compares.

These comments mark the fenced block, or the table, that follows them:

    <!-- python: NAME.py -->      a program; it is run, unless a command of the same page takes it as its subject
    <!-- output: COMMAND -->      what the command prints, run where the programs of the page lie
    <!-- table: FILE.json -->     a committed result: rows of `oxidecopy bench`, counts of `oxidecopy conformance fuzz` and of
                                  `_tools.rule_mutants`
    <!-- table: FILE.json, some: NAME; NAME -->   the rows of a benchmark with these names, or parts of names

It knows the package only as command lines, and works on the checkout that holds this file.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
PAGES: Final = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
_FENCED: Final = r"^<!-- {kind}: (?P<what>[^\n]+) -->\n```{language}\n(?P<body>.*?)^```$"
_TABLE: Final = r"^<!-- table: (?P<what>[^\s,]+)(?:, some: (?P<some>[^\n]+))? -->\n(?P<body>(?:\|[^\n]*\n)+)"

Output = Callable[[str, Path], str]


class BrokenPageError(Exception):
    """A program of a page does not run, or a row that it shows is not there."""


def _pattern(kind: str, language: str) -> re.Pattern[str]:
    return re.compile(_FENCED.format(kind=kind, language=language), re.MULTILINE | re.DOTALL)


def programs(text: str) -> dict[str, str]:
    """The marked programs by file name."""
    return {m["what"]: m["body"] for m in _pattern("python", "python").finditer(text)}


def commands(text: str) -> list[str]:
    """The commands whose output is shown."""
    return [m["what"] for m in _pattern("output", "text").finditer(text)]


def refreshed(text: str, output: Output) -> str:
    """`text` with every marked output and table as it would be now; `output` runs a command in a folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for program, body in programs(text).items():
            (folder / program).write_text(body)
        subjects = {word for command in commands(text) for word in shlex.split(command)}
        for program in programs(text):
            if program not in subjects:
                output(f"python {program}", folder)
        text = _pattern("output", "text").sub(lambda m: _with_body(m, output(m["what"], folder)), text)
    return re.sub(_TABLE, lambda m: _with_body(m, _table_of(m)), text, flags=re.MULTILINE)


def _table_of(marked: re.Match[str]) -> str:
    names = marked["some"].split("; ") if marked["some"] else ()
    return table(json.loads((ROOT / marked["what"]).read_text()), names)


def _with_body(match: re.Match[str], body: str) -> str:
    if comparable(body) == comparable(match["body"]):
        return match[0]
    start, end = match.start("body") - match.start(), match.end("body") - match.start()
    return match[0][:start] + body + match[0][end:]


def table(result: dict[str, Any], names: Sequence[str] = ()) -> str:
    """A committed result as a table; its last row says where and when. Of a benchmark the rows named, or all of them."""
    return _counts(result) if "rows" not in result else _figures(result, names)


# What the counts of a campaign are called, in the order of the table.
_COUNTED: Final = {
    "well_formed": "well-formed programs",
    "mutants": "programs with one edit, or two",
    "accepted": "accepted by the verifier",
    "exhaustive_complete": "of these under every schedule there is",
    "exhaustive_bounded": "of these under every schedule up to a bound",
    "stopped": "of these ended by an index that was read and is out of its bounds, as they should",
    "refused": "refused by the verifier",
    "shown": "of these seen to go wrong on the simulator",
    "schedules": "schedules run",
    "equal": "on the device: every byte as on the simulator",
    "loose": "on the device: ran; their bytes may differ from run to run, by design",
}
_SCORED: Final = {"rules": "rules of the verifier", "rules_killed": "of these missed by a test", "places": "places that report them",
                  "places_killed": "of these missed by a test", "tests": "tests of the verifier"}  # fmt: skip


def _counts(result: dict[str, Any]) -> str:
    """Of programs that were judged, or of rules that were taken away."""
    numbers = result.get("numbers", result)
    named = _COUNTED if "numbers" in result else _SCORED
    rows = [(words, numbers[name]) for name, words in named.items() if numbers.get(name)]
    if "disagreements" in result:
        rows.append((f"disagreements of {result['judges']}", result["disagreements"]))
    places = [result[of] for of in ("device", "cpu") if result.get(of) not in (None, "none")]
    commit = [f"commit {result['commit']}"] if result.get("commit") else []
    where = ", ".join([f"`{result['command']}`", *places, *commit, result["date"][:10]])
    return (
        "\n".join(["| what | number |", "|---|---|", *(f"| {words} | {number:,} |" for words, number in rows), f"| *{where}* | |"]) + "\n"
    )


def _figures(result: dict[str, Any], names: Sequence[str]) -> str:
    """A benchmark's rows: what, median and target; where only some are shown, how many targets all of them have and meet."""
    rows = {row["what"]: row for row in result["rows"]}
    lines = ["| what | median | target |", "|---|---|---|"]
    for row in [rows[_whole(name, rows)] for name in names] or rows.values():
        found = row["absent"] if "absent" in row else _figure(row["median"], row["unit"])
        lines.append(f"| {row['what']} | {found} | {_asked(row)} |")
    if names:
        asked = [row for row in rows.values() if row.get("target") is not None]
        met = sum(bool(row.get("passed")) for row in asked)
        lines.append(f"| all {len(rows)} rows | | {met} of {len(asked)} targets met |")
    places = ("device", "driver", "cubin", "cpu", "platform", "python", "numpy")
    named = {"python": "Python ", "numpy": "numpy ", "driver": "driver for "}
    where = ", ".join(f"{named.get(of, '')}{result[of]}" for of in places if of in result)
    return "\n".join([*lines, f"| *{where}, {result['date'][:10]}* | | |"]) + "\n"


def _whole(name: str, rows: Collection[str]) -> str:
    """The row of this name, or the one that has it in its name: which schedule was the fastest may change."""
    found = [name] if name in rows else [row for row in rows if name in row]
    if len(found) != 1:
        raise BrokenPageError(f"the result has {len(found)} rows with {name!r} in their names")
    return found[0]


def _asked(row: dict[str, Any]) -> str:
    """The target, where there is one, and whether it was missed."""
    if row.get("target") is None:
        return ""
    bound = "at most" if row["better"] == "lower" else "at least"
    return f"{bound} {row['target']:g}{'' if row['passed'] else ' (missed)'}"


def _figure(value: float, unit: str) -> str:
    """As many digits as the unit is told apart by; ratios have none."""
    return f"{value:.3f}" if unit == "x" else f"{value:.1f} {unit}" if unit == "us" else f"{value:.0f} {unit}"


def run(command: str, folder: Path) -> str:
    """What a command of a page prints.

    Raises:
        BrokenPageError: a program that fails, or a command that breaks down instead of refusing something.
    """
    first, *rest = shlex.split(command)
    match first:
        case "python":
            start = [sys.executable]
        case "mypy":
            start = [sys.executable, "-m", "mypy", "--config-file=", f"--cache-dir={ROOT / '.mypy_cache' / 'readme'}"]
        case "oxidecopy":
            start = [sys.executable, "-c", "from oxidecopy.cli import main; main()"]
        case _:
            raise ValueError(f"a page shows the output of {first!r}, which this tool does not run")
    # What the output depends on beside the program: the width of the screen, colours, and where the package is found.
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "FORCE_COLOR", "PYTHONPATH")}
    environment |= {"PYTHONPATH": str(ROOT), "NO_COLOR": "1", "TERM": "dumb"}
    done = subprocess.run(
        [*start, *rest], cwd=folder, env=environment, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    if (first == "python" and done.returncode) or "Traceback (most recent call last)" in done.stderr:
        raise BrokenPageError(f"{command} fails:\n{done.stderr}")
    return done.stdout + done.stderr


def comparable(text: str) -> str:
    """`text` without what may differ from one run of mypy to the next (a warm cache, another version): the words of its messages.

    Places and codes stay.
    """
    return re.sub(r"(?<=: error: )[^\n]*(?=\[[a-z-]+\]$)", "", text, flags=re.MULTILINE)


def main(arguments: Sequence[str] | None = None, pages: Sequence[Path] = PAGES, output: Output = run) -> int:
    """0 when all pages are up to date (or were written), 1 when a program fails or `--check` finds a page that is not."""
    parser = argparse.ArgumentParser(
        prog="python -m oxidecopy._tools.docs", description="Runs what README and docs show, and writes the results into them."
    )
    parser.add_argument("--check", action="store_true", help="write nothing, end with 1 when something is out of date")
    options = parser.parse_args(arguments)
    good = [_page(page, output, write=not options.check) for page in pages]
    return 0 if all(good) else 1


def _page(page: Path, output: Output, *, write: bool) -> bool:
    old = page.read_text()
    try:
        new = refreshed(old, output)
    except BrokenPageError as problem:
        print(f"{page.name}: {problem}", file=sys.stderr)
        return False
    if old == new:
        return True
    if write:
        page.write_text(new)
        return True
    lines = difflib.unified_diff(old.splitlines(keepends=True), new.splitlines(keepends=True), page.name, "what it should be")
    print(f"{page.name} is out of date: python -m oxidecopy._tools.docs\n{''.join(lines)}", file=sys.stderr)
    return False


if __name__ == "__main__":
    raise SystemExit(main())
