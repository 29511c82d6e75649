"""Runs the lessons on a GPU under NVIDIA's compute-sanitizer: `python -m oxidecopy._tools.sanitize [--output FILE.json]`.

It needs a GPU and the sanitizer of a CUDA toolkit on PATH, so it is no step of `_tools.check`. The verdicts are the sanitizer's own last
lines; a lesson fails when it says anything but that there were no errors, or when the lesson's own check fails under it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Final, final

ROOT: Final = Path(__file__).resolve().parents[2]
TOOLS: Final = ("memcheck", "racecheck", "synccheck")
_CLEAN: Final = ("ERROR SUMMARY: 0 errors", "RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)")
_JOBS: Final = 8
_SECONDS: Final = 240


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How one lesson went under one tool; `said` is the tool's summary, or the end of the output where there was none."""

    lesson: str
    tool: str
    clean: bool
    said: str


def check(sanitizer: str, lesson: Path, tool: str) -> Verdict:
    """One lesson under one tool."""
    command = [sanitizer, "--tool", tool, "--error-exitcode", "99", sys.executable, str(lesson), "--device", "cuda:0"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return Verdict(lesson=lesson.stem, tool=tool, clean=False, said=f"not done after {_SECONDS} s")
    lines = [line.removeprefix("=========").strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    said = next((line for line in reversed(lines) if "SUMMARY" in line), lines[-1] if lines else "nothing")
    return Verdict(lesson=lesson.stem, tool=tool, clean=done.returncode == 0 and said.startswith(_CLEAN), said=said)


def main(argv: Sequence[str] | None = None) -> int:
    """Prints a line for each lesson and tool; 1 when any is not clean, 2 without a sanitizer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", metavar="FILE.json", type=Path, help="write the verdicts with date and version")
    options = parser.parse_args(argv)
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer is None:
        print("compute-sanitizer is not on PATH", file=sys.stderr)
        return 2
    lessons = sorted((ROOT / "examples").glob("[0-9]*.py"))
    with ThreadPoolExecutor(_JOBS) as pool:
        verdicts = list(pool.map(lambda pair: check(sanitizer, *pair), product(lessons, TOOLS)))
    for verdict in verdicts:
        print(f"{verdict.lesson:<22} {verdict.tool:<10} {'clean' if verdict.clean else 'NOT CLEAN'}  {verdict.said}")
    if options.output:
        version = subprocess.run([sanitizer, "--version"], capture_output=True, text=True, check=False).stdout.strip().splitlines()
        data = {
            "command": "python -m oxidecopy._tools.sanitize",
            "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "sanitizer": version[-1] if version else "",
            "clean": all(v.clean for v in verdicts),
            "verdicts": [asdict(v) for v in verdicts],
        }
        options.output.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
    return 0 if all(v.clean for v in verdicts) else 1


if __name__ == "__main__":
    raise SystemExit(main())
