"""Runs cases on two devices and compares every byte of their outputs, the padding between rows included.

A case that faults loses the CUDA context, and with it all that would run after it in the same process. So a worker process runs the cases
and says after each how it went; when it dies, the case it was at has failed, and a new one goes on behind it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Final, final

import numpy as np

from oxidecopy._version import __version__
from oxidecopy.conformance import clusters, compute, copies, lessons, rings, sync
from oxidecopy.conformance.case import Case
from oxidecopy.errors import OxidecopyError
from oxidecopy.host.device import Device
from oxidecopy.host.npy import write_whole
from oxidecopy.typed.dtypes import u8

if TYPE_CHECKING:
    from oxidecopy.conformance.case import Made

REFERENCE: Final = "sim-fast"
_SUITES: Final = (copies, compute, sync, clusters, rings, lessons)
_MESSAGE_LINES: Final = 6
_DEATHS_MAX: Final = 5  # in a row
_LOST: Final = 3  # a worker that has told of a failure, and lost its device by it


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


def run_case(case: Case, reference: Device, device: Device) -> Verdict:
    """One case on both."""
    start = perf_counter()
    try:
        wanted, got = (_ran(case, on) for on in (reference, device))
        problem = "; ".join(filter(None, (_differs(name, got[name], wanted[name]) for name in wanted)))
    except OxidecopyError as error:
        problem = "\n".join(str(error).splitlines()[:_MESSAGE_LINES])
    return Verdict(name=case.name, group=case.group, problem=problem, seconds=perf_counter() - start)


def _ran(case: Case, device: Device) -> dict[str, bytes]:
    made: Made = case.make(device)
    made.launch()
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
def as_data(device: str, pattern: str, verdicts: Sequence[Verdict]) -> dict[str, object]:
    """The verdicts with what is needed to run them again; of cases that are equal only how many."""
    groups: dict[str, dict[str, int]] = {}
    for verdict in verdicts:
        row = groups.setdefault(verdict.group, {"cases": 0, "equal": 0})
        row["cases"] += 1
        row["equal"] += not verdict.problem
    only = f" --only {pattern!r}" if pattern else ""
    return {
        "command": f"oxidecopy conformance --device {device}{only}",
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "oxidecopy": __version__,
        "device": str(Device.open(device)),
        "reference": REFERENCE,
        "cases": len(verdicts),
        "equal": sum(not v.problem for v in verdicts),
        "groups": groups,
        "failures": [{"name": v.name, "group": v.group, "problem": v.problem} for v in verdicts if v.problem],
    }


def write(path: Path, data: dict[str, object]) -> None:
    """Writes the result, whole or not at all; raises UsageError when it cannot be written."""
    text = json.dumps(data, indent=2) + "\n"
    write_whole(path, lambda file: file.write(text.encode()))


# ---- in workers
def run_all(device: str, pattern: str, starting: Callable[[str, int, int], None]) -> Iterator[Verdict]:
    """Every case by worker processes; `starting` is told its name, position and how many there are.

    When several cases in a row take their process with them, the fault is not theirs, and the rest is given up.
    """
    wanted = cases(pattern)
    done = died = 0
    while done < len(wanted) and died < _DEATHS_MAX:
        starting(wanted[done].name, done, len(wanted))
        command = [sys.executable, "-m", "oxidecopy.conformance.run", device, str(done), pattern]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as worker:
            for verdict in _spoken(worker.stdout):
                done, died = done + 1, 0
                yield verdict
                if done < len(wanted):
                    starting(wanted[done].name, done, len(wanted))
            _, errors = worker.communicate()
        if done < len(wanted) and worker.returncode != _LOST:
            case = wanted[done]
            last = (errors or "").strip().splitlines()[-1:] or ["no word"]
            yield Verdict(name=case.name, group=case.group, problem=f"the process ended with {worker.returncode}: {last[0]}")
            done, died = done + 1, died + 1
    for case in wanted[done:]:
        yield Verdict(name=case.name, group=case.group, problem="not run: the cases before it took their processes with them")


def _spoken(lines: Iterable[str] | None) -> Iterator[Verdict]:
    for line in lines or ():
        if line.startswith("{"):
            yield Verdict(**json.loads(line))


def work(arguments: Sequence[str]) -> int:
    """A worker: the cases from a position on, a line of JSON for each. Ends after the first that has taken the context with it."""
    name, first, pattern = arguments
    reference, device = Device.open(REFERENCE), Device.open(name)
    for case in cases(pattern)[int(first) :]:
        verdict = run_case(case, reference, device)
        sys.stdout.write(json.dumps(asdict(verdict)) + "\n")
        sys.stdout.flush()
        if verdict.problem and not _works(device):
            return _LOST
    return 0


def _works(device: Device) -> bool:
    """After a failure: memory can still be used."""
    try:
        return not device.zeros((16,), u8).numpy().any()
    except OxidecopyError:
        return False


if __name__ == "__main__":
    raise SystemExit(work(sys.argv[1:]))
