"""The measured vectors on the GPU of today, every section whole, by the engine that users' programs run on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from oxidecopy.host.device import Device
from tests.helpers.gpu_vectors import FILES, rows

pytestmark = pytest.mark.gpu
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("section", FILES)
def test_section(dev: Device, section: str) -> None:
    if dev.sm != 90:
        pytest.skip("measured on compute capability 9.0")
    # A process of its own: it forks, which a process that has used the driver must not.
    command = [sys.executable, "-m", "tests.helpers.gpu_vectors", section]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    told = json.loads(done.stdout)[section] if done.stdout else {}
    assert told.get("problems") == [], done.stderr
    assert told["rows"] == len(rows(section))
