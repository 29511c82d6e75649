"""Emitted sources run, on a CPU (see `cuda_on_cpu.py`): the bytes that they leave are those of the simulator, under any order of threads.

`EMIT_ON_CPU=1` runs every lesson and each of the conformance programs; it takes about an hour.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

import oxidecopy as ox
from oxidecopy.conformance.run import cases
from oxidecopy.engines.sim.memory import SimBuffer
from oxidecopy.host.bound import BoundLaunch
from tests.helpers import cuda_on_cpu

EVERYTHING = "EMIT_ON_CPU" in os.environ
CHOSEN = (
    "01_load: everyone_arrives",
    "03_reduce: combine",
    "07_cluster: twice",
    "12_multicast_ring: twice",
    "14_halo: windows",
    "15_counter: copy",
    "15_counter: scale",
    "cast f64 to e4m3",
    "cast i64 to bf16",
    "map f16 div",
    "unload i32 4-D",
)
pytestmark = pytest.mark.skipif(cuda_on_cpu.GXX is None, reason="g++ is not installed")
CASES = [c for c in cases() if EVERYTHING or c.name in CHOSEN]


def buffers(launch: BoundLaunch) -> list[SimBuffer]:
    found = [b.buffer for b in launch.bindings.maps.values()] + [b.buffer for b in launch.bindings.arrays.values()]
    return list({id(b): b for b in found if isinstance(b, SimBuffer)}.values())


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.group}: {c.name}")
def test_the_bytes_are_those_of_the_simulator(case: Any) -> None:
    launch = case.make(ox.Device.open("sim-fast")).launch
    memory = buffers(launch)
    before = [b.data.copy() for b in memory]
    launch()
    wanted = [b.data.copy() for b in memory]
    run = cuda_on_cpu.prepared(launch.verify(), launch.bindings, memory[0].memory)
    for seed in range(2):
        for buffer, data in zip(memory, before, strict=True):
            buffer.data[:] = data
        run(seed)
        assert all((b.data == w).all() for b, w in zip(memory, wanted, strict=True))
