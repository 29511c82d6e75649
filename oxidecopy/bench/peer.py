"""Copies between two GPUs of one host beside the driver's own: loads from the other GPU, stores to it, and a half by each GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Final, final

import numpy as np

import oxidecopy as ox
from oxidecopy.bench.copies import Copy
from oxidecopy.bench.gpu import AT_ONCE, NBYTES, Bench, Words
from oxidecopy.bench.measure import Measured
from oxidecopy.bench.results import result
from oxidecopy.engines.cuda.driver import check
from oxidecopy.engines.cuda.engine import CudaEngine
from oxidecopy.engines.cuda.stream import Event, Stream
from oxidecopy.errors import DeviceError, Diagnostic, ExecutionError

_OF_DRIVER: Final = 0.95
_CHECKED: Final = 8 << 20
_RANDOM: Final = 64 << 20
_COLUMNS: Final = (16_384, 256)  # rows of a box are 64 KiB apart, or one behind the other
_PROMOTIONS: Final = (0, 128, 256)


def copies(nbytes: int) -> Iterator[Copy]:
    """The ways that are tried: a CTA for each box, as within one GPU, and rings, since NVLink asks for less than memory."""
    for columns in _COLUMNS:
        shape = (nbytes // 4 // columns, columns)
        for promotion in _PROMOTIONS:
            yield Copy(schedule="one-shot", shape=shape, box=(16, 256), per_sm=AT_ONCE[16 << 10], l2_promotion=promotion)
        yield Copy(schedule="one-shot", shape=shape, box=(32, 256), per_sm=2)
        yield Copy(schedule="persistent", shape=shape, box=(16, 256), stages=8)
        yield Copy(schedule="persistent", shape=shape, box=(64, 256), stages=3)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A direction of copying.

    Attributes:
        words: in words.
        source, target: the arrays, each on the GPU that it lies on.
        parts: who copies, each with equal shares of the arrays as it has them.
    """

    words: str
    source: Words
    target: Words
    parts: tuple[Bench, ...]

    def driver(self) -> None:
        """The driver's own copy, each end in the context that owns it."""
        bench = self.parts[0]
        ends = [(a.buffer.address, _engine(a).context.handle) for a in (self.target, self.source)]
        with bench.engine.context as context:
            answer = context.driver.cuMemcpyPeerAsync(*ends[0], *ends[1], self.source.buffer.nbytes, bench.stream.handle)
            check(answer, "cuMemcpyPeerAsync")

    def launch(self, copy: Copy) -> Callable[[], None]:
        """Starts the copy on the first part's stream; other GPUs begin with it, and it goes on when they are done."""
        launches = []
        for number, bench in enumerate(self.parts):
            layout = copy.shape, (4 * copy.shape[1], 4)
            src, dst = (a.as_strided(*layout, offset_bytes=number * copy.nbytes) for a in (bench.src, bench.dst))
            bound = copy.bind(bench.device, src, dst, bench.multiprocessors)
            launches.append(bench.engine.prepare(bound.verify(), bound.bindings, stream=bench.stream))
        first, *others = self.parts
        begun, done = Event(first.engine.context, timing=False), [Event(bench.engine.context, timing=False) for bench in others]

        def start() -> None:
            begun.record(first.stream)
            for bench in others:
                bench.stream.wait(begun)
            for launch in launches:
                launch()
            for bench, event in zip(others, done, strict=True):
                event.record(bench.stream)
                first.stream.wait(event)

        return start


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """One copy by one way, and the driver's beside it, in milliseconds."""

    way: Way
    copy: Copy
    times_ms: tuple[float, ...]
    driver_ms: float

    @property
    def ratio(self) -> float:
        return self.driver_ms / median(self.times_ms)


