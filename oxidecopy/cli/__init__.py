"""The command `oxidecopy`: thin, above everything else. `main` works (and says what is missing) without the extra `cli`."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Final

from oxidecopy.errors import MissingExtra

_NEEDED: Final = ("typer", "rich")


def main() -> None:
    """Entry point of the console script; ends the process with 0, 1 (refused or wrong), 2 (usage) or 130 (interrupted)."""
    missing = tuple(name for name in _NEEDED if find_spec(name) is None)
    if missing:
        sys.stderr.write(f"{MissingExtra('the command line', 'cli', missing)}\n")
        raise SystemExit(2)
    try:
        from oxidecopy.cli.app import app

        app(prog_name="oxidecopy")
    except KeyboardInterrupt:
        # Inside a command `guarded` handles it; this one came while modules were still being imported.
        sys.stderr.write("stopped\n")
        raise SystemExit(130) from None


def invoke(*arguments: str) -> None:
    """Runs a command line in this process and raises what it refuses, for programs and rule pages.

    Args:
        arguments: as after `oxidecopy` in a shell.

    Raises:
        OxidecopyError: what the command would have printed.
    """
    from oxidecopy.cli.app import app
    from oxidecopy.cli.report import raising

    with raising():
        app(list(arguments), prog_name="oxidecopy", standalone_mode=False)
