"""Copies between two GPUs of one host: a pipeline on one of them loads from the other, or stores to it, beside the driver's own copy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from statistics import median
from typing import Final, final

import numpy as np

import oxidecopy as ox
from oxidecopy.bench.copies import Copy
from oxidecopy.bench.gpu import AT_ONCE, Bench, shaped
from oxidecopy.bench.measure import Measured
from oxidecopy.engines.cuda.driver import check
from oxidecopy.engines.cuda.engine import CudaEngine
from oxidecopy.engines.cuda.stream import Stream
from oxidecopy.errors import DeviceError, Diagnostic, ExecutionError

NBYTES: Final = 1 << 30
_OF_DRIVER: Final = 0.95
_COLUMNS: Final = 16_384
_BOX: Final = (16, 256)
_BOX_BYTES: Final = 16 << 10

# A CTA for each box, as within one GPU; and rings on few multiprocessors, since NVLink asks for less than memory does.
_COPIES: Final = (
    Copy(schedule="one-shot", shape=(NBYTES // 4 // _COLUMNS, _COLUMNS), box=_BOX, per_sm=AT_ONCE[_BOX_BYTES]),
    Copy(schedule="persistent", shape=(NBYTES // 4 // _COLUMNS, _COLUMNS), box=_BOX, stages=8),
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """A direction: the arrays where they lie, and as the pipeline's GPU has them in `bench`."""

    words: str
    source: ox.GlobalArray[ox.f32, ox.D1]
    target: ox.GlobalArray[ox.f32, ox.D1]
    bench: Bench

    def driver(self) -> None:
        """The driver's own copy, each end in the context that owns it."""
        context = self.bench.engine.context
        ends = [(a.buffer.address, _engine(a).context.handle) for a in (self.target, self.source)]
        with context:
            answer = context.driver.cuMemcpyPeerAsync(*ends[0], *ends[1], NBYTES, self.bench.stream.handle)
            check(answer, "cuMemcpyPeerAsync")


def measure_all(runs: int, say: Callable[[str], None]) -> list[Measured]:
    """A row for each direction and way, with the driver's copy measured just before it.

    Raises:
        DeviceError: there are not two GPUs.
        ArgumentError: they do not reach each other.
    """
    here, there = ox.Device.open("cuda:0"), ox.Device.open("cuda:1")
    mine, theirs = here.empty((NBYTES // 4,), ox.f32), there.empty((NBYTES // 4,), ox.f32)
    reached, engine = here.peer(theirs), _engine(mine)
    loads = Bench(here, engine, Stream.create(engine.context), reached, mine)
    ways = (
        _Way(words="loads from the other GPU", source=theirs, target=mine, bench=loads),
        _Way(words="stores to the other GPU", source=mine, target=theirs, bench=replace(loads, src=mine, dst=reached)),
    )
    return [row for way in ways for row in _rows(way, runs, say)]


def _engine(a: ox.GlobalArray[ox.f32, ox.D1]) -> CudaEngine:
    engine: object = a.device.engine
    if not isinstance(engine, CudaEngine):
        raise DeviceError(Diagnostic(rule="OX6014", what="this benchmark needs two GPUs", got=a.device.name))
    return engine


def _rows(way: _Way, runs: int, say: Callable[[str], None]) -> Iterator[Measured]:
    data, bench, target = np.random.default_rng(0).bytes(NBYTES), way.bench, way.target
    _engine(way.source).write(way.source.buffer, 0, memoryview(data))
    for copy in _COPIES:
        say(f"{way.words}, {copy.schedule}")
        driver = median(bench.times_ms(way.driver, runs))
        _engine(target).fill(target.buffer, 0, NBYTES, 0xA5)
        bound = copy.bind(bench.device, shaped(bench, bench.src, copy), shaped(bench, bench.dst, copy), bench.multiprocessors)
        launch = bench.engine.prepare(bound.verify(), bound.bindings, stream=bench.stream)
        times = bench.times_ms(launch, runs)
        launch.end()
        if _engine(target).read(target.buffer, 0, NBYTES) != data:
            raise ExecutionError(Diagnostic(rule="OX6007", what=f"{way.words}: the result differs from its source", got=str(copy)))
        yield Measured(
            what=f"{way.words}, {copy.schedule}, of cuMemcpyPeer", unit="x", samples=tuple(driver / t for t in times),
            target=_OF_DRIVER, better="higher",
            of=f"{NBYTES >> 30} GiB f32 in boxes of 16 KiB, {copy.described}: {NBYTES / median(times) / 1e6:.0f} GB/s; "
            f"cuMemcpyPeerAsync {NBYTES / driver / 1e6:.0f}",
        )  # fmt: skip


def as_data(rows: Sequence[Measured], runs: int) -> dict[str, object]:
    """The rows with what is needed to measure them again."""
    engine = ox.Device.open("cuda:0").engine
    context = engine.context if isinstance(engine, CudaEngine) else None
    return {
        "command": f"oxidecopy bench peer --runs {runs}",
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "oxidecopy": ox.__version__,
        "device": f"two of {context.gpu.name}" if context else "",
        "load": None,
        "passed": all(row.passed for row in rows),
        "rows": [row.as_data() for row in rows],
    }
