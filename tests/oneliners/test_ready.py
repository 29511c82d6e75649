"""Plans on a driver without a GPU: what a second call costs, whom it waits for, and what it keeps alive."""

from __future__ import annotations

import gc
from pathlib import Path
from weakref import ref

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.engines.cuda.engine import CudaEngine
from oxidecopy.errors import ArgumentError, LifetimeError
from oxidecopy.host.device import Device
from tests.helpers.fake_driver import FakeDriver
from tests.helpers.fake_engine import fake_device

SHAPE = (16, 64)
Scene = tuple[Device, CudaEngine, FakeDriver]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return fake_device(tmp_path)


def filled(dev: Device) -> ox.GlobalArray[ox.f32, tuple[int, int]]:
    return dev.array(np.zeros(SHAPE, np.float32))


def test_a_second_call_on_a_stream_is_one_driver_call(scene: Scene) -> None:
    dev, engine, driver = scene
    a, b, stream = filled(dev), filled(dev), ox.Stream(dev)
    with engine.context:
        for _ in range(2):
            ox.copy(b, a, stream=stream)
        driver.trace.clear()
        ox.copy(b, a, stream=stream)
        assert [call for call in driver.trace if not call.startswith("cuCtx")] == ["cuStreamIsCapturing", "cuLaunchKernelEx"]


def test_other_memory_of_the_kind_is_packed_and_not_recorded(scene: Scene) -> None:
    dev, engine, driver = scene
    arrays = [filled(dev) for _ in range(3)]
    for a in arrays[:2]:
        ox.copy(arrays[2], a)
    first, second = (launch.parameters[0] for launch in driver.launches)
    assert [p[:8] for p in (first, second)] == [a.buffer.address.to_bytes(8, "little") for a in arrays[:2]]
    assert first[8:] == second[8:]
    assert len(engine._codes) == 1


def test_numbers_are_packed_again_when_they_differ(scene: Scene) -> None:
    dev, _, driver = scene
    a, out = filled(dev), filled(dev)
    for number in (0.0, 0.0, -0.0, 2.5):
        ox.transform(lambda v, s: v + s, a, ox.value(number, ox.f32), out=out)
    one, two, three, four = (launch.parameters[0] for launch in driver.launches)
    assert one == two
    assert len({one, three, four}) == 3


def test_a_plan_keeps_no_memory_but_what_is_in_flight(scene: Scene) -> None:
    dev, engine, driver = scene
    a, b, stream = filled(dev), filled(dev), ox.Stream(dev)
    addresses = [a.buffer.address, b.buffer.address]
    driver.hold(stream.handle)
    for _ in range(3):
        ox.copy(b, a, stream=stream)
    del a, b
    gc.collect()
    assert all(driver.memory[at].alive for at in addresses)
    driver.finish()
    engine.synchronize()
    gc.collect()
    assert not any(driver.memory[at].alive for at in addresses)


class Owner:
    """Somebody else's memory."""


def test_other_handles_of_the_same_memory_are_told_that_the_stream_uses_it(scene: Scene) -> None:
    dev, engine, driver = scene
    memory, b, stream = filled(dev), filled(dev), ox.Stream(dev)
    owners = [Owner(), Owner()]
    tensors = [dev.borrow_pointer(memory.buffer.address, SHAPE, ox.f32, owner=owner) for owner in owners]
    gone = [ref(owner) for owner in owners]
    for each in (tensors[0], tensors[1], tensors[0]):
        ox.copy(b, each, stream=stream)
    driver.hold(stream.handle)
    ox.copy(b, tensors[1], stream=stream)
    del owners, tensors, each
    gc.collect()
    assert [owner() is not None for owner in gone] == [True, True]
    driver.finish()
    engine.synchronize()
    gc.collect()
    assert [owner() for owner in gone] == [None, None]


def test_freed_memory_is_an_error_at_the_users_line(scene: Scene) -> None:
    dev, _, _ = scene
    a, b = filled(dev), filled(dev)
    ox.copy(b, a)
    dev.free(a)
    with pytest.raises(LifetimeError) as caught:
        ox.copy(b, a)
    assert caught.value.diagnostics[0].site is not None
    assert caught.value.diagnostics[0].site.file == __file__


def test_memory_that_begins_between_multiples_of_16_bytes(scene: Scene) -> None:
    """What lies before it is part of what is borrowed, where the driver knows it; where it does not, there is no way."""
    dev, engine, driver = scene
    whole = dev.empty((1024,), ox.f32)
    part = dev.borrow_pointer(whole.buffer.address + 12, (500,), ox.f32, owner=whole)
    said = ox.copy(dev.empty((500,), ox.f32), part, explain=True)
    assert said.launches[0].startswith("copy_shifted")
    assert driver.launches[-1].parameters[0][:8] == whole.buffer.address.to_bytes(8, "little")  # a multiple of 16
    alone, _ = engine.borrow(whole.buffer.address + 4, 20, keep=whole, readonly=False)
    ours = ox.GlobalArray(dtype=ox.f32, shape=(5,), strides_bytes=(4,), buffer=alone, device=dev)
    with pytest.raises(ArgumentError) as caught:
        ox.copy(dev.empty((5,), ox.f32), ours)
    assert "OX1203" in caught.value.rules


def test_a_graph_keeps_what_it_was_given(scene: Scene) -> None:
    dev, engine, driver = scene
    a, b, stream = filled(dev), filled(dev), ox.Stream(dev)
    ox.copy(b, a, stream=stream)
    addresses = [a.buffer.address, b.buffer.address]
    with engine.context:
        driver.cuStreamBeginCapture(stream.handle, driver.CUstreamCaptureMode(1))
    said = ox.copy(b, a, stream=stream, explain=True)
    ox.copy(b, a, stream=stream)
    assert not said.kept
    with engine.context:
        graph = driver.cuStreamEndCapture(stream.handle)[1]
        executable = driver.cuGraphInstantiate(graph, 0)[1]
    del a, b, said
    gc.collect()
    with engine.context:
        driver.cuGraphLaunch(executable, stream.handle)
    stream.synchronize()
    assert all(driver.memory[at].alive for at in addresses)
    assert len(driver.launches) == 3


def test_arrays_of_its_own_are_new_for_every_call(scene: Scene) -> None:
    dev, engine, driver = scene
    a = dev.array(np.zeros((9, 51), np.float32))
    out = dev.empty((9, 51), ox.f16)
    said = ox.transform(lambda v, s: (v * s).cast(ox.f16), a, dev.array(np.zeros(51, np.float32)), out=out, explain=True)
    assert said.temporaries
    held = []
    for _ in range(3):
        ox.transform(lambda v, s: (v * s).cast(ox.f16), a, dev.array(np.zeros(51, np.float32)), out=out)
        engine.synchronize()
        gc.collect()
        held.append(len(driver.live))
    assert len(set(held)) == 1
