"""Seeds: the same one gives the same run, different ones differ, and race-free programs do not notice."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oxidecopy.engines.sim import Exploration
from oxidecopy.isa import ops
from tests.engines.sim.harness import Rig
from tests.engines.sim.test_clocks import loading, multicast
from tests.engines.sim.test_lowering import ring
from tests.helpers.programs import Builder

TILE = 64 * 64 * 4
ONES = np.ones((256, 256), np.float32)


def racy_load() -> Builder:
    b = loading(wait=False)
    b.store()
    return b


def racy_store() -> Builder:
    """The tile is written again while the store reads it."""
    b = Builder(grid=(1, 1, 1), threads=1)
    b.map(dims=(64, 64))
    b.tile()
    b.fill()
    b.fence()
    b.s2g()
    b.commit()
    b.op(ops.Fill(tile=b.ref(0), value=7))
    b.wait_group()
    return b


def run(make: Callable[[], Builder], name: str, seed: int) -> tuple[Exploration, bytes]:
    rig = Rig(make())
    rig.put("src", ONES)
    result = rig.explore(seed=seed)
    return result, rig.engine.read(rig.buffers[name], 0, rig.buffers[name].nbytes)


@given(st.integers(0, 1 << 32))
def test_a_seed_names_a_run(seed: int) -> None:
    for make, name in ((racy_load, "out"), (racy_store, "src"), (multicast, "out")):
        assert run(make, name, seed) == run(make, name, seed)


@pytest.mark.parametrize(("make", "name"), [(racy_load, "out"), (racy_store, "src")])
def test_races_show_in_the_bytes_on_some_schedules(make: Callable[[], Builder], name: str) -> None:
    assert len({run(make, name, seed)[1] for seed in range(30)}) > 2  # before, after, and in portions


@given(st.integers(0, 1 << 32))
def test_race_free_programs_give_the_same_bytes(seed: int) -> None:
    rig = Rig(ring(5, 2))
    x = np.arange(16 * 160, dtype=np.float32).reshape(16, 160)
    rig.put("src", x)
    result = rig.explore(seed=seed)
    assert (result.outcome, result.findings) == ("ok", ())
    assert (rig.get("dst", "f32", x.shape) == x).all()


def test_wait_group_read_is_less_than_wait_group() -> None:
    """After .read only, a load of the stored bytes may still see the old ones."""
    seen = set()
    for read in (True, False):
        for seed in range(40):
            b = Builder(grid=(1, 1, 1), threads=1)
            b.map(box=(1, 4), dims=(1, 4))
            b.array(shape=(1, 4))
            b.tile(shape=(1, 4))
            b.tile("back", shape=(1, 4))
            b.bar()
            b.init(sync=False)
            b.fill()
            b.fence()
            b.s2g()
            b.commit()
            if read:
                b.wait_read()
            else:
                b.wait_group()
            token = b.arm(16)
            b.g2s(tile=1)
            b.wait(token)
            b.store((0, 0), tile=1)
            b.wait_group()
            rig = Rig(b)
            rig.put("src", np.ones((1, 4), np.float32))
            assert rig.explore(seed=seed).outcome == "ok"
            seen.add((read, float(rig.get("out", "f32", (1, 4))[0, 0])))
    assert seen == {(True, 1.0), (True, 0.0), (False, 0.0)}


def test_under_announced_bytes_end_the_phase_early_on_some_schedules() -> None:
    outcomes = set()
    for seed in range(60):
        b = loading(nbytes=TILE // 2)
        b.store()
        outcomes.add(Rig(b).explore(seed=seed).outcome)
    assert outcomes <= {"ok", "deadlock"}
    assert "deadlock" in outcomes
