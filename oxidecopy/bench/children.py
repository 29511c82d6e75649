"""Scripts in fresh interpreters: what a process pays once, measured without what this one has paid before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

_SECONDS: Final = 120.0  # a child that takes longer hangs


class ChildError(RuntimeError):
    """A child did not do what it was started for; the message is the last line of what it said."""


def child(script: str, *, compiled: Path | None = None) -> tuple[str, ...]:
    """The words that a script prints, run by a process of its own.

    Args:
        script: what it runs.
        compiled: where it keeps and finds compiled files, whatever the environment says of those. Installed packages have theirs, a tree
            that was copied has none.

    Raises:
        ChildError: it failed or took too long.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    if compiled is not None:
        environment["PYTHONPYCACHEPREFIX"] = str(compiled)
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", script]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, timeout=_SECONDS)
    except subprocess.CalledProcessError as error:
        lines = str(error.stderr).strip().splitlines() or [f"it ended with {error.returncode}"]
        raise ChildError(lines[-1]) from error
    except subprocess.TimeoutExpired as error:
        raise ChildError(f"not done after {_SECONDS:.0f} s") from error
    return tuple(done.stdout.split())
