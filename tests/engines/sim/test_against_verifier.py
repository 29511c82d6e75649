"""Two oracles that know nothing of each other: what the verifier accepts is clean on every schedule, what it refuses is noticed on each.

The programs are correct ones, all their twins with one step left out, and random ones.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from oxidecopy.engines.sim import explore
from oxidecopy.errors import VerificationError
from oxidecopy.program.program import Program, Step
from oxidecopy.verify import verify
from tests.engines.sim import test_clocks as small
from tests.engines.sim import test_lowering as large
from tests.engines.sim.harness import Rig
from tests.helpers.programs import RANK, Builder, add, div, eq, lt, mod, mul

SEEDS = 6


def everyone() -> Builder:
    """All threads arrive, in a loop."""
    b = Builder(grid=(1, 1, 1), threads=64)
    b.map(box=(4, 32), dims=(8, 64))
    b.array(shape=(8, 64))
    b.tile(shape=(4, 32))
    b.bar()
    b.init(count=64)
    with b.loop(3):
        with b.elect():
            first = b.arm(512)
            b.g2s()
        with b.others():
            rest = b.arrive()
        b.wait(first, rest)
        b.store()
        b.sync()
    b.inval()
    return b


def slices() -> Builder:
    """Four CTAs load one tile together, twice."""
    n = 4
    b = Builder(grid=(n, 1, 1), cluster=(n, 1, 1), threads=32)
    b.map(box=(2, 32), dims=(8, 32))
    b.array(shape=(32, 32))
    b.tile(shape=(8, 32))
    b.bar()
    b.init()
    b.cluster_sync()
    for _ in range(2):
        with b.elect():
            token = b.arm(8 * 32 * 4)
            b.multicast(15, (mul(RANK, 2), 0), part=RANK, of=n)
        b.wait(token)
        b.store((mul(RANK, 8), 0))
        b.cluster_sync()
    return b


def staged_stores() -> Builder:
    """Two stages, one store in flight behind the fill of the other."""
    b = Builder(grid=(1, 1, 1))
    b.map()
    b.tile(stages=2)
    with b.loop(4) as i:
        b.fill(stage=mod(i, 2))
        b.fence()
        b.sync()
        with b.elect():
            b.s2g(stage=mod(i, 2))
            b.commit()
            b.wait_read(1)
        b.sync()
    with b.elect():
        b.wait_group()
    return b


def remote_ring() -> Builder:
    """CTA 0 loads into both CTAs; the consumers of both release a stage by an arrival in CTA 0."""
    b = Builder(grid=(2, 1, 1), cluster=(2, 1, 1), threads=64)
    b.map(box=(4, 32), dims=(8, 64))
    b.array(shape=(8, 64))
    b.tile(shape=(4, 32), stages=2)
    b.bar("full", 2)
    b.bar("empty", 2)
    b.init(0)
    b.init(1, count=2)
    b.cluster_sync()
    with b.elect(0), b.loop(5) as i:
        stage, turn = mod(i, 2), div(i, 2)
        with b.when(eq(RANK, 0)):
            b.wait_phase(add(turn, -1), bar=1, i=stage)
        with b.when(lt(0, RANK)):
            b.wait_phase(add(turn, -1), bar=0, i=stage)
        b.arm(512, bar=0, i=stage)
        with b.when(eq(RANK, 0)):
            b.multicast(3, stage=stage, bar=0, i=stage)
    with b.elect(32), b.loop(5) as i:
        stage = mod(i, 2)
        b.wait_phase(div(i, 2), bar=0, i=stage)
        b.store(stage=stage)
        b.arrive_remote(0, bar=1, i=stage)
    b.cluster_sync()
    return b


CORRECT: dict[str, Callable[[], Builder]] = {
    "load": small.loading,
    "multicast": small.multicast,
    "ring of 3": lambda: large.ring(7, 3),
    "ring of 1": lambda: large.ring(5, 1),
    "everyone arrives": everyone,
    "slices": slices,
    "staged stores": staged_stores,
    "remote ring": remote_ring,
}


def without_one(steps: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    """Every way to leave one step (with its body) out."""
    for i, step in enumerate(steps):
        yield steps[:i] + steps[i + 1 :]
        for body in without_one(step.body):
            yield (*steps[:i], replace(step, body=body), *steps[i + 1 :])


def accepted(b: Builder, program: Program) -> bool:
    try:
        verify(program, b.launch())
    except VerificationError:
        return False
    return True


def clean_runs(b: Builder, program: Program) -> int:
    """On how many of `SEEDS` schedules nothing is wrong."""
    clean = 0
    for seed in range(SEEDS):
        result = explore(program, Rig(b).bindings(), seed=seed, max_steps=100_000)
        clean += result.outcome == "ok" and not result.findings
    return clean


@pytest.mark.parametrize("name", CORRECT)
def test_correct_programs_and_all_their_broken_twins(name: str) -> None:
    b = CORRECT[name]()
    program = b.program()
    assert accepted(b, program)
    assert clean_runs(b, program) == SEEDS
    refused = 0
    for steps in without_one(program.steps):
        twin = replace(program, steps=steps)
        good = accepted(b, twin)
        refused += not good
        assert clean_runs(b, twin) == (SEEDS if good else 0), steps
    assert refused


def test_random_programs() -> None:
    verdicts = []
    for seed in range(150):
        b = random_program(random.Random(seed))
        good = accepted(b, b.program())
        verdicts.append(good)
        assert clean_runs(b, b.program()) == (SEEDS if good else 0), seed
    assert 10 < sum(verdicts) < 140


def random_program(r: random.Random) -> Builder:
    """One CTA that loads, fills, stores, fences and syncs on two tiles, as chance has it."""
    b = Builder(grid=(1, 1, 1), threads=r.choice([1, 32, 64]))
    b.map(box=(4, 32), dims=(8, 64))
    b.array(shape=(8, 64))
    b.tile(shape=(4, 32), stages=2)
    b.bar()
    b.init()
    for _ in range(r.randrange(3, 12)):
        _random_step(b, r)
    with b.elect():
        b.wait_group()
    return b


def _random_step(b: Builder, r: random.Random) -> None:
    stage, careful = r.randrange(2), r.random() < 0.9
    kinds: list[Callable[[], None]] = [
        b.sync,
        b.sync,
        b.fence,
        b.fence,
        lambda: b.fill(stage=stage),
        lambda: b.store(stage=stage),
        lambda: _fill_by_one(b, stage),
        lambda: _load(b, stage, wait=careful),
        lambda: _store(b, stage, wait=careful),
    ]
    r.choice(kinds)()


def _fill_by_one(b: Builder, stage: int) -> None:
    with b.elect():
        b.fill(stage=stage)


def _load(b: Builder, stage: int, *, wait: bool) -> None:
    with b.elect():
        token = b.arm(512)
        b.g2s(stage=stage)
    if wait:
        b.wait(token)


def _store(b: Builder, stage: int, *, wait: bool) -> None:
    with b.elect():
        b.s2g(stage=stage)
        b.commit()
        if wait:
            b.wait_read()
