"""Packing a launch and repeating it: what the driver is given, what a repetition costs, and what stops one."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import pytest

from oxidecopy.engines.cuda import memory
from oxidecopy.engines.cuda.context import PrimaryContext
from oxidecopy.engines.cuda.launch import LaunchShape, ParameterBlock, launch_config
from oxidecopy.engines.cuda.memory import CudaBuffer
from oxidecopy.engines.cuda.module import Module
from oxidecopy.engines.cuda.repeat import Repeatable
from oxidecopy.engines.cuda.stream import Stream
from oxidecopy.errors import DriverError, EarlierFaultError, LifetimeError
from tests.helpers.fake_driver import FakeDriver, FakeGpu, FakeImage, FakeKernel

CODE = b"\x7fELF"
IMAGE = FakeImage(CODE, (FakeKernel("kernel", ((0, 8), (64, 4))),))
PARAMETERS = bytes(range(8)) + bytes(56) + b"abcd"


@final
@dataclass
class Scene:
    driver: FakeDriver
    context: PrimaryContext
    module: Module

    def make(self, stream: Stream | None = None, *buffers: CudaBuffer, shape: LaunchShape | None = None) -> Repeatable:
        with self.context:
            kernel = self.module.kernel("kernel")
        on = Stream.create(self.context) if stream is None else stream
        shape = LaunchShape(grid=(4, 2, 1), block=(64, 1, 1)) if shape is None else shape
        return Repeatable(self.context, kernel, shape, on, ParameterBlock(PARAMETERS, (0, 64)), buffers)


@pytest.fixture
def scene() -> Iterator[Scene]:
    driver = FakeDriver([FakeGpu(), FakeGpu()], images=[IMAGE])
    context = PrimaryContext(driver, 0)
    with context:
        module = Module(driver, CODE, 232_448, "test")
    yield Scene(driver, context, module)
    assert driver.stack == []


# ---- what the driver is given
def test_parameters_lie_where_their_pointers_say() -> None:
    block = ParameterBlock(PARAMETERS, (0, 64))
    pointers = (ctypes.c_void_p * 2).from_address(block.pointers)
    assert ctypes.string_at(pointers[0] or 0, 8) == PARAMETERS[:8]
    assert ctypes.string_at(pointers[1] or 0, 4) == b"abcd"
    block.write(bytes(64) + b"wxyz")
    assert ctypes.string_at(pointers[1] or 0, 4) == b"wxyz"
    assert block.data == bytes(64) + b"wxyz"
    with pytest.raises(ValueError, match="68"):
        block.write(b"short")


def test_a_kernel_without_parameters() -> None:
    assert ParameterBlock(b"", ()).data == b""


def test_the_whole_shape_arrives(scene: Scene) -> None:
    shape = LaunchShape(grid=(4, 2, 6), block=(32, 2, 3), cluster=(2, 1, 3), shared_bytes=4096, cooperative=True, programmatic=True)
    stream = Stream.create(scene.context)
    scene.make(stream, shape=shape)()
    (launch,) = scene.driver.launches
    assert (launch.grid, launch.block, launch.cluster, launch.shared_bytes) == (shape.grid, shape.block, shape.cluster, 4096)
    assert launch.stream == stream.handle
    assert launch.parameters == (PARAMETERS[:8], b"abcd")
    assert {name.removeprefix("CU_LAUNCH_ATTRIBUTE_") for name in launch.attributes} == {
        "CLUSTER_DIMENSION",
        "COOPERATIVE",
        "PROGRAMMATIC_STREAM_SERIALIZATION",
    }


@pytest.mark.parametrize("cluster", [None, (1, 1, 1)])
def test_no_cluster_is_no_attribute(scene: Scene, cluster: tuple[int, int, int] | None) -> None:
    config = launch_config(scene.driver, LaunchShape(grid=(1, 1, 1), block=(1, 1, 1), cluster=cluster), 1)
    assert config.numAttrs == 0


# ---- repeating
def test_a_repetition_is_one_driver_call(scene: Scene) -> None:
    launch = scene.make(None, CudaBuffer.allocate(scene.context, 256))
    launch()
    scene.driver.trace.clear()
    for _ in range(3):
        with scene.context:
            scene.driver.trace.clear()
            launch()
            assert scene.driver.trace == ["cuLaunchKernelEx"]


def test_parameters_can_change_between_two_launches(scene: Scene) -> None:
    launch = scene.make()
    launch()
    launch.block.write(bytes(64) + b"wxyz")
    launch()
    assert [each.parameters[1] for each in scene.driver.launches] == [b"abcd", b"wxyz"]


def test_the_context_is_pushed_where_it_is_not_current(scene: Scene) -> None:
    launch, other = scene.make(), PrimaryContext(scene.driver, 1)
    launch()  # no context at all
    with other:
        launch()
    thread = threading.Thread(target=launch)
    thread.start()
    thread.join()
    assert len(scene.driver.launches) == 3


def test_memory_in_use_outlives_what_holds_it(scene: Scene) -> None:
    buffer, stream = CudaBuffer.allocate(scene.context, 256), Stream.create(scene.context)
    address, launch = buffer.address, scene.make(stream, buffer)
    scene.driver.hold(stream.handle)
    for _ in range(3):
        launch()
    del buffer, launch
    assert scene.driver.memory[address].alive
    scene.driver.finish()
    assert not scene.driver.memory[address].alive


def test_a_read_waits_for_every_launch_again(scene: Scene) -> None:
    buffer, stream = CudaBuffer.allocate(scene.context, 4), Stream.create(scene.context)
    launch = scene.make(stream, buffer)
    for value in (b"one.", b"two."):
        scene.driver.on_launch = lambda _, value=value: scene.driver.poke(buffer.address, value)
        scene.driver.hold(stream.handle)
        launch()
        assert memory.read(buffer, 0, 4) == value


def test_streams_that_nobody_keeps_are_asked_at_once(scene: Scene) -> None:
    owner = Stream.create(scene.context)
    buffer = CudaBuffer.allocate(scene.context, 256)
    address = buffer.address
    launch = scene.make(Stream.of(scene.context, owner.handle), buffer)
    scene.driver.hold(owner.handle)
    launch()
    launch()
    del buffer, launch
    assert scene.driver.memory[address].alive
    owner.close()
    assert not scene.driver.memory[address].alive


# ---- what stops one
def test_freed_memory(scene: Scene) -> None:
    buffer = CudaBuffer.allocate(scene.context, 256)
    launch = scene.make(None, buffer)
    launch()
    buffer.free()
    with pytest.raises(LifetimeError) as caught:
        launch()
    assert caught.value.rules == ("OX5310",)
    assert len(scene.driver.launches) == 1


def test_other_memory_may_be_freed(scene: Scene) -> None:
    launch, other = scene.make(None, CudaBuffer.allocate(scene.context, 256)), CudaBuffer.allocate(scene.context, 256)
    launch()
    other.free()
    launch()
    assert len(scene.driver.launches) == 2


def test_closed_streams_and_contexts(scene: Scene) -> None:
    stream = Stream.create(scene.context)
    launch, later = scene.make(stream), scene.make()
    launch()
    later()
    stream.close()
    with pytest.raises(LifetimeError):
        launch()
    scene.context.close()
    with pytest.raises(LifetimeError):
        later()
    assert len(scene.driver.launches) == 2


def test_a_lost_context_is_blamed_on_an_earlier_kernel(scene: Scene) -> None:
    launch = scene.make()
    launch()
    scene.driver.fault()
    with scene.context, pytest.raises(EarlierFaultError):
        launch()


def test_what_the_driver_refuses_names_the_kernel(scene: Scene) -> None:
    launch = scene.make()
    scene.driver.broken["cuLaunchKernelEx"] = "CUDA_ERROR_INVALID_CLUSTER_SIZE"
    with pytest.raises(DriverError) as caught:
        launch()
    assert "`kernel`" in str(caught.value)
