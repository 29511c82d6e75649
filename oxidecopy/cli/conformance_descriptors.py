"""`oxidecopy conformance descriptors`: the validator of tensor maps against the driver's own answers."""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from oxidecopy.cli.options import AsJson
from oxidecopy.cli.report import OK, REFUSED, err, guarded, out, print_json
from oxidecopy.errors import DeviceError, Diagnostic

HELP: Final = """Hold the validator of tensor maps against the driver of a GPU.

Thousands of parameter sets, legal and not, are encoded by the driver in a process of its own and judged by `ox.validate`: both must agree.
Loads through a sample of the maps show that what is called usable is, and that what is not faults. Ends with 1 when anything differs.
"""
EXAMPLES: Final = (
    "oxidecopy conformance descriptors --device cuda:0",
    "oxidecopy conformance descriptors --device cuda:0 --output docs/results/conformance_descriptors.json",
    "oxidecopy conformance descriptors --no-driver",
)
_SHOWN: Final = 20  # differences that are printed; all are in the JSON


@guarded
def command(
    *,
    device: Annotated[
        str | None, typer.Option("--device", "-d", metavar="NAME", help="A GPU; the first usable one when left out.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the random sets.")] = 1,
    driver: Annotated[
        bool, typer.Option("--driver/--no-driver", help="Ask the driver; without it the sets are judged and counted.")
    ] = True,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE.json", help="Write the result with date, device and command.", show_default=False),
    ] = None,
    map_bytes: Annotated[
        Path | None,
        typer.Option("--map-bytes", metavar="FILE.json", help="Write some encoded maps with their arguments.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Judges, asks, loads; 1 when anything differs."""
    from oxidecopy.host.npy import write_json
    from oxidecopy.typed.sites import no_sites

    suite: Any = import_module("oxidecopy.conformance.descriptors")  # a stranger, loaded by its name, and may be removed
    result, why = _asked(suite, device, seed) if driver else (suite.judge_all(seed), "none: the validator for compute capability 9.0")
    data = suite.as_data(result, why)
    with no_sites():
        if output is not None:
            write_json(output, data)
        if map_bytes is not None:
            write_json(map_bytes, suite.bytes_data(result))
    if as_json:
        print_json(data)
    else:
        _print(result)
    return REFUSED if result.disagreements or result.failures else OK


def _asked(suite: Any, device: str | None, seed: int) -> tuple[Any, str]:
    from oxidecopy.cli.launch import open_device
    from oxidecopy.host.opening import SIMULATORS

    found = open_device(device)
    if found.name in SIMULATORS:
        required, fix = "a GPU: only its driver knows what it encodes", "--device cuda:0, or --no-driver to judge and count the sets"
        raise DeviceError(Diagnostic(rule="OX6014", what="the driver of a GPU is asked", got=found.why, required=required, fix=fix))
    console = err()
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("encoding", total=None)

        def starting(name: str, position: int, total: int) -> None:
            progress.update(task, description=name, completed=position, total=total)

        return suite.ask_all(found.name, found.sm, starting, seed), found.why


def _print(result: Any) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in ("what", "sets", "encode", "usable", "agree" if result.device else ""):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    for group in dict.fromkeys(j.group for j in result.judged):
        rows = [j for j in result.judged if j.group == group]
        counts = Counter({"encode": sum(j.verdict.encodes for j in rows), "usable": sum(j.verdict.usable for j in rows)})
        agree = str(sum(j.agrees for j in rows)) if result.device else ""
        table.add_row(group, str(len(rows)), str(counts["encode"]), str(counts["usable"]), agree)
    console = out()
    console.print(table, soft_wrap=False)
    for judged in result.disagreements[:_SHOWN]:
        console.print(Text(f"\nthe driver answers {judged.code}: {judged.verdict.parameters}", "bold red"))
        console.print(Text(str(judged.verdict)))
    for row in result.failures[:_SHOWN]:
        console.print(Text(f"\n{row.name}: {row.problem}", "bold red"))
    console.print(Text(f"\n{_summary(result)}", "bold red" if result.disagreements or result.failures else "bold green"))


def _summary(result: Any) -> str:
    total = len(result.judged)
    if not result.device:
        return f"{total} sets judged; no driver was asked"
    loads = f"; {len(result.loaded) - len(result.failures)} of {len(result.loaded)} loads did what it says" if result.loaded else ""
    return f"{total - len(result.disagreements)} of {total} sets: the validator agrees with the driver of {result.device}{loads}"
