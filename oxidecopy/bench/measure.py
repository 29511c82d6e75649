"""One measured quantity against its target, and where it was measured."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import process_time
from typing import Literal, final


@final
@dataclass(frozen=True, slots=True)
class Floor:
    """What bounds a quantity from the other side: the speed of the memory, of a copy, of the bare call.

    Attributes:
        of: its name.
        share: how near to it the median is; 1 is at the floor.
    """

    of: str
    share: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Samples of one quantity.

    Attributes:
        unit: of samples and target.
        target: the bound on the median; None where nothing is asked.
        better: whether the bound is from above or from below.
        of: what was measured, in words that let it be measured again.
        floor: what could be reached at all, where that is known.
    """

    what: str
    unit: str
    samples: tuple[float, ...]
    target: float | None
    better: Literal["lower", "higher"]
    of: str
    floor: Floor | None = None

    @property
    def median(self) -> float:
        return median(self.samples)

    @property
    def least(self) -> float:
        return min(self.samples)

    @property
    def most(self) -> float:
        return max(self.samples)

    @property
    def passed(self) -> bool:
        """The median is within the target."""
        if self.target is None:
            return True
        return self.median <= self.target if self.better == "lower" else self.median >= self.target

    @property
    def share(self) -> float | None:
        """Of the floor, where there is one."""
        return None if self.floor is None else self.floor.share

    @property
    def cells(self) -> tuple[str, str, str]:
        """Median, range and target in words."""
        target = "" if self.target is None else f"{'<=' if self.better == 'lower' else '>='} {self.target:g} {self.unit}"
        return f"{self._figure(self.median)} {self.unit}", f"{self._figure(self.least)} to {self._figure(self.most)}", target

    @property
    def verdict(self) -> Literal["OK", "MISSED", ""]:
        return "" if self.target is None else "OK" if self.passed else "MISSED"

    def _figure(self, value: float) -> str:
        return f"{value:.3f}" if self.unit == "x" else f"{value:,.1f}"

    def as_data(self) -> dict[str, object]:
        return {
            "what": self.what,
            "of": self.of,
            "unit": self.unit,
            "median": round(self.median, 3),
            "min": round(self.least, 3),
            "max": round(self.most, 3),
            "target": self.target,
            "better": self.better,
            "passed": self.passed,
            **({} if self.floor is None else {"floor": self.floor.of, "of_floor": round(self.floor.share, 3)}),
            "samples": [round(s, 3) for s in self.samples],
        }


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Absent:
    """A row that could not be measured here: a peer that is not installed, or failed; or what of ours is not as it should be.

    Attributes:
        why: in words.
        of: what would have been measured.
        ours: it is this version's fault.
    """

    what: str
    why: str
    of: str
    ours: bool = False

    @property
    def passed(self) -> bool:
        """Of a peer nothing is known, so nothing is missed."""
        return not self.ours

    @property
    def share(self) -> None:
        return None

    @property
    def cells(self) -> tuple[str, str, str]:
        return self.why, "", ""

    @property
    def verdict(self) -> Literal["-", "FAILED"]:
        return "FAILED" if self.ours else "-"

    def as_data(self) -> dict[str, object]:
        return {"what": self.what, "of": self.of, "absent": self.why, "passed": self.passed}


Row = Measured | Absent


def seconds(call: Callable[[], object]) -> float:
    """CPU time of one call: what else the machine does counts for less than on the clock."""
    start = process_time()
    call()
    return process_time() - start


@contextmanager
def one_core() -> Iterator[None]:
    """Keeps this process on one CPU, where the system can."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def cpu_model() -> str:
    """The processor's own name where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def load() -> float | None:
    """Processes that wanted a CPU over the last minute, on average; None where the system does not say."""
    try:
        return round(os.getloadavg()[0], 2)
    except (AttributeError, OSError):
        return None
