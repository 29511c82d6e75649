"""Streams and events of a device: the same words on the simulator and on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.engines.cuda.context import PrimaryContext
from oxidecopy.engines.cuda.stream import stream_handle
from oxidecopy.errors import ArgumentError, LifetimeError
from oxidecopy.host.device import Device
from tests.helpers.fake_driver import FakeDriver
from tests.helpers.memory_engine import MemoryEngine


@dataclass(slots=True)
class ContextEngine(MemoryEngine):  # type: ignore[misc]  # final, and here for its memory only
    """An engine with a context."""

    context: PrimaryContext | None = None


@pytest.fixture
def driver() -> FakeDriver:
    return FakeDriver()


@pytest.fixture
def gpu(driver: FakeDriver) -> Iterator[Device]:
    context = PrimaryContext(driver, 0)
    yield Device("cuda:0", ContextEngine(name="cuda:0", context=context))
    context.close()


@pytest.fixture(params=["sim", "gpu"])
def dev(request: pytest.FixtureRequest) -> Device:
    device: Device = ox.Device.open("sim") if request.param == "sim" else request.getfixturevalue("gpu")
    return device


# ---- the same on both
def test_order_and_time(dev: Device) -> None:
    one, two = ox.Stream(dev), ox.Stream(dev)
    start = one.record()
    end = two.record(ox.Event(dev))
    one.wait(end)
    one.synchronize()
    end.synchronize()
    assert one.query()
    assert end.query()
    assert end.milliseconds_since(start) >= 0
    assert not one.capturing
    assert (one.device, start.device) == (dev, dev)


def test_closed(dev: Device) -> None:
    stream, event = ox.Stream(dev), ox.Event(dev)
    assert (repr(stream), repr(event)) == (f"Stream('{dev.name}')", f"Event('{dev.name}')")
    for each in (stream, event, stream, event):
        each.close()
    other = ox.Stream(dev)
    uses: list[Callable[[], object]] = [stream.synchronize, stream.query, stream.record, stream.__cuda_stream__, lambda: stream.handle]
    uses += [event.query, event.synchronize, lambda: other.wait(event), lambda: other.record(event), lambda: stream.capturing]
    for use in uses:
        with pytest.raises(LifetimeError) as caught:
            use()
        assert caught.value.rule == "OX5322"
        site = caught.value.diagnostics[0].site
        assert site is not None
        assert site.file == __file__
    assert (repr(stream), repr(event)) == (f"Stream('{dev.name}', closed)", f"Event('{dev.name}', closed)")


def test_events_without_a_time(dev: Device) -> None:
    stream = ox.Stream(dev)
    good, never, untimed = stream.record(), ox.Event(dev), stream.record(ox.Event(dev, timing=False))
    for start, end, got in ((good, never, "never recorded"), (untimed, good, "made with timing=False")):
        with pytest.raises(LifetimeError) as caught:
            end.milliseconds_since(start)
        assert (caught.value.rule, caught.value.diagnostics[0].got) == ("OX5323", got)


def test_events_of_another_device(dev: Device) -> None:
    stream, theirs = ox.Stream(dev), ox.Event(ox.Device.open("sim-fast"))
    uses: tuple[Callable[[], object], ...] = (lambda: stream.record(theirs), lambda: stream.record().milliseconds_since(theirs))
    for use in uses:
        with pytest.raises(ArgumentError) as caught:
            use()
        assert caught.value.rule == "OX5321"


# ---- the simulator
def test_the_simulators_streams_are_none_of_cudas() -> None:
    dev = ox.Device.open("sim")
    stream = ox.Stream(dev)
    assert stream.handle == 0
    for use in (lambda: stream_handle(stream), lambda: ox.Stream.of(dev, 0)):
        with pytest.raises(ArgumentError) as caught:
            use()
        assert caught.value.rule == "OX5321"


def test_launches_take_them() -> None:
    @ox.pipeline(threads=32)
    def fill(cta: ox.Cta, out: ox.GlobalArray[ox.f32, ox.D2]) -> None:
        tile = cta.shared(ox.f32, (32, 32), align=ox.A128)
        cta.fill(tile, 1)
        cta.sync()
        cta.store(out, tile, (0, 0))

    dev = ox.Device.open("sim")
    out = dev.zeros((32, 32), ox.f32)
    fill[1].on(ox.Stream(dev))(out)
    assert (out.numpy() == np.ones((32, 32), np.float32)).all()


# ---- a GPU
def test_a_stream_of_the_gpu(driver: FakeDriver, gpu: Device) -> None:
    stream = ox.Stream(gpu)
    assert stream.handle in driver.streams
    assert stream_handle(stream) == stream.handle
    driver.hold(stream.handle)
    event = stream.record()
    assert not stream.query()
    assert not event.query()
    event.synchronize()
    assert stream.query()
    handle = stream.handle
    stream.close()
    assert handle not in driver.streams


def test_a_stream_of_another_library(driver: FakeDriver, gpu: Device) -> None:
    made = ox.Stream(gpu)
    for theirs in (made, made.handle):
        stream = ox.Stream.of(gpu, theirs)
        assert (stream.handle, stream.device) == (made.handle, gpu)
        stream.close()
    assert made.handle in driver.streams
    with pytest.raises(ArgumentError) as caught:
        ox.Stream.of(gpu, "theirs")  # type: ignore[arg-type]  # the mistake
    assert caught.value.rule == "OX5320"


@pytest.mark.parametrize("wrong", [3, "sim", (), MemoryEngine(name="sim")])
def test_what_is_no_device_and_no_event(dev: Device, wrong: Any) -> None:
    stream, event = ox.Stream(dev), ox.Event(dev)
    uses: list[Callable[[], object]] = [
        lambda: ox.Stream(wrong),
        lambda: ox.Stream.of(wrong, 0),
        lambda: ox.Event(wrong),
        lambda: stream.wait(wrong),
        lambda: stream.record(wrong),
        lambda: event.milliseconds_since(wrong),
    ]
    for use in uses:
        with pytest.raises(ArgumentError) as caught:
            use()
        assert caught.value.rules == ("OX5321",)
