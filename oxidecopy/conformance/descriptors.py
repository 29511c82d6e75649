"""The validator held against a GPU: the driver encodes every parameter set of the matrix, and a sample of loads is run.

Encoding and loading happen in processes of their own. Inputs that are known to crash the driver's call are not among the sets; when a
process ends all the same, the set it was at is reported, and a new one goes on behind it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from tempfile import TemporaryFile
from typing import Final, final

from oxidecopy._version import __version__
from oxidecopy.conformance.descriptor_cases import SEED, cases
from oxidecopy.conformance.descriptor_loads import FAULT, LoadCase, load_cases
from oxidecopy.maps.parameters import MapParameters
from oxidecopy.maps.validate import Verdict, validate

Starting = Callable[[str, int, int], None]
BYTES_KEPT: Final = 200  # encoded maps that are written down
_DEATHS_MAX: Final = 5  # in a row
_CRASHED: Final = -1  # in place of a CUresult


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
        return self.code is None or self.verdict.encodes == (self.code == 0)


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
    answers = list(_answers(device, seed, len(matrix), lambda i: starting("encoding", i, len(matrix))))
    judged = [
        Judged(group=case.group, verdict=validate(case.parameters, arch=sm), code=code, data=data)
        for case, (code, data) in zip(matrix, answers, strict=True)
    ]
    loaded = list(_loads(device, seed, load_cases(matrix, seed), starting)) if sm == 90 else []
    return Result(device=device, sm=sm, seed=seed, judged=tuple(judged), loaded=tuple(loaded))


# ---- processes
def _answers(device: str, seed: int, count: int, progress: Callable[[int], None]) -> Iterator[tuple[int, str]]:
    """The driver's answer to each set; after a crash by a new process, from the set behind it on."""
    for line, _ in _spoken(["encode", device, str(seed)], count, progress):
        if line is None:
            yield _CRASHED, ""
        else:
            code, _, data = line.partition(" ")
            yield int(code), data


def _loads(device: str, seed: int, wanted: Sequence[LoadCase], starting: Starting) -> Iterator[Loaded]:
    """First those that share a process, then those that each lose one."""
    together = [case for case in wanted if not case.faults]
    for line, i in _spoken(["load", device, str(seed)], len(together), lambda i: starting("loads", i, len(wanted))):
        yield Loaded(name=together[i].name, problem="the process ended" if line is None else json.loads(line))
    for i, case in enumerate(wanted):
        if case.faults:
            starting("loads", i, len(wanted))
            line, _ = next(_spoken(["fault", device, str(seed), str(i)], 1, lambda _: None))
            right = line == str(FAULT)
            yield Loaded(name=case.name, problem="" if right else f"ended with {line}, not with the fault {FAULT}")


def _spoken(arguments: Sequence[str], count: int, progress: Callable[[int], None]) -> Iterator[tuple[str | None, int]]:
    """`count` lines of a worker with their numbers; None for one at which it ended, and a new worker goes on behind that."""
    done = died = 0
    while done < count and died < _DEATHS_MAX:
        command = [sys.executable, "-m", "oxidecopy.conformance.descriptor_worker", *arguments, str(done)]
        with TemporaryFile("w+") as errors, subprocess.Popen(command, stdout=-1, stderr=errors, text=True) as worker:
            for line in worker.stdout or ():
                if line.startswith("> "):
                    yield line[2:].rstrip("\n"), done
                    done, died = done + 1, 0
                    progress(done)
        if done < count:
            yield None, done
            done, died = done + 1, died + 1
    for number in range(done, count):
        yield None, number


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
        "agree": sum(j.agrees for j in result.judged),
        "rules": _rule_counts(result.judged),
        "groups": {name: dict(row) for name, row in groups.items()},
        "disagreements": [_difference(judged) for judged in result.disagreements],
        "loads": len(result.loaded),
        "loads_as_said": sum(not row.problem for row in result.loaded),
        "failures": [{"name": row.name, "problem": row.problem} for row in result.failures],
    }


def _difference(judged: Judged) -> dict[str, object]:
    return {"code": judged.code, "rules": _ids(judged.verdict), "parameters": arguments(judged.verdict.parameters)}


def _ids(verdict: Verdict) -> list[str]:
    return sorted({f.rule.id for f in verdict.findings if f.rule.gate == "encodes"})


def _rule_counts(judged: Sequence[Judged]) -> dict[str, int]:
    """How many sets break one rule of the driver alone: where a rule that was wrong would show."""
    alone = Counter(ids[0] for j in judged if len(ids := _ids(j.verdict)) == 1)
    return dict(sorted(alone.items()))


def arguments(parameters: MapParameters) -> dict[str, object]:
    """The call's arguments by the names of this package, outermost first; zeros and empty arrays are left out."""
    fields = {name: getattr(parameters, name) for name in MapParameters.__dataclass_fields__}
    return {name: value for name, value in fields.items() if value not in (0, (), "")}


def bytes_data(result: Result) -> dict[str, object]:
    """Some of the encoded maps, their arguments and their 128 bytes: every so-manieth set that encodes."""
    encoded = [j for j in result.judged if j.data]
    kept = encoded[:: max(len(encoded) // BYTES_KEPT, 1)][:BYTES_KEPT]
    return {"device": result.device, "maps": [{**arguments(j.verdict.parameters), "bytes": j.data} for j in kept]}
