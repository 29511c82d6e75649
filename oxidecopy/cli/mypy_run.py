"""mypy on the user's files, in a process of its own, with our plugin and the user's configuration (strict when there is none)."""

from __future__ import annotations

import configparser
import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, final

from oxidecopy.cli.findings import Finding, Level, Region
from oxidecopy.cli.mypy_config import PLUGIN, user_config, written
from oxidecopy.errors import Diagnostic, Site

_TIMEOUT_SECONDS: Final = 300  # a cold cache takes half a minute for numpy's stubs


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TypesChecked:
    """What mypy said of the files; `skipped` says why it was not asked, or is empty. Rules are mypy's error codes."""

    findings: tuple[Finding, ...] = ()
    skipped: str = ""
    plugin: bool = False
    config: str = ""


def installed() -> bool:
    return find_spec("mypy") is not None


def check_types(paths: Sequence[Path]) -> TypesChecked:
    """Runs mypy; its cache is kept in the user's cache folder, never beside a file."""
    if not installed():
        return TypesChecked(skipped="not installed: pip install 'oxidecopy[mypy]'")
    plugin = find_spec(PLUGIN) is not None
    config = user_config(Path.cwd())
    try:
        text = written(config, plugin=plugin)
    except (OSError, ValueError, configparser.Error) as problem:
        return TypesChecked(findings=(_failed(f"{config}: {problem}"),), plugin=plugin)
    found: list[Finding] = []
    with TemporaryDirectory(prefix="oxidecopy-mypy-") as folder:
        settings = Path(folder) / "mypy.ini"
        settings.write_text(text, encoding="utf-8")
        for group in _apart(paths):
            found += _run(settings, group)
    return TypesChecked(findings=tuple(found), plugin=plugin, config="" if config is None else str(config))


def _apart(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """Groups in which no two files have one module name: mypy refuses two `main.py` in one run."""
    left = list(dict.fromkeys(paths))
    while left:
        group = list({path.stem: path for path in reversed(left)}.values())
        left = [path for path in left if path not in group]
        yield group


def _run(settings: Path, paths: Sequence[Path]) -> tuple[Finding, ...]:
    # -P: a file called copy.py where the user stands must not replace Python's own.
    command = [
        sys.executable, "-P", "-m", "mypy", f"--config-file={settings}", "--output=json", "--no-error-summary",
        "--show-error-end", f"--cache-dir={_cache()}", "--", *map(str, paths),
    ]  # fmt: skip
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_SECONDS, stdin=subprocess.DEVNULL, env=_environment()
        )
    except subprocess.TimeoutExpired:
        return (_failed(f"no answer after {_TIMEOUT_SECONDS} s"),)
    except OSError as problem:
        return (_failed(str(problem)),)
    return tuple(_placed(finding, paths) for finding in parse(done.stdout, done.stderr, done.returncode))


def _placed(finding: Finding, paths: Sequence[Path]) -> Finding:
    """The finding in the file that was asked about.

    Errors out of mypy's cache name a file of the same name and text elsewhere, or are relative to where mypy ran when it found them.
    """
    site = finding.diagnostic.site
    if site is None or Path(site.file) in paths:
        return finding
    meant = next((path for path in paths if path.name == Path(site.file).name), Path(site.file))
    return replace(finding, diagnostic=replace(finding.diagnostic, site=replace(site, file=str(meant))))


def _environment() -> dict[str, str]:
    """Ours, with the folder of this package in a checkout: it is found there by being run there, which -P takes away."""
    home = str(Path(__file__).resolve().parents[2])
    if home in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        return dict(os.environ)
    return {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in (home, os.environ.get("PYTHONPATH", "")) if p)}


def parse(stdout: str, stderr: str, status: int) -> tuple[Finding, ...]:
    """Mypy's JSON lines as findings; a run that ended otherwise than with 0 or an error report is one, too.

    Notes of mypy's own explain an error or answer a question; those of our plugin are rules that the user asked to hear of.
    """
    found: list[Finding] = []
    strange: list[str] = []
    for line in stdout.splitlines():
        try:
            finding = _finding(line)
        except (ValueError, KeyError, TypeError):
            strange.append(line)
        else:
            found += [finding] if finding else []
    if status != 0 and not any(f.level == "error" for f in found):
        words = [*stderr.strip().splitlines(), *strange]
        found.append(_failed(_message(words[-1]) if words else f"exit status {status}"))
    return tuple(found)


def _message(line: str) -> str:
    """What stops mypy before it checks anything (a plugin that cannot be imported) comes as JSON too, on the other stream."""
    try:
        return str(json.loads(line)["message"])
    except (ValueError, KeyError, TypeError):
        return line


def _finding(line: str) -> Finding | None:
    row = json.loads(line)
    code = str(row["code"] or "mypy")
    level: Level = "error" if row["severity"] == "error" else "note"
    if level == "note" and not code.startswith("oxidecopy-"):
        return None
    site = Site(str(Path(row["file"]).absolute()), max(int(row["line"]), 1))
    region = Region(column=int(row["column"]) + 1)
    if row.get("end_line"):  # not in the answer of every version
        region = Region(column=region.column, end_line=int(row["end_line"]), end_column=int(row["end_column"]) + 1)
    diagnostic = Diagnostic(rule=code, what=str(row["message"]), fix=str(row["hint"] or ""), site=site)
    return Finding(diagnostic=diagnostic, gate="types", level=level, region=region)


def _failed(got: str) -> Finding:
    diagnostic = Diagnostic(
        rule="OX6011", what="mypy could not check the files", got=got, required="an answer", fix="run it by hand: mypy --strict FILE"
    )
    return Finding(diagnostic=diagnostic, gate="types")


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "oxidecopy" / "mypy"
