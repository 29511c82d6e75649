"""The validator held against a GPU: the driver encodes every parameter set of the matrix, and a sample of loads is run.

Encoding and loading happen in processes of their own. Inputs that are known to crash the driver's call are not among the sets; when a
process ends all the same, the set it was at is reported, and a new one goes on behind it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, final

from oxidecopy._version import __version__
from oxidecopy.conformance.descriptor_cases import SEED, cases
from oxidecopy.conformance.descriptor_loads import FAULT, LoadCase, load_cases
from oxidecopy.maps.parameters import MapParameters
from oxidecopy.maps.validate import Verdict, validate

Starting = Callable[[str, int, int], None]
BYTES_KEPT: Final = 200  # encoded maps that are written down
_DEATHS_MAX: Final = 5  # in a row
CRASHED: Final = -1  # in place of a CUresult
WORKER: Final = "oxidecopy.conformance.descriptor_worker"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A parameter set with the validator's verdict and the driver's answer: a CUresult, None when it was not asked."""

    group: str
    verdict: Verdict
    code: int | None
    data: str = ""

    @property
    def agrees(self) -> bool:
        """The driver does what the verdict says."""
        return self.code is None or (self.code != CRASHED and self.verdict.encodes == (self.code == 0))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A load; `problem` is empty when the device did as the validator says."""

    name: str
    problem: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """All of a run; the driver was not asked when `device` is empty."""

    device: str
    sm: int
    seed: int
    judged: tuple[Judged, ...]
    loaded: tuple[Loaded, ...]

    @property
    def disagreements(self) -> tuple[Judged, ...]:
        """Where the driver and the validator differ."""
        return tuple(j for j in self.judged if not j.agrees)

    @property
    def failures(self) -> tuple[Loaded, ...]:
        """Loads that did not do what the validator says."""
        return tuple(row for row in self.loaded if row.problem)


def judge_all(seed: int = SEED, sm: int = 90) -> Result:
    """The validator alone."""
    judged = tuple(Judged(group=c.group, verdict=validate(c.parameters, arch=sm), code=None) for c in cases(seed))
    return Result(device="", sm=sm, seed=seed, judged=judged, loaded=())


def ask_all(device: str, sm: int, starting: Starting, seed: int = SEED) -> Result:
    """The validator and the driver of `device`, and on compute capability 9.0 the loads."""
    matrix = cases(seed)
    lines = _spoken("encode", device, [case.parameters for case in matrix], partial(starting, "encoding"))
    answered = zip(matrix, lines, strict=True)
    judged = [Judged(group=c.group, verdict=validate(c.parameters, arch=sm), **_answer(line)) for c, line in answered]
    loaded = list(_loads(device, load_cases(matrix, seed), starting)) if sm == 90 else []
    return Result(device=device, sm=sm, seed=seed, judged=tuple(judged), loaded=tuple(loaded))


def _answer(line: str | None) -> dict[str, Any]:
    """The code and, when it is 0, the encoded bytes."""
    code, _, data = (line or str(CRASHED)).partition(" ")
    return {"code": int(code), "data": data}


def _loads(device: str, wanted: Sequence[LoadCase], starting: Starting) -> Iterator[Loaded]:
    """First those that share a process, then those that each lose one."""
    together = [case for case in wanted if not case.faults]
    for case, line in zip(together, _spoken("load", device, [c.parameters for c in together], partial(starting, "loads")), strict=True):
        yield Loaded(name=case.name, problem="the process ended" if line is None else json.loads(line))
    for case in wanted[len(together) :]:
        (line,) = _spoken("fault", device, [case.parameters], partial(starting, "faults"))
        yield Loaded(name=case.name, problem="" if line == str(FAULT) else f"ended with {line}, not with the fault {FAULT}")


# ---- processes
def _spoken(task: str, device: str, wanted: Sequence[MapParameters], progress: Callable[[int, int], None]) -> Iterator[str | None]:
    """A line for each set; None for one at which its worker ended, and a new worker goes on behind that."""
    done = died = 0
    with TemporaryDirectory() as folder:
        file = Path(folder, "sets.json")
        file.write_text(json.dumps([parameters.as_data() for parameters in wanted]))
        while done < len(wanted) and died < _DEATHS_MAX:
            command = [sys.executable, "-m", WORKER, task, device, str(file), str(done)]
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as worker:
                for line in worker.stdout or ():
                    if line.startswith("> "):
                        done, died = done + 1, 0
                        progress(done, len(wanted))
                        yield line[2:].rstrip("\n")
            if done < len(wanted):
                done, died = done + 1, died + 1
                yield None
    yield from (None for _ in range(done, len(wanted)))


# ---- the result as a file
def as_data(result: Result, why: str) -> dict[str, object]:
    """What is needed to run it again, and how much agreed; of sets that agree only how many."""
    groups: dict[str, Counter[str]] = {}
    for judged in result.judged:
        row = groups.setdefault(judged.group, Counter())
        row["sets"] += 1
        row["encode"] += judged.verdict.encodes
        row["usable"] += judged.verdict.usable
        row["agree"] += judged.agrees
    return {
        "command": f"oxidecopy conformance descriptors {f'--device {result.device}' if result.device else '--no-driver'}",
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "oxidecopy": __version__,
        "device": why,
        "seed": result.seed,
        "sets": len(result.judged),
        "digest": digest(j.verdict.parameters for j in result.judged),
        "agree": sum(j.agrees for j in result.judged),
        "rules": _rule_counts(result.judged),
        "groups": {name: dict(row) for name, row in groups.items()},
        "disagreements": [_difference(judged) for judged in result.disagreements],
        "loads": len(result.loaded),
        "loads_as_said": sum(not row.problem for row in result.loaded),
        "answers": bits(j.code == 0 for j in result.judged) if result.device else "",
        "failures": [{"name": row.name, "problem": row.problem} for row in result.failures],
    }


def _difference(judged: Judged) -> dict[str, object]:
    return {"code": judged.code, "rules": _ids(judged.verdict), "parameters": judged.verdict.parameters.as_data()}


def _ids(verdict: Verdict) -> list[str]:
    return sorted({f.rule.id for f in verdict.findings if f.rule.gate == "encodes"})


def _rule_counts(judged: Sequence[Judged]) -> dict[str, int]:
    """How many sets break one rule of the driver alone: where a rule that was wrong would show."""
    alone = Counter(ids[0] for j in judged if len(ids := _ids(j.verdict)) == 1)
    return dict(sorted(alone.items()))


def digest(parameters: Iterable[MapParameters]) -> str:
    """Of all sets in their order: the same matrix has the same."""
    return sha256(json.dumps([p.as_data() for p in parameters]).encode()).hexdigest()


def bits(encodes: Iterable[bool]) -> str:
    """One bit for each set, the first one highest, as hexadecimal digits."""
    text = "".join("01"[yes] for yes in encodes)
    return f"{int(text.ljust(-(-len(text) // 4) * 4, '0'), 2):0{-(-len(text) // 4)}x}"


def bytes_data(result: Result) -> dict[str, object]:
    """Some of the encoded maps, their arguments and their 128 bytes: every so-manieth set that encodes."""
    encoded = [j for j in result.judged if j.data]
    kept = encoded[:: max(len(encoded) // BYTES_KEPT, 1)][:BYTES_KEPT]
    return {"device": result.device, "maps": [{**j.verdict.parameters.as_data(), "bytes": j.data} for j in kept]}
