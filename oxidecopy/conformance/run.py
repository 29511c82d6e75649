"""Runs cases on two devices and compares every byte of their outputs, the padding between rows included."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from time import perf_counter
from typing import TYPE_CHECKING, Final, final

import numpy as np

from oxidecopy._version import __version__
from oxidecopy.conformance import (
    applied,
    bulk,
    carried,
    classes,
    clusters,
    compute,
    contractions,
    copies,
    im2col,
    lessons,
    mixed,
    replaced,
    reshape,
    rings,
    rows,
    sync,
    tables,
    turns,
    wide,
)
from oxidecopy.conformance.case import Case
from oxidecopy.errors import OxidecopyError
from oxidecopy.host.compare import difference
from oxidecopy.host.device import Device
from oxidecopy.typed.global_array import storage_dtype

if TYPE_CHECKING:
    import numpy.typing as npt

    from oxidecopy.conformance.case import Made

REFERENCE: Final = "sim-fast"
_SUITES: Final = (
    copies,
    bulk,
    im2col,
    compute,
    reshape,
    sync,
    clusters,
    rings,
    rows,
    tables,
    turns,
    replaced,
    carried,
    wide,
    classes,
    mixed,
    contractions,
    applied,
    lessons,
)
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


def cases(pattern: str = "", *, emitted: bool = False) -> list[Case]:
    """All cases whose group or name holds `pattern`, in a fixed order; with `emitted` only those that are written as CUDA C++."""
    every: Iterator[Case] = chain.from_iterable(suite.cases() for suite in _SUITES)
    return [case for case in every if pattern in f"{case.group}: {case.name}" and (case.emitted or not emitted)]


def by_engine(made: Made, _: Device) -> None:
    """As users launch."""
    made.launch()


def run_case(case: Case, reference: Device, device: Device, launch: Launcher = by_engine) -> Verdict:
    """One case on both; `launch` says how on `device`, unless the case does."""
    start = perf_counter()
    if case.records:
        from oxidecopy.conformance.records import by_records

        launch = by_records
    try:
        (made, wanted), (_, got) = _ran(case, reference, by_engine), _ran(case, device, launch)
        differs = partial(_far, ulp=case.ulp, sizes=made.sizes) if case.ulp else partial(_differs, made)
        problem = "; ".join(filter(None, (differs(name, got[name], wanted[name]) for name in wanted)))
    except OxidecopyError as error:
        problem = "\n".join(str(error).splitlines()[:_MESSAGE_LINES])
    return Verdict(name=case.name, group=case.group, problem=problem, seconds=perf_counter() - start)


def _ran(case: Case, device: Device, launch: Launcher) -> tuple[Made, dict[str, bytes]]:
    made: Made = case.make(device)
    launch(made, device)
    if not case.whole:
        return made, {name: a.numpy().tobytes() for name, a in made.outputs.items()}
    return made, {name: device.engine.read(a.buffer, 0, a.buffer.nbytes) for name, a in made.outputs.items()}


def _differs(made: Made, name: str, got: bytes, wanted: bytes) -> str:
    if got == wanted:
        return ""
    if name in made.within:
        dtype = storage_dtype(made.outputs[name].dtype.info)
        found = difference(name, np.frombuffer(got, dtype), np.frombuffer(wanted, dtype), made.within[name])
        return str(found or "")
    a, b = (np.frombuffer(x, np.uint8) for x in (got, wanted))
    if a.size != b.size:
        return f"{name}: {a.size} bytes, not {b.size}"
    where = np.flatnonzero(a != b)
    return f"{name}: {where.size} of {a.size} bytes differ, first at {where[0]}: {a[where[0]]:#04x}, not {b[where[0]]:#04x}"


def _far(name: str, got: bytes, wanted: bytes, *, ulp: int, sizes: npt.NDArray[np.float32] | None) -> str:
    """Elements of f32 that are further from the reference than `ulp` last places; NaN and infinities must be the same bits."""
    a, b = (np.frombuffer(x, np.float32).astype(np.float64) for x in (got, wanted))
    same = np.frombuffer(got, np.uint32) == np.frombuffer(wanted, np.uint32)
    with np.errstate(invalid="ignore"):
        size = np.abs(np.frombuffer(wanted, np.float32) if sizes is None else sizes.reshape(-1))
        last = np.spacing(np.maximum(size, np.finfo(np.float32).tiny))
        error = np.where(same, 0.0, np.where(np.isfinite(a) & np.isfinite(b), np.abs(a - b) / last, np.inf))
    if not (error > ulp).any():
        return ""
    where = int(np.argmax(error))
    off = f"{int((error > ulp).sum())} of {a.size} elements are off"
    return f"{name}: {off}, the worst by {error[where]:.3g} ulp: {a[where]!r}, not {b[where]!r}"


# ---- the result as a file
def as_data(device: str, pattern: str, verdicts: Sequence[Verdict], *, emitted: bool = False, left: int = 0) -> dict[str, object]:
    """The verdicts with what is needed to run them again; of cases that are equal only how many. `left`: cases that have not run yet."""
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
        **({"left": left} if left else {}),
        "groups": groups,
        "failures": [{"name": v.name, "group": v.group, "problem": v.problem} for v in verdicts if v.problem],
    }
