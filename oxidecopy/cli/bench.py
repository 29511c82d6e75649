"""`oxidecopy bench`: what this version costs, measured here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Final, Protocol, TypeAlias, cast

import typer
from rich.table import Table
from rich.text import Text

from oxidecopy.cli.options import AsJson
from oxidecopy.cli.report import OK, REFUSED, err, guarded, out, print_json
from oxidecopy.errors import Diagnostic, UsageError

HELP: Final = "Measure what this version costs on this machine."
SIM_HELP: Final = """Measure import, recording and verification, and the simulator's throughput on one core, each against its target.

Ends with 1 when a target is missed.
"""
GPU_HELP: Final = """Measure copies and launches on the first GPU, each beside a named peer in the same run.

Peers are torch, Triton, CuPy, cuda.core and CUDA C++; those that are not installed have rows that say so. Ends with 1 when a target is
missed. `--table` measures several hundred kinds of copies as well.
"""
GPU_EXAMPLES: Final = (
    "oxidecopy bench gpu",
    "oxidecopy bench gpu --output docs/results/bench_gpu.json --csv docs/results/bench_gpu.csv --bars docs/results/bench_gpu.png",
    "oxidecopy bench gpu --table docs/results/copies.csv --plot docs/results/copies.png",
)
EXAMPLES: Final = ("oxidecopy bench sim", "oxidecopy bench sim --runs 9 --output docs/results/bench_sim.json")

PLUGIN_HELP: Final = """Measure what the mypy plugin costs on a generated file of 2,000 lines, each cost against its target.

Ends with 1 when a target is missed.
"""
PLUGIN_EXAMPLES: Final = ("oxidecopy bench plugin", "oxidecopy bench plugin --runs 5 --output docs/results/bench_plugin.json")

PEER_HELP: Final = """Measure copies between the first two GPUs, loaded or stored in place, each beside the driver's own peer copy.

Ends with 1 when a target is missed.
"""
PEER_EXAMPLES: Final = ("oxidecopy bench peer", "oxidecopy bench peer --output docs/results/bench_peer.json")

MATMUL_HELP: Final = """Measure `ox.matmul` beside cuBLAS (through torch) and a product in Triton, and its first call.

