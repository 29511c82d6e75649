"""One recipe as the command line runs it: inputs read, launch prepared, verified and run, results compared. Prints nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, signature
from pathlib import Path
from time import perf_counter
from types import CodeType
from typing import TYPE_CHECKING, Any, final

from oxidecopy.cli.files import Chosen, site_of
from oxidecopy.errors import Diagnostic, OxidecopyError, Site, UsageError
from oxidecopy.host.bound import BoundLaunch
from oxidecopy.host.compare import Difference, difference
from oxidecopy.host.device import Device
from oxidecopy.host.npy import load_npy, save_npy
from oxidecopy.host.recipe import Recipe
from oxidecopy.typed.global_array import GlobalArray
from oxidecopy.typed.refusal import described
from oxidecopy.typed.sites import no_sites

if TYPE_CHECKING:
    import numpy.typing as npt


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a launch gave.

    Attributes:
        outputs: by name, as they are on the device afterwards.
        differences: one for each output that is not what the recipe expects.
        checked: names of the outputs that were compared.
        prepare_seconds: making inputs, recording and verifying.
        run_seconds: the launch alone.
    """

    grid: tuple[int, ...]
    outputs: dict[str, npt.NDArray[Any]]
    differences: tuple[Difference, ...]
    checked: frozenset[str]
    warnings: tuple[Diagnostic, ...]
    prepare_seconds: float
    run_seconds: float


def open_device(name: str | None) -> Device:
    with no_sites():
        return Device.open(name)


def read_inputs(paths: Sequence[Path]) -> list[npt.NDArray[Any]]:
    """All of them, or an error with everything that is wrong with any."""
    arrays: list[npt.NDArray[Any]] = []
    broken: list[OxidecopyError] = []
    for path in paths:
        try:
            with no_sites():
                arrays.append(load_npy(path))
        except OxidecopyError as error:
            broken.append(error)
    if broken:
        raise type(broken[0])(*(d for error in broken for d in error.diagnostics))
    return arrays


def prepare(chosen: Chosen, device: Device, inputs: Sequence[npt.NDArray[Any]] = ()) -> Recipe:
    """Calls the recipe: arguments are checked and the program recorded; nothing is verified or run.

    Raises:
        UsageError: a wrong number of inputs, or the recipe itself fails.
        OxidecopyError: what the recorder or the host refuses.
    """
    _check_count(chosen, len(inputs))
    try:
        recipe: object = chosen.recipe(device, *inputs)
    except OxidecopyError:
        raise
    except (Exception, SystemExit) as problem:
        raise UsageError(
            Diagnostic(
                rule="OX6006",
                what=f"the recipe {chosen.recipe.name!r} fails",
                got=f"{type(problem).__name__}: {problem}",
                required="an ox.Recipe",
                fix="check the shape and type of the inputs it is given" if inputs else "",
                site=site_of(problem),
            )
        ) from problem
    if not isinstance(recipe, Recipe):
        raise UsageError(
            _bad_recipe(
                chosen, "does not return a recipe", type(recipe).__name__, "return ox.Recipe(launch=pipe[grid].bind(...), outputs=...)"
            )
        )
    if not isinstance(recipe.launch, BoundLaunch):
        raise UsageError(_bad_recipe(chosen, "has no launch", type(recipe.launch).__name__, "launch=pipe[grid].bind(...)"))
    _check_mapping(chosen, "outputs", recipe.outputs)
    _check_mapping(chosen, "expected", recipe.expected)
    outputs: Mapping[str, object] = recipe.outputs
    strange = [f"{name}: {type(a).__name__}" for name, a in outputs.items() if not isinstance(a, GlobalArray)]
    if strange:
        raise UsageError(
            _bad_recipe(chosen, "has outputs that are no device arrays", ", ".join(strange), "give the arrays that the launch writes")
        )
    unknown = [name for name in recipe.expected if name not in recipe.outputs]
    if unknown:
        known = ", ".join(recipe.outputs) or "none"
        raise UsageError(_bad_recipe(chosen, "expects results that are no outputs", ", ".join(unknown), f"outputs are: {known}"))
    return recipe


def _check_mapping(chosen: Chosen, what: str, value: object) -> None:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        fix = f'{what}={{"out": ...}}'
        raise UsageError(_bad_recipe(chosen, f"gives no names for its `{what}`", described(value), fix))


