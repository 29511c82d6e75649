"""The command line as a page of Markdown, made of the texts that `--help` prints: `python -m oxidecopy.cli.reference`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from oxidecopy.cli.app import app


def page() -> str:
    """Every command with its help, arguments, options and examples."""
    lines = ["# Commands", "Every command prints this with `--help`, and takes `--json` where a program would read its answer."]
    for name, command in _walk("oxidecopy", get_command(app)):
        lines += [f"## `{name}`", (command.help or "").strip()]
        rows = [
            f"| `{_written(option)}` | {' '.join((option.help or '').split())} |"
            for option in command.params
            if option.name != "help" and getattr(option, "help", None)
        ]
        if rows:
            lines.append("\n".join(["| | |", "|---|---|", *rows]))
        examples = [line.removeprefix("$ ") for line in (command.epilog or "").split("\n\n") if line.startswith("$ ")]
        if examples:
            lines.append("```bash\n" + "\n".join(examples) + "\n```")
    return "\n\n".join(line for line in lines if line)


def _written(option: Any) -> str:
    """How an option or an argument is written."""
    names: list[str] = [*option.opts, *option.secondary_opts]
    return ", ".join(names) if names[0].startswith("-") else str(option.metavar or option.name)


def _walk(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """A command and those below it; `Any`: the classes are those of a package that typer brings along in some versions."""
    yield name, command
    for below, child in getattr(command, "commands", {}).items():
        yield from _walk(f"{name} {below}", child)


if __name__ == "__main__":
    print(page())
