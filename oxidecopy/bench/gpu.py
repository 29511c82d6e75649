"""What copies and launches cost on a GPU, each beside a named peer in the same run.

Rates count bytes read and written. Device times are those of events around each launch; a ratio compares medians. The data is random: a
memory that compresses, or caches that help, would show in other data first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise, product
from statistics import median
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

import oxidecopy as ox
from oxidecopy.bench.copies import CTA_BYTES, SHARED_SM, Copy
from oxidecopy.bench.measure import Floor, Measured
from oxidecopy.bench.results import result
from oxidecopy.engines.cuda.driver import check
from oxidecopy.engines.cuda.engine import CudaEngine
from oxidecopy.engines.cuda.stream import Event, Stream
from oxidecopy.errors import DeviceError, Diagnostic, ExecutionError
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.limits import BOX_DIM_MAX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oxidecopy.bench.measure import Row
    from oxidecopy.host.device import Device

NBYTES: Final = 4 << 30
WARM_UP: Final = 2
_OF_MEMCPY: Final = 1.0
_LARGE: Final = 4 << 10  # from such boxes on
_OF_EMITTED: Final = 0.99
_OF_EMITTED_SMALL: Final = 0.95
BOX_BYTES: Final = (1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10)
_ROW: Final = 256  # elements: the widest row of a box
COLUMNS: Final = 16_384
_COLUMNS_OF: Final = {64 << 10: 2_048}  # arrays of large boxes: a row of boxes is loaded by neighbours, near to each other
_RING_BYTES: Final = 64 << 10
# How many bytes are under way on a multiprocessor decides: 48 to 64 KiB are fastest, less does not hide the memory's latency, more makes
# the order in which it is asked worse (docs/performance.md). One-shot: CTAs of an SM; counter: stages, and CTAs of an SM.
AT_ONCE: Final = {4 << 10: 11, 8 << 10: 6, 16 << 10: 4, 32 << 10: 2, 64 << 10: 2}
_COUNTED: Final = {
    1 << 10: (8, 10), 2 << 10: (8, 5), 4 << 10: (4, 4), 8 << 10: (4, 2), 16 << 10: (4, 1), 32 << 10: (3, 1), 64 << 10: (2, 1),
}  # fmt: skip
_DOSED: Final = 32 << 10  # as many bytes as are fastest cannot be had of larger one-shot boxes
_NARROW: Final = (ox.bf16, ox.u8)
_F32_BYTES: Final = ox.f32.info.nbytes


Words = ox.GlobalArray[ox.f32, ox.D1]


@final
@dataclass(frozen=True, slots=True)
class Bench:
    """A GPU with two arrays of `NBYTES` random bytes."""

    device: Device
    engine: CudaEngine
    stream: Stream
    src: Words
    dst: Words

    @property
    def multiprocessors(self) -> int:
        return self.engine.context.gpu.sms

    def times_ms(self, call: Callable[[], object], runs: int) -> tuple[float, ...]:
        """Device time of each of `runs` calls, which only start work on `stream`."""
        for _ in range(WARM_UP):
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
        self.copy(self.dst, 0, self.src, 0, self.src.buffer.nbytes)

    def copy(self, dst: Words, to: int, src: Words, start: int, nbytes: int) -> None:
        """The driver's own copy of so many bytes, from and to an offset in bytes."""
        driver = self.engine.context.driver
        with self.engine.context:
            done = driver.cuMemcpyDtoDAsync(dst.buffer.address + to, src.buffer.address + start, nbytes, self.stream.handle)
            check(done, "cuMemcpyDtoDAsync")


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


def shaped(bench: Bench, a: Words, copy: Copy) -> ox.GlobalArray[Any, Any]:
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
    """Copies of all of the array by each schedule, with the driver's own copy (TB/s) measured just before each."""
    for copy in headlines(bench.src.buffer.nbytes):
        say(f"{copy.schedule}, {copy.dtype.__name__} boxes of {copy.box_bytes >> 10} KiB")
        driver = median(bench.times_ms(bench.memcpy, runs))
        yield rate(bench, copy, runs, emitted=copy.dtype is ox.f32), 2 * bench.src.buffer.nbytes / driver / 1e9