def run(chosen: Chosen, device: Device, inputs: Sequence[npt.NDArray[Any]] = ()) -> Ran:
    """Prepares, verifies, runs and compares."""
    start = perf_counter()
    recipe = prepare(chosen, device, inputs)
    proof = recipe.launch.verify()
    ready = perf_counter()
    recipe.launch()
    done = perf_counter()
    outputs = {name: array.numpy() for name, array in recipe.outputs.items()}
    found = [difference(name, outputs[name], wanted, recipe.within.get(name, 0.0)) for name, wanted in recipe.expected.items()]
    return Ran(
        grid=tuple(recipe.launch.launch.grid),
        outputs=outputs,
        differences=tuple(d for d in found if d),
        checked=frozenset(recipe.expected),
        warnings=proof.warnings,
        prepare_seconds=ready - start,
        run_seconds=done - ready,
    )


def write_output(path: Path, chosen: Chosen, ran: Ran) -> None:
    """Writes the first output, whole or not at all.

    Raises:
        UsageError: there is none, or the file cannot be written.
    """
    if not ran.outputs:
        raise UsageError(_bad_recipe(chosen, "has no output to write", "outputs={}", "name the result arrays in `outputs`"))
    with no_sites():
        save_npy(path, next(iter(ran.outputs.values())))


def mismatches(ran: Ran) -> tuple[Diagnostic, ...]:
    """One error for each output that is not what the recipe expects."""
    return tuple(map(_mismatch, ran.differences))


def _mismatch(difference: Difference) -> Diagnostic:
    if not difference.count:
        required, fix = "one shape and one element type", "give `expected` an array like the output: x.astype(...), x.reshape(...)"
    else:
        required = "equal byte for byte, any NaN equal to any NaN"
        fix = f'where results may differ by rounding: ox.Recipe(..., within={{"{difference.name}": 1e-6}})'
    return Diagnostic(rule="OX6007", what=str(difference), required=required, fix=fix)


def declared_refusal(chosen: Chosen, error: OxidecopyError) -> Diagnostic | None:
    """The part of `error` that the recipe is declared to be refused by; None when it is another error."""
    return next((d for d in error.diagnostics if chosen.recipe.refused and d.rule == chosen.recipe.refused), None)


def not_refused(chosen: Chosen, error: OxidecopyError | None = None) -> tuple[Diagnostic, ...]:
    """The errors of a launch that is declared to be refused by one rule, and runs, or is refused by others: `error`."""
    wrong = Diagnostic(
        rule="OX6010",
        what=f"{chosen.name} is declared to be refused and is not",
        got=", ".join(error.rules) if error else "no error",
        required=chosen.recipe.refused,
        fix="name the rule that refuses it in `recipe(refused=...)`, or break it again",
        site=_source(chosen),
    )
    return (wrong, *(error.diagnostics if error else ()))


def _check_count(chosen: Chosen, given: int) -> None:
    """At most as many inputs as the recipe takes, at least those without a default."""
    arrays = [p for p in list(signature(chosen.recipe.fn).parameters.values())[1:] if p.kind is not Parameter.KEYWORD_ONLY]
    most = given if any(p.kind is Parameter.VAR_POSITIONAL for p in arrays) else len(arrays)
    least = sum(p.default is Parameter.empty and p.kind is not Parameter.VAR_POSITIONAL for p in arrays)
    if least <= given <= most:
        return
    names = ", ".join(p.name for p in arrays)
    raise UsageError(
        Diagnostic(
            rule="OX6005",
            what=f"the recipe {chosen.recipe.name!r} takes another number of inputs",
            got=str(given),
            required=(f"{least} to {most}" if least < most else str(most)) + (f": {names}" if names else ""),
            fix=f"one --input FILE.npy for each, or a default in the recipe: `{arrays[given].name}=None`"
            if given < least
            else "leave out the rest",
            site=_source(chosen),
        )
    )


def _bad_recipe(chosen: Chosen, what: str, got: str, fix: str) -> Diagnostic:
    return Diagnostic(rule="OX6006", what=f"the recipe {chosen.recipe.name!r} {what}", got=got, fix=fix, site=_source(chosen))


def _source(chosen: Chosen) -> Site | None:
    """The line where the recipe begins."""
    code = getattr(chosen.recipe.fn, "__code__", None)
    return Site(code.co_filename, code.co_firstlineno, code.co_name) if isinstance(code, CodeType) else None
