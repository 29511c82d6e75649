"""Recorded results of a GPU, kept as oracles: how they are made, written, read, and held against another device.

The file is gzip of JSON, read by nothing else than `gzip` and `json`:

    {"about": {"format": 1, "device": ..., "driver": ..., "date": ..., "command": ..., "seed": ..., "programs": ..., "copies": ...},
     "cases": [{...the fields of an `OracleCase`..., "result": hex}, ...]}

`result` of a load is what each block's tile held, unswizzled, block after block, in the tile's order. Of a store or reduction it is the
array's memory (`OracleCase.nbytes` bytes from its first element on) combined by exclusive or with what it was before, so that bytes that
nothing wrote are zero. What the memory was is a formula: `oracle_programs.data`.
"""

from __future__ import annotations

import gzip
import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from oxidecopy._version import __version__
from oxidecopy.conformance.oracle_cases import SEED, OracleCase, cases, copies, landed
from oxidecopy.conformance.oracle_programs import data, make, result
from oxidecopy.errors import Diagnostic, UsageError
from oxidecopy.isa.dtypes import DTYPES

if TYPE_CHECKING:
    from oxidecopy.host.device import Device

FORMAT: Final = 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Oracle:
    """A case and what the GPU made of it."""

    case: OracleCase
    result: bytes


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A file of them; `about` is as the file says it."""

    about: Mapping[str, Any]
    oracles: tuple[Oracle, ...]


def run(case: OracleCase, dev: Device) -> bytes:
    """The bytes of a case's result on a device, in the form of the file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # stores at edges are warned of: what they write is asked here
        made = make(case, dev)
        made.launch()
    found = result(case, made)
    return found if case.op == "load" else _changes(case, found)


def _changes(case: OracleCase, after: bytes) -> bytes:
    """Exclusive or with the array's first contents; its own inverse."""
    return (np.frombuffer(after, np.uint8) ^ data(case.nbytes, 0, case.dtype, case.op)).tobytes()


def record(dev: Device, progress: Callable[[int, int], None], seed: int = SEED) -> Recorded:
    """Runs the whole set."""
    wanted = cases(seed)
    made: list[Oracle] = []
    for done, case in enumerate(wanted, 1):
        made.append(Oracle(case=case, result=run(case, dev)))
        progress(done, len(wanted))
    about = {
        "format": FORMAT,
        "command": f"oxidecopy conformance record FILE --device {dev.name}",
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "oxidecopy": __version__,
        "device": dev.why,
        "seed": seed,
        "programs": len(made),
        "copies": copies(wanted),
    }
    return Recorded(about=about, oracles=tuple(made))


# ---- the file
def as_bytes(recorded: Recorded) -> bytes:
    """The file's contents; the same results give the same bytes."""
    rows = [json.dumps({**o.case.as_data(), "result": o.result.hex()}, separators=(",", ":")) for o in recorded.oracles]
    text = f'{{"about":{json.dumps(dict(recorded.about))},\n"cases":[\n' + ",\n".join(rows) + "\n]}\n"
    return gzip.compress(text.encode(), compresslevel=9, mtime=0)


def read(path: Path) -> Recorded:
    """A file that `as_bytes` made.

    Raises:
        UsageError: it is none (OX6027).
    """
    try:
        found = json.loads(gzip.decompress(path.read_bytes()))
        rows = [Oracle(case=OracleCase.from_data(row), result=bytes.fromhex(row["result"])) for row in found["cases"]]
        return Recorded(about=found["about"], oracles=tuple(rows))
    except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError) as problem:
        required, fix = "what `oxidecopy conformance record FILE` wrote", "leave --check out to write it"
        what, got = f"{path} holds no recorded results", f"{type(problem).__name__}: {problem}"
        raise UsageError(Diagnostic(rule="OX6027", what=what, got=got, required=required, fix=fix)) from None


# ---- comparison
def differences(oracles: tuple[Oracle, ...], dev: Device) -> Iterator[str]:
    """A sentence for each oracle that `dev` does not agree with: the case, the first element, both values."""
    for number, oracle in enumerate(oracles):
        if problem := compare(oracle, run(oracle.case, dev)):
            yield f"case {number}: {oracle.case}: {problem}"


def compare(oracle: Oracle, got: bytes) -> str:
    """Empty when equal."""
    case, wanted = oracle.case, oracle.result
    if got == wanted:
        return ""
    if len(got) != len(wanted):
        return f"{len(got)} bytes, recorded were {len(wanted)}"
    if case.op != "load":
        got, wanted = _changes(case, got), _changes(case, wanted)
    size = DTYPES[case.dtype].nbytes
    a, b = (np.frombuffer(x, np.uint8).reshape(-1, size) for x in (got, wanted))
    differ = np.flatnonzero((a != b).any(axis=1))
    first = int(differ[0])
    values = f"{a[first, ::-1].tobytes().hex()}, recorded {b[first, ::-1].tobytes().hex()}"
    return f"{len(differ)} elements differ, first {_where(case, first)}: {values}"


def _where(case: OracleCase, number: int) -> str:
    """An element of a result in words."""
    if case.op != "load":
        return f"at byte {number * DTYPES[case.dtype].nbytes} of the array"
    edge = landed(case)
    index = [int(i) for i in np.unravel_index(number, (case.blocks * edge[0], *edge[1:]))]
    return f"at {(index[0] % edge[0], *index[1:])} of block {index[0] // edge[0]}"
