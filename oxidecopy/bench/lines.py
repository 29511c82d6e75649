"""One-liners as works, beside a copy that moves as many bytes and what torch's users write; and what a call of one costs on the host."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import cycle
from math import prod
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import oxidecopy as ox
from oxidecopy.bench.measure import Measured
from oxidecopy.bench.work import (
    BIAS,
    COLUMNS,
    DEPTH,
    HEADS,
    OF_CONTIGUOUS,
    OF_COPY,
    OF_COPY_MAP,
    OF_PEER,
    SCALE_A,
    SCALE_B,
    Array,
    Pattern,
    Spec,
    Values,
    Work,
    places,
    sequence_of,
)
from oxidecopy.isa import mma
from oxidecopy.typed.global_array import storage_dtype

if TYPE_CHECKING:
    from oxidecopy.bench.gpu import Bench
    from oxidecopy.engines.cuda.stream import Stream

GATHERED: Final = (4_096, 1_024, 512, 128, 64, 32)  # numbers in a row
SLICED: Final = {"aligned": 64, "not aligned": 1}  # columns that are left out
_AGAIN_US: Final = 6.0
_OTHERS_US: Final = 15.0
_CALLS: Final = 200
_ROUNDS: Final = 20
_OTHERS: Final = 8
_HOW: Final = "by the plan that it chooses"
_WIDE: Final = 128  # numbers of a row, from which on gathering is promised to be as fast as a copy
_SUMS_TOLERANCE: Final = 1e-2

Call = Callable[[], object]


def lines(elements: int, columns: int = COLUMNS) -> Iterator[Work]:
    """All of them, on `elements` f32 numbers or twice as many bf16 ones, `columns` in a row."""
    shape = (elements // columns, columns)
    one = Spec(ox.f32, shape)
    yield _work("copied", "ox.copy of f32", (one, one), _copy, _same, (OF_COPY, OF_PEER))
    yield _work("cast", "ox.copy of f32 to bf16", (one, Spec(ox.bf16, shape)), _copy, _cast, (OF_COPY_MAP, OF_PEER))
    yield _permuted(elements)
    yield _work("transpose", "ox.copy of x.T", (one, Spec(ox.f32, shape[::-1])), _turned, _transposed, (OF_COPY, OF_CONTIGUOUS))
    for words, start in SLICED.items():
        arrays = one, Spec(ox.f32, (shape[0], columns - start))
        call, expected = partial(_sliced, start), partial(_behind, start)
        yield _work(f"from column {start}", f"ox.copy of x[:, {start}:], {words}", arrays, call, expected, (None, OF_PEER))
    words = "ox.transform of two f32 to bf16, five operations"
    yield _work("fused", words, (one, one, Spec(ox.bf16, shape)), _fused, _computed, (OF_COPY_MAP, None))
    yield _added("sums", "ox.reduce_into, sums of f32 rows", (one, Spec(ox.f32, shape[:1])), _row_sums, _sums)
    yield _added("sum of rows", "ox.reduce_into, f32 rows into one", (one, Spec(ox.f32, (1, columns))), _one_row, _total)
    for width in GATHERED:
        rows = Spec(ox.f32, (elements // width, width))
        asked = (OF_COPY_MAP if width >= _WIDE else None, OF_PEER)
        work = _work(f"rows of {width}", f"ox.gather_rows, rows of {4 * width:,} bytes", (rows, rows), _gathered, _rows, asked)
        yield replace(work, peers=(*work.peers, ("Triton", OF_PEER)))


def _work(
    name: str,
    words: str,
    arrays: tuple[Spec, ...],
    call: Callable[[Sequence[Array], Array, Stream], Call],
    expected: Callable[[tuple[int, ...], Sequence[Pattern], int, int], Values],
    asked: tuple[float | None, float | None],
) -> Work:
    """A work of inputs and, last, its output; `asked` of a copy's bandwidth, and of torch."""
    of_copy, of_torch = asked
    *inputs, output = arrays
    return Work(
        name=name, words=words, how=_HOW, inputs=tuple(inputs), output=output, call=call, expected=partial(expected, inputs[0].shape),
        target=of_copy, peers=(("torch", of_torch),) if of_torch is not None else (),
    )  # fmt: skip


