"""Arguments and options that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

Target: TypeAlias = Annotated[
    str, typer.Argument(metavar="FILE[:NAME]", help="A Python file; NAME picks one of its pipelines or recipes.", show_default=False)
]
Targets: TypeAlias = Annotated[
    list[str],
    typer.Argument(metavar="FILE[:NAME]...", help="Python files; NAME picks one of a file's pipelines or recipes.", show_default=False),
]
Inputs: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option("--input", "-i", metavar="FILE.npy", help="An array for the recipe; once for each that it takes.", show_default=False),
]
DeviceName: TypeAlias = Annotated[
    str | None,
    typer.Option("--device", "-d", metavar="NAME", help="sim, sim-fast or cuda:0; the best there is when left out.", show_default=False),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON document, for programs.")]
