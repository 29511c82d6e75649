"""Random programs so small that all their schedules can be tried: mostly broken ones, of few steps, agents and bytes."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from oxidecopy.isa import ops
from oxidecopy.isa.expr import Const
from oxidecopy.isa.ops import BarrierRef
from tests.helpers.programs import RANK, Builder, eq

BYTES = 32  # of a tile: two granules


def small_program(seed: int, steps: int = 9) -> Builder:
    """The program of a seed: one or two CTAs, two or three classes of threads, two barriers, a tile of two stages."""
    r = Random(seed)
    cluster = r.random() < 0.3
    b = Builder(grid=(2, 1, 1) if cluster else (1, 1, 1), cluster=(2, 1, 1) if cluster else (1, 1, 1), threads=r.choice((1, 2, 2, 3)))
    b.map(box=(2, 4), dims=(4, 8))
    b.array(shape=(4, 4))
    b.tile(shape=(2, 4), stages=2)
    b.bar("left")
    b.bar("right")
    b.init(0, count=r.choice((1, 1, 1, 2)), sync=False)
    b.init(1, count=r.choice((1, 1, b.threads)), sync=r.random() < 0.9)
    if cluster and r.random() < 0.8:
        b.cluster_sync()
    for _ in range(r.randrange(2, 4) if not cluster else 2):
        some = r.choice(("one", "one", "other", "all", "rank")) if cluster else r.choice(("one", "other", "other", "all"))
        count = r.randrange(1, max(steps // 3, 2))
        if some == "all":
            _steps(b, r, min(count, 2), cluster=cluster)
        elif some == "rank":
            with b.when(eq(RANK, r.randrange(2))):
                _steps(b, r, count, cluster=cluster)
        else:
            with b.elect(0 if some == "one" else b.threads - 1):
                if r.random() < 0.15:
                    with b.loop(2):
                        _steps(b, r, min(count, 2), cluster=cluster)
                else:
                    _steps(b, r, count, cluster=cluster)
    if r.random() < 0.5:
        b.sync()
    if cluster and r.random() < 0.7:
        b.cluster_sync()
    return b


def _load(b: Builder, nbytes: int, bar: int, stage: int, *, late: bool = False, everywhere: bool = False) -> None:
    if not late:
        b.arm(nbytes, bar)
    if everywhere:
        b.multicast(3, stage=stage, bar=bar)
    else:
        b.g2s(stage=stage, bar=bar)
    if late:
        b.arm(nbytes, bar)


def _store(b: Builder, stage: int, op: str) -> None:
    if op:
        b.reduce(op, (0, 4))
    else:
        b.s2g((2 * stage, 4), stage=stage)
    b.commit()


def _fenced(b: Builder) -> None:
    b.fence()
    b.sync()


def _steps(b: Builder, r: Random, count: int, *, cluster: bool) -> None:
    for _ in range(count):
        _step(b, r, cluster=cluster)


def _step(b: Builder, r: Random, *, cluster: bool) -> None:
    bar, stage, phase = r.randrange(2), r.randrange(2), r.choice((0, 0, 0, 1, 2, -1))
    kinds: list[Callable[[], object]] = [
        lambda: b.arrive(bar),
        lambda: b.wait_phase(phase, bar=bar),
        lambda: b.wait_phase(phase, bar=bar),
        lambda: _load(b, BYTES, bar, stage),
        lambda: _load(b, r.choice((BYTES, 16, 48)), bar, stage),
        lambda: _load(b, BYTES, bar, stage, late=True),
        lambda: b.wait(b.arm(16, bar), bar=bar),
        lambda: b.fill(stage=stage),
        lambda: b.store((0, 0), stage=stage),
        lambda: _store(b, stage, ""),
        lambda: _store(b, stage, "add"),
        lambda: b.wait_read(r.randrange(2)),
        lambda: b.wait_group(r.randrange(2)),
        lambda: _fenced(b),
        lambda: b.sync(number=1),
        lambda: b.expect(16, bar),
        lambda: b.complete(16, bar),
        lambda: b.op(ops.MbarrierInval(bar=BarrierRef(bar, Const(0)))),
        lambda: b.arrive_drop(bar),
        lambda: _asked(b, bar, stage),
    ]
    if cluster:
        kinds += [
            lambda: b.arrive_remote(r.randrange(2), bar),
            lambda: _load(b, BYTES, bar, stage, everywhere=True),
            b.cluster_sync,
        ]
    r.choice(kinds)()


def _asked(b: Builder, bar: int, stage: int) -> None:
    b.tokens += 1
    with b.when(b.test_parity(0, b.tokens, bar=bar)):
        b.store((2, 0), stage=stage)