def headlines(array_bytes: int) -> Iterator[Copy]:
    """f32 by each schedule, types of fewer bytes by one-shot boxes from 4 KiB on, the largest also by a counter."""
    for nbytes in BOX_BYTES:
        box = (nbytes // 4 // _ROW, _ROW)
        columns = _COLUMNS_OF.get(nbytes, COLUMNS)
        shape = (array_bytes // 4 // columns, columns)
        stages, per_sm = _COUNTED[nbytes]
        yield Copy(schedule="one-shot", shape=shape, box=box, per_sm=AT_ONCE.get(nbytes, 0))
        yield Copy(schedule="counter", shape=shape, box=box, stages=stages, per_sm=per_sm)
        stages = max(3, min(8, _RING_BYTES // nbytes))
        per_sm = max(1, min(8, SHARED_SM // (stages * nbytes + CTA_BYTES)))
        yield Copy(schedule="persistent", shape=shape, box=box, stages=stages, per_sm=per_sm)
    for dtype, (nbytes, per_sm) in product(_NARROW, AT_ONCE.items()):
        size = DTYPES[dtype.__name__].nbytes
        if nbytes // size // _ROW <= BOX_DIM_MAX:
            columns = _COLUMNS_OF.get(nbytes, COLUMNS)
            shape = (array_bytes // size // columns, columns)
            yield Copy(schedule="one-shot", shape=shape, box=(nbytes // size // _ROW, _ROW), per_sm=per_sm, dtype=dtype)
            if nbytes > _DOSED:
                stages, each = _COUNTED[nbytes]
                # Arrays and boxes whose rows have as many bytes as those of f32: blocks of 256 elements are a dimension of both.
                blocks, beside = columns * _F32_BYTES // size // _ROW, _F32_BYTES // size
                cubes, block = (array_bytes // size // _ROW // blocks, blocks, _ROW), (nbytes // _F32_BYTES // _ROW, beside, _ROW)
                yield Copy(schedule="counter", shape=cubes, box=block, stages=stages, per_sm=each, dtype=dtype)


def copy_rows(rates: Sequence[tuple[Rate, float]]) -> Iterator[Measured]:
    """The ratios that are promised: the best of one-shot and counter of the driver's copy, and each of its program as CUDA C++."""
    for dtype, nbytes in dict.fromkeys((r.copy.dtype, r.copy.box_bytes) for r, _ in rates):
        same = [(r, memcpy) for r, memcpy in rates if (r.copy.dtype, r.copy.box_bytes) == (dtype, nbytes)]
        words = f"{nbytes >> 10} KiB boxes" + (f" of {dtype.__name__}" if dtype is not ox.f32 else "")
        if nbytes >= _LARGE:
            best, memcpy = max(((r, m) for r, m in same if r.copy.schedule != "persistent"), key=lambda pair: pair[0].tb_s / pair[1])
            yield Measured(
                what=f"{best.copy.schedule}, {words}, of cuMemcpyDtoD", unit="x", samples=_ratios(best, memcpy), target=_OF_MEMCPY,
                better="higher", of=f"{len(best.copy.box)}-D {dtype.__name__} copy of {best.copy.nbytes >> 30} GiB, {best.copy.described}, "
                f"{best.tb_s:.3f} TB/s; cuMemcpyDtoDAsync {memcpy:.3f}",
                floor=Floor("cuMemcpyDtoD", best.tb_s / memcpy),
            )  # fmt: skip
        for r, memcpy in [pair for pair in same if pair[0].emitted_ms]:
            theirs = median(r.emitted_ms)
            yield Measured(
                what=f"{r.copy.schedule}, {words}, of its CUDA C++", unit="x", samples=tuple(theirs / t for t in r.times_ms),
                target=_OF_EMITTED if nbytes >= 8 << 10 else _OF_EMITTED_SMALL, better="higher",
                of=f"the same program by `oxidecopy emit`; {r.tb_s:.3f} TB/s, {r.copy.described}",
                floor=Floor("cuMemcpyDtoD", r.tb_s / memcpy),
            )  # fmt: skip


def _ratios(r: Rate, memcpy: float) -> tuple[float, ...]:
    return tuple(2 * r.copy.nbytes / t / 1e9 / memcpy for t in r.times_ms)


def measure_all(
    bench: Bench, runs: int, say: Callable[[str], None], keep: Callable[[Sequence[Row], Sequence[tuple[Rate, float]]], None]
) -> tuple[list[Row], list[tuple[Rate, float]]]:
    """Everything but the table, and the rates behind the ratios; `keep` is given what there is so far, in case the rest is cut short."""
    from oxidecopy.bench.launches import first_rows, launch_rows
    from oxidecopy.bench.lines import host_rows
    from oxidecopy.bench.one_way import like_plain_rows, one_way_rows
    from oxidecopy.bench.work_rows import work_rows

    rows: list[Row] = []
    rates: list[tuple[Rate, float]] = []

    def copies() -> Iterator[Row]:
        rates.extend(headline(bench, runs, say))
        yield from copy_rows(rates)

    parts: tuple[Iterator[Row], ...] = (
        launch_rows(bench, runs, say),
        host_rows(bench, runs, say),
        copies(),
        one_way_rows(bench, runs, say),
        like_plain_rows(bench, runs, say),
        work_rows(bench, runs, say),
        first_rows(runs, say),
    )
    for part in parts:
        for row in part:
            rows.append(row)
            keep(rows, rates)
    return rows, rates


# ---- the result as a file
def as_data(
    bench: Bench, rows: Sequence[Row], rates: Sequence[tuple[Rate, float]], runs: int, *, complete: bool = True
) -> dict[str, object]:
    """The rows with what is needed to measure them again; not `complete` while more are to come."""
    context = bench.engine.context
    driver = check(context.driver.cuDriverGetVersion(), "cuDriverGetVersion")
    where = {
        "device": context.gpu.name,
        "driver": f"CUDA {driver // 1000}.{driver % 1000 // 10}",
        "cubin": bench.engine.code_file.file,
    }
    return {
        **result(f"oxidecopy bench gpu --runs {runs}", rows, where, complete=complete),
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
