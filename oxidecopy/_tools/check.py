"""Runs every check of the project, the same by hand and in CI: `python -m oxidecopy._tools.check [STEP ...]`.

It knows the tools only as command lines, and works on the checkout that holds this file: an installed wheel has no tests to run.
All steps run even when one fails; a table at the end says how each went, and the exit code is 1 if any failed. A tool that had nothing to
test with exits with SKIPPED, which is no failure, and the table says so. Tools that use one core each run side by side, and what they print
is shown when they are done; the others run alone on all cores and print as they go.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, final

Command = tuple[str, ...]
Run = Callable[[Command, IO[bytes] | None], int]  # the exit status of a tool that prints to the file, or where we print

ROOT: Final = Path(__file__).resolve().parents[2]
SKIPPED: Final = 77  # the exit status of a tool that could not test what it is for, as the package index has not what it needs
MAX_WORKERS: Final = 8  # more pytest workers than this cost more to start than they save

# Each generator of a committed file, as the command that checks the file (it exits with 1 when the file is out of date). Of the machine
# code only what runs on Hopper is built again: that every file is the manifest's, and the manifest that of today's sources, the tests say.
GENERATORS: Final[tuple[Command, ...]] = (
    (sys.executable, "-m", "oxidecopy._tools.kernel_header", "--check"),
    (sys.executable, "-m", "oxidecopy._tools.drawings", "--check"),
    (sys.executable, "-m", "oxidecopy._tools.public_api", "--check"),
    (sys.executable, "-m", "oxidecopy._tools.build_cubins", "--check", "--arch", "sm_90a"),
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One row of the table: its commands run in order, and the step fails if one of them does. `alone`: it uses all cores by itself."""

    name: str
    what: str
    commands: tuple[Command, ...]
    alone: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a step went: its commands that failed, and those that could not do what they are for."""

    step: Step
    failed: tuple[Command, ...]
    skipped: tuple[Command, ...]
    seconds: float

    @property
    def ok(self) -> bool:
        return not self.failed

    @property
    def verdict(self) -> str:
        return "FAILED" if self.failed else "SKIPPED" if self.skipped else "ok"


def steps(workers: int) -> tuple[Step, ...]:
    """All steps, the quick ones first; `workers` is how many processes pytest uses (0 or 1: its own)."""
    python = sys.executable
    parallel = ("-n", str(workers)) if workers > 1 else ()
    return (
        Step(name="format", what="ruff format", commands=((python, "-m", "ruff", "format", "--check"),)),
        Step(name="lint", what="ruff check", commands=((python, "-m", "ruff", "check", "--output-format=concise"),)),
        Step(name="types", what="mypy --strict on package, tests and examples", commands=((python, "-m", "mypy"),)),
        Step(name="imports", what="import-linter: the layers", commands=((python, "-c", LINT_IMPORTS, "--no-cache"),)),
        Step(name="generators", what="committed generated files are up to date", commands=GENERATORS),
        Step(
            name="package",
            what="wheel and source distribution, built and used in an environment of their own (from the package index)",
            commands=((python, "-m", "oxidecopy._tools.package"),),
        ),
        Step(
            name="docs",
            what="the documentation as a site, with all its links (needs the extra `docs`)",
            commands=((python, "-m", "oxidecopy._tools.site"),),
        ),
        Step(
            name="frameworks",
            what="tests with torch itself, and ranks by torchrun and by two MPIs (from the package index)",
            commands=((python, "-m", "oxidecopy._tools.frameworks"),),
        ),
        Step(
            name="tests",
            what="pytest with the branch coverage gate",
            commands=((python, "-m", "pytest", *parallel, "--cov", "--cov-report=term-missing:skip-covered"),),
            alone=True,
        ),
        Step(
            name="bindings",
            what="the driver layer with the oldest and the newest cuda-python (from the package index)",
            commands=((python, "-m", "oxidecopy._tools.bindings"),),
            alone=True,
        ),
        Step(
            name="plugin",
            what="the mypy plugin with the older versions of mypy that it works with (from the package index)",
            commands=((python, "-m", "oxidecopy._tools.plugin_versions"),),
            alone=True,
        ),
    )


# import-linter has no `python -m` form, and its script may not be on PATH where only the interpreter was named.
# Its cache is not told when a module that a file imports appears later, and answers with the old verdict: never used.
LINT_IMPORTS: Final = "import sys; from importlinter.cli import lint_imports_command as main; sys.argv[0] = 'lint-imports'; main()"


def run_command(command: Command, output: IO[bytes] | None = None) -> int:
    """Runs one tool in the checkout, its output going to `output` or where ours goes."""
    return subprocess.run(command, cwd=ROOT, check=False, stdin=subprocess.DEVNULL, stdout=output, stderr=output).returncode


def run_step(step: Step, run: Run, output: IO[bytes] | None = None) -> Outcome:
    """Runs all commands of a step, whatever the earlier ones said."""
    start = time.monotonic()
    said = [(command, run(command, output)) for command in step.commands]
    failed = tuple(command for command, status in said if status not in (0, SKIPPED))
    skipped = tuple(command for command, status in said if status == SKIPPED)
    return Outcome(step=step, failed=failed, skipped=skipped, seconds=time.monotonic() - start)


def run_steps(chosen: Iterable[Step], workers: int, run: Run = run_command) -> list[Outcome]:
    """Runs the steps, `workers` of those that use one core at a time, and shows them in order, whatever the earlier ones said."""
    chosen = list(chosen)
    with ThreadPoolExecutor(max(1, workers)) as pool, tempfile.TemporaryDirectory() as folder:
        files = {step.name: Path(folder, step.name) for step in chosen if not step.alone}

        def aside(step: Step) -> Outcome:
            with files[step.name].open("wb") as output:
                return run_step(step, run, output)

        running = {step.name: pool.submit(aside, step) for step in chosen if not step.alone}
        outcomes = []
        for step in chosen:
            print(f"\n== {step.name}: {step.what}", flush=True)
            if step.alone:
                outcomes.append(run_step(step, run))
            else:
                outcomes.append(running[step.name].result())
                print(files[step.name].read_text(errors="replace"), end="", flush=True)
        return outcomes


def table(outcomes: Sequence[Outcome]) -> str:
    """The summary: step, verdict, seconds."""
    width = max((len(outcome.step.name) for outcome in outcomes), default=0)
    rows = [f"{outcome.step.name:<{width}}  {outcome.verdict:<7}  {outcome.seconds:7.1f} s" for outcome in outcomes]
    failed = sum(not outcome.ok for outcome in outcomes)
    skipped = [outcome.step.name for outcome in outcomes if outcome.skipped]
    but = f", but {' and '.join(skipped)} could not be done here: see above" if skipped else ""
    verdict = f"{failed} of {len(outcomes)} checks failed" if failed else f"all checks passed{but}"
    return "\n".join([*rows, verdict])


def cores() -> int:
    """CPU cores this process may use."""
    affinity: Callable[[int], set[int]] | None = getattr(os, "sched_getaffinity", None)  # not on every system
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def parsed(arguments: Sequence[str] | None) -> tuple[list[str], int]:
    """Names of the steps to run (all of them when none is named) and the number of pytest workers."""
    known = {step.name: step.what for step in steps(0)}
    parser = argparse.ArgumentParser(
        prog="python -m oxidecopy._tools.check",
        description="Runs every check of the project, or the steps named.",
        epilog="steps:\n" + "\n".join(f"  {name:<12}{what}" for name, what in known.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("step", nargs="*", metavar="STEP", help="one of: " + ", ".join(known))
    parser.add_argument("-n", "--workers", type=int, default=min(MAX_WORKERS, cores()), help="pytest processes (default: one per core)")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.step) - known.keys())
    if unknown:
        parser.error(f"unknown step {', '.join(unknown)} (choose from {', '.join(known)})")
    return [name for name in known if name in options.step or not options.step], options.workers


def main(arguments: Sequence[str] | None = None, run: Run = run_command) -> int:
    """Runs the steps that `arguments` name; 0 when all passed, 1 when one failed."""
    names, workers = parsed(arguments)
    if not (ROOT / "pyproject.toml").is_file():
        print("error: there is no checkout here: the checks run from a clone installed with `pip install -e '.[dev]'`", file=sys.stderr)
        return 2
    outcomes = run_steps([step for step in steps(workers) if step.name in names], workers, run)
    print(f"\n{table(outcomes)}", flush=True)
    return 0 if all(outcome.ok for outcome in outcomes) else 1


if __name__ == "__main__":
    raise SystemExit(main())
