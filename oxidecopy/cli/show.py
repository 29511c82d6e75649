"""`oxidecopy show`: what was recorded, in a form to read."""

from __future__ import annotations

import sys
from typing import Final

import typer

from oxidecopy.cli.options import AsJson, Inputs, Target
from oxidecopy.cli.report import OK, guarded, print_json

HELP: Final = "Print what a pipeline was recorded to."
PROGRAM_HELP: Final = """Print the recorded program of FILE as text: parameters, shared memory, barriers, ops.

The text parses back into the same program; put it into a bug report.
"""
EXAMPLES: Final = ("oxidecopy show program examples/01_load.py:tma_load",)

app = typer.Typer(help=HELP, no_args_is_help=True)


@app.callback()
def group() -> None:
    """Print what a pipeline was recorded to."""


@guarded
def program(target: Target, *, inputs: Inputs = None, as_json: AsJson = False) -> int:
    """Records through the recipe; nothing is verified or run."""
    from oxidecopy.cli import launch
    from oxidecopy.cli.files import choose, load, split_target
    from oxidecopy.program.text import to_text

    path, name = split_target(target)
    chosen = choose(load(path), name)
    recipe = launch.prepare(chosen, launch.open_device("sim"), launch.read_inputs(inputs or ()))
    text = to_text(recipe.launch.program)
    if as_json:
        print_json({"pipeline": chosen.pipeline, "recipe": chosen.recipe.name, "text": text})
    else:
        sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
    return OK
