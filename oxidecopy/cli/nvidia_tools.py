"""What NVIDIA's own programs say: `nvidia-smi` of driver, GPUs and other processes, `nvcc` of the toolkit. A missing one says nothing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Final

_TIMEOUT_SECONDS: Final = 10
_RELEASE: Final = re.compile(r"release (\d+\.\d+)")


def driver_version() -> str:
    """The driver's own version, such as "580.82.07"."""
    rows = _query("gpu", "driver_version")
    return rows[0][0] if rows else ""


def used_bytes() -> dict[str, int]:
    """Memory in use on each GPU, by whoever it is; by bus id."""
    return {bus_id(row[0]): int(row[1]) << 20 for row in _query("gpu", "pci.bus_id", "memory.used") if row[1].isdecimal()}


def mig_modes() -> dict[str, str]:
    """Whether each GPU is split into instances: "Enabled", "Disabled"; by bus id."""
    return {bus_id(row[0]): row[1] for row in _query("gpu", "pci.bus_id", "mig.mode.current")}


def processes() -> dict[str, list[int]]:
    """Ids of the processes that compute on each GPU, this one left out; by bus id. From inside a container others do not show."""
    found: dict[str, list[int]] = defaultdict(list)
    for bus, process in _query("compute-apps", "gpu_bus_id", "pid"):
        if process.isdecimal() and int(process) != os.getpid():
            found[bus_id(bus)].append(int(process))
    return found


def bus_id(text: str) -> str:
    """Domain, bus and device as the driver API gives them: `00000000:1B:00.0` is `0000:1b:00`."""
    domain, _, rest = text.strip().lower().partition(":")
    return f"{int(domain, 16):04x}:{rest.partition('.')[0]}"


def toolkit() -> tuple[str, str]:
    """Version and place of the CUDA toolkit; two empty strings where there is none."""
    homes = [os.environ.get(name, "") for name in ("CUDA_HOME", "CUDA_PATH")]
    places = [shutil.which("nvcc"), *(shutil.which("nvcc", path=str(Path(home) / "bin")) for home in homes if home)]
    for place in filter(None, places):
        release = _RELEASE.search(_output(place, "--version"))
        if release:
            return release[1], place
    return "", ""


def _query(what: str, *fields: str) -> list[list[str]]:
    """Rows of as many cells as fields were asked for."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    lines = _output(tool, f"--query-{what}={','.join(fields)}", "--format=csv,noheader,nounits").splitlines()
    rows = [[cell.strip() for cell in line.split(",")] for line in lines]
    return [row for row in rows if len(row) == len(fields)]


def _output(*command: str) -> str:
    """What a program prints; nothing where it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_SECONDS, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return ""
    return done.stdout if done.returncode == 0 else ""
