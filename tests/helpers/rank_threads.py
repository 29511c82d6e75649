"""Ranks: threads of one process, over numpy arrays, as a group that sends without a network; and what a process that is one runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import accumulate
from threading import Barrier, BrokenBarrierError
from typing import Any, TypeVar

import numpy as np

# What a process that is a rank runs: another script, and where it is when that takes too long: who waits for another rank says nothing.
RANK = """
import faulthandler, runpy, sys
faulthandler.dump_traceback_later(50, exit=True)
script, *sys.argv[1:] = sys.argv[1:]
runpy.run_path(script, run_name="__main__")
"""
T = TypeVar("T")
_SECONDS = 30


@dataclass
class Board:
    """What all ranks see."""

    barrier: Barrier
    posted: dict[int, Any] = field(default_factory=dict)


@dataclass
class Asked:
    """What a rank asked of its group: of how many elements, from each rank and to each rank."""

    kind: str
    dtype: str
    received: tuple[int, ...]
    given: tuple[int, ...]


@dataclass
class RankThread:
    """A rank; it gives and takes over the board."""

    rank: int
    size: int
    board: Board
    asked: list[Asked] = field(default_factory=list)

    def empty(self, shape: Sequence[int], like: Any, dtype: str = "") -> Any:
        return np.full(tuple(shape), 99, dtype or like.dtype)

    def _all(self, mine: T) -> list[T]:
        self.board.posted[self.rank] = mine
        self.board.barrier.wait(_SECONDS)
        found = [self.board.posted[rank] for rank in range(self.size)]
        self.board.barrier.wait(_SECONDS)
        return found

    def agree(self, numbers: Sequence[int]) -> list[list[int]]:
        self.asked.append(Asked("agree", "int64", (len(numbers),) * self.size, (len(numbers),) * self.size))
        said = self._all(list(numbers))
        assert len({len(each) for each in said}) == 1
        return said

    def exchange(self, out: Any, sent: Any, received: Sequence[int], given: Sequence[int]) -> None:
        self.asked.append(Asked("exchange", str(sent.dtype), tuple(received), tuple(given)))
        assert (len(out), len(sent), out.dtype) == (sum(received), sum(given), sent.dtype)
        pieces = []
        for flat, counts in self._all((sent, given)):
            end = list(accumulate(counts))[self.rank]
            pieces.append(flat[end - counts[self.rank] : end])
        assert [len(piece) for piece in pieces] == list(received)
        out[...] = np.concatenate(pieces)

    def stream(self, like: Any) -> int | None:
        return None


def on_ranks(size: int, work: Callable[[RankThread], T], kind: type[RankThread] = RankThread) -> list[T]:
    """What each rank's work gives."""
    board = Board(Barrier(size))

    def run(rank: int) -> T:
        try:
            return work(kind(rank, size, board))
        except BaseException:
            board.barrier.abort()
            raise

    with ThreadPoolExecutor(size) as pool:
        running = [pool.submit(run, rank) for rank in range(size)]
    problems = [problem for each in running if (problem := each.exception()) is not None]
    for problem in sorted(problems, key=lambda problem: isinstance(problem, BrokenBarrierError)):  # first what is not another rank's
        raise problem
    return [each.result() for each in running]
