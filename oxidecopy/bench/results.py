"""A run of a benchmark as data: how to measure it again, where it was measured, and its rows."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import oxidecopy as ox
from oxidecopy.bench.measure import Row, cpu_model, load


def result(command: str, rows: Sequence[Row], where: Mapping[str, object], *, complete: bool = True) -> dict[str, object]:
    """`where` are the facts of the machine; not `complete` while more rows are to come."""
    return {
        "command": command,
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "oxidecopy": ox.__version__,
        **where,
        **({} if complete else {"complete": False}),
        "passed": complete and all(row.passed for row in rows),
        "rows": [row.as_data() for row in rows],
    }


def this_cpu() -> dict[str, object]:
    """What decides about times of this process."""
    return {
        "cpu": cpu_model(),
        "platform": f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs",
        "load": load(),
        "python": platform.python_version(),
    }
