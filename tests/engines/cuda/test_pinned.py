"""Host memory that kernels write."""

from __future__ import annotations

import gc

import pytest

from oxidecopy.engines.cuda.context import PrimaryContext
from oxidecopy.engines.cuda.pinned import HostBuffer
from oxidecopy.engines.cuda.stream import Stream
from oxidecopy.errors import DriverError, LifetimeError
from tests.helpers.fake_driver import FakeDriver


def test_kernels_and_host_see_the_same_bytes() -> None:
    driver = FakeDriver()
    context = PrimaryContext(driver, 0)
    buffer = HostBuffer(context, 64)
    assert bytes(buffer.view) == bytes(64)
    driver.poke(buffer.address + 4, b"report")
    assert bytes(buffer.view[4:10]) == b"report"
    buffer.view[0] = 9
    assert buffer.view[0] == 9
    assert buffer.nbytes == len(buffer.view) == 64
    buffer.free()
    buffer.free()
    assert not driver.host
    with pytest.raises(LifetimeError) as caught:
        buffer.view  # noqa: B018
    assert caught.value.rule == "OX5310"
    context.close()


def test_it_outlives_the_launches_that_write_it() -> None:
    driver = FakeDriver()
    context = PrimaryContext(driver, 0)
    stream, buffer = Stream.create(context), HostBuffer(context, 64)
    driver.hold(stream.handle)
    with context:
        buffer.used_on(stream)
    del buffer
    gc.collect()
    assert driver.host
    driver.finish()
    HostBuffer(context, 8)
    assert len(driver.host) == 0
    buffer = HostBuffer(context, 64)
    driver.hold(stream.handle)
    with context:
        buffer.used_on(Stream.of(context, stream.handle))
    del buffer
    gc.collect()
    assert driver.host
    context.close()
    assert not driver.host
    assert not driver.events


def test_what_fails_half_way_is_let_go() -> None:
    driver = FakeDriver()
    context = PrimaryContext(driver, 0)
    driver.fail["cuMemHostGetDevicePointer"] = "CUDA_ERROR_INVALID_VALUE"
    with pytest.raises(DriverError):
        HostBuffer(context, 64)
    gc.collect()
    assert not driver.host
    context.close()


@pytest.mark.gpu
def test_real_pinned_memory() -> None:
    from oxidecopy.engines.cuda.driver import check, load_driver

    context = PrimaryContext(load_driver(), 0)
    buffer, stream = HostBuffer(context, 4096), Stream.create(context)
    with context:
        check(context.driver.cuMemsetD8Async(buffer.address, 7, 4096, stream.handle), "cuMemsetD8Async")
        buffer.used_on(stream)
    stream.synchronize()
    assert bytes(buffer.view) == b"\x07" * 4096
    context.close()
