"""Hangs on a GPU: the watchdog's report is that of the simulator. `python -m tests.gpu.test_deadlocks FILE` keeps the reports."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from oxidecopy.engines.base import Bindings, BoundArray, BoundMap
from oxidecopy.engines.cuda.engine import CudaEngine
from oxidecopy.errors import DeadlockError
from oxidecopy.program.deadlock import Deadlock
from oxidecopy.program.verified import Assumptions, seal
from tests.engines.sim.harness import Rig
from tests.helpers.deadlocks import BARRIERS, Make, explanation, seen_by_a_gpu

pytestmark = pytest.mark.gpu
LIMIT_US = 100_000


def on_gpu(engine: CudaEngine, make: Make) -> Deadlock:
    """What the watchdog says of a program that nobody has verified."""
    b = make()
    maps = {name: BoundMap(map=tensor, buffer=engine.allocate(1 << 16)) for name, tensor in b.maps.items()}
    arrays = {name: BoundArray(info=info, buffer=engine.allocate(1 << 16)) for name, info in b.arrays.items()}
    bindings = Bindings(grid=b.grid, maps=maps, arrays=arrays, idx=b.idx, scalars={})
    program = b.program()
    assumed = Assumptions(sm=engine.sm, shared_bytes=program.shared_bytes, launch=bindings.launch(engine.sm))
    try:
        engine.run(seal(program, assumed, ()), bindings)
    except DeadlockError as error:
        return explanation(error.diagnostics)
    raise AssertionError(f"{make.__name__} did not hang")


def on_simulator(make: Make) -> Deadlock:
    return explanation(Rig(make()).explore().diagnostics)


@pytest.fixture(scope="module")
def engine() -> CudaEngine:
    return CudaEngine(0, limit_us=LIMIT_US)


@pytest.mark.parametrize("make", BARRIERS, ids=lambda make: make.__name__)
def test_the_report_is_that_of_the_simulator(engine: CudaEngine, make: Make) -> None:
    if engine.sm != 90:
        pytest.skip("the layout of a barrier's word is known for compute capability 9.0")
    assert seen_by_a_gpu(on_gpu(engine, make)) == seen_by_a_gpu(on_simulator(make))


def main(path: str) -> None:
    """Runs them all and writes what was said."""
    engine = CudaEngine(0, limit_us=LIMIT_US)
    rows = []
    for make in BARRIERS:
        told, wanted = on_gpu(engine, make), on_simulator(make)
        agree = seen_by_a_gpu(told) == seen_by_a_gpu(wanted)
        rows.append(
            {"program": make.__name__, "agrees": agree, "gpu": told.as_json(), "lines": told.lines(), "simulator": wanted.as_json()}
        )
    data = {"device": "H200", "agree": sum(row["agrees"] is True for row in rows), "of": len(rows), "reports": rows}
    Path(path).write_text(json.dumps(data, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
