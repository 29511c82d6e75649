"""Memory of another GPU: who may use it, who waits for whom, how long it lives."""

from __future__ import annotations

import gc
import weakref

import pytest

from oxidecopy.engines.cuda.context import PrimaryContext
from oxidecopy.engines.cuda.memory import CudaBuffer, read, write
from oxidecopy.engines.cuda.peer import reach
from oxidecopy.engines.cuda.stream import Stream
from oxidecopy.errors import ArgumentError, DriverError, LifetimeError
from tests.helpers.fake_driver import FakeDriver, FakeGpu

NO_POOLS = FakeGpu(attributes={"MEMORY_POOLS_SUPPORTED": 0})


@pytest.fixture(params=[FakeGpu(), NO_POOLS], ids=["pools", "no pools"])
def driver(request: pytest.FixtureRequest) -> FakeDriver:
    return FakeDriver([request.param, request.param])


def two(driver: FakeDriver) -> tuple[PrimaryContext, PrimaryContext]:
    return PrimaryContext(driver, 0), PrimaryContext(driver, 1)


def test_the_same_memory_at_the_same_address(driver: FakeDriver) -> None:
    here, there = two(driver)
    theirs = CudaBuffer.allocate(there, 64)
    found = reach(here, theirs)
    assert (found.address, found.nbytes, found.context, found.owned) == (theirs.address, 64, here, False)
    write(theirs, 0, b"x" * 64)
    assert read(found, 0, 64) == b"x" * 64
    pooled = bool(there.gpu.pools)
    assert (driver.reached, driver.pools_reached) == ({(int(here.handle), int(there.handle))}, {(0, 1)} if pooled else set())
    reach(here, theirs)  # again: the driver says that it is open already
    assert reach(there, theirs) is theirs
    assert len(driver.reached) == 1


def test_it_keeps_the_memory_alive(driver: FakeDriver) -> None:
    here, there = two(driver)
    theirs = CudaBuffer.allocate(there, 64)
    address, gone = theirs.address, weakref.ref(theirs)
    found = reach(here, theirs)
    del theirs
    gc.collect()
    assert gone() is not None
    assert driver.memory[address].alive
    del found
    gc.collect()
    assert gone() is None
    assert not driver.memory[address].alive


def test_reading_there_waits_for_launches_here(driver: FakeDriver) -> None:
    here, there = two(driver)
    theirs = CudaBuffer.allocate(there, 64)
    found, stream = reach(here, theirs), Stream.create(here)
    driver.hold(stream.handle)
    with here:
        driver.cuMemsetD8Async(found.address, 7, 64, stream.handle)
        found.used_on(stream)
    assert driver.bytes_at(theirs.address, 1) != b"\x07"
    assert read(theirs, 0, 64) == b"\x07" * 64


def test_launches_there_are_waited_for(driver: FakeDriver) -> None:
    here, there = two(driver)
    theirs, stream = CudaBuffer.allocate(there, 64), Stream.create(there)
    driver.hold(stream.handle)
    with there:
        driver.cuMemsetD8Async(theirs.address, 7, 64, stream.handle)
        theirs.used_on(stream)
    reach(here, theirs)
    assert driver.bytes_at(theirs.address, 64) == b"\x07" * 64


def test_freed_there_is_freed_here(driver: FakeDriver) -> None:
    here, there = two(driver)
    theirs = CudaBuffer.allocate(there, 64)
    found = reach(here, theirs)
    theirs.free()
    for gone in (found, theirs):
        with pytest.raises(LifetimeError) as caught:
            gone.address  # noqa: B018
        assert caught.value.rule == "OX5310"
    with pytest.raises(LifetimeError):
        reach(here, theirs)


def test_gpus_without_a_way_between_them(driver: FakeDriver) -> None:
    here, there = two(driver)
    theirs = CudaBuffer.allocate(there, 64)
    driver.no_path.add((0, 1))
    with pytest.raises(ArgumentError) as caught:
        reach(here, theirs)
    assert caught.value.rule == "OX5316"
    assert not driver.reached
    with pytest.raises(ArgumentError) as caught:
        reach(here, object())
    assert caught.value.rule == "OX5311"


def test_a_driver_that_refuses(driver: FakeDriver) -> None:
    here, there = two(driver)
    theirs = CudaBuffer.allocate(there, 64)
    driver.fail["cuCtxEnablePeerAccess"] = "CUDA_ERROR_INVALID_VALUE"
    with pytest.raises(DriverError):
        reach(here, theirs)
    assert not driver.stack
