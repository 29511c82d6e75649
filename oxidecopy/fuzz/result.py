"""The result of a campaign as a file: what was run, where, and all counts."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from oxidecopy._version import __version__
from oxidecopy.fuzz.campaign import BAD_SEEDS, GOOD_SEEDS
from oxidecopy.fuzz.judge import NOT_SHOWN
from oxidecopy.fuzz.tally import Tally


def _commit() -> str:
    """Of the checkout that this is; empty where it is installed."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return ""
    done = subprocess.run(["git", "-C", str(root), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def as_data(tally: Tally, command: str, judges: str, device: str, seconds: float) -> dict[str, Any]:
    """The counts, with what is needed to run them again and why some refusals were not shown."""
    return {
        "command": command,
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "oxidecopy": __version__,
        "commit": _commit(),
        "judges": judges,
        "device": device,
        "cpu": f"{platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "seconds": round(seconds, 1),
        "schedules": {"accepted": 1 + len(GOOD_SEEDS), "refused": len(BAD_SEEDS)},
        "disagreements": len(tally.problems),
        **tally.as_data(),
        "not_shown": {rule: NOT_SHOWN[rule] for rule in sorted(tally.unshown) if rule in NOT_SHOWN},
    }
