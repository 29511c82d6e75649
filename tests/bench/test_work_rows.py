"""What is said of the works, and of peers that are there, missing, wrong or broken; on a driver whose kernels do nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.bench import peers, work, work_rows
from oxidecopy.bench.gpu import Bench
from oxidecopy.bench.measure import Absent, Measured
from oxidecopy.bench.peers import Given, with_cuda
from oxidecopy.bench.work import Work
from oxidecopy.bench.work_rows import Ground
from oxidecopy.engines.cuda.nvrtc import compile_cubin
from oxidecopy.engines.cuda.stream import Stream
from oxidecopy.errors import ExecutionError
from tests.helpers.fake_engine import fake_device

NBYTES = 1 << 20


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    monkeypatch.setattr(work_rows, "_PATTERN_BYTES", 1 << 17)  # a quarter of a half
    device, engine, _ = fake_device(tmp_path)
    src, dst = (device.empty((NBYTES // 4,), ox.f32) for _ in range(2))
    return work_rows.prepare(Bench(device, engine, Stream.create(engine.context), src, dst))


def small() -> dict[str, Work]:
    return {ways[0].words: ways[0] for ways in work.works(NBYTES // 8, 512)}


def right(ground: Ground, measured: Work) -> None:
    """Puts what is expected into the output."""
    patterns = [work.Pattern(p) for p in ground.patterns]
    ground.bench.engine.write(ground.bench.dst.buffer, 0, memoryview(measured.expected(patterns, 0, measured.rows[0]).tobytes()))


def test_both_halves_repeat_their_patterns(ground: Ground) -> None:
    held = np.frombuffer(ground.bench.engine.read(ground.bench.src.buffer, 0, NBYTES), np.float32).reshape(2, 4, -1)
    assert (held == np.stack(ground.patterns)[:, None]).all()


def test_results_are_compared(ground: Ground) -> None:
    fused = small()["map of two f32 to bf16, five operations"]
    ground.clear(fused)
    with pytest.raises(ExecutionError, match="OX6007"):
        ground.check(fused, "nobody", 0.0)
    right(ground, fused)
    ground.check(fused, "nobody", 0.0)
    last = fused.output.nbytes - 2
    ground.bench.engine.fill(ground.bench.dst.buffer, last, 2, 0x7F)
    with pytest.raises(ExecutionError, match="by nobody: the result is not what numpy gives"):
        ground.check(fused, "nobody", 0.01)


def test_sums_begin_at_zero(ground: Ground) -> None:
    total = small()["store-reduce add of all boxes into one"]
    ground.clear(total)
    assert not any(ground.bench.engine.read(ground.bench.dst.buffer, 0, total.output.nbytes))


@pytest.mark.parametrize(
    ("raised", "said"),
    [(ModuleNotFoundError("No module named 'torch'"), "not installed"), (ValueError("a\nb"), "failed: ValueError: a"), (None, "")],
)
def test_a_row_for_each_peer(ground: Ground, raised: Exception | None, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fused = small()["map of two f32 to bf16, five operations"]

    def start(_: str, given: Given) -> Mapping[str, Callable[[], object]]:
        if raised is not None:
            raise raised
        assert [a.shape for a in given.inputs] == [spec.shape for spec in fused.inputs]
        return {"slow": lambda: None, "fast": lambda: None}

    monkeypatch.setattr(work_rows, "peer", lambda _: SimpleNamespace(start=start))
    monkeypatch.setattr(Ground, "check", lambda *_: None)
    first, *others = work_rows.rows_of(ground, [fused], 3, lambda _: None)
    assert isinstance(first, Measured)
    assert (first.what, first.target) == ("map of two f32 to bf16, five operations, of a copy", 0.95)
    assert [row.what.rpartition(", ")[2] for row in others] == ["Triton to ours", "CuPy to ours"]
    assert all(isinstance(row, Absent) and row.why == said if said else isinstance(row, Measured) for row in others)


def test_a_wrong_peer_is_no_peer(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    cast = small()["copy with a cast from f32 to bf16"]
    monkeypatch.setattr(work_rows, "peer", lambda _: SimpleNamespace(start=lambda *_: {}))
    row = work_rows._beside(ground, cast, ground.given(cast), "torch", (1.0,), 1.0, 3)
    assert isinstance(row, Absent)
    assert "by torch: the result is not what numpy gives" in row.why


def test_a_wrong_result_is_a_row_that_failed(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_rows, "works", lambda elements: work.works(elements, 512))
    monkeypatch.setattr(work_rows, "lines", lambda _: ())
    rows = list(work_rows.work_rows(ground.bench, 3, lambda _: None))
    assert [(row.what, row.passed, row.verdict) for row in rows] == [(f"{words}, of a copy", False, "FAILED") for words in small()]
    assert all("the result is not what numpy gives [OX6007]" in row.cells[0] for row in rows)


def test_every_work_has_a_row_on_arrays_of_a_bench(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ground, "check", lambda *_: None)
    monkeypatch.setattr(work_rows, "works", lambda elements: work.works(elements, 512))
    monkeypatch.setattr(work_rows, "lines", lambda _: ())
    rows = list(work_rows.work_rows(ground.bench, 3, lambda _: None))
    assert [row.what for row in rows if isinstance(row, Measured)] == [f"{words}, of a copy" for words in small()]


@pytest.mark.parametrize("name", ["torch", "Triton", "CuPy", "CUDA C++"])
def test_peers_are_found_without_their_libraries(name: str) -> None:
    assert callable(peers.peer(name).start)


def test_the_atomics_are_compiled_for_the_output(ground: Ground) -> None:
    pytest.importorskip("nvidia.cuda_nvrtc")
    total = small()["store-reduce add of all boxes into one"]
    given = ground.given(total)
    assert with_cuda.options(given)[1:] == ("-DROWS=64u", "-DCOLUMNS=256u", "-DWIDTH=512u")
    cubin = compile_cubin(with_cuda.SOURCE, options=with_cuda.options(given)).cubin
    made = with_cuda.launch(cubin, "add_four", 4, given)
    assert made.grid == (NBYTES // 8 // 4 // 256, 1, 1)
    assert [p.value for p in made.parameters] == [a.buffer.address.to_bytes(8, "little") for a in (*given.inputs, given.output)]
