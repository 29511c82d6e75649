"""`oxidecopy doctor`: what is here, what will run where, and why not. Asks nothing of the network."""

from __future__ import annotations

import os
import platform
import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distributions, requires, version
from typing import Final

from rich.table import Table
from rich.text import Text

from oxidecopy._version import __version__
from oxidecopy.cli.doctor_gpu import gpu_facts, open_facts
from oxidecopy.cli.doctor_types import types_facts
from oxidecopy.cli.doctor_works import work_facts
from oxidecopy.cli.facts import Fact, State
from oxidecopy.cli.options import AsJson
from oxidecopy.cli.report import OK, REFUSED, guarded, out, print_json

HELP: Final = """Say what is installed here, what works, and why the rest does not.

Asks nothing of the network. Ends with 1 when something that every launch needs is missing or does not load.
"""
EXAMPLES: Final = ("oxidecopy doctor", "oxidecopy doctor --json")

_PYTHON_MIN: Final = (3, 11)
_NEIGHBOURS: Final = ("torch", "cupy", "jax", "numba", "tensorflow")  # also cupy-cuda13x and the like
_STYLES: Final[dict[State, str]] = {"ok": "green", "missing": "yellow", "broken": "bold red", "info": "default"}


@guarded
def command(*, as_json: AsJson = False) -> int:
    """Prints the facts; 1 when one of them is broken."""
    found = sections()
    broken = any(fact.state == "broken" for facts in found.values() for fact in facts)
    if as_json:
        rows = [
            {"section": section, "topic": f.topic, "value": f.value, "state": f.state, "note": f.note}
            for section, facts in found.items()
            for f in facts
        ]
        print_json({"ok": not broken, "facts": rows})
        return REFUSED if broken else OK
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for section, facts in found.items():
        table.add_row(Text(section, "bold underline"), "")
        for fact in facts:
            words = Text(fact.value, _STYLES[fact.state])
            if fact.note:
                words.append(f"  ({fact.note})", "dim")
            table.add_row(Text(f"  {fact.topic}", "bold"), words)
    out().print(table, soft_wrap=False)
    return REFUSED if broken else OK


def sections() -> dict[str, list[Fact]]:
    """Everything, in the order it is printed: what is here, and last what follows from it."""
    here = [
        Fact(topic="oxidecopy", value=__version__, note=os.path.dirname(os.path.dirname(__file__))),
        _python(),
        Fact(topic="platform", value=platform.platform(), note=f"{os.cpu_count()} CPUs"),
        _module("numpy"),
        _module("ml_dtypes"),
        *_extras(),
        *_neighbours(),
    ]
    found = {"installed": here, "type checkers": types_facts(), "NVIDIA": gpu_facts(), "works here": open_facts()}
    found["works here"] += work_facts([fact for facts in found.values() for fact in facts])
    return found


def facts() -> list[Fact]:
    """The same without sections."""
    return [fact for found in sections().values() for fact in found]


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


def _neighbours() -> list[Fact]:
    """Libraries whose memory can be borrowed, by what their distributions are called; none is imported."""
    names = [name for name in sorted({d.name or "" for d in distributions()}) if name.partition("-")[0].lower() in _NEIGHBOURS]
    found = ", ".join(f"{name} {version(name)}" for name in names)
    return [Fact(topic="other libraries", value=found, note="`dev.borrow` takes their arrays")] if found else []


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
