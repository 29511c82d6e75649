"""The works on a GPU: each beside a copy that moves as many bytes, and beside its peers, in the same run on the same data."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Final, final

import numpy as np

import oxidecopy as ox
from oxidecopy.bench.lines import lines
from oxidecopy.bench.measure import Absent, Floor, Measured
from oxidecopy.bench.peers import Given, peer, why_absent
from oxidecopy.bench.work import BIAS, SCALE_A, SCALE_B, Pattern, Work, works
from oxidecopy.errors import Diagnostic, ExecutionError, OxidecopyError
from oxidecopy.typed.global_array import storage_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from oxidecopy.bench.gpu import Bench
    from oxidecopy.bench.measure import Row
    from oxidecopy.bench.peers import Call
    from oxidecopy.bench.work import Array, Spec, Values

_PATTERN_BYTES: Final = 64 << 20
_ROWS: Final = 2  # of the output that are compared at a time
_PEER_TOLERANCE: Final = 0.02  # peers fuse multiplications with additions: the last bit of bf16


@final
@dataclass(frozen=True, slots=True)
class Ground:
    """The arrays of a bench as what is worked on: its source holds numbers from a normal distribution, another pattern in each half.

    Pairs of bf16 ones, which are such numbers of f32 as well: the second of a pair is the last bits of one.
    """

    bench: Bench
    patterns: tuple[Values, ...]

    def given(self, work: Work) -> Given:
        """Inputs and output of a work, as views of the same memory."""
        inputs = [_view(self.bench, self.bench.src, spec, i) for i, spec in enumerate(work.inputs)]
        output = _view(self.bench, self.bench.dst, work.output, 0)
        return Given(engine=self.bench.engine, stream=self.bench.stream, inputs=inputs, output=output, scalars=(SCALE_A, SCALE_B, BIAS))

    def clear(self, work: Work) -> None:
        """Makes the output something that no result is; zeros where results are added to it."""
        self.bench.engine.fill(self.bench.dst.buffer, 0, work.output.nbytes, 0 if work.adds else 0xA5)

    def check(self, work: Work, who: str, tolerance: float) -> None:
        """Compares the first rows of the output, those in the middle and the last ones.

        Raises:
            ExecutionError: they differ.
        """
        rows, _ = work.rows
        row = work.output.nbytes // rows
        patterns = [Pattern(p.view(storage_dtype(s.dtype.info))) for p, s in zip(self.patterns, work.inputs, strict=False)]
        count = min(_ROWS, rows)
        self.bench.stream.synchronize()
        for first in (0, (rows - count) // 2, rows - count):
            wanted = work.expected(patterns, first, first + count)
            found = np.frombuffer(self.bench.engine.read(self.bench.dst.buffer, first * row, count * row), wanted.dtype).reshape(
                wanted.shape
            )
            if found.tobytes() != wanted.tobytes() and not (tolerance and _close(found, wanted, tolerance)):
                what = f"{work.words}, by {who}: the result is not what numpy gives"
                raise ExecutionError(Diagnostic(rule="OX6007", what=what, got=f"rows {first} to {first + count}"))


def prepare(bench: Bench) -> Ground:
    """Fills the source: a pattern is written once, then doubled until it fills its half."""
    half = bench.src.buffer.nbytes // 2
    size = min(_PATTERN_BYTES, half)
    drawn = [np.random.default_rng(seed).standard_normal(size // 2, np.float32) for seed in (1, 2)]
    patterns = tuple([numbers.astype(storage_dtype(ox.bf16.info)).view(np.float32) for numbers in drawn])
    for start, pattern in zip((0, half), patterns, strict=True):
        bench.engine.write(bench.src.buffer, start, memoryview(pattern.tobytes()))
        done = size
        while done < half:
            bench.copy(bench.src, start + done, bench.src, start, min(done, half - done))
            done *= 2
    bench.stream.synchronize()
    return Ground(bench, patterns)


def work_rows(bench: Bench, runs: int, say: Callable[[str], None]) -> Iterator[Row]:
    """Every work, its bandwidth as a share of a copy's, then how many times as long each peer takes."""
    ground = prepare(bench)
    elements = bench.src.buffer.nbytes // 8
    for ways in (*works(elements), *((line,) for line in lines(elements))):
        say(ways[0].words)
        try:
            yield from rows_of(ground, ways, runs, say)
        except OxidecopyError as error:  # the other rows are still to be measured
            yield Absent(what=f"{ways[0].words}, of a copy", why=str(error).splitlines()[0], of=ways[0].how, ours=True)


