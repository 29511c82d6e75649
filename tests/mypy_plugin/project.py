"""A folder with mypy's configuration and a few files, where mypy is run as users run it: a process of its own, or its daemon.

It is used with any version of mypy: nothing of the plugin or of mypy's inside may be imported here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
CONFIG = "[mypy]\nplugins = oxidecopy.mypy_plugin\n"


class Project:
    """The folder; `first` are folders that come before others on Python's path, as those of another mypy."""

    def __init__(self, folder: Path, files: Mapping[str, str], *, config: str = CONFIG, first: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.first = first
        self.names = tuple(files)
        self.write("mypy.ini", config)
        for name, text in files.items():
            self.write(name, text)

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def run(self, *command: str, given: str | None = None) -> str:
        """What a module, run as a program, prints; it must end as a checker does: 2 is for a file that is no Python."""
        path = os.pathsep.join(part for part in (*self.first, os.environ.get("PYTHONPATH", ""), str(ROOT)) if part)
        env = {**os.environ, "MYPYPATH": str(ROOT), "PYTHONPATH": path}
        done = subprocess.run(
            [sys.executable, "-m", *command], cwd=self.folder, env=env, capture_output=True, text=True, check=False, input=given
        )
        assert done.returncode in (0, 1) or "[syntax]" in done.stdout, done.stdout + done.stderr
        return done.stdout

    def batch(self, *options: str) -> str:
        return self.run("mypy", *options, *self.names)

    def daemon(self, *command: str) -> str:
        return self.run("mypy.dmypy", "--status-file", "status.json", *command)

    def asked(self) -> str:
        return self.daemon("run", "--", *self.names)

    def stop(self) -> None:
        if (self.folder / "status.json").exists():
            self.daemon("kill")


def findings(output: str) -> list[str]:
    """The lines of errors and notes, in one order."""
    return sorted(line for line in output.splitlines() if not line.startswith(("Found ", "Success: ", "Daemon ")))
