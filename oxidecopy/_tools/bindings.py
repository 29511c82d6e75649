"""Tests the driver layer with other versions of cuda-python than the installed one: `python -m oxidecopy._tools.bindings [VERSION ...]`.

Without versions these are the oldest and the newest that the package allows. Each goes into a folder of its own, which comes before the
installed one on the path, and is removed again. The bindings load without a driver, so this needs the package index but no GPU.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

Command = tuple[str, ...]
Run = Callable[[Command, Mapping[str, str]], int]

ROOT: Final = Path(__file__).resolve().parents[2]
VERSIONS: Final = ("12.9.0", "13.*")
# Those of the driver layer and of what calls it; rooms below it make device code and know no driver.
TESTS: Final = tuple(f"tests/engines/cuda/test_{name}.py" for name in ("stubs", "driver", "probe", "context", "memory", "pinned", "stream"))


def run_command(command: Command, environment: Mapping[str, str]) -> int:
    """Runs one tool in the checkout, its output going where ours goes."""
    return subprocess.run(command, cwd=ROOT, env=dict(environment), check=False, stdin=subprocess.DEVNULL).returncode


def verdict_of(version: str, folder: Path, run: Run) -> str:
    """What went wrong with a version; empty when nothing did."""
    install = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), f"cuda-bindings=={version}")
    if run(install, os.environ):
        return "cannot be installed"
    path = os.pathsep.join(part for part in (str(folder), os.environ.get("PYTHONPATH", "")) if part)
    environment = {**os.environ, "PYTHONPATH": path}
    # Which bindings are tested is checked first: a folder that is not on the path would let the installed ones pass twice.
    where = f"import cuda.bindings as b; print('cuda-bindings', b.__version__); assert b.__file__.startswith({str(folder)!r}), b.__file__"
    if run((sys.executable, "-c", where), environment):
        return "is not what is imported"
    if run((sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS), environment):
        return "fails the tests"
    return ""


def main(arguments: Sequence[str] | None = None, run: Run = run_command) -> int:
    """Tests each version; 0 when all pass, 1 when one does not."""
    parser = argparse.ArgumentParser(prog="python -m oxidecopy._tools.bindings", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("version", nargs="*", default=VERSIONS, help="as pip takes them after `==` (default: %(default)s)")
    failed = 0
    for version in parser.parse_args(arguments).version:
        with tempfile.TemporaryDirectory(prefix="cuda-bindings-") as folder:
            problem = verdict_of(version, Path(folder).resolve(), run)
        print(f"cuda-bindings {version}: {problem or 'ok'}", flush=True)
        failed += bool(problem)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