def _added(
    name: str,
    words: str,
    arrays: tuple[Spec, ...],
    call: Callable[[Sequence[Array], Array, Stream], Call],
    expected: Callable[[tuple[int, ...], Sequence[Pattern], int, int], Values],
) -> Work:
    """One that adds to its output, in an order of its own."""
    return replace(_work(name, words, arrays, call, expected, (None, OF_PEER)), tolerance=_SUMS_TOLERANCE, adds=True)


# ---- calls, each ready to be repeated
def _copy(given: Sequence[Array], out: Array, stream: Stream) -> Call:
    return lambda: ox.copy(out, given[0], stream=stream)


def _turned(given: Sequence[Array], out: Array, stream: Stream) -> Call:
    return partial(ox.copy, out, given[0].T, stream=stream)


def _sliced(start: int, given: Sequence[Array], out: Array, stream: Stream) -> Call:
    return partial(ox.copy, out, given[0][:, start:], stream=stream)


def _fused(given: Sequence[Array], out: Array, stream: Stream) -> Call:
    a, b = given
    numbers = [ox.value(n, ox.f32) for n in (SCALE_A, SCALE_B)]

    def five(v: Any, w: Any, x: Any, y: Any) -> Any:
        return (v * x + w * y - 0.125).relu().cast(ox.bf16)

    assert BIAS == 0.125  # a transform takes four arguments
    transform: Any = ox.transform
    return lambda: transform(five, a, b, *numbers, out=out, stream=stream)


def _row_sums(given: Sequence[Array], out: Array, stream: Stream) -> Call:
    column = out.as_strided((*out.shape, 1), (4, 4))
    return partial(ox.reduce_into, column, given[0], ox.reduce.add, stream=stream)


def _one_row(given: Sequence[Array], out: Array, stream: Stream) -> Call:
    return partial(ox.reduce_into, out, given[0], ox.reduce.add, stream=stream)


def _gathered(given: Sequence[Array], out: Array, stream: Stream) -> Call:
    device: Any = out.device
    numbers = device.array(row_numbers(out.shape[0]), ox.i32)
    return lambda: ox.gather_rows(given[0], numbers, out=out, stream=stream)


def row_numbers(rows: int) -> Any:
    """Which row each row of the output is: all of them, in no order."""
    return np.random.default_rng(rows).permutation(rows).astype(np.int32)


# ---- what numpy makes of the same data
def _same(shape: tuple[int, ...], given: Sequence[Pattern], first: int, stop: int) -> Values:
    return given[0][_places(shape, first, stop)]


def _cast(shape: tuple[int, ...], given: Sequence[Pattern], first: int, stop: int) -> Values:
    return _same(shape, given, first, stop).astype(storage_dtype(ox.bf16.info))


def _behind(start: int, shape: tuple[int, ...], given: Sequence[Pattern], first: int, stop: int) -> Values:
    return np.ascontiguousarray(_same(shape, given, first, stop)[:, start:])


def _transposed(shape: tuple[int, ...], given: Sequence[Pattern], first: int, stop: int) -> Values:
    return given[0][np.arange(shape[0]) * shape[1] + np.arange(first, stop)[:, None]]


def _computed(shape: tuple[int, ...], given: Sequence[Pattern], first: int, stop: int) -> Values:
    a, b = (p[_places(shape, first, stop)] for p in given)
    made: Values = np.maximum(a * np.float32(SCALE_A) + b * np.float32(SCALE_B) - np.float32(BIAS), np.float32(0))
    return made.astype(storage_dtype(ox.bf16.info))


def _sums(shape: tuple[int, ...], given: Sequence[Pattern], first: int, stop: int) -> Values:
    made: Values = _same(shape, given, first, stop).sum(1, dtype=np.float64, keepdims=True)
    return made.astype(np.float32)


