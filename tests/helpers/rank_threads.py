"""Ranks as threads of one process, over numpy arrays: a group that sends without a network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import accumulate
from threading import Barrier
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")
_SECONDS = 30


@dataclass
class Board:
    """What all ranks see."""

    barrier: Barrier
    posted: dict[int, Any] = field(default_factory=dict)


@dataclass
class RankThread:
    """A rank; it gives and takes over the board."""

    rank: int
    size: int
    board: Board

    def empty(self, shape: Sequence[int], like: Any, dtype: str = "") -> Any:
        return np.full(tuple(shape), 99, dtype or like.dtype)

    def _all(self, mine: T) -> list[T]:
        self.board.posted[self.rank] = mine
        self.board.barrier.wait(_SECONDS)
        found = [self.board.posted[rank] for rank in range(self.size)]
        self.board.barrier.wait(_SECONDS)
        return found

    def agree(self, numbers: Sequence[int]) -> list[list[int]]:
        said = self._all(list(numbers))
        assert len({len(each) for each in said}) == 1
        return said

    def exchange(self, out: Any, sent: Any, received: Sequence[int], given: Sequence[int]) -> None:
        pieces = []
        for flat, counts in self._all((sent, given)):
            end = list(accumulate(counts))[self.rank]
            pieces.append(flat[end - counts[self.rank] : end])
        assert [len(piece) for piece in pieces] == list(received)
        out[...] = np.concatenate(pieces)

    def stream(self, like: Any) -> int | None:
        return None


def on_ranks(size: int, work: Callable[[RankThread], T]) -> list[T]:
    """What each rank's work gives."""
    board = Board(Barrier(size))

    def run(rank: int) -> T:
        try:
            return work(RankThread(rank, size, board))
        except BaseException:
            board.barrier.abort()
            raise

    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(run, range(size)))
