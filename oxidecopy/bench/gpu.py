"""What copies and launches cost on a GPU, each beside a named peer in the same run.

Rates count bytes read and written. Device times are those of events around each launch; a ratio compares medians. The data is random: a
memory that compresses, or caches that help, would show in other data first.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise, product
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

import oxidecopy as ox
from oxidecopy.bench.copies import CTA_BYTES, SHARED_SM, Copy
from oxidecopy.bench.measure import Measured
from oxidecopy.engines.cuda.driver import check
from oxidecopy.engines.cuda.engine import CudaEngine
from oxidecopy.engines.cuda.stream import Event, Stream
from oxidecopy.errors import DeviceError, Diagnostic, ExecutionError
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.limits import BOX_DIM_MAX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oxidecopy.host.device import Device

NBYTES: Final = 4 << 30
_WARM_UP: Final = 2
_OF_MEMCPY: Final = 0.98
_LARGE: Final = 4 << 10  # from such boxes on
_OF_EMITTED: Final = 0.99
_OF_EMITTED_SMALL: Final = 0.95
_LAUNCH_US: Final = 5.0
_FIRST_MS: Final = 300.0
_OURS_MS: Final = 30.0
_LAUNCHES: Final = 20_000
_IN_A_ROW: Final = 500
BOX_BYTES: Final = (1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10)
_ROW: Final = 256  # elements: the widest row of a box
COLUMNS: Final = 16_384
_RING_BYTES: Final = 64 << 10
# How many bytes are under way on a multiprocessor decides: 48 to 64 KiB are fastest, less does not hide the memory's latency, more makes
# the order in which it is asked worse (docs/performance.md). One-shot: CTAs of an SM; counter: stages, and CTAs of an SM.
AT_ONCE: Final = {4 << 10: 12, 8 << 10: 6, 16 << 10: 4, 32 << 10: 2, 64 << 10: 2}
_COUNTED: Final = {
    1 << 10: (8, 10), 2 << 10: (8, 5), 4 << 10: (4, 4), 8 << 10: (4, 2), 16 << 10: (4, 1), 32 << 10: (3, 1), 64 << 10: (2, 1),
}  # fmt: skip
_NARROW: Final = (ox.bf16, ox.u8)


@final
@dataclass(frozen=True, slots=True)
class Bench:
    """A GPU with two arrays of `NBYTES` random bytes."""

    device: Device
    engine: CudaEngine
    stream: Stream
    src: ox.GlobalArray[ox.f32, ox.D1]
    dst: ox.GlobalArray[ox.f32, ox.D1]

    @property
    def multiprocessors(self) -> int:
        return self.engine.context.gpu.sms

    def times_ms(self, call: Callable[[], object], runs: int) -> tuple[float, ...]:
        """Device time of each of `runs` calls, which only start work on `stream`."""
        for _ in range(_WARM_UP):
            call()
        marks = [Event(self.engine.context) for _ in range(runs + 1)]
        marks[0].record(self.stream)
        for mark in marks[1:]:
            call()
            mark.record(self.stream)
        self.stream.synchronize()
        return tuple(b.milliseconds_since(a) for a, b in pairwise(marks))

    def memcpy(self) -> None:
        """The driver's own copy of the arrays."""
        driver, src, dst = self.engine.context.driver, self.src.buffer, self.dst.buffer
        with self.engine.context:
            check(driver.cuMemcpyDtoDAsync(dst.address, src.address, src.nbytes, self.stream.handle), "cuMemcpyDtoDAsync")


