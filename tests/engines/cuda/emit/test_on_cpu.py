"""Emitted sources run, on a CPU (see `cuda_on_cpu.py`): the bytes that they leave are those of the simulator, under any order of threads.

`EMIT_ON_CPU=1` runs every lesson and each of the conformance programs; it takes about an hour.
"""

from __future__ import annotations

import os
from itertools import count, islice
from typing import Any, get_args

import pytest

import oxidecopy as ox
from oxidecopy.conformance.run import cases
from oxidecopy.engines.base import Bindings
from oxidecopy.engines.sim import SimEngine
from oxidecopy.engines.sim.memory import SimBuffer
from oxidecopy.fuzz.pipelines import pipeline
from oxidecopy.host.bound import BoundLaunch
from oxidecopy.isa import ops
from oxidecopy.program.program import Launch
from oxidecopy.program.text import from_text
from oxidecopy.verify import verify
from tests.helpers import cuda_on_cpu

PIPELINES = int(os.environ.get("EMIT_PIPELINES", "4"))
EVERYTHING = "EMIT_ON_CPU" in os.environ
CHOSEN = (
    "01_load: everyone_arrives",
    "03_reduce: combine",
    "07_cluster: twice",
    "12_multicast_ring: twice",
    "14_halo: windows",
    "15_counter: copy",
    "15_counter: scale",
    "read from a list, five",
    "its extents, five",
    "tiles of a counter, five",
    "cast f64 to e4m3",
    "cast i64 to bf16",
    "map f16 div",
    "transpose f16 32 by 16 swizzled",
    "sum of bf16 axis 1 kept",
    "max of f16 axis 0 bits",
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


UNEVEN = """\
program p threads=64 cluster=(1, 1, 1) shared=256:
  tile s: f32 (32) align=1024 at=0 step=128
  barrier b: GeneralBarrier stages=2 at=128
  scope thread {0}:
    loop m, start=0, stop=2, step=1:
      mbarrier.init b[m], count=1
  bar.sync number=0, threads=64
  loop k, start=0, stop=12, step=1:
    scope thread {3}:
      mbarrier.arrive b[max(1 - k, 0)] -> %1
    when 0 < k:
      scope thread {4}:
        mbarrier.wait b[max(1 - k, 0)], %1
        st.shared.fill s, 1
    bar.sync number=0, threads=64
  loop j, start=0, stop=1, step=1:
    scope thread {4}:
      mbarrier.wait b[1], %1
      st.shared.fill s, 1
"""


def test_tokens_of_a_barrier_are_kept_whatever_others_of_its_array_do() -> None:
    program, launch = from_text(UNEVEN), Launch(grid=(1, 1, 1))
    engine = SimEngine(hazards=False)
    cuda_on_cpu.prepared(verify(program, launch), Bindings(grid=launch.grid, maps={}, arrays={}, idx={}, scalars={}), engine._memory)(1)


# What the model of PTX on a CPU does not have: copies without a map, hints, offsets, prefetches, gathers.
UNKNOWN = (*get_args(ops.BulkCopy), *get_args(ops.Send), *get_args(ops.Prefetch), ops.TensorGather4, ops.TensorScatter4)


def known(seed: int) -> bool:
    program = pipeline(seed).program
    plain = all(m.mode == "tile" and m.entries is None for m in program.maps.values())
    return plain and not any(isinstance(s.op, UNKNOWN) or getattr(s.op, "hint", None) for s in program.walk())


@pytest.mark.parametrize("seed", list(islice((s for s in count() if known(s)), PIPELINES)))
def test_random_pipelines(seed: int) -> None:
    """Most leave the bytes that numpy says, whatever the order; those that ask a barrier now and then do not."""
    case = pipeline(seed)
    if any(isinstance(s.op, ops.MbarrierTestToken | ops.MbarrierTestParity) for s in case.program.walk()):
        pytest.skip("stores hang on the answers of tests")
    engine = SimEngine(hazards=False)
    bindings, memory = case.on(engine)
    cuda_on_cpu.prepared(verify(case.program, case.launch()), bindings, engine._memory)(seed)
    for name, wanted in case.expected.items():
        assert (case.memory[name].view(bytearray(case.contents(engine, memory)[name])) == wanted).all()
