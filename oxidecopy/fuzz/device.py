"""Programs that the verifier accepts on a device, against the simulator's bytes: in batches, each in a process of its own.

A program that faults loses the device's context, and with it what would run after it in the same process. The batch is then cut at the
program that it was at. That one runs again alone; where it does not fail alone, what ran before it is halved until the fewest programs are
left after which it fails. Every wait on the device is bounded, and so is every batch.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import islice
from time import monotonic
from typing import Final, TypeAlias, final

from oxidecopy.engines.base import Engine
from oxidecopy.engines.cuda.emit.raw import run_emitted
from oxidecopy.engines.cuda.engine import CudaEngine
from oxidecopy.errors import DeviceCodeError, OxidecopyError, VerificationError
from oxidecopy.fuzz.campaign import MUTANTS, program
from oxidecopy.fuzz.case import Case, run
from oxidecopy.fuzz.judge import INDEX_RANGE, is_loose, stopped
from oxidecopy.fuzz.tally import Tally
from oxidecopy.host.device import Device
from oxidecopy.program.verified import VerifiedProgram
from oxidecopy.verify import verify

Id: TypeAlias = tuple[int, int]  # seed and number of a program
Launcher: TypeAlias = Callable[[Case, Engine, VerifiedProgram], dict[str, bytes]]
BATCH: Final = {"engine": 320, "emitted": 24}  # programs of a process, refused ones among them
_BATCH_SECONDS: Final = 240  # after which a batch is given up; the longest took a tenth of it
_LAST_WORDS: Final = 60  # of a process that died, its error among them


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Went:
    """How a program went on the device.

    "refused" by the verifier, or "newer" than the device, or with "no_code" for it (a limit of the engine, said before the launch): these
    did not run. "loose" ones ran, and their bytes may differ by design; "stopped" ones ended as on the simulator by an index out of its
    bounds. Others are "equal", or have a problem: they "differ" or "failed".
    """

    seed: int
    number: int
    how: str
    problem: str = ""


# ---- a worker
def by_engine(case: Case, engine: Engine, proof: VerifiedProgram) -> dict[str, bytes]:
    """As users launch."""
    bindings, buffers = case.on(engine)
    engine.run(proof, bindings)
    return case.contents(engine, buffers)


def by_emitted_code(case: Case, engine: Engine, proof: VerifiedProgram) -> dict[str, bytes]:
    """As the CUDA C++ that `oxidecopy emit` writes, compiled here, with bounded waits."""
    if not isinstance(engine, CudaEngine):
        raise TypeError("emitted code runs on a GPU")
    bindings, buffers = case.on(engine)
    run_emitted(engine, proof, bindings)
    return case.contents(engine, buffers)


def compare(case: Case, seed: int, number: int, engine: Engine, launch: Launcher) -> Went:
    """One program on the device and on the simulator."""
    if case.sm > engine.sm:
        return Went(seed=seed, number=number, how="newer")
    try:
        proof = verify(case.program, case.launch())
    except VerificationError:
        return Went(seed=seed, number=number, how="refused")
    simulated = run(case, 0, hazards=False)
    try:
        got = launch(case, engine, proof)
    except DeviceCodeError:
        return Went(seed=seed, number=number, how="no_code")
    except OxidecopyError as error:
        alike = stopped(simulated) and set(error.rules) <= INDEX_RANGE
        return Went(seed=seed, number=number, how="stopped") if alike else Went(seed=seed, number=number, how="failed", problem=str(error))
    if stopped(simulated):
        return Went(seed=seed, number=number, how="differs", problem="an index out of its bounds goes unnoticed on the device")
    if is_loose(case, proof.warnings):
        return Went(seed=seed, number=number, how="loose")
    wanted = simulated.contents
    wrong = [name for name in wanted if got[name] != wanted[name]]
    problem = f"the device leaves other bytes in {', '.join(wrong)} than the simulator" if wrong else ""
    return Went(seed=seed, number=number, how="differs" if wrong else "equal", problem=problem)


def work(arguments: Sequence[str]) -> int:
    """A worker: device, way to launch, then programs as `seed.number`; a line for each before it runs and one after it."""
    name, way, *ids = arguments
    engine = Device.open(name).engine
    launch = by_emitted_code if way == "emitted" else by_engine
    for text in ids:
        seed, number = map(int, text.split("."))
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
        try:
            case = program(seed, number)
        except ValueError:  # a mutant that means nothing
            went = Went(seed=seed, number=number, how="nothing")
        else:
            went = compare(case, seed, number, engine, launch)
        sys.stdout.write(json.dumps(asdict(went)) + "\n")
        sys.stdout.flush()
        if went.how == "failed":
            return 0  # the context may be lost; the next process goes on behind it
    return 0


# ---- batches
@final
@dataclass(slots=True)
class Batches:
    """Runs programs on a device, process by process.

    Attributes:
        device: by name.
        way: "engine" or "emitted".
    """

    device: str
    way: str = "engine"

    def run(self, ids: Sequence[Id]) -> list[Went]:
        """One process; ends with the first program that fails, or takes the process with it."""
        command = [sys.executable, "-m", "oxidecopy.fuzz.device", self.device, self.way, *(f"{seed}.{number}" for seed, number in ids)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_BATCH_SECONDS, check=False)
            said, code = done.stdout, f"the process ended with {done.returncode}: {' '.join(done.stderr.split()[-_LAST_WORDS:])}"
        except subprocess.TimeoutExpired as late:
            heard: object = late.stdout  # bytes, whatever `text` says
            said = heard.decode(errors="replace") if isinstance(heard, bytes) else ""
            code = f"the batch was not done after {_BATCH_SECONDS} s"
        lines = said.splitlines()
        went = [Went(**json.loads(line)) for line in lines if line.startswith("{")]
        if len(went) < len(ids) and not (went and went[-1].how == "failed"):
            seed, number = ids[len(went)]
            went.append(Went(seed=seed, number=number, how="failed", problem=code))
        return went

    def run_all(self, ids: Sequence[Id]) -> list[Went]:
        """Every one of these programs; each that fails is looked at alone."""
        found: list[Went] = []
        while len(found) < len(ids):
            left = ids[len(found) :]
            went = self.run(left)
            if went[-1].how == "failed":
                went[-1] = self.explained(went[-1], left[: len(went)])
            found += went
        return found

    def explained(self, failed: Went, ids: Sequence[Id]) -> Went:
        """Whether the last of `ids` fails alone, or after which of the others."""
        alone = self.run(ids[-1:])[-1]
        if alone.how == "failed":
            return Went(seed=failed.seed, number=failed.number, how="failed", problem=f"alone: {alone.problem}")
        needed = list(ids)
        while len(needed) > 2 and self.run(shorter := [*needed[len(needed) // 2 : -1], needed[-1]])[-1].how == "failed":
            needed = shorter
        before = ", ".join(f"{seed}.{number}" for seed, number in needed[:-1])
        return Went(seed=failed.seed, number=failed.number, how="failed", problem=f"only after {before}: {failed.problem}")


def compare_all(
    device: str,
    ids: Iterable[Id],
    most: int,
    seconds: float,
    *,
    way: str = "engine",
    jobs: int = 1,
    told: Callable[[int], None] = lambda _: None,
) -> Tally:
    """Programs in order until `most` of them ran on the device, or the time is over.

    Args:
        device: by name.
        ids: of which programs.
        most: how many are to run, rounded up to whole batches; refused ones do not count.
        seconds: when to begin no more batches, whatever ran.
        way: "engine" or "emitted".
        jobs: processes at once.
        told: how many ran so far.
    """
    tally, end, batches = Tally(), monotonic() + seconds, Batches(device, way)
    source = iter(ids)
    with ThreadPoolExecutor(jobs) as pool:
        while tally.numbers["programs"] < most and monotonic() < end:
            wave = [part for _ in range(jobs) if (part := list(islice(source, BATCH[way])))]
            if not wave:
                break
            for went in pool.map(batches.run_all, wave):
                _take(tally, went)
            told(tally.numbers["programs"])
    return tally


def _take(tally: Tally, went: Iterable[Went]) -> None:
    for each in went:
        tally.numbers[each.how] += 1
        if each.how in ("equal", "loose", "stopped", "differs", "failed"):
            case = program(each.seed, each.number)
            tally.describe(case)
            if each.problem:
                tally.problem(case, each.problem, each.seed, each.number)


def ids_from(first: int, mutants: int = MUTANTS) -> Iterable[Id]:
    """All programs of all seeds from one on."""
    seed = first
    while True:
        yield from ((seed, number) for number in range(mutants + 1))
        seed += 1


if __name__ == "__main__":
    raise SystemExit(work(sys.argv[1:]))
