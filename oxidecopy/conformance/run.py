"""Runs cases on two devices and compares every byte of their outputs, the padding between rows included."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from time import perf_counter
from typing import TYPE_CHECKING, Final, final

import numpy as np

from oxidecopy._version import __version__
from oxidecopy.conformance import (
    bulk,
    carried,
    classes,
    clusters,
    compute,
    copies,
    im2col,
    lessons,
    mixed,
    replaced,
    rings,
    sync,
    tables,
    wide,
)
from oxidecopy.conformance.case import Case
from oxidecopy.errors import OxidecopyError
from oxidecopy.host.device import Device

if TYPE_CHECKING:
    from oxidecopy.conformance.case import Made

REFERENCE: Final = "sim-fast"
_SUITES: Final = (copies, bulk, im2col, compute, sync, clusters, rings, tables, replaced, carried, wide, classes, mixed, lessons)
_MESSAGE_LINES: Final = 6
Launcher = Callable[["Made", Device], None]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How a case went; `problem` is empty when all bytes are equal."""

    name: str
    group: str
    problem: str = ""
    seconds: float = 0.0


def cases(pattern: str = "") -> list[Case]:
    """All cases whose group or name holds `pattern`, in a fixed order."""
    every: Iterator[Case] = chain.from_iterable(suite.cases() for suite in _SUITES)
    return [case for case in every if pattern in f"{case.group}: {case.name}"]


def by_engine(made: Made, _: Device) -> None:
    """As users launch."""
    made.launch()


def run_case(case: Case, reference: Device, device: Device, launch: Launcher = by_engine) -> Verdict:
    """One case on both; `launch` says how on `device`."""
    start = perf_counter()
    try:
        wanted, got = _ran(case, reference, by_engine), _ran(case, device, launch)
        problem = "; ".join(filter(None, (_differs(name, got[name], wanted[name]) for name in wanted)))
    except OxidecopyError as error:
        problem = "\n".join(str(error).splitlines()[:_MESSAGE_LINES])
    return Verdict(name=case.name, group=case.group, problem=problem, seconds=perf_counter() - start)


def _ran(case: Case, device: Device, launch: Launcher) -> dict[str, bytes]:
    made: Made = case.make(device)
    launch(made, device)
    if not case.whole:
        return {name: a.numpy().tobytes() for name, a in made.outputs.items()}
    return {name: device.engine.read(a.buffer, 0, a.buffer.nbytes) for name, a in made.outputs.items()}


def _differs(name: str, got: bytes, wanted: bytes) -> str:
    if got == wanted:
        return ""
    a, b = (np.frombuffer(x, np.uint8) for x in (got, wanted))
    if a.size != b.size:
        return f"{name}: {a.size} bytes, not {b.size}"
    where = np.flatnonzero(a != b)
    return f"{name}: {where.size} of {a.size} bytes differ, first at {where[0]}: {a[where[0]]:#04x}, not {b[where[0]]:#04x}"


# ---- the result as a file
def as_data(device: str, pattern: str, verdicts: Sequence[Verdict], *, emitted: bool = False) -> dict[str, object]:
    """The verdicts with what is needed to run them again; of cases that are equal only how many."""
    groups: dict[str, dict[str, int]] = {}
    for verdict in verdicts:
        row = groups.setdefault(verdict.group, {"cases": 0, "equal": 0})
        row["cases"] += 1
        row["equal"] += not verdict.problem
    options = (f" --only {pattern!r}" if pattern else "") + (" --emitted" if emitted else "")
    return {
        "command": f"oxidecopy conformance --device {device}{options}",
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "oxidecopy": __version__,
        "device": Device.open(device).why,
        "ran": "CUDA C++ by `oxidecopy emit`" if emitted else "the interpreter",
        "reference": REFERENCE,
        "cases": len(verdicts),
        "equal": sum(not v.problem for v in verdicts),
        "groups": groups,
        "failures": [{"name": v.name, "group": v.group, "problem": v.problem} for v in verdicts if v.problem],
    }
