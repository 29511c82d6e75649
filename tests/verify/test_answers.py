"""A wait that asks first: `done = try_wait(...)`, and a blocking wait only where that said no. Behind it the phase is over either way."""

from __future__ import annotations

import pytest

from oxidecopy.isa import expr
from oxidecopy.verify import inspect
from tests.engines.sim.harness import Rig
from tests.helpers.programs import Builder, add, div, mod, mul

BYTES = 8 * 32 * 4


def loaded(b: Builder) -> int:
    b.map(box=(8, 32), dims=(8, 32))
    b.array(shape=(8, 32))
    b.tile(shape=(8, 32))
    b.bar()
    b.init()
    with b.elect():
        token = b.arm(BYTES)
        b.g2s()
    return token


def rules(b: Builder) -> set[str]:
    """The verifier's, with which the simulator agrees."""
    found = {d.rule for d in inspect(b.program(), b.launch()).violations}
    runs = [Rig(b).explore(seed=seed) for seed in range(6)]
    assert all(r.outcome == "ok" and not r.findings for r in runs) or found
    return found


@pytest.mark.parametrize("form", ["token", "parity"])
@pytest.mark.parametrize("how", ["asks first", "no wait", "waits after a yes"])
def test_asked_first(form: str, how: str) -> None:
    b = Builder(grid=(1, 1, 1), threads=32)
    token = loaded(b)
    done = b.test_token(token, 0) if form == "token" else b.test_parity(0, 0)
    with b.when(done if how == "waits after a yes" else expr.Not(done)):
        if how == "no wait":
            b.fence()
        elif form == "token":
            b.wait(token)
        else:
            b.wait_phase(0)
    b.store((0, 0))
    b.sync()
    with b.elect():
        b.wait_phase(0)
    assert rules(b) == (set() if how == "asks first" else {"OX3040"})


def test_what_the_body_waits_for_must_be_what_was_asked() -> None:
    b = Builder(grid=(1, 1, 1), threads=32)
    token = loaded(b)
    b.bar("other")
    b.init(1)
    with b.elect():
        b.arrive(1)
    done = b.test_token(token, 0)
    with b.when(expr.Not(done)):
        b.wait_phase(0, bar=1)
    b.store((0, 0))
    b.sync()
    with b.elect():
        b.wait_phase(0)
    assert rules(b) == {"OX3040"}


def ring(trips: int, *, asks: bool = True) -> Builder:
    """Stages of a ring, taken by a consumer that asks before it waits, as main loops do."""
    b = Builder(grid=(1, 1, 1), threads=64)
    b.map(box=(8, 32), dims=(8 * trips, 32))
    b.array(shape=(8 * trips, 32))
    b.tile(shape=(8, 32), stages=2)
    b.bar("full", 2)
    b.bar("empty", 2)
    b.init(0)
    b.init(1)
    with b.elect(0), b.loop(trips) as i:
        stage = mod(i, 2)
        b.wait_phase(add(div(i, 2), -1), bar=1, i=stage)
        b.arm(BYTES, i=stage)
        b.g2s((mul(i, 8), 0), stage=stage, i=stage)
    with b.elect(32), b.loop(trips) as i:
        stage = mod(i, 2)
        done = b.test_parity(mod(div(i, 2), 2), 0, i=stage)
        with b.when(expr.Not(done)):
            if asks:
                b.wait_parity(mod(div(i, 2), 2), i=stage)
        b.store((mul(i, 8), 0), stage=stage)
        b.arrive(1, stage)
    return b


@pytest.mark.parametrize("trips", [1, 2, 7, 64])
def test_a_ring_that_asks_first(trips: int) -> None:
    assert rules(ring(trips)) == set()


def test_a_ring_that_asks_and_does_not_wait() -> None:
    assert "OX3040" in rules(ring(8, asks=False))
