"""`oxidecopy conformance`: the same programs on the simulator and on a device, compared byte for byte."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from time import monotonic
from typing import Annotated, Any, Final, Protocol, cast

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from oxidecopy.cli.options import AsJson
from oxidecopy.cli.report import OK, REFUSED, counted, err, guarded, out, print_json
from oxidecopy.errors import DeviceError, Diagnostic

HELP: Final = """Run every kind of program on the simulator and on a device, and compare the results byte for byte.

Processes of their own run them, so that a fault costs one case and not the rest. The file is written as they go. Ends with 1 when any
differs.
"""
EXAMPLES: Final = (
    "oxidecopy conformance",
    "oxidecopy conformance --device cuda:0 --output docs/results/conformance.json",
    "oxidecopy conformance --device cuda:0 --emitted --only lessons",
    "oxidecopy conformance --only 'reduce add'",
)
_WRITTEN_S: Final = 5.0  # between two states of the file: a run that is cut leaves what it has
_SHOWN: Final = 20  # failures that are printed; all are in the JSON


class Verdict(Protocol):
    """`oxidecopy.conformance.run.Verdict`; the room is a stranger, loaded by its name, and may be removed."""

    @property
    def name(self) -> str: ...
    @property
    def group(self) -> str: ...
    @property
    def problem(self) -> str: ...
    @property
    def seconds(self) -> float: ...


class Workers(Protocol):
    """`oxidecopy.conformance.workers`."""

    def run_all(self, device: str, pattern: str, starting: Callable[[str, int, int], None], /, *, emitted: bool) -> Iterator[Verdict]: ...


class Suite(Protocol):
    """`oxidecopy.conformance.run`."""

    def as_data(self, device: str, pattern: str, verdicts: list[Any], /, *, emitted: bool, left: int) -> dict[str, object]: ...


app = typer.Typer(help=HELP, invoke_without_command=True)


@guarded
def command(
    context: typer.Context,
    *,
    device: Annotated[
        str | None, typer.Option("--device", "-d", metavar="NAME", help="cuda:0, sim; the best there is when left out.", show_default=False)
    ] = None,
    only: Annotated[str, typer.Option("--only", metavar="TEXT", help="Cases whose group or name holds this.")] = "",
    emitted: Annotated[
        bool, typer.Option("--emitted", help="Run the CUDA C++ of `oxidecopy emit`, compiled here, instead of the interpreter.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE.json", help="Write the result with date, device and command.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Runs the cases; 1 when any differs."""
    if context.invoked_subcommand is not None:
        return OK
    from oxidecopy.cli.launch import open_device
    from oxidecopy.host.opening import SIMULATORS

    suite = cast("Suite", import_module("oxidecopy.conformance.run"))
    workers = cast("Workers", import_module("oxidecopy.conformance.workers"))
    found = open_device(device)
    if emitted and found.name in SIMULATORS:
        raise DeviceError(Diagnostic(rule="OX6014", what="emitted code runs on a GPU", got=found.name, fix="--device cuda:0"))
    verdicts, due = list[Verdict](), monotonic() + _WRITTEN_S
    for verdict, left in _told(workers, found.name, only, emitted=emitted):
        verdicts.append(verdict)
        if output is not None and left and monotonic() >= due:
            _write(output, suite.as_data(found.name, only, verdicts, emitted=emitted, left=left))
            due = monotonic() + _WRITTEN_S
    result = suite.as_data(found.name, only, verdicts, emitted=emitted, left=0)
    if output is not None:
        _write(output, result)
    if as_json:
        print_json(result)
    else:
        _print(verdicts, found.name)
    return OK if verdicts and not any(v.problem for v in verdicts) else REFUSED


def _told(workers: Workers, device: str, only: str, *, emitted: bool) -> Iterator[tuple[Verdict, int]]:
    """Each verdict as it comes, and how many are still to come; a bar shows it where a person looks."""
    console, left = err(), 0
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("cases", total=None)

        def starting(name: str, position: int, total: int) -> None:
            nonlocal left
            left = total - position
            progress.update(task, description=name, completed=position, total=total)

        for verdict in workers.run_all(device, only, starting, emitted=emitted):
            yield verdict, left


def _write(path: Path, result: dict[str, object]) -> None:
    from oxidecopy.host.npy import write_json
    from oxidecopy.typed.sites import no_sites

    with no_sites():
        write_json(path, result)


def _print(verdicts: list[Verdict], device: str) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in ("what", "cases", "equal", "seconds", ""):
        table.add_column(heading, justify="left" if heading in ("what", "") else "right")
    for group in dict.fromkeys(v.group for v in verdicts):
        rows = [v for v in verdicts if v.group == group]
        equal = sum(not v.problem for v in rows)
        mark = Text("OK", "bold green") if equal == len(rows) else Text(f"{len(rows) - equal} FAILED", "bold red")
        table.add_row(group, str(len(rows)), str(equal), f"{sum(v.seconds for v in rows):.1f}", mark)
    console = out()
    console.print(table, soft_wrap=False)
    failed = [v for v in verdicts if v.problem]
    for verdict in failed[:_SHOWN]:
        console.print(Text(f"\n{verdict.group}: {verdict.name}", "bold red"))
        console.print(Text(verdict.problem))
    if len(failed) > _SHOWN:
        console.print(f"\nand {len(failed) - _SHOWN} more (--json has all)")
    console.print(
        Text(
            f"\n{len(verdicts) - len(failed)} of {len(verdicts)} cases equal", "bold red" if failed or not verdicts else "bold green"
        ).append(f" on {device} and the simulator; {counted(len(failed), 'failure')}", "default")
    )
