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

from tests.mypy_plugin.warm import LIBRARY, Warm

ROOT: Final = Path(__file__).resolve().parents[2]
CONFIG = "[mypy]\nplugins = oxidecopy.mypy_plugin\n"


class Project:
    """The folder. What mypy says of it does not depend on the cache that it is given; that only saves time.

    Args:
        folder: where everything is written.
        files: what is checked, by name.
        config: `mypy.ini`, as far as the cache of the library depends on it.
        sections: the rest of `mypy.ini`.
        plugins: other files, which the configuration names.
        first: folders that come before others on Python's path.
        warm: where the cache of the library is from; without it each first run checks all of it.
    """

    def __init__(
        self,
        folder: Path,
        files: Mapping[str, str],
        *,
        config: str = CONFIG,
        sections: str = "",
        plugins: Mapping[str, str] | None = None,
        first: tuple[str, ...] = (),
        warm: Warm | None = None,
    ) -> None:
        self.folder = folder
        self.first = first
        self.names = tuple(files)
        self._config, self._plugins = config, dict(plugins or {})
        for name, text in {"mypy.ini": config + sections, **self._plugins, **files}.items():
            self.write(name, text)
        if warm is not None:
            warm.into(folder / ".mypy_cache", repr((config, self._plugins)), self._library)

    def _library(self, cache: Path) -> None:
        """Has mypy check the library alone."""
        Project(cache.parent, {"library.py": LIBRARY}, config=self._config, plugins=self._plugins).batch(f"--cache-dir={cache}")

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
