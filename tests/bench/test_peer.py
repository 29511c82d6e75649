"""Copies between two GPUs, measured on a driver that copies when something is launched."""

from __future__ import annotations

from pathlib import Path

import pytest

import oxidecopy as ox
from oxidecopy.bench import peer
from oxidecopy.engines.cuda.engine import CudaEngine
from oxidecopy.errors import ExecutionError
from tests.helpers.fake_driver import FakeDriver, FakeGpu
from tests.helpers.fake_kernels import interpreter_image, write_kernels

NBYTES = 1 << 18


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    driver = FakeDriver([FakeGpu(), FakeGpu()], images=[interpreter_image()])
    kernels = write_kernels(tmp_path)
    devices = {f"cuda:{i}": ox.Device(f"cuda:{i}", CudaEngine(i, driver=driver, kernels=kernels)) for i in range(2)}
    monkeypatch.setattr(ox.Device, "open", devices.__getitem__)
    monkeypatch.setattr(peer, "NBYTES", NBYTES)
    monkeypatch.setattr(peer, "_COLUMNS", (256,))
    monkeypatch.setattr(peer, "_PROMOTIONS", (0,))
    return driver


def test_a_row_for_each_direction_with_its_best_copy(two: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[peer.Way] = []
    made = peer.ways

    def kept(here: ox.Device, there: ox.Device, nbytes: int) -> tuple[peer.Way, ...]:
        found.extend(made(here, there, nbytes))
        return tuple(found)

    def copied(launch: object) -> None:
        for way in found:
            target, source = way.target.buffer, way.source.buffer
            two.memory[target.address].data[:] = two.memory[source.address].data

    monkeypatch.setattr(peer, "ways", kept)
    two.on_launch = copied
    rows = peer.measure_all(3, lambda _: None)
    assert [row.what.partition(",")[0] for row in rows] == ["loads from the other GPU", "stores to the other GPU", "one half loaded"]
    assert all(len(row.samples) == 3 for row in rows)


def test_a_copy_that_brings_nothing_is_an_error(two: FakeDriver) -> None:
    with pytest.raises(ExecutionError) as caught:
        peer.measure_all(3, lambda _: None)
    assert caught.value.rule == "OX6007"
