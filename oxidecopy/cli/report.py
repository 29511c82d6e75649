"""How everything is printed: consoles, diagnostics on one screen, JSON, and the exit code of each error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import Final, ParamSpec, TextIO

import typer
from rich.console import Console
from rich.text import Text

from oxidecopy.errors import DeviceError, Diagnostic, OxidecopyError, Site, UsageError, explanations

P = ParamSpec("P")

OK: Final = 0
REFUSED: Final = 1
USAGE: Final = 2
INTERRUPTED: Final = 130

_SCREEN_LINES: Final = 36
_PIPE_COLUMNS: Final = 140  # of a console that is no terminal and does not say how wide it is


def out() -> Console:
    """Standard output: results."""
    return _console(stderr=False)


def err() -> Console:
    """Standard error: refusals and progress."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else _PIPE_COLUMNS
    return Console(stderr=stderr, width=width, highlight=False, soft_wrap=True)


def print_json(data: object) -> None:
    """One JSON document on standard output, and nothing else there: see `guarded`."""
    stream = _DOCUMENT.get() or sys.stdout
    stream.write(json.dumps(data, indent=2) + "\n")


def exit_code(error: OxidecopyError) -> int:
    """2 for what the user asked (names, files, devices), 1 for a program that is refused or wrong."""
    return USAGE if isinstance(error, UsageError | DeviceError) else REFUSED


def relative(file: str) -> str:
    """A path as short as it can be said from here."""
    path = Path(file)
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return file


def counted(n: int, noun: str) -> str:
    """`1 error`, `no errors`, `2 errors`."""
    return f"{n or 'no'} {noun}{'' if n == 1 else 's'}"


# ---- diagnostics
def site_words(site: Site | None) -> str:
    return f"{relative(site.file)}:{site.line}" if site else ""


def first_line(diagnostic: Diagnostic) -> str:
    """A diagnostic in one line: place, what, rule."""
    where = f"{site_words(diagnostic.site)}: " if diagnostic.site else ""
    return f"{where}{diagnostic.what} [{diagnostic.rule}]"


def render(diagnostic: Diagnostic) -> list[Text]:
    """Its lines, styled; on anything but a terminal the styles vanish."""
    head = Text()
    if diagnostic.site:
        head.append(f"{site_words(diagnostic.site)}: ", "bold")
    head.append(diagnostic.what).append(f" [{diagnostic.rule}]", "bold red")
    lines = [head]
    for name, text, style in (("got", diagnostic.got, "red"), ("required", diagnostic.required, "green"), ("fix", diagnostic.fix, "cyan")):
        if text:
            lines.append(Text(f"  {name}: ", style).append(text, "default"))
    lines += [Text(f"  {site_words(cause.site) or 'there'}: {cause.what}", "dim") for cause in diagnostic.causes]
    return lines


def print_diagnostics(console: Console, diagnostics: Sequence[Diagnostic]) -> None:
    """All of them on one screen: in full while there is room, then one line each, then a count."""
    room = _SCREEN_LINES
    for done, diagnostic in enumerate(diagnostics):
        left = len(diagnostics) - done
        lines = render(diagnostic)
        if sum(str(line).count("\n") + 1 for line in lines) + left - 1 > room and done:
            lines = [Text(first_line(diagnostic))]
        if room <= 1 and left > 1:
            console.print(f"and {left} more; --json lists all")
            break
        for line in lines:
            console.print(line)
            room -= str(line).count("\n") + 1
    for explanation in explanations(diagnostics):
        for words in explanation.lines():
            console.print(Text(words.replace(f"{Path.cwd()}{os.sep}", "")))  # sites as everywhere else
    ours = [d.rule for d in diagnostics if d.rule.startswith(("OX", "oxidecopy-"))]  # the others are mypy's
    if ours:
        console.print(Text(f"oxidecopy explain {ours[0]} says why", "dim"))


def print_error(error: OxidecopyError) -> None:
    console = err()
    if error.headline and len(error.diagnostics) > 1:
        console.print(Text(f"{error.headline}: {len(error.diagnostics)} rules broken", "bold red"))
    print_diagnostics(console, error.diagnostics)


def diagnostic_json(diagnostic: Diagnostic) -> dict[str, object]:
    return {
        "rule": diagnostic.rule,
        "what": diagnostic.what,
        "got": diagnostic.got,
        "required": diagnostic.required,
        "fix": diagnostic.fix,
        **_site_json(diagnostic.site),
        "causes": [{"what": cause.what, **_site_json(cause.site)} for cause in diagnostic.causes],
        **({"deadlock": diagnostic.explanation.as_json()} if diagnostic.explanation is not None else {}),
    }


def _site_json(site: Site | None) -> dict[str, object]:
    return {"file": site.file if site else None, "line": site.line if site else None}


def diagnostics_json(diagnostics: Iterable[Diagnostic]) -> list[dict[str, object]]:
    return [diagnostic_json(d) for d in diagnostics]


# ---- commands
# True inside `oxidecopy.cli.invoke`: errors go to the caller instead of the screen.
_RAISING: Final[ContextVar[bool]] = ContextVar("_RAISING", default=False)
# Where the JSON document goes while everything else that is printed goes to standard error.
_DOCUMENT: Final[ContextVar[TextIO | None]] = ContextVar("_DOCUMENT", default=None)


@contextmanager
def _document_only() -> Iterator[None]:
    """What the user's own file prints must not end up inside the document."""
    token = _DOCUMENT.set(sys.stdout)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _DOCUMENT.reset(token)


@contextmanager
def raising() -> Iterator[None]:
    """Commands inside the block raise their errors."""
    token = _RAISING.set(True)
    try:
        yield
    finally:
        _RAISING.reset(token)


def reported(error: OxidecopyError) -> int:
    """The exit code of errors that are in the command's report. Inside `raising` they are raised as well: its caller sees no report."""
    if _RAISING.get():
        raise error
    return exit_code(error)


def guarded(command: Callable[P, int]) -> Callable[P, None]:
    """Turns a function that gives an exit code, or raises, into a command that ends as the module's docstring says.

    A refusal is printed (as JSON when the command's `as_json` is set), never a traceback; Ctrl-C ends with 130.
    """

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            with _document_only() if kwargs.get("as_json") else nullcontext():
                code = command(*args, **kwargs)
        except OxidecopyError as error:
            if _RAISING.get():
                raise
            code = exit_code(error)
            if kwargs.get("as_json"):
                print_json({"ok": False, "error": type(error).__name__, "diagnostics": diagnostics_json(error.diagnostics)})
            else:
                print_error(error)
        except KeyboardInterrupt:
            err().print("stopped")
            code = INTERRUPTED
        if code != OK:  # a group that did nothing goes on with its subcommand
            raise typer.Exit(code)

    return run
