"""The application: one command per module; what they print and how they end is in `report`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final

import typer

from oxidecopy._version import __version__
from oxidecopy.cli import (
    bench,
    check,
    conformance,
    conformance_descriptors,
    conformance_fuzz,
    conformance_record,
    demo,
    doctor,
    emit,
    explain,
    run,
    show,
    show_descriptor,
    show_tile,
    trace,
)

_HELP: Final = """Typed TMA pipelines: recorded, verified, and run on a simulator of the hardware.

Start with `oxidecopy demo`, then `oxidecopy run FILE` with a file of your own.
"""
_STATUS: Final = "Exit status: 0 fine, 1 refused or wrong, 2 usage, 130 interrupted."


def _examples(lines: Iterable[str]) -> str:
    # One paragraph per line: help texts join lines otherwise.
    return "\n\n".join(("Examples:", *(f"$ {line}" for line in lines)))


def _version(wanted: bool) -> None:  # noqa: FBT001  # typer calls it so
    if wanted:
        typer.echo(f"oxidecopy {__version__}")
        raise typer.Exit


app = typer.Typer(
    name="oxidecopy",
    help=_HELP,
    epilog=_STATUS,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["--help", "-h"]},
)


@app.callback()
def options(
    *, version: Annotated[bool, typer.Option("--version", help="Print the version and stop.", callback=_version, is_eager=True)] = False
) -> None:
    """Takes what stands before the command."""


for _module in (run, demo, check, trace, explain, emit, doctor):
    app.command(_module.__name__.rpartition(".")[2], help=_module.HELP, epilog=_examples(_module.EXAMPLES))(_module.command)
conformance.app.callback(help=conformance.HELP, epilog=_examples(conformance.EXAMPLES), invoke_without_command=True)(conformance.command)
conformance.app.command("fuzz", help=conformance_fuzz.HELP, epilog=_examples(conformance_fuzz.EXAMPLES))(conformance_fuzz.command)
conformance.app.command("descriptors", help=conformance_descriptors.HELP, epilog=_examples(conformance_descriptors.EXAMPLES))(
    conformance_descriptors.command
)
conformance.app.command("record", help=conformance_record.HELP, epilog=_examples(conformance_record.EXAMPLES))(conformance_record.command)
show.app.command("program", help=show.PROGRAM_HELP, epilog=_examples(show.EXAMPLES))(show.program)
show.app.command("tile", help=show_tile.HELP, epilog=_examples(show_tile.EXAMPLES))(show_tile.command)
show.app.command("descriptor", help=show_descriptor.HELP, epilog=_examples(show_descriptor.EXAMPLES))(show_descriptor.command)
bench.app.command("sim", help=bench.SIM_HELP, epilog=_examples(bench.EXAMPLES))(bench.sim)
bench.app.command("plugin", help=bench.PLUGIN_HELP, epilog=_examples(bench.PLUGIN_EXAMPLES))(bench.plugin)
bench.app.command("peer", help=bench.PEER_HELP, epilog=_examples(bench.PEER_EXAMPLES))(bench.peer)
bench.app.command("matmul", help=bench.MATMUL_HELP, epilog=_examples(bench.MATMUL_EXAMPLES))(bench.matmul)
bench.app.command("gpu", help=bench.GPU_HELP, epilog=_examples(bench.GPU_EXAMPLES))(bench.gpu)
app.add_typer(conformance.app, name="conformance")
app.add_typer(show.app, name="show")
app.add_typer(bench.app, name="bench")
