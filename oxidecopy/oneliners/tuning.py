"""`tune=True`: the ways to do something are measured on the device, and the fastest is kept, in this process and in a file for later ones.

The file is one for each device, driver and version of this package, in `$OXIDECOPY_CACHE_DIR`, else in `oxidecopy` under `$XDG_CACHE_HOME`
or `~/.cache`. It is written whole or not at all. What it says is taken only where it is one of the ways that would be measured now; a file
that cannot be read is ignored with a warning, and so is one that cannot be written.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

from oxidecopy._version import __version__
from oxidecopy.errors import OxidecopyError, UsageError
from oxidecopy.host.npy import write_whole
from oxidecopy.host.pipeline import SupportsCudaStream
from oxidecopy.oneliners.calls import Work
from oxidecopy.oneliners.machine import Machine, machine_of
from oxidecopy.oneliners.operands import key_of
from oxidecopy.oneliners.ready import AnyStream, Ready

FOLDER_VARIABLE: Final = "OXIDECOPY_CACHE_DIR"
_FORMAT: Final = 1
_BYTES_MAX: Final = 4 << 20  # of the file; a larger one was not written by this module
_ROUNDS: Final = 5
_LAUNCHES: Final = 4  # of a round


class Timed(NamedTuple):
    """A way and what it took."""

    choice: Any
    microseconds: float


_known: dict[tuple[str, str], Timed] = {}  # by file and key: what this process has measured or read


def tuned(work: Work, stream: AnyStream) -> tuple[Any, tuple[str, ...]]:
    """The fastest way, None for that of the measured table; and what there is to say about it."""
    device: Any = work.arrays[0].device
    machine = machine_of(device)
    if not machine.driver:
        return None, (f"tune: {device.name} says nothing about speed, so the choice is that without `tune`",)
    if stream is not None and _capturing(device, stream):
        return None, ("tune: nothing is measured while a graph is captured, so the choice is that without `tune`",)
    place, key = path_for(machine), key_for(work)
    found = _known.get((str(place), key)) or read(place, machine).get(key)
    if found is not None:
        known = next((c for c in work.choices if list(c) == list(found.choice)), None)
        if known is not None:
            _known[str(place), key] = Timed(known, found.microseconds)
            return known, (f"tune: {_said(Timed(known, found.microseconds))}, as measured before ({place})",)
    timed = sorted((Timed(c, _measure(work, c, stream)) for c in work.choices), key=lambda t: t.microseconds)
    _known[str(place), key] = timed[0]
    write(place, machine, key, timed[0], work.words)
    return timed[0].choice, ("tune: measured now, fastest first", *(f"tune: {_said(t)}" for t in timed))


def _capturing(device: Any, stream: SupportsCudaStream | int) -> bool:
    from oxidecopy.host.stream import Stream

    return (stream if isinstance(stream, Stream) else Stream.of(device, stream)).capturing


def _said(timed: Timed) -> str:
    words = getattr(timed.choice, "words", str(tuple(timed.choice)))
    return f"{timed.microseconds:,.1f} us: {words}"


def key_for(work: Work) -> str:
    """What is measured, as text that is the same in every process."""
    arrays = [(a.dtype.__name__, a.shape, a.strides_bytes, (a.buffer.address + a.offset_bytes) % 128) for a in work.arrays]
    return hashlib.sha256(repr((work.stable, arrays)).encode()).hexdigest()[:32]


def _measure(work: Work, choice: Any, stream: AnyStream) -> float:
    """Microseconds of one call, by events on the device: the median of several rounds."""
    from oxidecopy.host.stream import Event, Stream

    device: Any = work.arrays[0].device
    arrays = list(work.arrays)
    if not work.repeatable:
        arrays[0] = device.empty_like(arrays[0])
    if stream is None:
        device.synchronize()
    on = stream if isinstance(stream, Stream) else Stream(device) if stream is None else Stream.of(device, stream)
    ready = Ready(work.plan(choice), work.numbers, on)
    marks = [Event(device) for _ in range(_ROUNDS + 1)]
    known = key_of(None, arrays, None).marks
    ready.run(arrays, work.numbers, known)
    on.record(marks[0])
    for mark in marks[1:]:
        for _ in range(_LAUNCHES):
            ready.run(arrays, work.numbers, known)
        on.record(mark)
    on.synchronize()
    return median(1000 * b.milliseconds_since(a) / _LAUNCHES for a, b in pairwise(marks))


# ---- the file
def path_for(machine: Machine) -> Path:
    """The file of a device, driver and version."""
    named = os.environ.get(FOLDER_VARIABLE)
    folder = Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "oxidecopy"
    what = hashlib.sha256(repr((machine, __version__)).encode()).hexdigest()[:16]
    return folder / f"tuned-{what}.json"


def _head(machine: Machine) -> dict[str, object]:
    return {"format": _FORMAT, "device": machine.name, "multiprocessors": machine.sms, "driver": machine.driver, "oxidecopy": __version__}


def read(place: Path, machine: Machine) -> dict[str, Timed]:
    """What a file says; nothing, with a warning, when it is broken."""
    try:
        if not place.exists():
            return {}
        if place.stat().st_size > _BYTES_MAX:
            raise ValueError(f"{place.stat().st_size:,} bytes, more than {_BYTES_MAX:,}")  # noqa: TRY301  # one warning for all
        data: Any = json.loads(place.read_text(encoding="utf-8"))
        if {name: data.get(name) for name in _head(machine)} != _head(machine):
            raise ValueError("it is of another device, driver or version")  # noqa: TRY301  # as above
        return {str(key): Timed(list(entry["choice"]), float(entry["microseconds"])) for key, entry in data["entries"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        _warn(f"what was measured before cannot be read from {place}", problem, "delete the file; it is measured again")
        return {}


def write(place: Path, machine: Machine, key: str, timed: Timed, words: str) -> None:
    """Adds a measurement to the file, beside what others have added meanwhile."""
    entries: dict[str, object] = {k: {"choice": list(t.choice), "microseconds": t.microseconds} for k, t in read(place, machine).items()}
    entries[key] = {"choice": list(timed.choice), "microseconds": round(timed.microseconds, 3), "what": words}
    text = json.dumps({**_head(machine), "entries": entries}, indent=1)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        write_whole(place, lambda file: file.write(text.encode()))
    except (OSError, UsageError) as problem:
        _warn(f"what was measured is not kept in {place}", problem, f"set {FOLDER_VARIABLE} to a folder that can be written to")


def _warn(what: str, problem: Exception, fix: str) -> None:
    got = problem.diagnostics[0].got if isinstance(problem, OxidecopyError) else f"{type(problem).__name__}: {problem}"
    warnings.warn(f"{what} ({got[:200]}): {fix}", RuntimeWarning, stacklevel=2)


def forget() -> None:
    """Lets go of what this process knows; files stay."""
    _known.clear()
