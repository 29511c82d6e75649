"""The measured table: how fast each way to copy was on the GPU that it was measured on, and which one is taken for an array."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

from oxidecopy.isa import limits
from oxidecopy.oneliners.pipelines import SHARED_SM, Schedule

_BOXES_PER_SM: Final = 2  # at least, before smaller boxes are taken: with fewer some multiprocessors would wait for the others
WAYS_TUNED: Final = 8  # the fastest ones of the table, which are measured where that is asked for
_SMALLEST: Final = 2 << 10  # bytes; smaller boxes were slower in every way


class Way(NamedTuple):
    """One way to copy boxes.

    Attributes:
        schedule: a CTA for each box, or CTAs that stay and take boxes by a counter or by a fixed order.
        rank: of the array that it was measured with.
        box_bytes: of a box.
        stages: of the ring; 0 for one-shot.
        per_sm: CTAs of a multiprocessor; 0 for as many as fit.
        tb_s: measured, 10^12 bytes read and written per second; 0 where nothing was.
        of_memcpy: of the driver's own copy in the same run.
    """

    schedule: Schedule
    rank: int
    box_bytes: int
    stages: int
    per_sm: int
    tb_s: float = 0.0
    of_memcpy: float = 0.0

    @property
    def words(self) -> str:
        """Schedule, stages and CTAs in words."""
        boxes = f"boxes of {self.box_bytes >> 10} KiB" if self.box_bytes >= 1 << 10 else f"boxes of {self.box_bytes} bytes"
        if self.schedule == "one-shot":
            return f"one-shot, {boxes}, {self.per_sm or 'as many as fit'} at once on a multiprocessor"
        return f"{self.schedule}, {boxes}, {self.stages} stages, {self.per_sm} CTAs for each multiprocessor"


class Measured(NamedTuple):
    """The table, fastest first, and what it is of."""

    source: str
    device: str
    ways: tuple[Way, ...]


@cache
def measured() -> Measured:
    """The table of this version."""
    data: dict[str, Any] = json.loads(files(__package__).joinpath("measured.json").read_text(encoding="utf-8"))
    ways = sorted((Way(*row) for row in data["rows"]), key=lambda way: -way.tb_s)
    return Measured(data["source"], data["measured"], tuple(ways))


def ways_for(rank: int, nbytes: int, sms: int) -> tuple[Way, ...]:
    """The ways for an array of `nbytes` bytes, fastest first: of its rank, with boxes of which there are enough for all multiprocessors.

    An array that is too small for any has those with the smallest boxes.
    """
    known = [w for w in measured().ways if w.rank == min(max(rank, 1), limits.MAX_RANK) and w.stages * w.box_bytes * w.per_sm <= SHARED_SM]
    large = [w for w in known if w.box_bytes >= _SMALLEST] or known
    fitting = [w for w in large if w.box_bytes * sms * _BOXES_PER_SM <= nbytes]
    smallest = min(w.box_bytes for w in large)
    return tuple(fitting or [w for w in large if w.box_bytes == smallest])
