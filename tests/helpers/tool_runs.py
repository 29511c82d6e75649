"""Stands in for running tools in an environment of their own."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock

from oxidecopy._tools.environments import Command


class Recorder:
    """Runs nothing; commands that hold `failing` fail."""

    def __init__(self, failing: str = "nothing") -> None:
        self.failing = failing
        self.commands: list[Command] = []
        self.paths: list[str] = []
        self._lock = Lock()

    def __call__(self, command: Command, environment: Mapping[str, str]) -> int:
        with self._lock:  # several versions are tested at a time
            self.commands.append(command)
            self.paths.append(environment.get("PYTHONPATH", ""))
        return int(any(self.failing in word for word in command))
