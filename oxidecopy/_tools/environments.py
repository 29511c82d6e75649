"""Tests with other versions of a package than the installed one, each in a folder that comes first on the path and is removed again.

The versions are tested side by side, each on one core.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from oxidecopy._tools.check import cores

Command = tuple[str, ...]
Run = Callable[[Command, Mapping[str, str]], int]

ROOT: Final = Path(__file__).resolve().parents[2]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """What is installed apart, and what is tested with it.

    Attributes:
        name: of the distribution.
        look: code that prints the version and defines `found`, the file that was imported.
        alone: its dependencies are those of the installed version.
        tests: files for pytest, or single tests of one as it names them.
    """

    name: str
    look: str
    alone: bool
    tests: Sequence[str]


def run_command(command: Command, environment: Mapping[str, str]) -> int:
    """Runs one tool in the checkout; what it printed is shown when it is done, as others run at the same time."""
    done = subprocess.run(
        command, cwd=ROOT, env=dict(environment), check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    print(done.stdout.decode(errors="replace"), end="", flush=True)
    return done.returncode


def verdict_of(package: Package, version: str, folder: Path, run: Run) -> str:
    """What went wrong with a version; empty when nothing did."""
    alone = ("--no-deps",) if package.alone else ()
    install = (sys.executable, "-m", "pip", "install", "--quiet", *alone, "--target", str(folder), f"{package.name}=={version}")
    if run(install, os.environ):
        return "cannot be installed"
    path = os.pathsep.join(part for part in (str(folder), os.environ.get("PYTHONPATH", "")) if part)
    environment = {**os.environ, "PYTHONPATH": path}
    # Which version is tested is checked first: a folder that is not on the path would let the installed one pass twice.
    where = f"{package.look}; assert found.startswith({str(folder)!r}), found"
    if run((sys.executable, "-c", where), environment):
        return "is not what is imported"
    if run((sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *package.tests), environment):
        return "fails the tests"
    return ""


def try_all(wanted: Sequence[tuple[Package, str]], run: Run) -> int:
    """Tests each version; 0 when all pass, 1 when one does not."""

    def problem(package: Package, version: str) -> str:
        with tempfile.TemporaryDirectory(prefix=f"{package.name}-") as folder:
            return verdict_of(package, version, Path(folder).resolve(), run)

    with ThreadPoolExecutor(cores()) as pool:
        problems = list(pool.map(problem, *zip(*wanted, strict=True)))
    for (package, version), said in zip(wanted, problems, strict=True):
        print(f"{package.name} {version}: {said or 'ok'}", flush=True)
    return 1 if any(problems) else 0
