"""Builds what would be released, and uses it as its users would: `python -m oxidecopy._tools.package [--into FOLDER]`.

A source distribution is made of the checkout, and the wheel of that, so that nothing can be in the one that is missing in the other. Both
are looked at and installed into an environment of their own, which needs the package index: with all that the wheel asks for, and then
without cuda-python, where simulator and type checkers have to do as well. `--into` keeps the two files.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

from oxidecopy._version import __version__

ROOT: Final = Path(__file__).resolve().parents[2]
KERNELS: Final = "oxidecopy/kernels"
# What a source distribution holds at its top beside the package, and must: it is what tests and type checks are run from.
BESIDE: Final = (
    "stubs/cuda/bindings/driver.pyi",
    "tests/conftest.py",
    "docs/concepts.md",
    "examples/01_load.py",
    "pyproject.toml",
    "LICENSE",
)
# User code without mistakes, which type checkers must find none in.
RIGHT: Final = (
    "examples",
    *(f"tests/typing/{name}.py" for name in ("contract/types_ok", "copies/copies_ok", "descriptors/descriptors_ok")),
)
KNOWN: Final = {*sys.stdlib_module_names, "oxidecopy", "numpy"}
CUDA: Final = ("cuda-python", "cuda-bindings", "cuda-core", "cuda-pathfinder")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A command that has ended."""

    status: int
    output: str


Run = Callable[[Sequence[str], Path, str], Done]


class NotFitError(Exception):
    """What was built cannot be released; the message says why."""


