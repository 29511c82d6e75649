"""Products on tensor cores: `ox.matmul` beside cuBLAS, through torch, and a product in Triton, on the same arrays in the same run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from time import perf_counter
from typing import Any, Final, cast, final

import ml_dtypes
import numpy as np
import numpy.typing as npt

import oxidecopy as ox
from oxidecopy.bench.gpu import Bench
from oxidecopy.bench.measure import Measured
from oxidecopy.bench.peers import Given, peer, why_absent
from oxidecopy.bench.results import result
from oxidecopy.engines.cuda.engine import CudaEngine
from oxidecopy.engines.cuda.stream import Stream
from oxidecopy.errors import DeviceError, Diagnostic, ExecutionError

_OF_CUBLAS: Final = 0.85
_OF_CUBLAS_FP8: Final = 0.80
_OF_TWO: Final = 1.0
_FIRST_MS: Final = 30.0
_RANDOM: Final = (1 << 22) + 3  # numbers, which then come again: an odd count, so that rows differ
_SAMPLES: Final = 64  # rows of the result that are checked
_NUMPY: Final[dict[type[ox.DType], Any]] = {ox.bf16: ml_dtypes.bfloat16, ox.e4m3: ml_dtypes.float8_e4m3fn}
_Array = ox.GlobalArray[Any, Any]
Floats = npt.NDArray[np.float32]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One product: of `batch` pairs of m x k and k x n, where n x k is what lies in memory. `work` is what the peers know it as."""

    m: int
    n: int
    k: int
    batch: int = 1
    dtype: type[ox.DType] = ox.bf16
    work: str = "product"
    target: float = _OF_CUBLAS

    @property
    def words(self) -> str:
        """As rows have it."""
        shape = f"{self.m}x{self.n}x{self.k}"
        what = shape if self.batch == 1 else f"{self.batch} of {shape}"
        return f"{self.dtype.__name__} {what}" + (", bias and gelu" if self.work == "product, bias, gelu" else "")

    @property
    def flops(self) -> int:
        """Multiplications and additions."""
        return 2 * self.batch * self.m * self.n * self.k


