"""Plans on a driver without a GPU: what a second call costs, whom it waits for, and what it keeps alive."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any
from weakref import ref

import numpy as np
import pytest

import oxidecopy as ox
from oxidecopy.engines.cuda.engine import CudaEngine
from oxidecopy.engines.cuda.tensor_map import MapEncoder
from oxidecopy.errors import ArgumentError, InputError, LifetimeError
from oxidecopy.host.device import Device
from oxidecopy.oneliners import copying, gathering, reducing, transforming
from oxidecopy.oneliners.calls import hot
from tests.helpers.fake_driver import FakeDriver
from tests.helpers.fake_engine import fake_device
from tests.helpers.fake_gpu import FakeStream

SHAPE = (16, 64)
Scene = tuple[Device, CudaEngine, FakeDriver]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return fake_device(tmp_path)


def filled(dev: Device) -> ox.GlobalArray[ox.f32, tuple[int, int]]:
    return dev.array(np.zeros(SHAPE, np.float32))


def test_a_plan_is_looked_for_once_among_those_for_arrays_of_ours(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    dev = scene[0]
    a, b, sums, numbers = (
        filled(dev),
        filled(dev),
        dev.array(np.zeros((SHAPE[0], 1), np.float32)),
        dev.array(np.zeros(SHAPE[0], np.int32), ox.i32),
    )
    ox.copy(b, a)
    asked: list[object] = []

    def looked(kind: object, *rest: Any) -> bool:
        asked.append(kind)
        return hot(kind, *rest)

    for module in (copying, gathering, reducing, transforming):
        monkeypatch.setattr(module, "hot", looked)
    ox.copy(dev.array(np.zeros(SHAPE[0], np.int32), ox.i32), numbers)
    ox.gather_rows(a, numbers, out=b)
    ox.reduce_into(sums, a, ox.reduce.add)
    ox.transform(lambda v: v + 1, a, out=b)
    assert len(asked) == 4


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


def test_numbers_that_are_written_alike_are_told_apart(scene: Scene) -> None:
    """0.1 is another number in each of numpy's types, and `str` says the same of all."""
    dev, _, driver = scene
    a, out = filled(dev), filled(dev)
    numbers: list[Any] = [0.1, np.float16(0.1), 0.1]
    for number in numbers:
        for _ in range(3):
            ox.transform(lambda v, s: v + s, a, ox.value(number, ox.f32), out=out)
    parameters = [launch.parameters[0] for launch in driver.launches]
    assert [parameters.index(p) for p in parameters] == [0, 0, 0, 3, 3, 3, 0, 0, 0]


@pytest.mark.parametrize("step", [2, 4, 8])
def test_words_around_elements_that_lie_apart_are_there_or_not(scene: Scene, step: int) -> None:
    """A plan that loads elements as parts of words is none for memory that ends, or begins, in the middle of a word."""
    dev, _, _ = scene
    n = 1024
    base, out = dev.array(np.zeros(1 << 15, np.uint8)).buffer, dev.array(np.zeros(n, np.uint8))

    def copied(first: int, lead: int, nbytes: int) -> str:
        whole = dev.borrow_pointer(base.address + first, (nbytes,), ox.u8, owner=base)
        said = ox.copy(out, whole[lead : lead + (n - 1) * step + 1 : step], explain=True)
        return said.launches[0].partition("[")[0]

    assert copied(0, 0, n * step) == "copy_parts"
    assert copied(0, 0, (n - 1) * step + 1) != "copy_parts"
    assert copied(128, 0, n * step) == "copy_parts"


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


def test_a_plan_keeps_nothing_that_its_function_closes_over(scene: Scene) -> None:
    dev, _, _ = scene
    a, out = filled(dev), filled(dev)

    def computed() -> ref[Any]:
        other = filled(dev)
        ox.transform(lambda v: v * len(other.shape), a, out=out)
        return ref(other.buffer)

    gone = computed()
    gc.collect()
    assert gone() is None


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
    addresses = [a.buffer.address, b.buffer.address]
    with engine.context:
        for _ in range(4):  # the next call would be the driver's alone
            ox.copy(b, a, stream=stream)
        before = len(driver.launches)
        driver.cuStreamBeginCapture(stream.handle, driver.CUstreamCaptureMode(1))
        said = ox.copy(b, a, stream=stream, explain=True)
        ox.copy(b, a, stream=stream)
        assert not said.kept
        graph = driver.cuStreamEndCapture(stream.handle)[1]
        executable = driver.cuGraphInstantiate(graph, 0)[1]
    del a, b, said
    gc.collect()
    with engine.context:
        driver.cuGraphLaunch(executable, stream.handle)
    stream.synchronize()
    assert all(driver.memory[at].alive for at in addresses)
    assert len(driver.launches) == before + 2
    assert not set(launches(driver)[:before]) & set(launches(driver)[before:])  # each has a report of its own


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


# ---- tensors of torch
class Storage:
    """What keeps a tensor's memory."""


