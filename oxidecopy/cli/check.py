"""`oxidecopy check`: every pipeline of a file recorded and verified through its recipes, nothing run; mypy too where it is installed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, final

import typer
from rich.text import Text

from oxidecopy.cli.options import AsJson, Inputs, Target
from oxidecopy.cli.report import (
    OK,
    REFUSED,
    counted,
    diagnostic_json,
    err,
    first_line,
    guarded,
    out,
    print_diagnostics,
    print_json,
    relative,
)
from oxidecopy.errors import Diagnostic, OxidecopyError

if TYPE_CHECKING:
    import numpy.typing as npt

    from oxidecopy.cli.files import Chosen
    from oxidecopy.cli.mypy_run import TypesChecked
    from oxidecopy.host.device import Device

HELP: Final = """Record and verify every pipeline of FILE without running it; check its types too where mypy is installed.

All findings of both are printed in the order of their lines.
"""
EXAMPLES: Final = ("oxidecopy check mine.py", "oxidecopy check mine.py --no-types", "oxidecopy check mine.py --json")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What recording and verifying one recipe gave; `refusal` is the first line of the error that it was declared to have."""

    name: str
    errors: tuple[Diagnostic, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    refusal: str = ""


@guarded
def command(
    target: Target,
    *,
    inputs: Inputs = None,
    types: Annotated[bool, typer.Option("--types/--no-types", help="Run mypy as well.")] = True,
    as_json: AsJson = False,
) -> int:
    """Checks; 1 when anything is wrong."""
    from oxidecopy.cli import launch
    from oxidecopy.cli.files import choose, load, require_recipes, split_target
    from oxidecopy.cli.mypy_run import TypesChecked, check_types

    path, name = split_target(target)
    loaded = load(path)
    require_recipes(loaded)
    wanted = [choose(loaded, name)] if name else list(loaded.recipes())
    arrays = launch.read_inputs(inputs or ())
    device = launch.open_device("sim")
    console = err()
    with console.status("recording and verifying") as status:
        verdicts = [verdict_of(chosen, device, arrays) for chosen in wanted]
        status.update("mypy")
        typed = check_types(loaded.path) if types else TypesChecked(skipped="left out by --no-types")
    bare = [name for name, pipeline in loaded.pipelines.items() if not pipeline.recipes]
    errors = _merged(verdicts, typed)
    if as_json:
        print_json(_data(str(loaded.path), verdicts, typed, bare, errors))
    else:
        _print(verdicts, typed, bare, errors, relative(str(loaded.path)))
    return REFUSED if errors else OK


def verdict_of(chosen: Chosen, device: Device, inputs: Sequence[npt.NDArray[Any]]) -> Verdict:
    """Records and verifies one recipe. A refusal that the recipe declares is right, its absence an error."""
    from oxidecopy.cli import launch

    try:
        proof = launch.prepare(chosen, device, inputs).launch.verify()
    except OxidecopyError as error:
        refusal = launch.declared_refusal(chosen, error)
        if refusal:
            return Verdict(name=chosen.name, refusal=first_line(refusal))
        return Verdict(name=chosen.name, errors=launch.not_refused(chosen, error) if chosen.recipe.refused else error.diagnostics)
    if chosen.recipe.refused:
        return Verdict(name=chosen.name, errors=launch.not_refused(chosen), warnings=proof.warnings)
    return Verdict(name=chosen.name, warnings=proof.warnings)


def _merged(verdicts: Sequence[Verdict], typed: TypesChecked) -> list[Diagnostic]:
    """Each error once (two recipes may break the same rule at the same line), by line; those without a line last."""
    every = dict.fromkeys(d for v in verdicts for d in v.errors) | dict.fromkeys(typed.diagnostics)
    return sorted(every, key=lambda d: (d.site is None, (d.site.file, d.site.line) if d.site else ("", 0)))


def _print(verdicts: Sequence[Verdict], typed: TypesChecked, bare: Sequence[str], errors: Sequence[Diagnostic], name: str) -> None:
    console = out()
    print_diagnostics(console, errors)
    for verdict in verdicts:
        for warning in verdict.warnings:
            console.print(Text("warning: ", "yellow").append(first_line(warning)))
        if verdict.refusal:
            console.print(Text(f"{verdict.name} is refused, as declared: ", "cyan").append(verdict.refusal, "default"))
    for pipeline in bare:
        console.print(Text(f"{pipeline}: has no recipe, so it was not recorded", "yellow"))
    good = sum(not v.errors for v in verdicts)
    words = f"mypy: {typed.skipped or counted(len(typed.diagnostics), 'error')}"
    style = "bold red" if errors else "bold green"
    console.print(
        Text(f"{name}: ", "bold")
        .append(counted(len(errors), "error") if errors else "OK", style)
        .append(f"; {good} of {len(verdicts)} launches fine; {words}", "default")
    )


def _data(
    path: str, verdicts: Sequence[Verdict], typed: TypesChecked, bare: Sequence[str], errors: Sequence[Diagnostic]
) -> dict[str, object]:
    return {
        "ok": not errors,
        "file": path,
        "errors": [{**diagnostic_json(d), "gate": "types" if d in typed.diagnostics else "program"} for d in errors],
        "launches": [
            {
                "name": v.name,
                "ok": not v.errors,
                "refused_as_declared": v.refusal or None,
                "warnings": [diagnostic_json(w) for w in v.warnings],
            }
            for v in verdicts
        ],
        "without_recipe": list(bare),
        "mypy": typed.skipped or "ran",
    }
