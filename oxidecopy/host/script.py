"""`run_recipes`: what a file of pipelines does as a script, `python FILE.py --input x.npy --output y.npy`. It needs nothing but the core.

It runs the recipes that the command line would run, on the user's array or their own, and holds the results against what they expect. A
recipe that is declared refused must be refused: its error is shown, as the lesson it is.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from textwrap import indent
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, final

from oxidecopy.errors import DeviceError, OxidecopyError, UsageError
from oxidecopy.host.compare import difference
from oxidecopy.host.device import Device
from oxidecopy.host.npy import load_npy, save_npy
from oxidecopy.typed.sites import no_sites

if TYPE_CHECKING:
    import numpy.typing as npt

    from oxidecopy.host.pipeline import Pipeline
    from oxidecopy.host.recipe import Recipe, RecipeFunction

OK: Final = 0
WRONG: Final = 1
USAGE: Final = 2
INTERRUPTED: Final = 130


@final
@dataclass(frozen=True, slots=True)
class _Choice:
    """One recipe, the name of its pipeline, and the shortest name that tells it from the others."""

    name: str
    recipe: RecipeFunction
    label: str


def run_recipes(doc: str | None, *pipelines: Pipeline[...], argv: Sequence[str] | None = None) -> int:
    """Runs the recipes of `pipelines` and checks their results; what a script's `main` returns.

    Args:
        doc: the file's docstring, for `--help`.
        pipelines: in the order they are to run.
        argv: the script's arguments; None takes `sys.argv`.

    Returns:
        The exit status: 0 when every result is what its recipe expects and every twin that is declared refused is, 1 when not, 2 for
        inputs, names and devices that cannot be used, 130 when interrupted.
    """
    choices = [choice for pipeline in pipelines for choice in _choices(pipeline)]
    parser = _parser(doc, choices)
    options = parser.parse_args(argv)
    wanted = [c for c in choices if options.pipeline in (None, c.name)]
    good = [c for c in wanted if not c.recipe.refused]
    for choice in good:
        _check_count(parser, choice, len(options.input))
    running = ""
    try:
        with no_sites():
            inputs = [load_npy(path) for path in options.input]
            device = Device.open(options.device)
        wrong = 0
        for choice in good:
            running = choice.label
            wrong += _run(choice, device, inputs, options.output if choice is good[0] else None)
        running = ""
        for choice in wanted:
            wrong += bool(choice.recipe.refused) and not _refused(choice, device)
    except OxidecopyError as error:
        sys.stderr.write(f"{error}\n")
        if running and options.input and len(good) > 1:
            sys.stderr.write(f"this was {running}; --pipeline NAME runs only one of {', '.join(c.name for c in good)}\n")
        return USAGE if isinstance(error, UsageError | DeviceError) else WRONG
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader (`| head`) has seen enough. Python would complain once more when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return WRONG
    return WRONG if wrong else OK


def _choices(pipeline: Pipeline[...]) -> Iterator[_Choice]:
    good = [r for r in pipeline.recipes if not r.refused]
    for recipe in pipeline.recipes:
        alone = len(pipeline.recipes) == 1 or good == [recipe]
        yield _Choice(pipeline.__name__, recipe, pipeline.__name__ if alone else recipe.name)


def _parser(doc: str | None, choices: Sequence[_Choice]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    names = list(dict.fromkeys(c.name for c in choices))
    parser.add_argument(
        "--input", metavar="FILE.npy", type=Path, action="append", default=[], help="your own array; without it the recipe makes one"
    )
    parser.add_argument("--output", metavar="FILE.npy", type=Path, help="where the first result is written, whole or not at all")
    parser.add_argument("--device", metavar="NAME", help="sim, sim-fast (without looking for races) or cuda:0; the best one there is")
    parser.add_argument("--pipeline", metavar="NAME", choices=names, help=f"run only this one of {', '.join(names)}")
    return parser


def _check_count(parser: argparse.ArgumentParser, choice: _Choice, given: int) -> None:
    """Ends the process, as argparse does, when the recipe takes another number of arrays."""
    arrays = list(signature(choice.recipe.fn).parameters.values())[1:]
    least = sum(p.default is p.empty for p in arrays)
    if not least <= given <= len(arrays):
        names = ", ".join(p.name for p in arrays)
        parser.error(f"{choice.label} takes {least} to {len(arrays)} arrays by --input{f' ({names})' if names else ''}, got {given}")


def _run(choice: _Choice, device: Device, inputs: Sequence[npt.NDArray[Any]], output: Path | None) -> bool:
    """Runs one recipe, prints what came of it; true when the result is wrong."""
    start = perf_counter()
    recipe: Recipe = choice.recipe(device, *inputs)
    recipe.launch()
    milliseconds = (perf_counter() - start) * 1e3
    wrong = False
    for name, array in recipe.outputs.items():
        result = array.numpy()
        verdict = "not checked"
        if name in recipe.expected:
            within = recipe.within.get(name, 0.0)
            differs = difference(name, result, recipe.expected[name], within)
            verdict = f"WRONG: {differs}" if differs else "equal to numpy's" + (f" within {within:g}" if within else "")
            wrong = wrong or differs is not None
        sys.stdout.write(f"{choice.label}: {name} {result.dtype} {result.shape} {verdict} ({milliseconds:.0f} ms on {device.name})\n")
    if output is not None:
        name, array = next(iter(recipe.outputs.items()))
        with no_sites():
            save_npy(output, array.numpy())
        sys.stdout.write(f"{choice.label}: {name} written to {output}\n")
    return wrong


def _refused(choice: _Choice, device: Device) -> bool:
    """Runs a recipe that must be refused, on its own data; true when it is, by the rule it names."""
    rule = choice.recipe.refused
    try:
        choice.recipe(device).launch()
    except OxidecopyError as error:
        fits = rule in error.rules
        words = f"refused, as it should be, by {rule}" if fits else f"WRONG: refused, but not by {rule}"
        words += f"\n{indent(str(error), '    ')}"
    else:
        fits, words = False, f"WRONG: it runs, and {rule} should refuse it"
    sys.stdout.write(f"{choice.label}: {words}\n")
    return fits