class Tensor:
    """As much of torch's as is asked for; its memory is that of an array of ours."""

    is_cuda, is_sparse, is_quantized, requires_grad, dtype = True, False, False, False, "torch.float32"

    def __init__(self, memory: ox.GlobalArray[ox.f32, tuple[int, int]]) -> None:
        self.memory, self.storage, self.shape = memory, Storage(), SHAPE

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def data_ptr(self) -> int:
        return self.memory.buffer.address

    def stride(self) -> tuple[int, ...]:
        return (SHAPE[1], 1)

    def untyped_storage(self) -> Storage:
        return self.storage

    def get_device(self) -> int:
        return 0

    def element_size(self) -> int:
        return 4

    def is_neg(self) -> bool:
        return False

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __dlpack__(self, **more: object) -> object:
        raise BufferError("it is read by its attributes")


Tensor.__module__ = "torch"


@pytest.fixture
def torch_stream(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The handle of the stream that torch works on, to be set."""
    handle = [0]
    module = SimpleNamespace(_C=SimpleNamespace(_cuda_getCurrentRawStream=lambda _number: handle[0]))
    monkeypatch.setitem(sys.modules, "torch", module)
    return handle


def test_a_tensor_is_borrowed_once_for_as_long_as_it_is_what_it_was(scene: Scene, torch_stream: list[int]) -> None:
    dev, engine, driver = scene
    tensor, out, stream = Tensor(filled(dev)), filled(dev), ox.Stream(dev)
    torch_stream[0] = stream.handle
    with engine.context:
        for _ in range(3):
            ox.copy(out, tensor, stream=stream)
        driver.trace.clear()
        ox.copy(out, tensor, stream=stream)
        assert [call for call in driver.trace if not call.startswith("cuCtx")] == ["cuStreamIsCapturing", "cuLaunchKernelEx"]
    moved = tensor.memory = filled(dev)
    ox.copy(out, tensor, stream=stream)
    assert driver.launches[-1].parameters[0][:8] == moved.buffer.address.to_bytes(8, "little")
    tensor.requires_grad = True
    with pytest.raises(InputError, match="read by its attributes"):
        ox.copy(out, tensor, stream=stream)


def test_tensors_alone_are_taken_on_the_device_of_the_stream(scene: Scene, torch_stream: list[int]) -> None:
    dev, _, driver = scene
    a, b, stream = Tensor(filled(dev)), Tensor(filled(dev)), ox.Stream(dev)
    torch_stream[0] = stream.handle
    assert ox.copy(b, a, stream=stream) is b
    assert driver.launches[-1].parameters[0][:8] == a.data_ptr().to_bytes(8, "little")


def test_a_stream_waits_for_what_torch_does_on_another_one(scene: Scene, torch_stream: list[int]) -> None:
    dev, _, driver = scene
    tensor, out, stream, other = Tensor(filled(dev)), filled(dev), ox.Stream(dev), ox.Stream(dev)
    torch_stream[0] = other.handle
    for _ in range(2):
        driver.trace.clear()
        ox.copy(out, tensor, stream=stream)
        assert driver.trace.count("cuStreamWaitEvent") == 1


def test_a_number_that_names_another_stream_by_now_follows_the_one_before(scene: Scene) -> None:
    """The driver gives handles again: the kept plan's launches share a counter and a report."""
    dev, _, driver = scene
    a, b, made = filled(dev), filled(dev), ox.Stream(dev)
    number = made.handle
    for held in (False, True):
        if held:
            driver.hold(number)
        ox.copy(b, a, stream=number)
        assert not driver.streams[number].blocked_by
    before = driver.streams[number]
    driver.streams[number] = FakeStream(before.context, non_blocking=True)
    ox.copy(b, a, stream=number)
    (event,) = driver.streams[number].blocked_by
    assert not event.passed
    driver.streams[number] = before


def test_a_tensors_storage_is_kept_until_it_and_its_launches_are_gone(scene: Scene, torch_stream: list[int]) -> None:
    dev, engine, driver = scene
    tensor, out, stream = Tensor(filled(dev)), filled(dev), ox.Stream(dev)
    torch_stream[0] = stream.handle
    for _ in range(3):
        ox.copy(out, tensor, stream=stream)
    gone = ref(tensor.storage)
    driver.hold(stream.handle)
    ox.copy(out, tensor, stream=stream)
    del tensor
    gc.collect()
    assert gone() is not None
    driver.finish()
    engine.synchronize()
    gc.collect()
    assert gone() is None


# ---- other memory
def test_maps_beyond_the_parameter_are_overwritten_in_the_order_of_the_stream(scene: Scene) -> None:
    """Three maps of a transform: two in the parameter, one in a table of device memory, which nothing is allocated for again."""
    dev, engine, driver = scene
    stream, arrays = ox.Stream(dev), [filled(dev) for _ in range(4)]
    fn = lambda v, w: v + w  # noqa: E731
    ox.transform(fn, arrays[0], arrays[1], out=arrays[2], stream=stream)
    for a, b in ((arrays[1], arrays[3]), (arrays[0], arrays[1])):
        driver.trace.clear()
        with engine.context:
            ox.transform(fn, a, b, out=arrays[2], stream=stream)
        done = [call for call in driver.trace if not call.startswith("cuCtx")]
        assert done[-2:] == ["cuMemcpyHtoDAsync", "cuLaunchKernelEx"]
        assert not any("Alloc" in call for call in done)
    assert len(engine._codes) == 1


def test_maps_that_depend_on_their_address_otherwise_are_encoded_again(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    dev, _, driver = scene
    monkeypatch.setattr(MapEncoder, "begins_with_address", lambda *_: False)
    arrays, stream = [filled(dev) for _ in range(3)], ox.Stream(dev)
    for a in (arrays[0], arrays[1]):
        driver.trace.clear()
        ox.copy(arrays[2], a, stream=stream)
    assert "cuTensorMapReplaceAddress" in driver.trace
    assert driver.launches[-1].parameters[0][:8] == arrays[1].buffer.address.to_bytes(8, "little")


def test_memory_that_came_once_is_waited_for_and_told_again(scene: Scene) -> None:
    """What was noted is forgotten when somebody waited; a launch after that notes it anew."""
    dev, engine, driver = scene
    arrays, stream = [filled(dev) for _ in range(4)], ox.Stream(dev)
    for number in (0, 1, 2) * 3:
        ox.copy(arrays[3], arrays[number], stream=stream)
        arrays[3].numpy()
    driver.hold(stream.handle)
    ox.copy(arrays[3], arrays[0], stream=stream)
    at = arrays[0].buffer.address
    arrays.clear()
    gc.collect()
    assert driver.memory[at].alive
    driver.finish()
    engine.synchronize()


def test_arrays_and_numbers_are_packed_after_others_that_came_again_and_again(scene: Scene) -> None:
    dev, engine, driver = scene
    (a, b, out), stream = [filled(dev) for _ in range(3)], ox.Stream(dev)
    fn = lambda v, x: v * x  # noqa: E731
    asked = [(each, number) for each in (a, b) for number in (0.5, 0.0, -0.0)]
    with engine.context:
        for each, number in asked * 2:
            for _ in range(4):
                ox.transform(fn, each, ox.value(number, ox.f32), out=out, stream=stream)
        for each in (a, b, a, b):
            for _ in range(4):
                ox.copy(out, each, stream=stream)
    packed = launches(driver)[:48:4]
    assert len(set(packed[:6])) == 6
    assert launches(driver)[:48] == [each for each in packed[:6] * 2 for _ in range(4)]
    places = [p[:8] for p in launches(driver)[48:]]
    assert places == [each.buffer.address.to_bytes(8, "little") for each in (a, b, a, b) for _ in range(4)]


def test_the_per_thread_stream_has_a_plan_for_each_thread(scene: Scene) -> None:
    """Launches of two threads may overlap on it: they share no counter and no report."""
    dev, _, driver = scene
    a, b = filled(dev), filled(dev)

    def again() -> None:
        for _ in range(3):
            ox.copy(b, a, stream=2)

    again()
    thread = Thread(target=again)
    thread.start()
    thread.join()
    here, there = (launches(driver)[k : k + 3] for k in (0, 3))
    assert len(set(here)) == len(set(there)) == 1
    assert here[0] != there[0]
    again()
    assert launches(driver)[6:] == here


def test_a_plan_is_let_go_of_by_the_thread_that_used_it(scene: Scene) -> None:
    dev, _, driver = scene
    a, b, stream = filled(dev), filled(dev), ox.Stream(dev)

    def thrice() -> None:
        for _ in range(3):
            ox.copy(b, a, stream=stream)

    thrice()
    thread = Thread(target=thrice, daemon=True)
    thread.start()
    thread.join(timeout=10)
    assert not thread.is_alive()
    assert len(set(launches(driver))) == 1


def launches(driver: FakeDriver) -> list[bytes]:
    return [launch.parameters[0] for launch in driver.launches]


class Unhashable:
    __hash__ = None  # type: ignore[assignment]

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, 7


def test_streams_that_are_no_keys_are_refused(scene: Scene) -> None:
    dev, _, _ = scene
    a, b = filled(dev), filled(dev)
    ox.copy(b, a)
    for stream in ([1], Unhashable()):
        with pytest.raises(ArgumentError, match="OX1051"):
            ox.copy(b, a, stream=stream)  # type: ignore[arg-type]


def test_a_plan_that_is_ready_refuses_arrays_of_two_devices_as_a_first_call_does(tmp_path: Path) -> None:
    here, _, driver = fake_device(tmp_path, gpus=2)
    there = Device("cuda:1", CudaEngine(1, driver=driver, kernels=tmp_path))
    a, b, other = (dev.zeros(SHAPE, ox.f32) for dev in (here, here, there))
    ox.copy(a, b)
    for pair in ((a, other), (other, b)):
        with pytest.raises(ArgumentError) as caught:
            ox.copy(*pair)
        assert caught.value.rules == ("OX1050",)