def ways(here: ox.Device, there: ox.Device, nbytes: int) -> tuple[Way, ...]:
    """Loads, stores, and halves, by two GPUs that have an array of so many bytes each."""
    mine, theirs = here.empty((nbytes // 4,), ox.f32), there.empty((nbytes // 4,), ox.f32)
    near, far = (_engine(a) for a in (mine, theirs))
    stream = Stream.create(near.context)
    loads = Bench(here, near, stream, here.peer(theirs), mine)
    pushes = Bench(there, far, Stream.create(far.context), theirs, there.peer(mine))
    return (
        Way(words="loads from the other GPU", source=theirs, target=mine, parts=(loads,)),
        Way(words="stores to the other GPU", source=mine, target=theirs, parts=(replace(loads, src=mine, dst=here.peer(theirs)),)),
        Way(words="one half loaded, one stored by the other GPU", source=theirs, target=mine, parts=(loads, pushes)),
    )


def measure_all(runs: int, say: Callable[[str], None]) -> list[Measured]:
    """A row for each direction, by its fastest copy, with the driver's copy measured just before it.

    Raises:
        DeviceError: there are not two GPUs.
        ArgumentError: they do not reach each other.
    """
    found = ways(ox.Device.open("cuda:0"), ox.Device.open("cuda:1"), NBYTES)
    return [_row(way, list(_rates(way, runs, say))) for way in found]


def _engine(a: Words) -> CudaEngine:
    engine: object = a.device.engine
    if not isinstance(engine, CudaEngine):
        raise DeviceError(Diagnostic(rule="OX6014", what="this benchmark needs two GPUs", got=a.device.name))
    return engine


def _rates(way: Way, runs: int, say: Callable[[str], None]) -> Iterator[Rate]:
    source, target, nbytes = _engine(way.source), _engine(way.target), way.source.buffer.nbytes
    some = np.random.default_rng(0).bytes(min(_RANDOM, nbytes))
    for at in range(0, nbytes, len(some)):
        source.write(way.source.buffer, at, memoryview(some))
    for copy in copies(nbytes // len(way.parts)):
        say(f"{way.words}, {copy.schedule}, {copy.described}")
        driver = median(way.parts[0].times_ms(way.driver, runs))
        target.fill(way.target.buffer, 0, nbytes, 0xA5)
        times = way.parts[0].times_ms(way.launch(copy), runs)
        size = min(_CHECKED, nbytes)
        for at in (0, nbytes // 2 - size // 2, nbytes - size):
            if target.read(way.target.buffer, at, size) != source.read(way.source.buffer, at, size):
                raise ExecutionError(Diagnostic(rule="OX6007", what=f"{way.words}: the result differs from its source", got=str(copy)))
        yield Rate(way=way, copy=copy, times_ms=times, driver_ms=driver)


def _row(way: Way, rates: Sequence[Rate]) -> Measured:
    best, nbytes = max(rates, key=lambda rate: rate.ratio), way.source.buffer.nbytes
    tried = ", ".join(f"{rate.ratio:.3f}" for rate in rates)
    rows = "far apart" if best.copy.shape[1] > best.copy.box[1] else "one behind the other"
    boxes = f"{best.copy.box_bytes >> 10} KiB with rows {rows}, L2 promotion {best.copy.l2_promotion}"
    return Measured(
        what=f"{way.words}, of cuMemcpyPeer", unit="x", samples=tuple(best.driver_ms / t for t in best.times_ms),
        target=_OF_DRIVER, better="higher",
        of=f"{nbytes >> 30} GiB f32, {best.copy.schedule}, boxes of {boxes}, {best.copy.described}: "
        f"{nbytes / median(best.times_ms) / 1e6:.0f} GB/s; cuMemcpyPeerAsync {nbytes / best.driver_ms / 1e6:.0f}; all ways gave {tried}",
    )  # fmt: skip


def as_data(rows: Sequence[Measured], runs: int) -> dict[str, object]:
    """The rows with what is needed to measure them again."""
    engine = ox.Device.open("cuda:0").engine
    context = engine.context if isinstance(engine, CudaEngine) else None
    device = f"two of {context.gpu.name}" if context else ""
    return result(f"oxidecopy bench peer --runs {runs}", rows, {"device": device, "load": None})
