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
@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Samples of one quantity.

    Attributes:
        unit: of samples and target.
        target: the bound on the median.
        better: whether the bound is from above or from below.
        of: what was measured, in words that let it be measured again.
    """

    what: str
    unit: str
    samples: tuple[float, ...]
    target: float
    better: Literal["lower", "higher"]
    of: str

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
        return self.median <= self.target if self.better == "lower" else self.median >= self.target

    @property
    def target_words(self) -> str:
        return f"{'<=' if self.better == 'lower' else '>='} {self.target:g} {self.unit}"

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
            "samples": [round(s, 3) for s in self.samples],
        }


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
