"""`oxidecopy run`: one launch of the user's file, on the user's arrays."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.text import Text

from oxidecopy.cli.options import AsJson, DeviceName, Inputs, Target
from oxidecopy.cli.report import OK, REFUSED, diagnostics_json, err, first_line, guarded, out, print_json
from oxidecopy.errors import Diagnostic, ExecutionError, UsageError

if TYPE_CHECKING:
    from oxidecopy.cli.files import Chosen
    from oxidecopy.cli.launch import Ran

HELP: Final = """Run a pipeline of FILE through its recipe and check the result.

Without --input the recipe makes its own data.
"""
EXAMPLES: Final = (
    "oxidecopy run examples/01_load.py:tma_load",
    "oxidecopy run mine.py:tma_load --input x.npy --output y.npy",
    "oxidecopy run mine.py --device sim-fast",
)


@guarded
def command(
    target: Target,
    *,
    inputs: Inputs = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE.npy", help="Write the first output here, whole or not at all.", show_default=False),
    ] = None,
    device: DeviceName = None,
    as_json: AsJson = False,
) -> int:
    """Runs; 1 when the result is not what the recipe expects."""
    # numpy and the engines load here, so that `--help` stays quick.
    from oxidecopy.cli import launch
    from oxidecopy.cli.files import choose, load, split_target

    path, name = split_target(target)
    chosen = choose(load(path), name)
    if output is not None and not output.absolute().parent.is_dir():
        raise UsageError(
            Diagnostic(
                rule="OX6008",
                what=f"{output} cannot be written",
                got=f"there is no folder {output.parent}",
                required="an existing folder",
                fix=f"mkdir -p {output.parent}",
            )
        )
    on = launch.open_device(device)
    arrays = launch.read_inputs(inputs or ())
    with err().status(f"running {chosen.pipeline} on {on.name}"):
        ran = launch.run(chosen, on, arrays)
    if chosen.recipe.refused:
        raise ExecutionError(*launch.not_refused(chosen))
    if output is not None:
        launch.write_output(output, chosen, ran)
    if as_json:
        print_json(_data(chosen, on.name, ran, output))
        return REFUSED if ran.differences else OK
    _print(chosen, on.name, ran, output)
    if ran.differences:
        raise ExecutionError(*launch.mismatches(ran))
    return OK


def _print(chosen: Chosen, device: str, ran: Ran, output: Path | None) -> None:
    console = out()
    for warning in ran.warnings:
        console.print(Text("warning: ", "yellow").append(first_line(warning)))
    console.print(
        Text(chosen.name, "bold").append(
            f"  grid {ran.grid} on {device}, {_seconds(ran.run_seconds)} (recorded and verified in {_seconds(ran.prepare_seconds)})",
            "default",
        )
    )
    verdicts = {d.name: Text("MISMATCH", "bold red") for d in ran.differences}
    unchecked = Text("not checked: the recipe expects nothing of it", "yellow")
    for name, array in ran.outputs.items():
        verdict = verdicts.get(name, Text("OK", "bold green") if name in ran.checked else unchecked)
        console.print(Text(f"  {name}: {array.dtype} {array.shape}  ").append_text(verdict))
    if output is not None:
        console.print(f"  {next(iter(ran.outputs))} written to {output}")


def _seconds(value: float) -> str:
    return f"{value * 1e3:.1f} ms" if value < 1 else f"{value:.2f} s"


def _data(chosen: Chosen, device: str, ran: Ran, output: Path | None) -> dict[str, object]:
    return {
        "ok": not ran.differences,
        "pipeline": chosen.pipeline,
        "recipe": chosen.recipe.name,
        "device": device,
        "grid": ran.grid,
        "outputs": [
            {"name": name, "dtype": str(a.dtype), "shape": a.shape, "checked": name in ran.checked} for name, a in ran.outputs.items()
        ],
        "differences": [
            {"name": d.name, "count": d.count, "index": d.index, "got": d.got, "required": d.required, "what": str(d)}
            for d in ran.differences
        ],
        "warnings": diagnostics_json(ran.warnings),
        "prepare_seconds": ran.prepare_seconds,
        "run_seconds": ran.run_seconds,
        "output": str(output) if output else None,
    }
