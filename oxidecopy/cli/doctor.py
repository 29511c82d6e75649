"""`oxidecopy doctor`: what is here, what will run where, and why not. Asks nothing of the network."""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Final, Literal, final

from rich.table import Table
from rich.text import Text

from oxidecopy._version import __version__
from oxidecopy.cli.options import AsJson
from oxidecopy.cli.report import OK, REFUSED, guarded, out, print_json

HELP: Final = """Say what is installed here, and what will run where and why.

Ends with 1 when something that every launch needs is missing or does not load.
"""
EXAMPLES: Final = ("oxidecopy doctor", "oxidecopy doctor --json")

State = Literal["ok", "missing", "broken", "info"]
_PYTHON_MIN: Final = (3, 11)
_STYLES: Final[dict[State, str]] = {"ok": "green", "missing": "yellow", "broken": "bold red", "info": "default"}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One line of the answer. "missing" is an option that is not there, "broken" something that must be."""

    topic: str
    value: str
    state: State = "info"
    note: str = ""


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
        *_cuda(),
        *_engines(),
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


def _cuda() -> list[Fact]:
    from oxidecopy.engines.cuda.probe import probe

    found = probe()
    driver = Fact(
        topic="NVIDIA driver",
        value=f"CUDA {found.driver}" if found.driver else "none",
        state="ok" if found.driver else "missing",
        note=found.reason,
    )
    bindings = (
        Fact(topic="cuda-python", value=version("cuda-python"), state="ok")
        if _has("cuda-python")
        else Fact(topic="cuda-python", value="not installed", state="missing")
    )
    gpus = [
        Fact(
            topic=f"cuda:{gpu.ordinal}",
            value=f"{gpu.name}, compute capability {gpu.sm // 10}.{gpu.sm % 10}, {gpu.memory_bytes / 2**30:.0f} GiB",
            state="ok" if gpu.usable else "missing",
            note="" if gpu.usable else "has no tensor maps: they came with 9.0",
        )
        for gpu in found.gpus
    ]
    return [bindings, driver, *gpus]


def _engines() -> list[Fact]:
    """What `Device.open()` takes and why; what the CUDA engine lacks."""
    from oxidecopy.errors import OxidecopyError
    from oxidecopy.host.device import Device

    rows: list[Fact] = []
    for name in ("sim", "sim-fast", "cuda:0"):
        try:
            Device.open(name)
        except OxidecopyError as error:
            rows.append(Fact(topic=f"runs on {name}", value="no", state="missing", note=f"needs {error.diagnostics[0].required}"))
        except ImportError as problem:
            rows.append(Fact(topic=f"runs on {name}", value="no", state="broken", note=str(problem)))
        else:
            rows.append(Fact(topic=f"runs on {name}", value="yes", state="ok"))
    if any(row.state == "ok" for row in rows):
        rows.append(Fact(topic="by default", value=Device.open().name))
    return rows
