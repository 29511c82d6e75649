"""Many programs, judged in processes of their own: seeds in, counts out. The same seeds give the same programs and the same verdicts."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import count
from subprocess import PIPE, Popen
from time import monotonic
from typing import Final

from oxidecopy.fuzz.case import Case
from oxidecopy.fuzz.judge import judge
from oxidecopy.fuzz.mutants import mutant
from oxidecopy.fuzz.pipelines import pipeline
from oxidecopy.fuzz.shrink import shrunk
from oxidecopy.fuzz.tally import Tally

MUTANTS: Final = 7  # of each pipeline
GOOD_SEEDS: Final = range(2)  # schedules of an accepted program beside the plain one
BAD_SEEDS: Final = range(12)
EXHAUSTIVE: Final = 32  # of so many seeds one has its programs judged under every schedule
_FOREVER: Final = 1e9


def programs(seed: int, mutants: int = MUTANTS) -> Iterator[tuple[int, Case]]:
    """The pipeline of a seed, number 0, and its mutants, from 1 on; those that mean nothing are left out."""
    case = pipeline(seed)
    yield 0, case
    for number in range(1, mutants + 1):
        made = mutant(case, seed, number)
        if made is not None:
            yield number, made


_pipeline = lru_cache(maxsize=1)(pipeline)  # the mutants of one seed are asked for one after the other


def program(seed: int, number: int) -> Case:
    """One of them."""
    case = _pipeline(seed)
    made = mutant(case, seed, number) if number else case
    if made is None:
        raise ValueError(f"mutant {number} of seed {seed} is no program")
    return made


def judge_seeds(seeds: Sequence[int] | Iterator[int], most: int, seconds: float, *, mutants: int = MUTANTS, shrink: bool = False) -> Tally:
    """Programs of these seeds, until `most` of them or the time is over."""
    tally, end = Tally(), monotonic() + seconds
    for seed in seeds:
        for number, case in programs(seed, mutants):
            if tally.numbers["programs"] >= most or monotonic() > end:
                return tally
            _judge(tally, case, seed, number, shrink=shrink)
        tally.numbers["seeds"] += 1
    return tally


def _judge(tally: Tally, case: Case, seed: int, number: int, *, shrink: bool) -> None:
    verdict = judge(case, good_seeds=GOOD_SEEDS, bad_seeds=BAD_SEEDS, exhaustive=seed % EXHAUSTIVE == 0)
    tally.describe(case)
    before = len(tally.problems)
    tally.judged(case, verdict, seed, number)
    if shrink and len(tally.problems) > before and verdict.problem:
        found = tally.problems.pop()

        def alike(smaller: Case) -> bool:
            other = judge(smaller, good_seeds=GOOD_SEEDS, bad_seeds=BAD_SEEDS, exhaustive=bool(verdict.exhaustive))
            return (other.accepted, other.rules) == (verdict.accepted, verdict.rules) and bool(other.problem)

        small = shrunk(case, alike)
        tally.problem(small, found["problem"], seed, number, verdict.rules, verdict.detail)


def run_jobs(jobs: int, first: int, most: int, seconds: float = _FOREVER, *, mutants: int = MUTANTS, shrink: bool = False) -> Tally:
    """The same by `jobs` processes, each with every `jobs`-th seed from `first` on and its share of `most`."""
    shares = [most // jobs + (job < most % jobs) for job in range(jobs)]
    commands = [
        [sys.executable, "-m", "oxidecopy.fuzz.campaign", *map(str, (first + job, jobs, share, seconds, mutants, int(shrink)))]
        for job, share in enumerate(shares)
    ]
    total = Tally()
    workers = [Popen(command, stdout=PIPE, text=True) for command in commands]
    for command, worker in zip(commands, workers, strict=True):
        said, _ = worker.communicate()
        if worker.returncode:
            raise RuntimeError(f"a worker ended with {worker.returncode}: {' '.join(command)}")
        total.add(Tally.of(json.loads(said)))
    return total


def main(arguments: Sequence[str]) -> int:
    """A worker: first seed, step, programs, seconds, mutants, shrink."""
    first, step, most, seconds, mutants, shrink = arguments
    tally = judge_seeds(count(int(first), int(step)), int(most), float(seconds), mutants=int(mutants), shrink=shrink == "1")
    json.dump(tally.as_data(), sys.stdout)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
