"""Each measured one-liner, on the simulator, gives what numpy makes of the same data; and what rows say of them and of their calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import oxidecopy as ox
from oxidecopy.bench import lines, work_rows
from oxidecopy.bench.gpu import Bench
from oxidecopy.bench.measure import Measured
from oxidecopy.bench.work import Work
from oxidecopy.bench.work_rows import Ground
from oxidecopy.engines.cuda.stream import Stream
from tests.helpers.fake_engine import fake_device
from tests.helpers.works import check_against_numpy

ELEMENTS, COLUMNS = 1 << 16, 256
LINES = {line.words: line for line in lines.lines(ELEMENTS, COLUMNS)}
NO_STREAM: Any = None


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_each_gives_what_numpy_gives(line: Work) -> None:
    check_against_numpy(line, line.call, NO_STREAM)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    device, engine, _ = fake_device(tmp_path)
    src, dst = (device.empty((ELEMENTS,), ox.f32) for _ in range(2))
    return Bench(device, engine, Stream.create(engine.context), src, dst)


def test_a_row_of_a_line(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ground, "check", lambda *_: None)
    line = next(lines.lines(ELEMENTS // 2, COLUMNS))
    row = next(work_rows.rows_of(Ground(bench, ()), [line], 2, lambda _: None))
    assert isinstance(row, Measured)
    assert (row.what, row.floor is not None) == ("ox.copy of f32, of a copy", True)


def test_rows_of_calls_on_the_host(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_CALLS", 2)
    monkeypatch.setattr(lines, "_ROUNDS", 1)
    rows = list(lines.host_rows(bench, 2, lambda _: None))
    assert [(row.what.split(",")[0], row.target) for row in rows] == [
        ("ox.copy", 6.0), ("ox.copy", 15.0), ("ox.transform", 6.0), ("ox.gather_rows", 6.0), ("ox.matmul", 6.0),
    ]  # fmt: skip