CASES: Final = (
    Case(m=8192, n=8192, k=8192),
    Case(m=4096, n=4096, k=4096),
    Case(m=16384, n=4096, k=4096),
    Case(m=4096, n=4096, k=16384),
    Case(m=1000, n=3000, k=5000),
    Case(m=512, n=512, k=512, batch=64, work="products"),
    Case(m=8192, n=8192, k=8192, dtype=ox.e4m3, work="product of fp8", target=_OF_CUBLAS_FP8),
    Case(m=4096, n=4096, k=4096, work="product, bias, gelu", target=_OF_TWO),
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Arrays:
    """The operands of a case, and what else its epilogue reads."""

    a: _Array
    b: _Array
    bias: _Array
    out: _Array
    rows: Floats  # what the first rows of the result must be


def measure_all(runs: int, say: Callable[[str], None]) -> list[Measured]:
    """A row for each case and peer, and one for a first call.

    Raises:
        DeviceError: there is no GPU.
        ExecutionError: a result is wrong.
    """
    device = ox.Device.open("cuda:0")
    engine = device.engine
    if not isinstance(engine, CudaEngine):
        raise DeviceError(Diagnostic(rule="OX6014", what="this benchmark needs a GPU", got=device.name))
    nothing = device.empty((1,), ox.f32)
    bench = Bench(device, engine, Stream.create(engine.context), nothing, nothing)
    rows = [row for case in CASES for row in _rows(bench, case, runs, say)]
    say("first call")
    return [*rows, _first(bench)]


def _rows(bench: Bench, case: Case, runs: int, say: Callable[[str], None]) -> Iterator[Measured]:
    say(case.words)
    arrays = arranged(bench, case)
    call = multiplying(case, arrays, bench.stream)
    times = bench.times_ms(call, runs)
    check(case, arrays)
    ours = median(times)
    given = Given(engine=bench.engine, stream=bench.stream, inputs=(arrays.a, arrays.b, arrays.bias), output=arrays.out, scalars=())
    fused = case.work == "product, bias, gelu"
    peers: list[tuple[str, str, float | None]] = [("torch", "cuBLAS, through torch", None if fused else case.target)]
    if fused:
        peers.append(("Triton", "cuBLAS, then Triton elementwise", case.target))
    elif case.work == "product":
        peers.append(("Triton", "a product in Triton", None))
    for name, words, target in peers:
        say(f"{case.words}, {name}")
        try:
            started = peer(name).start(case.work, given)
            theirs, way = min((median(bench.times_ms(start, runs)), way) for way, start in started.items())
        except Exception as error:  # whatever a peer ends with, the rows of others are measured
            of = f"{case.words}: {case.flops / ours / 1e9:.0f} TFLOP/s; {words}: {why_absent(error)}"
            yield Measured(
                what=f"{case.words}, of {words}", unit="x", samples=(float("nan"),), target=None, better="higher", of=of
            )  # fmt: skip
            continue
        yield Measured(
            what=f"{case.words}, of {words}", unit="x", samples=tuple(theirs / t for t in times), target=target, better="higher",
            of=f"{case.flops / ours / 1e9:.0f} TFLOP/s; {way} {case.flops / theirs / 1e9:.0f}",
        )  # fmt: skip


def multiplying(case: Case, arrays: Arrays, stream: Any) -> Callable[[], object]:
    """The call that is measured."""
    turned = arrays.b.T if case.batch == 1 else arrays.b.permute(0, 2, 1)
    if case.work == "product, bias, gelu":
        return lambda: ox.matmul(arrays.a, turned, out=arrays.out, epilogue=_biased, reads=(arrays.bias,), stream=stream)
    return lambda: ox.matmul(arrays.a, turned, out=arrays.out, stream=stream)


def _biased(total: Any, bias: Any) -> Any:
    return (total + bias).gelu().cast(ox.bf16)


def arranged(bench: Bench, case: Case) -> Arrays:
    """Random operands, and what the first rows of the result must be."""
    device, batch = bench.device, () if case.batch == 1 else (case.batch,)
    random = np.random.default_rng(0)
    some = random.standard_normal(_RANDOM, np.float32).astype(_NUMPY[case.dtype])
    a, b = (np.resize(some[at:], (*batch, rows, case.k)) for at, rows in ((0, case.m), (1, case.n)))
    bias = random.standard_normal(case.n, np.float32)
    first = (0,) * len(batch)
    rows = a[first][:_SAMPLES].astype(np.float32) @ b[first].astype(np.float32).T
    if case.work == "product, bias, gelu":
        rows = _gelu(rows + bias)
    out = device.empty((*batch, case.m, case.n), ox.bf16)
    arrays = [device.array(cast("Any", x), cast("Any", t), pad=True) for x, t in ((a, case.dtype), (b, case.dtype), (bias, ox.f32))]
    return Arrays(a=arrays[0], b=arrays[1], bias=arrays[2], out=out, rows=rows)


def _gelu(x: Floats) -> Floats:
    """The product of x and Phi(x), by an approximation of the error function (Abramowitz and Stegun 7.1.26) that is off by 2e-7 at most."""
    z = np.abs(x) / np.sqrt(2.0)
    t = 1 / (1 + 0.3275911 * z)
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    erf = np.sign(x) * (1 - series * np.exp(-z * z))
    return cast("Floats", (0.5 * x * (1 + erf)).astype(np.float32))


def check(case: Case, arrays: Arrays) -> None:
    """The first rows, to what bf16 can say.

    Raises:
        ExecutionError: they differ by more.
    """
    made = arrays.out if case.batch == 1 else arrays.out.select(0, 0)
    found = made[:_SAMPLES].numpy().astype(np.float32)
    off = np.abs(found - arrays.rows) - 2.0**-7 * np.abs(arrays.rows)
    if not (off < 1e-2 * np.sqrt(case.k)).all():
        raise ExecutionError(Diagnostic(rule="OX6007", what=f"{case.words}: the result is wrong", got=f"off by {off.max():g}"))


def _first(bench: Bench) -> Measured:
    """The first call with shapes that nobody has asked for, kernels loaded."""
    taken = []
    for i in range(3):
        arrays = arranged(bench, replace(CASES[1], m=1024 + 64 * i, n=2048 + 64 * i, k=512 + 64 * i))
        call = multiplying(CASES[1], arrays, bench.stream)
        start = perf_counter()
        call()
        taken.append(1e3 * (perf_counter() - start))
        bench.stream.synchronize()
    return Measured(
        what="first call of ox.matmul with new shapes", unit="ms", samples=tuple(taken), target=_FIRST_MS, better="lower",
        of="recording, proof, device code and launch; each with shapes of its own",
    )  # fmt: skip


def as_data(rows: Sequence[Measured], runs: int) -> dict[str, object]:
    """The rows with what is needed to measure them again."""
    engine = ox.Device.open("cuda:0").engine
    context = engine.context if isinstance(engine, CudaEngine) else None
    device = context.gpu.name if context else ""
    return result(f"oxidecopy bench matmul --runs {runs}", rows, {"device": device, "load": None})