def _total(shape: tuple[int, ...], given: Sequence[Pattern], first: int, stop: int) -> Values:
    values = given[0].values
    turns, left = divmod(prod(shape), len(values))
    total = values.reshape(-1, shape[1]).sum(0, dtype=np.float64) * turns + values[:left].reshape(-1, shape[1]).sum(0, dtype=np.float64)
    made: Values = total.astype(np.float32)[None, :]
    return made


def _places(shape: tuple[int, ...], first: int, stop: int) -> Any:
    rows, columns = shape
    return places((rows, columns), first, stop)


def _rows(shape: tuple[int, ...], given: Sequence[Pattern], first: int, stop: int) -> Values:
    return given[0][row_numbers(shape[0])[first:stop, None].astype(np.int64) * shape[1] + np.arange(shape[1])]


def _permuted(elements: int) -> Work:
    sequence = sequence_of(elements)
    shape = (2 * elements // (HEADS * DEPTH * sequence), sequence, HEADS, DEPTH)
    made = (shape[0], HEADS, sequence, DEPTH)

    def call(given: Sequence[Array], out: Array, stream: Stream) -> Call:
        return partial(ox.copy, out, given[0].permute(0, 2, 1, 3), stream=stream)

    def expected(patterns: Sequence[Pattern], first: int, stop: int) -> Values:
        rows, row = divmod(np.arange(first, stop), made[2])
        outer, middle = divmod(rows, made[1])
        return patterns[0][(((outer * shape[1] + row) * shape[2] + middle) * shape[3])[:, None] + np.arange(made[3])]

    return Work(
        name="permute", words="ox.copy, BSHD to BHSD of bf16", how=_HOW, inputs=(Spec(ox.bf16, shape),), output=Spec(ox.bf16, made),
        call=call, expected=expected, target=OF_COPY, peers=(("torch", OF_CONTIGUOUS),),
    )  # fmt: skip


# ---- on the host
def host_rows(bench: Bench, runs: int, say: Callable[[str], None]) -> Iterator[Measured]:
    """Host time of calls of which plans are ready: with the same arrays again, and with others at each call."""
    say("host time of one-liners")
    pairs = [(bench.device.empty((64, 256), ox.f32), bench.device.empty((64, 256), ox.f32)) for _ in range(_OTHERS)]
    a, b = pairs[0]
    others = cycle(pairs)
    stream = bench.stream
    calls: tuple[tuple[str, Call, float], ...] = (
        ("ox.copy, the same arrays again", lambda: ox.copy(b, a, stream=stream), _AGAIN_US),
        ("ox.copy, other arrays", lambda: ox.copy(*next(others), stream=stream), _OTHERS_US),
        ("ox.transform, the same arrays again", lambda: ox.transform(lambda v: v + 1, a, out=b, stream=stream), _AGAIN_US),
        ("ox.gather_rows, the same arrays again", _gathered([a], b, stream), _AGAIN_US),
        *(("ox.matmul, the same arrays again", call, _AGAIN_US) for call in _multiplied(bench)),
    )
    with bench.engine.context:
        for what, call, target in calls:
            samples = tuple([_host_us(bench, call) for _ in range(runs + 1)][1:])
            of = f"{_CALLS} calls in a row on a stream, Python {sys.version_info.major}.{sys.version_info.minor}"
            yield Measured(what=f"{what}, host time", unit="us", samples=samples, target=target, better="lower", of=of)


def _multiplied(bench: Bench) -> Iterator[Call]:
    """A small product; none on a device without tensor cores that it knows."""
    device, stream = bench.device, bench.stream
    if device.sm == mma.SM:
        x, y, z = (device.empty((64, 64), ox.bf16) for _ in range(3))
        yield lambda: ox.matmul(x, y, out=z, stream=stream)


def _host_us(bench: Bench, call: Call) -> float:
    """Microseconds per call: the median of several rounds."""
    took = []
    for _ in range(_ROUNDS):
        start = perf_counter()
        for _ in range(_CALLS):
            call()
        took.append(1e6 * (perf_counter() - start) / _CALLS)
        bench.stream.synchronize()
    return median(took)
