"""The pass over installed third-party packages, every class tracked: it must not crash, hang, or find anything.

`python -m tests.mypy_plugin.corpus` runs all and prints a summary; with names of packages, those. Nothing in these packages takes a
value of ours, so every error of the plugin's is a false one.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Final

# Typed or not (bodies without annotations are checked as well), from a terminal's widgets to generated parsers: much code of many kinds.
ALL: Final = (
    "_pytest", "click", "grimp", "hatchling", "hypothesis", "importlinter", "markdown_it", "mypy", "packaging", "pathspec", "pip",
    "pluggy", "pydantic", "pygments", "pyparsing", "pytest_cov", "rich", "sortedcontainers", "tomlkit", "typer", "xdist",
)  # fmt: skip
SLICE: Final = ("iniconfig", "pluggy", "sortedcontainers", "click")  # what every test run has the time for
ROOT: Final = Path(__file__).resolve().parents[2]
LEAKS: Final = "[oxidecopy-mypy]\nleaks = error\nleaks_at_end = error\n"  # counted by their code
FUNCTIONS_MIN: Final = 5_000  # the least that a whole run is to have looked at

_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_FINDING: Final = re.compile(r"^(?P<place>[^:]+:\d+).*: (?P<level>error|note): (?P<text>.*)\[(?P<code>oxidecopy-\w+)\]$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a run saw.

    Attributes:
        functions: analysed.
        crashes: lines of mypy's or of the plugin's that say something went wrong inside.
        alarms: errors of the plugin: all false.
        pass_seconds: in the plugin's pass.
        seconds: in all.
        slowest: modules with most seconds per function, with the functions in them.
    """

    functions: int
    crashes: tuple[str, ...]
    alarms: tuple[str, ...]
    pass_seconds: float
    seconds: float
    slowest: tuple[tuple[str, float, int], ...] = ()

    @property
    def ok(self) -> bool:
        """Nothing was said, and something was looked at."""
        return not self.crashes and not self.alarms and self.functions > 0

    def summary(self) -> str:
        """A few lines for people."""
        each = self.pass_seconds / max(self.functions, 1) * 1e3
        codes = Counter(match["code"] for line in self.alarms if (match := _FINDING.match(line)))
        lines = [
            f"{self.functions} functions analysed in {self.pass_seconds:.1f} s of {self.seconds:.1f} s: {each:.2f} ms each",
            f"{len(self.crashes)} crashes, {len(self.alarms)} alarms" + "".join(f"; {code}: {n}" for code, n in codes.most_common()),
        ]
        lines += [f"  slow: {module}: {seconds:.2f} s for {n} functions" for module, seconds, n in self.slowest]
        return "\n".join([*lines, *self.crashes[:20], *self.alarms[:40]])


def installed(packages: Iterable[str]) -> list[str]:
    """Those that are there."""
    return [name for name in packages if find_spec(name) is not None]


def written(packages: Iterable[str]) -> int:
    """How many functions their sources have; a few are for another system or Python, and mypy does not look at those."""
    places = [place for name in packages if (found := find_spec(name)) for place in found.submodule_search_locations or ()]
    trees = [_parsed(path) for place in places for path in Path(place).rglob("*.py")]
    return sum(isinstance(node, _FUNCTIONS) for tree in trees if tree is not None for node in ast.walk(tree))


def _parsed(path: Path) -> ast.Module | None:
    try:
        return ast.parse(path.read_bytes())
    except SyntaxError:
        return None  # packages have such files too, for tests of theirs or as templates


