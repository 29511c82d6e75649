"""Stands in for running tools in an environment of their own."""

from __future__ import annotations

from collections.abc import Mapping

from oxidecopy._tools.environments import Command


class Recorder:
    """Runs nothing; commands that hold `failing` fail."""

    def __init__(self, failing: str = "nothing") -> None:
        self.failing = failing
        self.commands: list[Command] = []
        self.paths: list[str] = []

    def __call__(self, command: Command, environment: Mapping[str, str]) -> int:
        self.commands.append(command)
        self.paths.append(environment.get("PYTHONPATH", ""))
        return int(any(self.failing in word for word in command))
