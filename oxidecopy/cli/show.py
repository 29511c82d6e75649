"""`oxidecopy show`: what was recorded, in a form to read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from oxidecopy.cli.options import AsJson, Inputs, Target
from oxidecopy.cli.report import OK, guarded, print_json
from oxidecopy.errors import Diagnostic, UsageError

if TYPE_CHECKING:
    from oxidecopy.program.program import Launch, Program

HELP: Final = "Print what a pipeline was recorded to, where its tiles lie, and what descriptors say."
PROGRAM_HELP: Final = """Print the recorded program of FILE as text: parameters, shared memory, barriers, ops.

The text parses back into the same program; put it into a bug report. FILE may be a binary program too, as --binary writes it. Below each
loop stands how a GPU runs it: as one record of device code, or op by op and why; at the end, whether one kernel
runs all of it. --device prints the device code itself.
"""
EXAMPLES: Final = (
    "oxidecopy show program examples/01_load.py:tma_load",
    "oxidecopy show program mine.py --binary mine.oxp",
    "oxidecopy show program mine.oxp",
    "oxidecopy show program examples/10_ring.py:prefetch --device",
)

app = typer.Typer(help=HELP, no_args_is_help=True)


@app.callback()
def group() -> None:
    """Print what a pipeline was recorded to, where its tiles lie, and what descriptors say."""


@guarded
def program(
    target: Target,
    *,
    inputs: Inputs = None,
    binary: Annotated[
        Path | None,
        typer.Option("--binary", metavar="FILE.oxp", help="Write the program here in its binary form; print nothing.", show_default=False),
    ] = None,
    device: Annotated[bool, typer.Option("--device", help="Print device code in place of the program.")] = False,
    as_json: AsJson = False,
) -> int:
    """Records through the recipe, or reads; nothing is verified or run."""
    from oxidecopy.cli.show_device import describe, marked
    from oxidecopy.host.npy import write_whole
    from oxidecopy.program.binary import to_bytes
    from oxidecopy.program.text import to_text
    from oxidecopy.typed.sites import no_sites

    shown, recipe, launch = recorded(target, inputs or [])
    if binary is not None:
        data = to_bytes(shown)
        with no_sites():
            write_whole(binary, lambda file: file.write(data))
    if device:
        code, loops = describe(shown, launch, target)
        if as_json:
            print_json({"pipeline": shown.name, "recipe": recipe, "device": code, "loops": loops})
        else:
            sys.stdout.write(code)
    elif as_json:
        print_json({"pipeline": shown.name, "recipe": recipe, "text": to_text(shown), "binary": str(binary) if binary else None})
    elif binary is None:
        sys.stdout.write(marked(to_text(shown), shown, launch))
    return OK


def recorded(target: str, inputs: list[Path]) -> tuple[Program, str | None, Launch | None]:
    """The program of a file, recorded through a recipe or read; with the recipe's name and launch where there is one."""
    return _read(target, inputs) or _record(target, inputs)


def _read(target: str, inputs: list[Path]) -> tuple[Program, str | None, Launch | None] | None:
    """The program of a binary file, which has no recipe; None for any other file."""
    from oxidecopy.program.binary import SIZE_MAX, from_bytes, is_binary

    try:
        with Path(target).open("rb") as file:
            data = file.read(SIZE_MAX + 1)
    except (OSError, ValueError):
        return None  # with `:name`, or not there: loading it as Python says so
    if not is_binary(data):
        return None
    if inputs:
        raise UsageError(
            Diagnostic(
                rule="OX6005", what=f"{target} is a recorded program", got=f"{len(inputs)} inputs", required="none", fix="leave --input out"
            )
        )
    return from_bytes(data, target), None, None


def _record(target: str, inputs: list[Path]) -> tuple[Program, str | None, Launch | None]:
    from oxidecopy.cli import launch
    from oxidecopy.cli.files import choose, load, split_target

    path, name = split_target(target)
    chosen = choose(load(path), name)
    recipe = launch.prepare(chosen, launch.open_device("sim"), launch.read_inputs(inputs))
    return recipe.launch.program, chosen.recipe.name, recipe.launch.launch