def rows_of(ground: Ground, ways: Sequence[Work], runs: int, say: Callable[[str], None]) -> Iterator[Row]:
    """The rows of one work, by the fastest of its ways."""
    bench = ground.bench
    copy = median(bench.times_ms(partial(bench.copy, bench.dst, 0, bench.src, 0, ways[0].moved // 2), runs))
    work, times = min([(way, _times(ground, way, runs)) for way in ways], key=lambda pair: median(pair[1]))
    given = ground.given(work)
    shares = tuple(copy / t for t in times)
    rate = work.moved / median(times) / 1e9
    yield Measured(
        what=f"{work.words}, of a copy", unit="x", samples=shares, target=work.target, better="higher",
        of=f"{work.moved / 2**30:.2f} GiB read and written at {rate:.3f} TB/s, {work.how}; cuMemcpyDtoDAsync of as many at "
        f"{work.moved / copy / 1e9:.3f}",
        floor=Floor("cuMemcpyDtoD", median(shares)),
    )  # fmt: skip
    for name, target in work.peers:
        say(f"{work.words}, {name}")
        yield _beside(ground, work, given, name, times, target, runs)


def _times(ground: Ground, work: Work, runs: int) -> tuple[float, ...]:
    """Device times of a work, whose result is right."""
    bench, given = ground.bench, ground.given(work)
    with _started(bench, work, given) as call:
        ground.clear(work)
        call()
        ground.check(work, f"oxidecopy, {work.how}", work.tolerance)
        return bench.times_ms(call, runs)


@contextmanager
def _started(bench: Bench, work: Work, given: Given) -> Iterator[Callable[[], object]]:
    """What starts a work on the bench's stream."""
    if work.call is not None:
        yield work.call(given.inputs, given.output, bench.stream)
        return
    assert work.bind is not None  # one of both
    bound = work.bind(given.inputs, given.output, bench.multiprocessors)
    launch = bench.engine.prepare(bound.verify(), bound.bindings, stream=bench.stream)
    try:
        yield launch
    finally:
        launch.end()


def _beside(ground: Ground, work: Work, given: Given, name: str, ours: Sequence[float], target: float, runs: int) -> Row:
    """How many times as long a peer takes, by the fastest of its ways."""
    what = f"{work.words}, {name} to ours"
    try:
        ground.clear(work)
        ways: Mapping[str, Call] = peer(name).start(work.name, given)
        ground.check(work, name, _PEER_TOLERANCE)
        took = {words: ground.bench.times_ms(call, runs) for words, call in ways.items()}
    except Exception as error:  # whatever another library raises: the other rows are still to be measured
        return Absent(what=what, why=why_absent(error), of=name)
    best = min(took, key=lambda words: median(took[words]))
    theirs = median(took[best])
    return Measured(
        what=what, unit="x", samples=tuple(theirs / t for t in ours), target=target, better="higher",
        of=f"{name}, {best}: {work.moved / theirs / 1e9:.3f} TB/s; ours {work.moved / median(ours) / 1e9:.3f}",
    )  # fmt: skip


def _close(found: Values, wanted: Values, tolerance: float) -> bool:
    return bool(np.allclose(found.astype(np.float64), wanted.astype(np.float64), rtol=tolerance, atol=tolerance))


def _view(bench: Bench, a: ox.GlobalArray[ox.f32, ox.D1], spec: Spec, half: int) -> Array:
    """The start of the array's first or second half as what `spec` says."""
    strides = [spec.dtype.info.nbytes]
    for n in reversed(spec.shape[1:]):
        strides.append(strides[-1] * n)
    return ox.GlobalArray(
        dtype=spec.dtype,
        shape=spec.shape,
        strides_bytes=tuple(reversed(strides)),
        buffer=a.buffer,
        device=bench.device,
        offset_bytes=half * a.buffer.nbytes // 2,
    )
