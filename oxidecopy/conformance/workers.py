"""Runs all cases in processes of their own.

A case that faults loses the CUDA context, and with it all that would run after it in the same process. So a worker process runs the cases
and says after each how it went; when it dies, the case it was at has failed, and a new one goes on behind it.

Several share the cases, as the simulator takes longer than the GPU. Each has a context of its own: what one loses, the others keep.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from queue import SimpleQueue
from tempfile import TemporaryFile
from typing import Final, TextIO

from oxidecopy.conformance.case import Case
from oxidecopy.conformance.run import REFERENCE, Launcher, Verdict, by_engine, cases, run_case
from oxidecopy.errors import OxidecopyError
from oxidecopy.host.device import Device
from oxidecopy.typed.dtypes import u8

_DEATHS_MAX: Final = 5  # in a row
_LOST: Final = 3  # a worker that has told of a failure, and lost its device by it
_JOBS_MAX: Final = 8  # workers side by side
_JOB_CASES: Final = 40  # of which an interpreter's start is worth it
EMITTED_JOBS: Final = 8  # compiling takes longer than running


def run_all(device: str, pattern: str, starting: Callable[[str, int, int], None], *, emitted: bool = False) -> Iterator[Verdict]:
    """Every case; `starting` is told the name of one that is being run, how many are done and how many there are.

    Args:
        device: by name.
        pattern: as `cases` takes it.
        starting: told of the progress.
        emitted: run each program as the CUDA C++ that `oxidecopy emit` writes, compiled here.
    """
    total = len(cases(pattern, emitted=emitted))
    jobs = EMITTED_JOBS if emitted else max(1, min(_JOBS_MAX, os.cpu_count() or 1, total // _JOB_CASES))
    told: SimpleQueue[Verdict | None] = SimpleQueue()

    def run(job: int) -> None:
        try:
            for verdict in _run_share(device, pattern, (job, jobs), emitted=emitted):
                told.put(verdict)
        finally:
            told.put(None)

    with ThreadPoolExecutor(jobs) as pool:
        for job in range(jobs):
            pool.submit(run, job)
        done, running = 0, jobs
        while running:
            verdict = told.get()
            if verdict is None:
                running -= 1
                continue
            done += 1
            starting(verdict.name, done, total)
            yield verdict


def _run_share(device: str, pattern: str, share: tuple[int, int], *, emitted: bool) -> Iterator[Verdict]:
    """Every n-th case from one on. When several in a row take their process with them, the fault is not theirs: the rest is given up."""
    wanted = cases(pattern, emitted=emitted)[share[0] :: share[1]]
    done = died = 0
    while done < len(wanted) and died < _DEATHS_MAX:
        command = [sys.executable, "-m", "oxidecopy.conformance.workers", device, str(done), pattern, *map(str, share)]
        if emitted:
            command.append("emitted")
        with TemporaryFile("w+", errors="replace") as errors, subprocess.Popen(command, stdout=-1, stderr=errors, text=True) as worker:
            for verdict in _spoken(worker.stdout):
                done, died = done + 1, 0
                yield verdict
            if done < len(wanted) and worker.wait() != _LOST:
                yield _dead(wanted[done], worker.returncode, errors)
                done, died = done + 1, died + 1
    for case in wanted[done:]:
        yield Verdict(name=case.name, group=case.group, problem="not run: the cases before it took their processes with them")


def _spoken(lines: Iterable[str] | None) -> Iterator[Verdict]:
    for line in lines or ():
        if line.startswith("{"):
            yield Verdict(**json.loads(line))


def _dead(case: Case, code: int, errors: TextIO) -> Verdict:
    errors.seek(0)
    last = errors.read().strip().splitlines()[-1:] or ["no word"]
    return Verdict(name=case.name, group=case.group, problem=f"the process ended with {code}: {last[0]}")


# ---- a worker
def work(arguments: Sequence[str]) -> int:
    """The cases of a share from a position on, a line of JSON for each. Ends after the first that has taken the context with it."""
    name, first, pattern, job, jobs, *emitted = arguments
    reference, device = Device.open(REFERENCE), Device.open(name)
    launch: Launcher = by_engine
    if emitted:
        from oxidecopy.conformance.emitted import by_emitted_code

        launch = by_emitted_code
    for case in cases(pattern, emitted=bool(emitted))[int(job) :: int(jobs)][int(first) :]:
        verdict = run_case(case, reference, device, launch)
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