def run_command(command: Sequence[str], folder: Path, first: str = "") -> Done:
    """Runs a tool in a folder, with nothing of this environment's paths; `first` is a folder to look for programs in before all others."""
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "MYPYPATH", "FORCE_COLOR", "VIRTUAL_ENV")}
    path = os.pathsep.join(part for part in (first, os.environ.get("PATH", "")) if part)
    done = subprocess.run(
        command,
        cwd=folder,
        env={**environment, "PATH": path, "NO_COLOR": "1", "COLUMNS": "160"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return Done(status=done.returncode, output=done.stdout.decode(errors="replace"))


def ran(run: Run, folder: Path, *command: str) -> str:
    """What a command printed.

    Raises:
        NotFitError: it fails.
    """
    done = run(command, folder, "")
    if done.status:
        raise NotFitError(f"{' '.join(map(os.path.basename, command))} ends with {done.status}:\n{done.output}")
    return done.output


# ---- what is in the two files
def sdist_faults(names: Collection[str]) -> Iterator[str]:
    """What is missing in a source distribution; `names` are those of its files, without the folder that all are in."""
    wanted = {*BESIDE, *(path.relative_to(ROOT).as_posix() for path in package_files())}
    yield from (f"the source distribution lacks {name}" for name in sorted(wanted - set(names)))


def package_files() -> list[Path]:
    """The files of the package in the checkout."""
    return sorted(path for path in (ROOT / "oxidecopy").rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def wheel_faults(files: Mapping[str, bytes]) -> Iterator[str]:
    """What is wrong with a wheel, given as the bytes of its files by name."""
    about = f"oxidecopy-{__version__}.dist-info"
    strangers = {name.partition("/")[0] for name in files} - {"oxidecopy", about}
    # `cuda/` in site-packages is cuda-bindings': a stub there would hide it from every type checker.
    yield from (f"the wheel would install `{name}` beside the package" for name in sorted(strangers))
    wanted = {path.relative_to(ROOT).as_posix() for path in package_files()}
    yield from (f"the wheel lacks {name}" for name in sorted(wanted - set(files)))
    if f"\nVersion: {__version__}\n" not in files.get(f"{about}/METADATA", b"").decode():
        yield f"the wheel's METADATA does not say version {__version__}"
    manifest: dict[str, Any] = json.loads(files.get(f"{KERNELS}/manifest.json", b'{"files": []}'))
    if not manifest["files"]:
        yield "the wheel has no machine code"
    for entry in manifest["files"]:
        if hashlib.sha256(files.get(f"{KERNELS}/{entry['file']}", b"")).hexdigest() != entry["sha256"]:
            yield f"{entry['file']} of the wheel is not the file of its manifest"


# ---- built
def build(into: Path, work: Path, run: Run) -> tuple[Path, Path]:
    """The source distribution of the checkout, and the wheel made of it."""
    python = sys.executable
    ran(run, ROOT, python, "-m", "hatchling", "build", "-t", "sdist", "-d", str(into))
    sdist = into / f"oxidecopy-{__version__}.tar.gz"
    with tarfile.open(sdist) as archive:
        archive.extractall(work, filter="data")
    source = work / f"oxidecopy-{__version__}"
    refuse(sdist_faults({path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}))
    ran(run, source, python, "-m", "hatchling", "build", "-t", "wheel", "-d", str(into))
    wheel = into / f"oxidecopy-{__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        refuse(wheel_faults({name: archive.read(name) for name in archive.namelist()}))
    return sdist, wheel


def refuse(faults: Iterator[str]) -> None:
    """Ends here when there are any."""
    found = list(faults)
    if found:
        raise NotFitError("\n".join(found[:20]))


# ---- installed and used
@final
class Environment:
    """A clean environment, and a folder that holds nothing of the checkout but code of users."""

    def __init__(self, folder: Path, run: Run) -> None:
        self._run = run
        self.work = folder / "work"
        self.work.mkdir()
        for name in RIGHT:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, self.work / Path(name).name)
        self.folder = folder / "environment"
        ran(run, folder, sys.executable, "-m", "venv", str(self.folder))
        self.scripts = self.folder / ("Scripts" if os.name == "nt" else "bin")
        self.python, self.command = str(self.scripts / "python"), str(self.scripts / "oxidecopy")

    def pip(self, *arguments: str) -> None:
        """Changes what is installed."""
        ran(self._run, self.work, self.python, "-m", "pip", "-q", "--disable-pip-version-check", *arguments)

    def oxidecopy(self, *arguments: str) -> str:
        """What the command line says."""
        return ran(self._run, self.work, self.command, *arguments)

    def say(self, code: str) -> str:
        """What a line of Python prints."""
        return ran(self._run, self.work, self.python, "-c", code).strip()

    def works(self) -> None:
        """Version, kernels, lessons, a page of a rule, and where all of it was imported from."""
        place = Path(self.say("import oxidecopy; print(oxidecopy.__file__)"))
        if self.folder.resolve() not in place.resolve().parents:
            raise NotFitError(f"what is imported is {place}, not what was installed")
        if self.oxidecopy("--version").split() != ["oxidecopy", __version__]:
            raise NotFitError(f"the installed command does not say version {__version__}")
        facts = {fact["topic"]: fact for fact in json.loads(self.oxidecopy("doctor", "--json"))["facts"]}
        for topic in ("kernels", "runs on sim", "runs on sim-fast"):
            if facts[topic]["state"] != "ok":
                raise NotFitError(f"doctor says of {topic}: {facts[topic]['value']} ({facts[topic]['note']})")
        self.oxidecopy("demo")
        self.oxidecopy("explain", "OX3001")

    def type_checks(self) -> None:
        """Strict checkers find nothing in code without mistakes, and no public name is of a type that they do not know."""
        tool = (sys.executable, "-m")
        # The lessons' ignored lines are for the plugin, which is not asked here.
        strict = ("mypy", "--strict", "--no-warn-unused-ignores", "--config-file=", "--cache-dir=.mypy", "--python-executable", self.python)
        ran(self._run, self.work, *tool, *strict, *(Path(name).name for name in RIGHT[1:]))
        for path in (self.work / "examples").glob("*.py"):
            if not imported(path.read_text(encoding="utf-8")) <= KNOWN:
                path.unlink()  # what else it uses is not here
        lessons = sorted(path.name for path in (self.work / "examples").glob("*.py"))
        ran(self._run, self.work / "examples", *tool, *strict, *lessons)
        settings = {"typeCheckingMode": "strict", "pythonVersion": "3.11", "venvPath": str(self.folder.parent), "venv": self.folder.name}
        (self.work / "pyrightconfig.json").write_text(json.dumps(settings))
        ran(self._run, self.work, *tool, "pyright")
        # It asks the first `python` on the path where packages are, and ends with 1 for all that it would have annotated otherwise,
        # wherever in the package: only what it does not know counts.
        verify = (*tool, "pyright", "--verifytypes", "oxidecopy", "--ignoreexternal", "--outputjson")
        said = self._run(verify, self.work, str(self.scripts)).output
        public = self.say("import oxidecopy as ox; print(*(f'{m}.{n}' for n, m in ox._HOME.items()), *ox._MODULES.values())").split()
        refuse(unknown_types(json.loads(said), public))

    def files(self) -> str:
        """The files of the package and their hashes, as the installer noted them."""
        code = (
            "from importlib.metadata import files; print(*sorted(f'{f} {f.hash}' for f in files('oxidecopy') if f.parts[0] == 'oxidecopy'"
        )
        return self.say(f"{code} and f.suffix != '.pyc'), sep='\\n')")


def imported(source: str) -> set[str]:
    """The packages that a program names, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


def unknown_types(report: Mapping[str, Any], public: Collection[str]) -> Iterator[str]:
    """The public names whose types pyright does not know, as those of a package that is not installed."""
    symbols = report["typeCompleteness"]["symbols"]
    known = {symbol["name"] for symbol in symbols}
    missing = set(public) - known
    if missing:
        yield f"pyright does not see {', '.join(sorted(missing)[:5])}"
    for symbol in symbols:
        if not symbol["isTypeKnown"] and not symbol["isTypeAmbiguous"]:
            name: str = symbol["name"]
            if any(name == of or name.startswith(f"{of}.") for of in public):
                said = "; ".join(str(line.get("message", "")).splitlines()[0] for line in symbol["diagnostics"])
                yield f"the type of {name} is not known without cuda-bindings: {said}"


def try_it(folder: Path, into: Path, run: Run) -> None:
    """Everything, in order.

    Raises:
        NotFitError: something is wrong.
    """
    sdist, wheel = build(into, folder, run)
    print(f"{sdist.name} {sdist.stat().st_size >> 10:,} KiB, {wheel.name} {wheel.stat().st_size >> 10:,} KiB", flush=True)
    clean = Environment(folder, run)
    clean.pip("install", f"{wheel}[cli]")
    clean.works()
    clean.pip("uninstall", "-y", *CUDA)
    clean.works()
    clean.type_checks()
    of_wheel = clean.files()
    clean.pip("install", "--no-deps", "--force-reinstall", str(sdist))
    if clean.files() != of_wheel:
        raise NotFitError("the source distribution installs other files than the wheel")


def main(arguments: Sequence[str] | None = None, run: Run = run_command) -> int:
    """0 when wheel and source distribution are fit for release, 1 when not."""
    parser = argparse.ArgumentParser(prog="python -m oxidecopy._tools.package", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--into", metavar="FOLDER", type=Path, help="keep the wheel and the source distribution there")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="oxidecopy-") as name:
        folder = Path(name).resolve()
        into: Path = options.into.resolve() if options.into else folder / "dist"
        try:
            try_it(folder, into, run)
        except NotFitError as problem:
            print(problem, file=sys.stderr)
            return 1
    print("wheel and source distribution: ok")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
