"""`oxidecopy check`: every pipeline of the files recorded and verified through its recipes, nothing run; mypy too where it is installed."""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, final

import typer
from rich.text import Text

from oxidecopy.cli.findings import Finding, Level, Region, merged
from oxidecopy.cli.options import AsJson, Inputs, Targets
from oxidecopy.cli.report import (
    OK,
    USAGE,
    counted,
    diagnostic_json,
    err,
    first_line,
    guarded,
    out,
    print_diagnostics,
    print_json,
    relative,
    reported,
)
from oxidecopy.cli.schedules import Schedules, Seen, look, wanted
from oxidecopy.errors import Diagnostic, ExecutionError, OxidecopyError, UsageError

if TYPE_CHECKING:
    import numpy.typing as npt

    from oxidecopy.cli.files import Chosen, UserFile
    from oxidecopy.cli.mypy_run import TypesChecked
    from oxidecopy.host.bound import BoundLaunch
    from oxidecopy.host.device import Device
    from oxidecopy.program.verified import Bound

HELP: Final = """Record and verify every pipeline of the files without running it; check their types too where mypy is installed.

All findings are printed in one list, by file and line. Mypy runs with the borrow checker's plugin, and with your own configuration
where there is one (strict otherwise).

With --schedules each launch is also run on the simulator, whose copies land at any legal time and in any order: under N schedules
drawn by seed, or under all there are (`all`; for launches of few CTAs and iterations). A race, a deadlock or a fault on any of them is
an error. `all` leaves out orders of steps that nobody can tell apart, says how many schedules were left and of how many orders, and is
an error (OX6026) where it gave up.
"""
EXAMPLES: Final = (
    "oxidecopy check mine.py",
    "oxidecopy check mine.py theirs.py:copy --no-types",
    "oxidecopy check mine.py -v",
    "oxidecopy check mine.py --schedules all",
    "oxidecopy check mine.py --json",
    "oxidecopy check src/*.py --sarif check.sarif",
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What recording and verifying one recipe gave.

    `refusal` is the first line of the error that it was declared to have; `bounds` say where the proof looked at less than will run; `seen`
    is what schedules of it did on the simulator, where that was asked for.
    """

    name: str
    file: str = ""
    errors: tuple[Diagnostic, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    bounds: tuple[Bound, ...] = ()
    refusal: str = ""
    seen: Seen | None = None

    @property
    def fine(self) -> bool:
        """Nothing is wrong with it, or what is wrong was declared."""
        return not self.errors and (self.seen is None or bool(self.refusal) or not self.seen.errors)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What all files gave but for their types.

    Attributes:
        paths: of the files named, each once.
        unusable: of targets that cannot be loaded, or do not name what they hold.
        bare: names of pipelines without a recipe, as "file:name" where there are several files.
        plain: files without a pipeline, among others that have some.
    """

    paths: tuple[Path, ...]
    verdicts: tuple[Verdict, ...] = ()
    unusable: tuple[Diagnostic, ...] = ()
    bare: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()

    def findings(self) -> list[Finding]:
        found = [Finding(diagnostic=d, gate="load") for d in self.unusable]
        for verdict in self.verdicts:
            for level, rows in _levels(verdict):
                found += [Finding(diagnostic=d, gate="program", level=level) for d in rows]
            if verdict.seen is not None and not verdict.refusal:
                found += [Finding(diagnostic=d, gate="schedules") for d in verdict.seen.errors]
        return found


def _levels(verdict: Verdict) -> tuple[tuple[Level, tuple[Diagnostic, ...]], ...]:
    return ("error", verdict.errors), ("warning", verdict.warnings)


@guarded
def command(
    targets: Targets,
    *,
    inputs: Inputs = None,
    schedules: Schedules = None,
    types: Annotated[bool, typer.Option("--types/--no-types", help="Run mypy as well.")] = True,
    sarif: Annotated[
        Path | None,
        typer.Option("--sarif", metavar="FILE", help="Write the report as SARIF 2.1.0 too, for code hosts.", show_default=False),
    ] = None,
    verbose: Annotated[
        bool,
        typer.Option("-v", "--verbose", help="Say of each launch where its proof looked at less than will run, and why that is enough."),
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Checks; 1 when anything is wrong, 2 when a file cannot be loaded."""
    from oxidecopy.cli import launch
    from oxidecopy.cli.mypy_run import TypesChecked, check_types

    explored = wanted(schedules)
    arrays = launch.read_inputs(inputs or ())
    device = launch.open_device("sim")
    with err().status("recording and verifying") as status:
        recorded = record_all(targets, device, arrays, explored)
        nothing = bool(recorded.unusable) and not recorded.verdicts
        typed = TypesChecked(skipped="left out by --no-types" if not types else "left out: nothing to check")
        if types and not nothing:
            status.update("mypy")
            # One file that is no Python would keep mypy from looking at all the others; it is in the report already.
            typed = check_types([path for path in recorded.paths if _parses(path)])
    found = merged([*recorded.findings(), *typed.findings])
    if sarif is not None:
        _write_sarif(sarif, found)
    if nothing:
        raise UsageError(*recorded.unusable)
    if as_json:
        print_json(_data(recorded, typed, found))
    else:
        _print(recorded, typed, found, bounds=verbose)
    if recorded.unusable:
        return USAGE
    errors = _errors(found)
    return reported(ExecutionError(*errors)) if errors else OK


def record_all(targets: Sequence[str], device: Device, arrays: Sequence[npt.NDArray[Any]], schedules: int | str | None = None) -> Recorded:
    """Loads, records and verifies; what is wrong with one file keeps no other from being checked."""
    from oxidecopy.cli.files import load, require_recipes, split_target

    names: dict[Path, list[str]] = {}
    for target in targets:
        path, name = split_target(target)
        # One name for each file, as in what mypy and the recorder say of it.
        names.setdefault(path.resolve() if ".." in path.parts else path.absolute(), []).append(name)
    files: dict[Path, UserFile] = {}
    unusable: list[Diagnostic] = []
    for path in names:
        try:
            files[path] = load(path)
        except OxidecopyError as error:
            unusable += error.diagnostics
    several = len(names) > 1 and any(True for f in files.values() for _ in f.recipes())
    verdicts: list[Verdict] = []
    for path, loaded in files.items():
        if several and not loaded.pipelines and names[path] == [""]:
            continue  # a module of helpers, named with the files that use it
        try:
            require_recipes(loaded)
            wanted = _wanted(loaded, names[path])
        except UsageError as error:
            unusable += error.diagnostics
            continue
        verdicts += [replace(verdict_of(chosen, device, arrays, schedules), file=str(path)) for chosen in wanted]
    bare = [(f, name) for f in files.values() for name, pipeline in f.pipelines.items() if not pipeline.recipes]
    return Recorded(
        paths=tuple(path for path in names if path.is_file()),
        verdicts=tuple(verdicts),
        unusable=tuple(dict.fromkeys(unusable)),
        bare=tuple(f"{relative(str(f.path))}:{name}" if len(names) > 1 else name for f, name in bare),
        plain=tuple(str(path) for path, f in files.items() if several and not f.pipelines),
    )


def _parses(path: Path) -> bool:
    try:
        ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return False
    return True


def _wanted(loaded: UserFile, names: Sequence[str]) -> list[Chosen]:
    from oxidecopy.cli.files import choose

    return list(loaded.recipes()) if "" in names else [choose(loaded, name) for name in dict.fromkeys(names)]


def verdict_of(chosen: Chosen, device: Device, inputs: Sequence[npt.NDArray[Any]], schedules: int | str | None = None) -> Verdict:
    """Records and verifies one recipe. A refusal that the recipe declares is right, its absence an error.

    With `schedules` it is run, too; for one that the verifier refuses as declared that shows what would have happened.
    """
    from oxidecopy.cli import launch

    bound: BoundLaunch | None = None
    try:
        bound = launch.prepare(chosen, device, inputs).launch
        proof = bound.verify()
    except OxidecopyError as error:
        refusal = launch.declared_refusal(chosen, error)
        if refusal:
            seen = look(bound, schedules) if bound is not None and schedules is not None else None
            return Verdict(name=chosen.name, refusal=first_line(refusal), seen=seen)
        return Verdict(name=chosen.name, errors=launch.not_refused(chosen, error) if chosen.recipe.refused else error.diagnostics)
    seen = look(bound, schedules) if schedules is not None else None
    if chosen.recipe.refused:
        return Verdict(name=chosen.name, errors=launch.not_refused(chosen), warnings=proof.warnings, seen=seen)
    return Verdict(name=chosen.name, warnings=proof.warnings, bounds=proof.bounds, seen=seen)


def _errors(found: Sequence[Finding]) -> list[Diagnostic]:
    return list(dict.fromkeys(f.diagnostic for f in found if f.level == "error"))


def _write_sarif(path: Path, found: Sequence[Finding]) -> None:
    from oxidecopy.cli.sarif import document
    from oxidecopy.host.npy import write_whole
    from oxidecopy.typed.sites import no_sites

    text = json.dumps(document(found, Path.cwd()), indent=2) + "\n"
    with no_sites():
        write_whole(path, lambda file: file.write(text.encode()))


# ---- the report
def _print(recorded: Recorded, typed: TypesChecked, found: Sequence[Finding], *, bounds: bool) -> None:
    console = out()
    errors = _errors(found)
    print_diagnostics(console, errors)
    for finding in found:
        if finding.level != "error":
            console.print(Text(f"{finding.level}: ", "yellow").append(first_line(finding.diagnostic), "default"))
    several = len(recorded.paths) > 1
    for verdict in recorded.verdicts:
        _print_verdict(verdict, f"{relative(verdict.file)}:{verdict.name}" if several else verdict.name, bounds=bounds)
    for pipeline in recorded.bare:
        console.print(Text(f"{pipeline}: has no recipe, so it was not recorded", "yellow"))
    for file in recorded.plain:
        console.print(Text(f"{relative(file)}: has no pipeline, so only its types were checked", "yellow"))
    good = sum(v.fine for v in recorded.verdicts)
    types_found = len(_errors([f for f in found if f.gate == "types"]))
    name = relative(str(recorded.paths[0])) if not several else f"{len(recorded.paths)} files"
    console.print(
        Text(f"{name}: ", "bold")
        .append(counted(len(errors), "error") if errors else "OK", "bold red" if errors else "bold green")
        .append(f"; {good} of {len(recorded.verdicts)} launches fine; mypy: {typed.skipped or counted(types_found, 'error')}", "default")
    )


def _print_verdict(verdict: Verdict, name: str, *, bounds: bool) -> None:
    console = out()
    if verdict.refusal:
        console.print(Text(f"{name} is refused, as declared: ", "cyan").append(verdict.refusal, "default"))
    for bound in verdict.bounds if bounds else ():
        console.print(Text(f"{verdict.name}: ", "dim").append(_bound(bound), "default"))
    if verdict.seen is not None:
        console.print(Text(f"{name}, {'had it run' if verdict.refusal else 'run'}: ", "cyan").append(verdict.seen.words, "default"))


def _bound(bound: Bound) -> str:
    place = f"line {bound.site.line}: " if bound.site is not None else ""
    return f"{place}{bound.what}; {bound.why}"


def _data(recorded: Recorded, typed: TypesChecked, found: Sequence[Finding]) -> dict[str, object]:
    return {
        "ok": not _errors(found),
        "file": str(recorded.paths[0]) if len(recorded.paths) == 1 else None,
        "files": [str(path) for path in recorded.paths],
        "errors": [_row(f) for f in found if f.level == "error"],
        "notes": [_row(f) for f in found if f.level != "error"],
        "launches": [
            {
                "file": v.file,
                "name": v.name,
                "ok": v.fine,
                "refused_as_declared": v.refusal or None,
                "warnings": [diagnostic_json(w) for w in v.warnings],
                "bounds": [{"line": b.site.line if b.site else None, "what": b.what, "why": b.why} for b in v.bounds],
                "schedules": v.seen.data if v.seen is not None else None,
            }
            for v in recorded.verdicts
        ],
        "without_recipe": list(recorded.bare),
        "mypy": typed.skipped or "ran",
        "mypy_plugin": typed.plugin,
        "mypy_config": typed.config or None,
    }


def _row(finding: Finding) -> dict[str, object]:
    region: Region = finding.region
    return {
        **diagnostic_json(finding.diagnostic),
        "gate": finding.gate,
        "level": finding.level,
        "column": region.column or None,
        "end_line": region.end_line or None,
        "end_column": region.end_column or None,
    }
