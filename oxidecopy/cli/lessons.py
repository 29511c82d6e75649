"""The tour: numbered example files, found beside a source checkout or inside an installed package, each of their launches run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import final

from oxidecopy.cli import launch
from oxidecopy.cli.files import Chosen, load, require_recipes
from oxidecopy.cli.report import first_line
from oxidecopy.errors import Diagnostic, OxidecopyError, UsageError
from oxidecopy.host.device import Device
from oxidecopy.typed.sites import LESSON_PLACES


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """One launch of the tour.

    Attributes:
        shows: the first line of its file.
        result: dtype and shape of the outputs; the refusal of a twin that is broken on purpose.
        errors: what went wrong, empty when all is as it should be.
        seconds: the whole of it, with recording and verifying.
    """

    lesson: str
    launch: str = ""
    shows: str = ""
    result: str = ""
    twin: bool = False
    errors: tuple[Diagnostic, ...] = ()
    seconds: float = 0.0


def find(places: tuple[Path, ...] = LESSON_PLACES) -> list[Path]:
    """The numbered files of the first place that has any, in order.

    Raises:
        UsageError: there are none.
    """
    for place in places:
        files = sorted(place.glob("[0-9]*.py"))
        if files:
            return files
    looked = ", ".join(map(str, places))
    raise UsageError(
        Diagnostic(
            rule="OX6012",
            what="the lessons are not there",
            got=f"none in {looked}",
            fix="install the package again, or run from a checkout",
        )
    )


def run_all(files: list[Path], device: Device, starting: Callable[[str], None]) -> Iterator[Lesson]:
    """Runs every launch of every file; `starting` is told the name of each before it begins."""
    for path in files:
        starting(path.stem)
        try:
            loaded = load(path)
            require_recipes(loaded)
        except OxidecopyError as error:
            yield Lesson(lesson=path.stem, errors=error.diagnostics)
            continue
        for chosen in loaded.recipes():
            name = chosen.pipeline if len(loaded.pipelines[chosen.pipeline].recipes) == 1 else chosen.name
            starting(f"{path.stem}: {name}")
            yield _run(Lesson(lesson=path.stem, launch=name, shows=loaded.summary), chosen, device)


def _run(lesson: Lesson, chosen: Chosen, device: Device) -> Lesson:
    start = perf_counter()
    result, errors = _twin(chosen, device) if chosen.recipe.refused else _good(chosen, device)
    return replace(lesson, result=result, twin=bool(chosen.recipe.refused), errors=errors, seconds=perf_counter() - start)


def _good(chosen: Chosen, device: Device) -> tuple[str, tuple[Diagnostic, ...]]:
    try:
        ran = launch.run(chosen, device)
    except OxidecopyError as error:
        return "", error.diagnostics
    words = ", ".join(f"{array.dtype} {'x'.join(map(str, array.shape))}" for array in ran.outputs.values())
    return words, launch.mismatches(ran)


def _twin(chosen: Chosen, device: Device) -> tuple[str, tuple[Diagnostic, ...]]:
    """Right when the rule it names refuses it."""
    try:
        launch.run(chosen, device)
    except OxidecopyError as error:
        refusal = launch.declared_refusal(chosen, error)
        if refusal is None:
            return "", launch.not_refused(chosen, error)
        # The folder is said once, below the table.
        site = replace(refusal.site, file=Path(refusal.site.file).name) if refusal.site else None
        return first_line(replace(refusal, site=site)), ()
    return "", launch.not_refused(chosen)
