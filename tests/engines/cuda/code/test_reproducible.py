"""Device code is the same in every process, whatever order sets of names have there."""

from __future__ import annotations

import os
import subprocess
import sys

_CODE = """
from hashlib import sha256
import oxidecopy as ox
from oxidecopy.conformance import carried, mixed, rings, tables
from oxidecopy.engines.cuda.code import encode_program
dev = ox.Device.open("sim-fast")
every = sha256()
for suite in (carried, mixed, rings, tables):
    for case in suite.cases():
        bound = case.make(dev).launch
        every.update(encode_program(bound.program, bound.launch).code)
print(every.hexdigest())
"""


def test_with_other_hashes() -> None:
    made = {
        subprocess.run(
            [sys.executable, "-c", _CODE], env=os.environ | {"PYTHONHASHSEED": seed}, check=True, capture_output=True, text=True
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(made) == 1