def run(packages: Sequence[str], *, timeout: float = 3600, leaks: bool = True) -> Result:
    """Checks the packages in a process of their own, so that a hang ends and counters start at 0. Without leaks, loops are shorter."""
    start = perf_counter()
    with TemporaryDirectory(prefix="corpus-") as folder:
        config = Path(folder) / "mypy.ini"
        plugin = Path(__file__).with_name("everything.py")
        config.write_text(
            f"[mypy]\nplugins = {plugin}\ncheck_untyped_defs = True\nfollow_imports = silent\ncache_dir = {folder}/cache\n"
            f"{LEAKS if leaks else ''}"
        )
        _link(packages, Path(folder) / "packages")
        command = [sys.executable, "-m", "tests.mypy_plugin.corpus", "--worker", str(config), *packages]
        environment = {**os.environ, "MYPYPATH": f"{folder}/packages", "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path[1:]])}
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=timeout, stdin=subprocess.DEVNULL, env=environment, cwd=ROOT
            )
        except subprocess.TimeoutExpired:
            return Result(functions=0, crashes=(f"no end after {timeout} s",), alarms=(), pass_seconds=0.0, seconds=timeout)
    return read(done.stdout + done.stderr, done.returncode, perf_counter() - start)


def _link(packages: Sequence[str], folder: Path) -> None:
    """The packages in a folder of their own: mypy looks into untyped ones only where it takes them for the user's."""
    folder.mkdir()
    for name in packages:
        found = find_spec(name)
        if found is not None and found.submodule_search_locations:
            (folder / name).symlink_to(found.submodule_search_locations[0])


def read(output: str, status: int, seconds: float) -> Result:
    """The result in the worker's output."""
    found = [line for line in output.splitlines() if (match := _FINDING.match(line)) and match["level"] == "error"]
    crashes = [line for line in found if line.endswith("[oxidecopy-plugin]")]
    crashes += [line for line in output.splitlines() if "INTERNAL ERROR" in line]
    counted: list[tuple[str, float, int]] = []
    for module, took, n in re.findall(r"^#time (\S+) (\S+) (\d+)$", output, re.MULTILINE):
        counted.append((module, float(took), int(n)))
    if "#done" not in output or status not in (0, 1):
        crashes.append(f"the run ended with {status}: {output.strip().splitlines()[-1] if output.strip() else 'no output'}")
    slow = sorted((row for row in counted if row[2]), key=lambda row: row[1] / row[2], reverse=True)[:3]
    return Result(
        functions=sum(n for _, _, n in counted),
        crashes=tuple(crashes),
        alarms=tuple(line for line in found if line not in crashes),
        pass_seconds=sum(took for _, took, _ in counted),
        seconds=seconds,
        slowest=tuple(slow),
    )


def _worker(config: str, packages: Sequence[str]) -> int:
    """Runs mypy here, then says what the plugin counted."""
    from mypy import api

    arguments = [a for name in packages for a in ("-p", name)]
    output, problems, status = api.run(
        [f"--config-file={config}", "--show-error-codes", "--no-error-summary", "--no-pretty", "--hide-error-context", *arguments]
    )
    lines = [output]
    everything = sys.modules.get("everything")  # as mypy names a plugin that it loads from a file
    for module, (took, n) in (everything.Everything.seconds if everything is not None else {}).items():
        if module.partition(".")[0] in packages:  # stubs of other packages have functions, but no bodies
            lines.append(f"#time {module} {took:.6f} {n}")
    sys.stdout.write("\n".join([*lines, "#done", problems]))  # last: what stopped mypy, if anything did
    return status


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when nothing was said, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="python -m tests.mypy_plugin.corpus", description=__doc__)
    parser.add_argument("packages", nargs="*", help="installed packages; all known ones when left out")
    parser.add_argument("--no-leaks", action="store_true", help="leaks are not looked for, as by default; loops take fewer turns then")
    parser.add_argument("--worker", metavar="CONFIG", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        return _worker(options.worker, options.packages)
    packages = options.packages or installed(ALL)
    result = run(packages, leaks=not options.no_leaks)
    sys.stdout.write(f"{result.summary()}\n{written(packages)} functions are written in the sources\n")
    enough = bool(options.packages) or result.functions >= FUNCTIONS_MIN
    if not enough:
        sys.stdout.write(f"fewer than {FUNCTIONS_MIN} functions: more packages are to be installed\n")
    return 0 if result.ok and enough else 1


if __name__ == "__main__":
    raise SystemExit(main())
