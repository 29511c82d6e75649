"""`oxidecopy conformance record`: results of a GPU, written down as oracles for machines without one."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from oxidecopy.cli.options import AsJson
from oxidecopy.cli.report import OK, REFUSED, counted, err, guarded, out, print_json

HELP: Final = """Run the recorded set of copies on a device, and write the results to FILE or hold them against it.

The set takes every element type through every rank, with swizzles, fills, element strides, views and places by chance. FILE is gzip of
JSON; its own `about` says where it comes from. With --check the device runs the cases of FILE, and ends with 1 when any result differs.
"""
EXAMPLES: Final = (
    "oxidecopy conformance record tests/cases/h200/oracles.json.gz --device cuda:0",
    "oxidecopy conformance record tests/cases/h200/oracles.json.gz --check --device sim",
)
_SHOWN: Final = 20  # differences that are printed; all are in the JSON


@guarded
def command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write, or to read with --check.", show_default=False)],
    *,
    device: Annotated[
        str | None, typer.Option("--device", "-d", metavar="NAME", help="cuda:0, sim; the best there is when left out.", show_default=False)
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Hold the device against FILE; nothing is written.")] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the set that is recorded.")] = 1,
    as_json: AsJson = False,
) -> int:
    """Records, or compares; 1 when anything differs."""
    from oxidecopy.cli.launch import open_device
    from oxidecopy.host.npy import write_whole
    from oxidecopy.typed.sites import no_sites

    oracles: Any = import_module("oxidecopy.conformance.oracles")  # a stranger, loaded by its name, and may be removed
    found = open_device(device)
    if check:
        with no_sites():
            kept = oracles.read(file)
        differences = list(oracles.differences(kept.oracles, found))
        return _checked(found.name, kept, differences, as_json=as_json)
    console = err()
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("programs", total=None)
        made = oracles.record(found, lambda done, total: progress.update(task, completed=done, total=total), seed)
    data = oracles.as_bytes(made)
    with no_sites():
        write_whole(file, lambda opened: opened.write(data))
    if as_json:
        print_json(dict(made.about))
    else:
        about = made.about
        ran = f"{about['copies']:,} copies in {counted(about['programs'], 'program')}"
        out().print(f"{ran}: {len(data):,} bytes in {file} ({about['device']})")
    return OK


def _checked(device: str, kept: Any, differences: list[str], *, as_json: bool) -> int:
    programs, copies = len(kept.oracles), kept.about["copies"]
    if as_json:
        print_json({"device": device, "about": dict(kept.about), "programs": programs, "differences": differences})
    else:
        console = out()
        for line in differences[:_SHOWN]:
            console.print(Text(line))
        text = f"{programs - len(differences)} of {programs} programs ({copies:,} copies) as recorded, on {device}"
        console.print(Text(text, "bold red" if differences else "bold green"))
    return REFUSED if differences else OK
