"""`oxidecopy conformance fuzz`: random programs on which verifier, simulator and device must agree."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from time import monotonic
from typing import Annotated, Any, Final

import typer
from rich.table import Table
from rich.text import Text

from oxidecopy.cli.options import AsJson
from oxidecopy.cli.report import OK, REFUSED, counted, err, guarded, out, print_json
from oxidecopy.errors import DeviceError, Diagnostic

HELP: Final = """Make random programs, whole ones and ones broken by an edit, and hold their judges against each other.

What the verifier accepts must end well on the simulator, on every schedule and with the same bytes; what it refuses must go wrong on some.
With `--device` the accepted ones run on a GPU and must leave the simulator's bytes. The same seed gives the same programs. Ends with 1
when any two judges disagree.
"""
EXAMPLES: Final = (
    "oxidecopy conformance fuzz --count 2000",
    "oxidecopy conformance fuzz --count 100000 --jobs 14 --output docs/results/fuzz.json",
    "oxidecopy conformance fuzz --count 2000 --device cuda:0",
    "oxidecopy conformance fuzz --count 100 --device cuda:0 --emitted",
    "oxidecopy conformance fuzz --seed 1234 --count 8 --shrink --json",
)
_SHOWN: Final = 5  # disagreements that are printed; all are in the JSON
_ROWS: Final = (("scenes", "made of"), ("edits", "edited by"), ("rules", "refused by"))


@guarded
def command(  # noqa: PLR0913  # options, not arguments
    *,
    count: Annotated[
        int, typer.Option("--count", "-n", min=1, help="Programs; on a device those that run there, in whole batches.")
    ] = 1000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The first one; the next programs are of the seeds after it.")] = 0,
    mutants: Annotated[int, typer.Option("--mutants", min=0, help="Broken programs beside each whole one.")] = 7,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Processes at once.")] = 1,
    seconds: Annotated[float, typer.Option("--seconds", min=1, help="Stop then, whatever is done.", show_default=False)] = 1e6,
    shrink: Annotated[bool, typer.Option("--shrink", help="Make the programs that are disagreed about as small as they get.")] = False,
    device: Annotated[
        str | None, typer.Option("--device", "-d", metavar="NAME", help="Run what is accepted there.", show_default=False)
    ] = None,
    emitted: Annotated[bool, typer.Option("--emitted", help="On the device run the CUDA C++ of `oxidecopy emit`, compiled here.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE.json", help="Write the result, all counts.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Makes and judges them; 1 when judges disagree."""
    from oxidecopy.host.npy import write_json
    from oxidecopy.typed.sites import no_sites

    start = monotonic()
    if device is None and emitted:
        raise DeviceError(Diagnostic(rule="OX6014", what="emitted code runs on a GPU", got="no --device", fix="--device cuda:0"))
    if device is None:
        campaign: Any = import_module("oxidecopy.fuzz.campaign")  # strangers, loaded by their names, which may be removed
        tally = campaign.run_jobs(jobs, seed, count, seconds, mutants=mutants, shrink=shrink)
        judges, why = "verifier and simulator", "none"
    else:
        tally, why = _on_device(device, seed, count, seconds, mutants, jobs=jobs, emitted=emitted)
        judges = f"simulator and {'CUDA C++ by `oxidecopy emit`' if emitted else 'device'}"
    line = f"oxidecopy conformance fuzz --count {count} --seed {seed} --mutants {mutants}"
    line += f" --jobs {jobs}" + (f" --device {device}" if device is not None else "") + (" --emitted" if emitted else "")
    result: dict[str, Any] = import_module("oxidecopy.fuzz.result").as_data(tally, line, judges, why, monotonic() - start)
    if output is not None:
        with no_sites():
            write_json(output, result)
    if as_json:
        print_json(result)
    else:
        _print(result)
    return REFUSED if result["disagreements"] else OK


def _on_device(name: str, seed: int, count: int, seconds: float, mutants: int, *, jobs: int, emitted: bool) -> tuple[Any, str]:
    from oxidecopy.cli.launch import open_device
    from oxidecopy.host.opening import SIMULATORS

    found = open_device(name)
    if emitted and found.name in SIMULATORS:
        raise DeviceError(Diagnostic(rule="OX6014", what="emitted code runs on a GPU", got=found.name, fix="--device cuda:0"))
    runs: Any = import_module("oxidecopy.fuzz.device")
    console = err()

    def told(done: int) -> None:
        if console.is_terminal:
            console.print(f"{done} programs", end="\r")

    way = "emitted" if emitted else "engine"
    return runs.compare_all(found.name, runs.ids_from(seed, mutants), count, seconds, way=way, jobs=jobs, told=told), found.why


def _print(result: dict[str, Any]) -> None:
    console = out()
    for key, heading in _ROWS:
        if result[key]:
            table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
            table.add_column(heading)
            table.add_column("programs", justify="right")
            for name, number in sorted(result[key].items(), key=lambda row: -row[1]):
                table.add_row(name, str(number))
            console.print(table, "")
    for problem in result["problems"][:_SHOWN]:
        console.print(Text(f"{problem['label']}: {problem['problem']} {' '.join(problem['rules'])}", "bold red"))
        console.print(Text(f"{problem['detail']}\n{problem['program']}\n"))
    numbers = ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in result["numbers"].items())
    verdict = counted(result["disagreements"], "disagreement")
    console.print(Text(f"{verdict}", "bold red" if result["disagreements"] else "bold green").append(f" of {result['judges']}", "default"))
    console.print(Text(numbers))
