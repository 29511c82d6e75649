"""`oxidecopy doctor`: what is here, what will run where, and why not. Asks nothing of the network."""

from __future__ import annotations

import os
import platform
import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Final

from rich.table import Table
from rich.text import Text

from oxidecopy._version import __version__
from oxidecopy.cli.doctor_gpu import gpu_facts, open_facts
from oxidecopy.cli.facts import Fact, State
from oxidecopy.cli.options import AsJson
from oxidecopy.cli.report import OK, REFUSED, guarded, out, print_json

HELP: Final = """Say what is installed here, and what will run where and why.

Ends with 1 when something that every launch needs is missing or does not load.
"""
EXAMPLES: Final = ("oxidecopy doctor", "oxidecopy doctor --json")

_PYTHON_MIN: Final = (3, 11)
_STYLES: Final[dict[State, str]] = {"ok": "green", "missing": "yellow", "broken": "bold red", "info": "default"}


@guarded
def command(*, as_json: AsJson = False) -> int:
    """Prints the facts; 1 when one of them is broken."""
    found = facts()
    broken = any(fact.state == "broken" for fact in found)
    if as_json:
        rows = [{"topic": f.topic, "value": f.value, "state": f.state, "note": f.note} for f in found]
        print_json({"ok": not broken, "facts": rows})
        return REFUSED if broken else OK
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for fact in found:
        words = Text(fact.value, _STYLES[fact.state])
        if fact.note:
            words.append(f"  ({fact.note})", "dim")
        table.add_row(Text(fact.topic, "bold"), words)
    out().print(table, soft_wrap=False)
    return REFUSED if broken else OK


def facts() -> list[Fact]:
    """Everything, in the order it is printed."""
    return [
        Fact(topic="oxidecopy", value=__version__, note=os.path.dirname(os.path.dirname(__file__))),
        _python(),
        Fact(topic="platform", value=platform.platform(), note=f"{os.cpu_count()} CPUs"),
        _module("numpy"),
        _module("ml_dtypes"),
        *_extras(),
        *gpu_facts(),
        *open_facts(),
    ]


def _python() -> Fact:
    words = platform.python_version()
    state: State = "ok" if sys.version_info[:2] >= _PYTHON_MIN else "broken"
    return Fact(topic="python", value=words, state=state, note=sys.executable)


def _module(name: str) -> Fact:
    """A package that every launch needs; imported, since an install can be there and not load."""
    try:
        import_module(name)
    except ImportError as problem:
        return Fact(topic=name, value=str(problem), state="broken", note="pip install --force-reinstall oxidecopy")
    return Fact(topic=name, value=version(name), state="ok")


def _extras() -> list[Fact]:
    """The extras whose packages are all here, and what the others lack."""
    try:
        needed = requires("oxidecopy") or []
    except PackageNotFoundError:
        return [Fact(topic="extras", value="not known: oxidecopy is not installed, only imported")]
    lacking: dict[str, list[str]] = {}
    for line in needed:
        package, _, condition = line.partition(";")
        if "extra ==" not in condition:
            continue
        extra = condition.split("extra ==")[1].strip(" '\")")
        lacking.setdefault(extra, [])
        name = _requirement_name(package)
        if name != "oxidecopy" and not _has(name):
            lacking[extra].append(name)
    return [
        Fact(
            topic=f"extra {extra}",
            value=f"without {', '.join(names)}" if names else "complete",
            state="missing" if names else "ok",
            note=f"pip install 'oxidecopy[{extra}]'" if names else "",
        )
        for extra, names in lacking.items()
    ]


def _requirement_name(text: str) -> str:
    """The package of a requirement such as `typer>=0.12` or `pyright[nodejs] ; ...`."""
    name = text.strip()
    for stop in "[<>=!~ (":
        name = name.partition(stop)[0]
    return name


def _has(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True
