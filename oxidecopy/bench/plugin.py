"""What the mypy plugin costs on a file of 2,000 lines: mypy with it beside mypy without it, one after the other in the same run.

Times are CPU time of mypy's process, which other processes disturb less than the clock. Every run is a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal, final

from oxidecopy.bench import checked_file
from oxidecopy.bench.measure import Measured
from oxidecopy.bench.results import result, this_cpu
from oxidecopy.errors import Diagnostic, ExecutionError

Step = Literal["cold", "edited", "unchanged"]

_LINES: Final = 2000
_COLD_PERCENT: Final = 10.0
_EDITED_MS: Final = 150.0
_UNCHANGED_PERCENT: Final = 5.0
_MEMORY_MB: Final = 20.0
_CONFIG: Final = "[mypy]\nstrict = True\nfollow_imports = silent\n"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """One process of mypy: CPU seconds, and the most memory that it held, in MB (2^20 bytes)."""

    seconds: float
    memory_mb: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """The same step without and with the plugin."""

    plain: Cost
    plugged: Cost

    @property
    def more_seconds(self) -> float:
        return self.plugged.seconds - self.plain.seconds

    @property
    def more_percent(self) -> float:
        return 100 * self.more_seconds / self.plain.seconds

    @property
    def more_mb(self) -> float:
        return self.plugged.memory_mb - self.plain.memory_mb


def measure_all(runs: int, say: Callable[[str], None]) -> list[Measured]:
    """Everything, `runs` pairs each; `say` is told what comes next."""
    with TemporaryDirectory(prefix="oxidecopy-bench-") as folder:
        place = Path(folder)
        (place / "pipelines.py").write_text(checked_file.text(_LINES), encoding="utf-8")
        (place / "plain.ini").write_text(_CONFIG, encoding="utf-8")
        (place / "plugged.ini").write_text(f"{_CONFIG}plugins = oxidecopy.mypy_plugin\n", encoding="utf-8")
        for config in ("plain", "plugged"):  # once, so that everything is compiled and in the system's cache
            _mypy(place, config, cache="cache-first")
        pairs: dict[Step, list[Pair]] = {"cold": [], "edited": [], "unchanged": []}
        for n in range(runs):
            for step, found in pairs.items():
                say(f"{step}, {n + 1} of {runs}")
                found.append(_pair(place, step, n))
    return _rows(pairs)


def _pair(place: Path, step: Step, n: int) -> Pair:
    """Both, the first one in turns; the cache of the run before is kept but for a cold one."""
    file = place / "pipelines.py"
    if step == "edited":
        file.write_text(checked_file.text(_LINES).replace("EDIT: Final = 0", f"EDIT: Final = {n + 1}"), encoding="utf-8")
    order = ("plain", "plugged") if n % 2 else ("plugged", "plain")
    costs = {name: _mypy(place, name, cache=f"cache-{name}-{n}") for name in order}
    return Pair(plain=costs["plain"], plugged=costs["plugged"])


def _mypy(place: Path, config: str, *, cache: str) -> Cost:
    """Checks the file; an error when mypy finds anything in it, for then the two do not do the same."""
    command = [
        sys.executable, "-P", "-m", "mypy", f"--config-file={config}.ini", f"--cache-dir={cache}", "--no-error-summary", "pipelines.py",
    ]  # fmt: skip
    home = str(Path(__file__).resolve().parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([home, *(p for p in sys.path if p)]), "MYPYPATH": ""}
    # Compiled files are kept, as those of an installed package are.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment["PYTHONPYCACHEPREFIX"] = str(place / "compiled")
    with (place / "output").open("w+b") as output:
        process = subprocess.Popen(command, cwd=place, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment)
        _, status, usage = os.wait4(process.pid, 0)  # its own resources, not those of all children so far
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        words = output.read().decode(errors="replace").strip()
    if process.returncode != 0:
        last = words.splitlines()[-1] if words else f"exit status {process.returncode}"
        raise ExecutionError(Diagnostic(rule="OX6011", what="mypy could not check the benchmark's file", got=last, required="no errors"))
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10  # ru_maxrss is in bytes there, in KiB elsewhere
    return Cost(seconds=usage.ru_utime + usage.ru_stime, memory_mb=usage.ru_maxrss / unit)


def _rows(pairs: dict[Step, list[Pair]]) -> list[Measured]:
    what = f"of mypy --strict on {_LINES:,} lines of pipelines, with the plugin over without it, in pairs"

    def row(name: str, unit: str, samples: Sequence[float], target: float, of: str) -> Measured:
        return Measured(what=name, unit=unit, samples=tuple(samples), target=target, better="lower", of=of)

    return [
        row(
            "nothing in the cache", "%", [p.more_percent for p in pairs["cold"]], _COLD_PERCENT,
            f"CPU time {what}: the stubs of Python and numpy and this package are read as well",
        ),
        row(
            "the file edited", "ms", [1e3 * p.more_seconds for p in pairs["edited"]], _EDITED_MS,
            f"CPU time {what}: only the file is checked again",
        ),
        row("nothing changed", "%", [p.more_percent for p in pairs["unchanged"]], _UNCHANGED_PERCENT, f"CPU time {what}"),
        row("memory, nothing in the cache", "MB", [p.more_mb for p in pairs["cold"]], _MEMORY_MB, f"most memory held {what}"),
        row("memory, the file edited", "MB", [p.more_mb for p in pairs["edited"]], _MEMORY_MB, f"most memory held {what}"),
    ]  # fmt: skip


def as_data(rows: Sequence[Measured], runs: int) -> dict[str, object]:
    """The rows with what is needed to measure them again."""
    return result(f"oxidecopy bench plugin --runs {runs}", rows, {"mypy": version("mypy"), **this_cpu()})
