"""mypy on the user's file, in a process of its own, with strict settings and none of the user's configuration."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final, final

from oxidecopy.errors import Diagnostic, Site

_TIMEOUT_SECONDS: Final = 300  # a cold cache takes half a minute for numpy's stubs


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TypesChecked:
    """What mypy said of one file; `skipped` says why it was not asked, or is empty. Rules are mypy's error codes."""

    diagnostics: tuple[Diagnostic, ...] = ()
    skipped: str = ""


def installed() -> bool:
    return find_spec("mypy") is not None


def check_types(path: Path) -> TypesChecked:
    """Runs mypy; its cache is kept in the user's cache folder, never beside the file."""
    if not installed():
        return TypesChecked(skipped="not installed: pip install 'oxidecopy[mypy]'")
    # -P: a file called copy.py where the user stands must not replace Python's own.
    command = [
        sys.executable, "-P", "-m", "mypy", "--strict", "--config-file=", "--output=json", "--no-error-summary", "--follow-imports=silent",
        f"--cache-dir={_cache()}", "--", str(path),
    ]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_SECONDS, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return TypesChecked(diagnostics=(_failed(f"no answer after {_TIMEOUT_SECONDS} s"),))
    except OSError as problem:
        return TypesChecked(diagnostics=(_failed(str(problem)),))
    return TypesChecked(diagnostics=parse(done.stdout, done.stderr, done.returncode))


def parse(stdout: str, stderr: str, status: int) -> tuple[Diagnostic, ...]:
    """Mypy's JSON lines as diagnostics; a run that ended otherwise than with 0 or an error report is one, too."""
    found: list[Diagnostic] = []
    strange: list[str] = []
    for line in stdout.splitlines():
        try:
            row = json.loads(line)
            if row["severity"] == "error":
                site = Site(str(Path(row["file"]).absolute()), max(int(row["line"]), 1))
                found.append(Diagnostic(rule=str(row["code"] or "mypy"), what=str(row["message"]), fix=str(row["hint"] or ""), site=site))
        except (ValueError, KeyError, TypeError):
            strange.append(line)
    if (status not in (0, 1) and not found) or (status == 1 and not found):
        words = [*stderr.strip().splitlines(), *strange]
        found.append(_failed(words[-1] if words else f"exit status {status}"))
    return tuple(found)


def _failed(got: str) -> Diagnostic:
    return Diagnostic(
        rule="OX6011", what="mypy could not check the file", got=got, required="an answer", fix="run it by hand: mypy --strict FILE"
    )


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "oxidecopy" / "mypy"
