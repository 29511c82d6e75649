"""First launches in processes of their own, with the children played by a function; and what a launch costs, on an idle driver."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import oxidecopy as ox
from oxidecopy.bench import launches
from oxidecopy.bench.children import ChildError
from oxidecopy.bench.gpu import Bench
from oxidecopy.bench.measure import Absent, Measured
from oxidecopy.bench.peers import starts
from oxidecopy.engines.cuda.stream import Stream
from tests.helpers.fake_engine import fake_device


def test_rows_of_first_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, Path | None]] = []

    def played(script: str, *, compiled: Path | None = None) -> tuple[str, ...]:
        seen.append((script, compiled))
        if script == starts.TRITON:
            raise ChildError("ModuleNotFoundError: No module named 'torch'")
        if script == starts.CUPY:
            raise ChildError("RuntimeError: no")
        return ("40.0", "20.0", "4.0") if script == starts.OURS else ("80.0", "6.0")

    monkeypatch.setattr(launches, "child", played)
    rows = list(launches.first_rows(9, lambda _: None))
    assert [(row.what, row.cells[0]) for row in rows] == [
        ("first launch", "40.0 ms"),
        ("first launch, recording and proof", "20.0 ms"),
        ("first launch, cuda.core to ours", "2.000 x"),
        ("launch, host time, cuda.core to ours", "1.500 x"),
        ("first launch, CuPy to ours", "failed: RuntimeError: no"),
        ("launch, host time, CuPy to ours", "failed: RuntimeError: no"),
        ("first launch, Triton to ours", "not installed"),
        ("launch, host time, Triton to ours", "not installed"),
    ]
    assert [type(row) for row in rows] == [Measured] * 4 + [Absent] * 4
    ours = [compiled for script, compiled in seen if script == starts.OURS]
    assert len(ours) == 6  # one writes the compiled files, five are counted
    assert len(set(ours)) == 1
    assert None not in ours
    assert all(compiled is None for script, compiled in seen if script != starts.OURS)


@pytest.mark.parametrize("script", [starts.OURS, *(peer.script for peer in starts.PEERS)])
def test_scripts_are_python(script: str) -> None:
    ast.parse(script)


def test_a_launch_beside_the_bare_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launches, "_LAUNCHES", 2)
    monkeypatch.setattr(launches, "_IN_A_ROW", 1)
    device, engine, _ = fake_device(tmp_path)
    src, dst = (device.empty((1 << 12,), ox.f32) for _ in range(2))
    (row,) = launches.launch_rows(Bench(device, engine, Stream.create(engine.context), src, dst), 3, lambda _: None)
    assert len(row.samples) == 3
    assert row.floor is not None
    assert row.floor.of == "cuLaunchKernelEx"