def open_bench(nbytes: int = NBYTES) -> Bench:
    """The first GPU, its arrays filled.

    Raises:
        DeviceError: there is none.
    """
    device = ox.Device.open("cuda:0")
    engine = device.engine
    if not isinstance(engine, CudaEngine):
        raise DeviceError(Diagnostic(rule="OX6014", what="this benchmark needs a GPU", got=device.name))
    some = np.random.default_rng(0).bytes(64 << 20)
    src, dst = (device.empty((nbytes // 4,), ox.f32) for _ in range(2))
    for at in range(0, nbytes, len(some)):
        engine.write(src.buffer, at, memoryview(some)[: min(len(some), nbytes - at)])
    return Bench(device, engine, Stream.create(engine.context), src, dst)


def shaped(bench: Bench, a: ox.GlobalArray[ox.f32, ox.D1], copy: Copy) -> ox.GlobalArray[Any, Any]:
    """The array's memory as what `copy` copies, row by row."""
    strides = [copy.element_bytes]
    for n in reversed(copy.shape[1:]):
        strides.append(strides[-1] * n)
    return ox.GlobalArray(dtype=copy.dtype, shape=copy.shape, strides_bytes=tuple(reversed(strides)), buffer=a.buffer, device=bench.device)


# ---- copies
@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A copy's device times in milliseconds, and those of the same program as CUDA C++ where that was measured."""

    copy: Copy
    times_ms: tuple[float, ...]
    emitted_ms: tuple[float, ...] = ()

    @property
    def tb_s(self) -> float:
        """10^12 bytes read and written per second."""
        return 2 * self.copy.nbytes / median(self.times_ms) / 1e9


def rate(bench: Bench, copy: Copy, runs: int, *, emitted: bool = False) -> Rate:
    """Measures a copy, and checks parts of its result once."""
    src, dst = shaped(bench, bench.src, copy), shaped(bench, bench.dst, copy)
    bound = copy.bind(bench.device, src, dst, bench.multiprocessors)
    verified = bound.verify()
    bench.engine.fill(dst.buffer, 0, copy.nbytes, 0xA5)
    launch = bench.engine.prepare(verified, bound.bindings, stream=bench.stream)
    times = bench.times_ms(launch, runs)
    _check(bench, copy)
    launch.end()
    peer: tuple[float, ...] = ()
    if emitted:
        from oxidecopy.bench.emitted import hand_written

        bench.engine.fill(dst.buffer, 0, copy.nbytes, 0xA5)
        peer = bench.times_ms(hand_written(bench.engine, verified, bound.bindings, bench.stream), runs)
        _check(bench, copy)
    return Rate(copy=copy, times_ms=times, emitted_ms=peer)


def _check(bench: Bench, copy: Copy) -> None:
    """Compares the first, the middle and the last of what was copied."""
    size = min(8 << 20, copy.nbytes)
    for at in (0, (copy.nbytes - size) // 2, copy.nbytes - size):
        if bench.engine.read(bench.src.buffer, at, size) != bench.engine.read(bench.dst.buffer, at, size):
            raise ExecutionError(Diagnostic(rule="OX6007", what=f"{copy.schedule} copy: its result differs from its source", got=str(copy)))


def headline(bench: Bench, runs: int, say: Callable[[str], None]) -> Iterator[tuple[Rate, float]]:
    """2-D copies of all of the array by each schedule, with the driver's own copy (TB/s) measured just before each."""
    for copy in headlines(bench.src.buffer.nbytes):
        say(f"{copy.schedule}, {copy.dtype.__name__} boxes of {copy.box_bytes >> 10} KiB")
        driver = median(bench.times_ms(bench.memcpy, runs))
        yield rate(bench, copy, runs, emitted=copy.dtype is ox.f32), 2 * bench.src.buffer.nbytes / driver / 1e9


def headlines(array_bytes: int) -> Iterator[Copy]:
    """f32 by each schedule, types of fewer bytes by one-shot boxes from 4 KiB on."""
    for nbytes in BOX_BYTES:
        box = (nbytes // 4 // _ROW, _ROW)
        shape = (array_bytes // 4 // COLUMNS, COLUMNS)
        stages, per_sm = _COUNTED[nbytes]
        yield Copy(schedule="one-shot", shape=shape, box=box, per_sm=AT_ONCE.get(nbytes, 0))
        yield Copy(schedule="counter", shape=shape, box=box, stages=stages, per_sm=per_sm)
        stages = max(3, min(8, _RING_BYTES // nbytes))
        per_sm = max(1, min(8, SHARED_SM // (stages * nbytes + CTA_BYTES)))
        yield Copy(schedule="persistent", shape=shape, box=box, stages=stages, per_sm=per_sm)
    for dtype, (nbytes, per_sm) in product(_NARROW, AT_ONCE.items()):
        size = DTYPES[dtype.__name__].nbytes
        if nbytes // size // _ROW <= BOX_DIM_MAX:
            shape = (array_bytes // size // COLUMNS, COLUMNS)
            yield Copy(schedule="one-shot", shape=shape, box=(nbytes // size // _ROW, _ROW), per_sm=per_sm, dtype=dtype)


def copy_rows(rates: Sequence[tuple[Rate, float]]) -> Iterator[Measured]:
    """The ratios that are promised: the best of one-shot and counter of the driver's copy, and each of its program as CUDA C++."""
    for dtype, nbytes in dict.fromkeys((r.copy.dtype, r.copy.box_bytes) for r, _ in rates):
        same = [(r, memcpy) for r, memcpy in rates if (r.copy.dtype, r.copy.box_bytes) == (dtype, nbytes)]
        words = f"{nbytes >> 10} KiB boxes" + (f" of {dtype.__name__}" if dtype is not ox.f32 else "")
        if nbytes >= _LARGE:
            best, memcpy = max(((r, m) for r, m in same if r.copy.schedule != "persistent"), key=lambda pair: pair[0].tb_s / pair[1])
            yield Measured(
                what=f"{best.copy.schedule}, {words}, of cuMemcpyDtoD", unit="x", samples=_ratios(best, memcpy), target=_OF_MEMCPY,
                better="higher", of=f"2-D {dtype.__name__} copy of {best.copy.nbytes >> 30} GiB, {best.copy.described}, {best.tb_s:.3f} "
                f"TB/s; cuMemcpyDtoDAsync {memcpy:.3f}",
            )  # fmt: skip
        for r in [r for r, _ in same if r.emitted_ms]:
            theirs = median(r.emitted_ms)
            yield Measured(
                what=f"{r.copy.schedule}, {words}, of its CUDA C++", unit="x", samples=tuple(theirs / t for t in r.times_ms),
                target=_OF_EMITTED if nbytes >= 8 << 10 else _OF_EMITTED_SMALL, better="higher",
                of=f"the same program by `oxidecopy emit`; {r.tb_s:.3f} TB/s, {r.copy.described}",
            )  # fmt: skip


def _ratios(r: Rate, memcpy: float) -> tuple[float, ...]:
    return tuple(2 * r.copy.nbytes / t / 1e9 / memcpy for t in r.times_ms)


# ---- launches
def launch_rows(bench: Bench, runs: int, say: Callable[[str], None]) -> Iterator[Measured]:
    """Host time of a prepared launch, and of the bare driver call that it makes."""
    say("prepared launches")
    copy = Copy(schedule="one-shot", shape=(64, 64), box=(64, 64))
    bound = copy.bind(bench.device, shaped(bench, bench.src, copy), shaped(bench, bench.dst, copy), 1)
    launch = bench.engine.prepare(bound.verify(), bound.bindings, stream=bench.stream)
    with bench.engine.context:
        both = launch, launch.bare()
        pairs = [[_host_us(bench, call) for call in both] for _ in range(runs + _WARM_UP)]  # in turns: the clock of a core moves
    ours, bare = zip(*pairs[_WARM_UP:], strict=True)
    yield Measured(
        what="prepared launch, host time", unit="us", samples=ours, target=_LAUNCH_US, better="lower",
        of=f"{_LAUNCHES} launches of a one-box copy, {_IN_A_ROW} in a row, Python {sys.version_info.major}.{sys.version_info.minor}; "
        f"cuLaunchKernelEx alone {median(bare):.2f} us in the same run",
    )  # fmt: skip


def _host_us(bench: Bench, call: Callable[[], object]) -> float:
    """Microseconds per call; the stream is emptied often enough that calls never wait for room in its queue."""
    spent = 0.0
    for _ in range(_LAUNCHES // _IN_A_ROW):
        start = perf_counter()
        for _ in range(_IN_A_ROW):
            call()
        spent += perf_counter() - start
        bench.stream.synchronize()
    return 1e6 * spent / _LAUNCHES


_FIRST: Final = """
import time
import numpy as np
import oxidecopy as ox
dev = ox.Device.open("cuda:0")
src, dst = dev.zeros((512, 512), ox.f32), dev.zeros((512, 512), ox.f32)
dev.engine.synchronize()
start = time.perf_counter()

@ox.pipeline(warps=ox.roles(producer=1, consumers=(), store=1))
def copy(cta: ox.Cta, a: ox.TmaDescriptor[ox.f32, ox.D2], b: ox.TmaDescriptor[ox.f32, ox.D2]) -> None:
    ring = cta.ring(stages=4, tiles=(a,))
    with cta.producer() as leader:
        for at in cta.tiles(a):
            with ring.produce(leader) as (slot,):
                slot.load(a, at)
    with cta.storer() as leader:
        for at in cta.tiles(a):
            ring.forward(leader, b, at)

bound = copy[16].bind(ox.TmaDescriptor.tiled(src, box=(64, 64)), ox.TmaDescriptor.tiled(dst, box=(64, 64)))
proof = bound.verify()
packed = time.perf_counter()
bound()
done = time.perf_counter()
bound()
again = time.perf_counter()
print(1e3 * (done - start), 1e3 * (packed - start))
"""


def first_rows(runs: int, say: Callable[[str], None]) -> Iterator[Measured]:
    """The first launch of a process: all of it, and what of it happens before the driver is asked for anything."""
    say("first launches")
    whole, ours = [], []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    for _ in range(min(runs, 5)):
        done = subprocess.run([sys.executable, "-c", _FIRST], capture_output=True, text=True, check=True, env=environment)
        a, b = map(float, done.stdout.split())
        whole.append(a)
        ours.append(b)
    of = "a ring copy in a fresh process, from `@ox.pipeline` to its end, after Device.open"
    yield Measured(what="first launch", unit="ms", samples=tuple(whole), target=_FIRST_MS, better="lower", of=of)
    yield Measured(what="first launch, recording and proof", unit="ms", samples=tuple(ours), target=_OURS_MS, better="lower", of=of)


def measure_all(bench: Bench, runs: int, say: Callable[[str], None]) -> tuple[list[Measured], list[tuple[Rate, float]]]:
    """Everything but the table, and the rates behind the ratios."""
    from oxidecopy.bench.one_way import like_plain_rows, one_way_rows

    rows = list(launch_rows(bench, runs, say))
    rates = list(headline(bench, runs, say))
    rows += copy_rows(rates)
    rows += one_way_rows(bench, runs, say)
    rows += like_plain_rows(bench, runs, say)
    rows += first_rows(runs, say)
    return rows, rates


# ---- the result as a file
def as_data(bench: Bench, rows: Sequence[Measured], rates: Sequence[tuple[Rate, float]], runs: int) -> dict[str, object]:
    """The rows with what is needed to measure them again."""
    context = bench.engine.context
    driver = check(context.driver.cuDriverGetVersion(), "cuDriverGetVersion")
    return {
        "command": f"oxidecopy bench gpu --runs {runs}",
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "oxidecopy": ox.__version__,
        "device": context.gpu.name,
        "driver": f"CUDA {driver // 1000}.{driver % 1000 // 10}",
        "cubin": bench.engine.code_file.file,
        "passed": all(row.passed for row in rows),
        "rows": [row.as_data() for row in rows],
        "copies": [
            {
                "schedule": r.copy.schedule,
                "dtype": r.copy.dtype.__name__,
                "box": r.copy.box,
                "box_bytes": r.copy.box_bytes,
                "stages": r.copy.stages,
                "per_sm": r.copy.per_sm,
                "tb_s": round(r.tb_s, 4),
                "emitted_tb_s": round(2 * r.copy.nbytes / median(r.emitted_ms) / 1e9, 4) if r.emitted_ms else None,
                "memcpy_tb_s": round(memcpy, 4),
            }
            for r, memcpy in rates
        ],
    }