Ends with 1 when a target is missed.
"""
MATMUL_EXAMPLES: Final = ("oxidecopy bench matmul", "oxidecopy bench matmul --output docs/results/bench_matmul.json")

_BAR: Final = 12  # cells
_EIGHTHS: Final = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")
_BUSY: Final = 1.5  # this benchmark alone makes a load of 1

Runs: TypeAlias = Annotated[int, typer.Option("--runs", "-n", min=3, max=101, help="How often each is measured; the median counts.")]
Output: TypeAlias = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE.json", help="Write the result with date, machine and command.", show_default=False),
]
OutputOfDevice: TypeAlias = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE.json", help="Write the result with date, device and command.", show_default=False),
]

app = typer.Typer(help=HELP, no_args_is_help=True)


class Row(Protocol):
    """One measured thing (`oxidecopy.bench.measure.Row`); the room is a stranger, loaded by its name, and may be removed."""

    @property
    def what(self) -> str: ...
    @property
    def cells(self) -> tuple[str, str, str]: ...
    @property
    def share(self) -> float | None: ...
    @property
    def verdict(self) -> str: ...
    @property
    def passed(self) -> bool: ...


class Suite(Protocol):
    """`oxidecopy.bench.sim`, `oxidecopy.bench.plugin` and `oxidecopy.bench.peer`."""

    def measure_all(self, runs: int, say: Callable[[str], None], /) -> Sequence[Row]: ...
    def as_data(self, rows: Sequence[Any], runs: int, /) -> dict[str, object]: ...


class GpuSuite(Protocol):
    """`oxidecopy.bench.gpu`."""

    def open_bench(self) -> Any: ...
    def measure_all(
        self, bench: Any, runs: int, say: Callable[[str], None], keep: Callable[[Sequence[Any], Sequence[Any]], None], /
    ) -> tuple[Sequence[Row], Sequence[Any]]: ...
    def as_data(
        self, bench: Any, rows: Sequence[Any], rates: Sequence[Any], runs: int, /, *, complete: bool = ...
    ) -> dict[str, object]: ...


class RowFiles(Protocol):
    """`oxidecopy.bench.row_files`."""

    def write_csv(self, path: Path, rows: Sequence[Any], /) -> None: ...
    def write_bars(self, path: Path, rows: Sequence[Any], title: str, /) -> None: ...


class TableSuite(Protocol):
    """`oxidecopy.bench.gpu_table`."""

    def measure(self, bench: Any, runs: int, say: Callable[[str], None], /) -> Iterable[Any]: ...
    def write_csv(self, path: Path, entries: Sequence[Any], /) -> None: ...
    def write_plot(self, path: Path, entries: Sequence[Any], /) -> None: ...


@app.callback()
def group() -> None:
    """Measure what this version costs on this machine."""


@guarded
def sim(
    *,
    runs: Runs = 7,
    output: Output = None,
    as_json: AsJson = False,
) -> int:
    """Prints each median with its range; 1 when a target is missed."""
    return _measured("sim", runs, output, as_json=as_json)


@guarded
def plugin(
    *,
    runs: Annotated[int, typer.Option("--runs", "-n", min=1, max=101, help="How often each is measured; the median counts.")] = 5,
    output: Output = None,
    as_json: AsJson = False,
) -> int:
    """Prints each median with its range; 1 when a target is missed."""
    if find_spec("mypy") is None:
        raise UsageError(
            Diagnostic(rule="OX6011", what="mypy is not installed", required="mypy to measure", fix="pip install 'oxidecopy[mypy]'")
        )
    return _measured("plugin", runs, output, as_json=as_json)


@guarded
def peer(
    *,
    runs: Runs = 9,
    output: OutputOfDevice = None,
    as_json: AsJson = False,
) -> int:
    """Prints each median with its range; 1 when a target is missed."""
    return _measured("peer", runs, output, as_json=as_json)


@guarded
def matmul(
    *,
    runs: Runs = 9,
    output: OutputOfDevice = None,
    as_json: AsJson = False,
) -> int:
    """Prints each median with its range; 1 when a target is missed."""
    return _measured("matmul", runs, output, as_json=as_json)


def _measured(name: str, runs: int, output: Path | None, *, as_json: bool) -> int:
    """Runs a suite that opens what it needs, and says what it found."""
    from oxidecopy.host.npy import write_json
    from oxidecopy.typed.sites import no_sites

    bench = cast("Suite", import_module(f"oxidecopy.bench.{name}"))
    console = err()
    with no_sites():  # what is wrong with the command line has no line in a file
        with console.status("measuring") as status:
            rows = bench.measure_all(runs, lambda what: status.update(f"measuring: {what}"))
        result = bench.as_data(rows, runs)
        if output is not None:
            write_json(output, result)
    if as_json:
        print_json(result)
    else:
        _print(rows)
        busy = result["load"]
        if isinstance(busy, float) and busy > _BUSY:
            console.print(f"this machine is busy (load {busy}): measure again when it is not")
    return OK if all(row.passed for row in rows) else REFUSED


@guarded
def gpu(
    *,
    runs: Runs = 9,
    output: OutputOfDevice = None,
    csv: Annotated[Path | None, typer.Option("--csv", metavar="FILE.csv", help="Write the rows as a table.", show_default=False)] = None,
    bars: Annotated[
        Path | None, typer.Option("--bars", metavar="FILE.png", help="Draw the rows as shares of their floors.", show_default=False)
    ] = None,
    table: Annotated[
        Path | None, typer.Option("--table", metavar="FILE.csv", help="Measure and write the table of copies.", show_default=False)
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE.png", help="Draw the table; needs --table.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Prints each median with its range; 1 when a target is missed.

    The result file is written again after each row: a run may be cut short.
    """
    from oxidecopy.host.npy import write_json
    from oxidecopy.typed.sites import no_sites

    suite = cast("GpuSuite", import_module("oxidecopy.bench.gpu"))
    with err().status("measuring") as status:

        def say(what: str) -> None:
            status.update(f"measuring: {what}")

        with no_sites():
            bench = suite.open_bench()

        def keep(rows: Sequence[Any], rates: Sequence[Any]) -> None:
            if output is not None:
                with no_sites():
                    write_json(output, suite.as_data(bench, rows, rates, runs, complete=False))

        rows, rates = suite.measure_all(bench, runs, say, keep)
        result = suite.as_data(bench, rows, rates, runs)
        if output is not None:
            with no_sites():
                write_json(output, result)
        _files(rows, csv, bars, f"{result['device']}, {result['date']}")
        if table is not None:
            _table(bench, table, plot, say)
    if as_json:
        print_json(result)
    else:
        _print(rows)
    return OK if all(row.passed for row in rows) else REFUSED


def _files(rows: Sequence[Row], csv: Path | None, bars: Path | None, title: str) -> None:
    from oxidecopy.typed.sites import no_sites

    files = cast("RowFiles", import_module("oxidecopy.bench.row_files"))
    with no_sites():
        if csv is not None:
            files.write_csv(csv, rows)
        if bars is not None:
            files.write_bars(bars, rows, title)


def _table(bench: Any, table: Path, plot: Path | None, say: Callable[[str], None]) -> None:
    """Any: the bench is the stranger's own."""
    from oxidecopy.typed.sites import no_sites

    suite = cast("TableSuite", import_module("oxidecopy.bench.gpu_table"))
    entries = list(suite.measure(bench, 3, say))
    with no_sites():
        suite.write_csv(table, entries)
        if plot is not None:
            suite.write_plot(plot, entries)


def _bar(share: float) -> str:
    """A share of the floor as a bar of `_BAR` cells, to an eighth of a cell."""
    eighths = int(8 * _BAR * min(max(share, 0.0), 1.0))  # full at the floor alone
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8]


def _print(rows: Sequence[Row]) -> None:
    """The table; with a bar where a floor is known, which is full at the floor."""
    bars = any(row.share is not None for row in rows)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in ("what", "median", "min to max", "target", ""):
        table.add_column(heading, justify="left" if heading in ("what", "") else "right")
    if bars:
        table.add_column("of the floor", width=_BAR + 6, no_wrap=True)
    for row in rows:
        mark = Text(row.verdict, {"OK": "bold green", "MISSED": "bold red", "FAILED": "bold red"}.get(row.verdict, "dim"))
        bar = [] if row.share is None or not bars else [f"{_bar(row.share):<{_BAR}} {row.share:.3f}"]
        table.add_row(row.what, *row.cells, mark, *bar)
    out().print(table, soft_wrap=False)
