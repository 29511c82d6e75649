"""What is measured is kept in the process and in a file, which is believed only where it fits; nothing here needs a GPU but the times."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.host.device import Device
from oxidecopy.oneliners import tuning
from oxidecopy.oneliners.measured import Way
from tests.helpers.fake_engine import fake_device

SHAPE = (512, 1024)


@pytest.fixture
def dev(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    monkeypatch.setenv(tuning.FOLDER_VARIABLE, str(tmp_path / "cache"))
    tuning.forget()
    yield fake_device(tmp_path)[0]
    tuning.forget()


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was measured; the last one is the fastest."""
    seen: list[Any] = []

    def measure(work: Any, choice: Any, stream: Any) -> float:
        del work, stream
        seen.append(choice)
        return 100.0 - len(seen)

    monkeypatch.setattr(tuning, "_measure", measure)
    return seen


def copied(dev: Device, shape: tuple[int, int] = SHAPE) -> ox.Explanation[Any]:
    return ox.copy(dev.empty(shape, ox.f32), dev.empty(shape, ox.f32), tune=True, explain=True)


def cache(tmp_path: Path) -> Path:
    (found,) = (tmp_path / "cache").iterdir()
    return found


def test_the_fastest_way_is_taken_and_kept(dev: Device, measured: list[Any], tmp_path: Path) -> None:
    said = copied(dev)
    assert len(measured) > 3
    assert all(isinstance(choice, Way) for choice in measured)
    assert f"{measured[-1].words}: as it was asked for" in said.text
    assert said.text.index(f"{100 - len(measured):.1f} us") < said.text.index("99.0 us")  # all of them, fastest first
    count = len(measured)
    copied(dev)
    assert len(measured) == count  # known in this process
    tuning.forget()
    assert str(cache(tmp_path)) in copied(dev).text
    assert len(measured) == count  # and in the file
    copied(dev, (256, 1024))
    assert len(measured) > count
    assert len(json.loads(cache(tmp_path).read_text())["entries"]) == 2


def test_calls_that_do_not_ask_take_what_was_measured(dev: Device, measured: list[Any]) -> None:
    a, b, stream = dev.empty(SHAPE, ox.f32), dev.empty(SHAPE, ox.f32), ox.Stream(dev)
    ox.copy(b, a, stream=stream)
    before = ox.copy(b, a, stream=stream, explain=True)
    tuned = ox.copy(b, a, stream=stream, tune=True, explain=True)
    engine: Any = dev.engine
    grid = int(tuned.launches[0].split("[")[1].split("]")[0].replace(",", ""))
    for _ in range(3):
        ox.copy(b, a, stream=stream)
        assert engine.context.driver.launches[-1].grid == (grid, 1, 1)
    assert before.launches != tuned.launches == ox.copy(b, a, stream=stream, explain=True).launches
    assert measured


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "[]",
        lambda text: text.replace('"format": 1', '"format": 2'),
        lambda text: text.replace("H200", "H100"),
        lambda text: text.replace('"entries": {', '"entries": {"x": 3, '),
        lambda text: "[" * 200_000,
        lambda text: " " * (5 << 20),
    ],
)
def test_a_broken_file_is_ignored_with_a_warning(dev: Device, measured: list[Any], tmp_path: Path, edit: Any) -> None:
    copied(dev)
    cache(tmp_path).write_text(edit(cache(tmp_path).read_text()))
    tuning.forget()
    count = len(measured)
    with pytest.warns(RuntimeWarning, match="cannot be read"):
        copied(dev)
    assert len(measured) == 2 * count
    tuning.forget()
    copied(dev)  # it was written anew
    assert len(measured) == 2 * count


def test_a_way_that_would_not_be_measured_is_not_taken(dev: Device, measured: list[Any], tmp_path: Path) -> None:
    copied(dev)
    data = json.loads(cache(tmp_path).read_text())
    for entry in data["entries"].values():
        entry["choice"][2] = 1 << 30
    cache(tmp_path).write_text(json.dumps(data))
    tuning.forget()
    count = len(measured)
    copied(dev)
    assert len(measured) == 2 * count


def test_a_folder_that_cannot_be_written_to(dev: Device, measured: list[Any], tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.warns(RuntimeWarning, match="is not kept"):
        copied(dev)
    count = len(measured)
    copied(dev)
    assert len(measured) == count


def test_what_would_be_done_twice_is_measured_on_a_copy(dev: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []

    def measure(work: Any, choice: Any, stream: Any) -> float:
        del choice, stream
        seen.append(work.repeatable)
        return 1.0

    monkeypatch.setattr(tuning, "_measure", measure)
    a, total = dev.array(np.zeros((64, 64), np.float32)), dev.zeros((64,), ox.f32)
    ox.reduce_into(total, a, ox.reduce.add, tune=True)
    ox.transform(lambda v: v + v, a, out=a, tune=True)
    assert not any(seen)
    ox.transform(lambda v: v + v, a, out=dev.empty((64, 64), ox.f32), tune=True)
    ox.gather_rows(a, dev.array(np.zeros(4, np.int32), ox.i32), out=dev.empty((4, 64), ox.f32), tune=True)
    assert seen[-1]


def test_launches_are_timed_by_events(dev: Device) -> None:
    assert "measured now" in copied(dev).text


def test_the_simulator_is_not_measured() -> None:
    a = ox.Device.open("sim").array(np.zeros((8, 64), np.float32))
    assert "says nothing about speed" in ox.copy(None, a, tune=True, explain=True).text
