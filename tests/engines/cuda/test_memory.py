"""Device memory: its life, who may use it, what copies stay inside of."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator

import pytest

from oxidecopy.engines.cuda import memory
from oxidecopy.engines.cuda.context import PrimaryContext
from oxidecopy.engines.cuda.memory import CudaBuffer, copy, fill, owned_by, read, read_into, write
from oxidecopy.engines.cuda.pinned import HostBuffer
from oxidecopy.engines.cuda.stream import Stream
from oxidecopy.errors import ArgumentError, DeviceFaultError, DriverError, EarlierFaultError, LifetimeError, OutOfMemoryError, UsageError
from tests.helpers.fake_driver import FakeDriver, FakeGpu

NO_POOLS = FakeGpu(memory_bytes=1 << 20, attributes={"MEMORY_POOLS_SUPPORTED": 0})
POOLS = FakeGpu(memory_bytes=1 << 20)


@pytest.fixture(params=[POOLS, NO_POOLS], ids=["pools", "no pools"])
def driver(request: pytest.FixtureRequest) -> FakeDriver:
    return FakeDriver([request.param, FakeGpu("Second")])


@pytest.fixture
def context(driver: FakeDriver) -> Iterator[PrimaryContext]:
    made = PrimaryContext(driver, 0)
    yield made
    made.close()
    assert not driver.stack
    assert not driver.live
    assert not driver.events
    assert not driver.contexts


def use(buffer: CudaBuffer, stream: Stream) -> None:
    with buffer.context:
        buffer.used_on(stream)


# ---- life
def test_what_is_dropped_is_freed(driver: FakeDriver, context: PrimaryContext) -> None:
    buffer = CudaBuffer.allocate(context, 1000)
    assert (buffer.nbytes, buffer.owned, buffer.alive, buffer.address % 256) == (1000, True, True, 0)
    (allocation,) = driver.live
    assert (allocation.address, allocation.pooled) == (buffer.address, driver.gpus[0] is POOLS)
    del buffer
    gc.collect()
    assert not driver.live


def test_memory_of_a_pool_is_ready_for_any_stream(driver: FakeDriver, context: PrimaryContext) -> None:
    CudaBuffer.allocate(context, 8)
    if driver.gpus[0] is POOLS:
        at = driver.trace.index("cuMemAllocAsync")
        assert "cuStreamSynchronize" in driver.trace[at:]
    else:
        assert driver.calls["cuMemAlloc"] == 1
    assert driver.calls["cuMemAllocManaged"] == 0


def test_use_after_free(context: PrimaryContext) -> None:
    buffer = CudaBuffer.allocate(context, 16)
    buffer.free()
    buffer.free()
    assert not buffer.alive
    assert repr(buffer).endswith("16 bytes, cuda:0, freed)")
    uses: list[Callable[[], object]] = [lambda: buffer.address, lambda: write(buffer, 0, b"1"), lambda: read(buffer, 0, 1)]
    uses += [lambda: fill(buffer, 0, 1, 0), lambda: owned_by(context, buffer)]
    for each in uses:
        with pytest.raises(LifetimeError) as caught:
            each()
        assert caught.value.rule == "OX5310"


def test_memory_goes_with_its_context(driver: FakeDriver, context: PrimaryContext) -> None:
    buffer = CudaBuffer.allocate(context, 16)
    context.close()
    assert not driver.live
    assert not buffer.alive
    with pytest.raises(LifetimeError):
        buffer.address  # noqa: B018
    del buffer
    gc.collect()


@pytest.mark.parametrize("streams_first", [False, True])
def test_a_context_that_closes_frees_what_is_in_use(driver: FakeDriver, context: PrimaryContext, *, streams_first: bool) -> None:
    left: list[tuple[int, ...]] = []
    release = driver.cuDevicePrimaryCtxRelease

    def told(device: int) -> object:
        left.append((len(driver.live), len(driver.host), len(driver.events), len(driver.streams)))
        return release(device)

    driver.cuDevicePrimaryCtxRelease = told  # type: ignore[method-assign, assignment]
    stream, buffer, host = Stream.create(context), CudaBuffer.allocate(context, 16), HostBuffer(context, 16)
    with context:
        for used in (buffer, host):
            used.used_on(stream)
    if streams_first:  # they are let go in no order
        stream._ownership.end()  # type: ignore[union-attr]
    context.close()
    assert left == [(0, 0, 0, 0)]


def test_a_context_that_closes_waits_for_what_nobody_noted(driver: FakeDriver, context: PrimaryContext) -> None:
    stream, buffer = Stream.create(context), CudaBuffer.allocate(context, 16)
    driver.hold(stream.handle)
    with context:
        driver.cuMemsetD8Async(buffer.address, 7, 16, stream.handle)
    (allocation,) = driver.live
    context.close()
    assert (bytes(allocation.data), allocation.alive) == (b"\x07" * 16, False)


def test_a_context_lives_as_long_as_its_memory(driver: FakeDriver) -> None:
    buffer = CudaBuffer.allocate(PrimaryContext(driver, 0), 16)
    gc.collect()
    write(buffer, 0, b"still here")
    assert read(buffer, 0, 10) == b"still here"
    del buffer
    gc.collect()
    assert not driver.contexts


def test_a_free_that_fails_is_loud_by_hand_and_silent_when_dropped(driver: FakeDriver, context: PrimaryContext) -> None:
    call = "cuMemFreeAsync" if driver.gpus[0] is POOLS else "cuMemFree"
    one, two = CudaBuffer.allocate(context, 16), CudaBuffer.allocate(context, 16)
    driver.fail[call] = "CUDA_ERROR_INVALID_VALUE"
    with pytest.raises(DriverError) as caught:
        one.free()
    assert caught.value.call == call
    driver.fail[call] = "CUDA_ERROR_INVALID_VALUE"
    del two
    gc.collect()
    assert not driver.fail


def test_no_bytes_are_no_memory(context: PrimaryContext) -> None:
    for nbytes in (0, -1):
        with pytest.raises(UsageError) as caught:
            CudaBuffer.allocate(context, nbytes)
        assert caught.value.rule == "OX5313"


# ---- too little of it
def test_out_of_memory_names_what_was_asked_for(context: PrimaryContext) -> None:
    with pytest.raises(OutOfMemoryError) as caught:
        CudaBuffer.allocate(context, 1 << 21)
    assert caught.value.rule == "OX5302"
    assert caught.value.diagnostics[0].required == "at most 1,048,576 bytes"
    assert "2,097,152 bytes on cuda:0" in caught.value.diagnostics[0].got
    with pytest.raises(OutOfMemoryError):
        CudaBuffer.allocate(context, 1 << 70)
    held = CudaBuffer.allocate(context, 1 << 19)
    with pytest.raises(OutOfMemoryError) as caught:
        CudaBuffer.allocate(context, 1 << 20)
    assert held.alive
    assert "1,048,576 bytes on cuda:0" in caught.value.diagnostics[0].got


def test_what_waits_for_launches_is_waited_for_when_memory_is_short(driver: FakeDriver, context: PrimaryContext) -> None:
    stream = Stream.create(context)
    buffer = CudaBuffer.allocate(context, 1 << 19)
    driver.hold(stream.handle)
    with context:
        driver.cuMemsetD8Async(buffer.address, 1, 16, stream.handle)
    use(buffer, stream)
    address = buffer.address
    del buffer
    gc.collect()
    assert len(driver.live) == 1, "a launch is using it"
    again = CudaBuffer.allocate(context, 1 << 20)
    assert [allocation.address for allocation in driver.live] == [again.address]
    assert driver.memory[address].data[:16] == b"\x01" * 16, "freed after the launch"


def test_captures_are_no_reason_to_wait_for_ever(driver: FakeDriver, context: PrimaryContext) -> None:
    stream, buffer = Stream.create(context), CudaBuffer.allocate(context, 1 << 19)
    use(buffer, stream)
    with context:
        driver.cuStreamBeginCapture(stream.handle, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
    buffer.free()
    with pytest.raises(OutOfMemoryError):
        CudaBuffer.allocate(context, 1 << 20)
    with context:
        driver.cuGraphDestroy(driver.cuStreamEndCapture(stream.handle)[1])
    assert CudaBuffer.allocate(context, 1 << 20).alive


@pytest.mark.parametrize("used_before", [False, True])
def test_a_lost_context_is_not_blamed_on_the_allocation(driver: FakeDriver, context: PrimaryContext, *, used_before: bool) -> None:
    if used_before:
        CudaBuffer.allocate(context, 16)
    driver.fault()
    with pytest.raises((EarlierFaultError, DeviceFaultError)) as caught:
        CudaBuffer.allocate(context, 16)
    assert type(caught.value) is EarlierFaultError
    context.close()
    driver.contexts.clear()


# ---- launches in flight
@pytest.mark.parametrize("raw", [False, True], ids=["a stream", "a handle"])
def test_memory_outlives_the_launches_that_use_it(driver: FakeDriver, context: PrimaryContext, *, raw: bool) -> None:
    made = Stream.create(context)
    stream = Stream.of(context, made.handle) if raw else made
    buffer = CudaBuffer.allocate(context, 16)
    driver.hold(made.handle)
    with context:
        driver.cuMemsetD8Async(buffer.address, 7, 16, made.handle)
        buffer.used_on(stream)
        buffer.used_on(stream)
    address = buffer.address
    del buffer
    gc.collect()
    assert driver.memory[address].alive
    assert driver.calls["cuStreamSynchronize"] <= 1, "the host does not wait for the launch"
    driver.finish()
    assert driver.memory[address].data == b"\x07" * 16
    with context:
        context.parked.sweep()
    assert not driver.memory[address].alive


def test_a_stream_that_was_closed_has_nothing_in_flight(driver: FakeDriver, context: PrimaryContext) -> None:
    stream, buffer = Stream.create(context), CudaBuffer.allocate(context, 16)
    use(buffer, stream)
    stream.close()
    buffer.free()
    assert not driver.live
    buffer = CudaBuffer.allocate(context, 16)
    stream = Stream.create(context)
    use(buffer, stream)
    stream.close()
    assert read(buffer, 0, 1) == b"\xcd"


def test_memory_that_is_dropped_while_its_stream_is_captured(driver: FakeDriver, context: PrimaryContext) -> None:
    stream, buffer = Stream.create(context), CudaBuffer.allocate(context, 16)
    use(buffer, stream)
    address = buffer.address
    with context:
        driver.cuStreamBeginCapture(stream.handle, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL)
    del buffer
    gc.collect()
    assert driver.memory[address].alive
    assert len(context.parked) == 1
    with context:
        graph = driver.cuStreamEndCapture(stream.handle)[1]
        driver.cuGraphDestroy(graph)
    CudaBuffer.allocate(context, 16)
    assert not driver.memory[address].alive
    assert len(context.parked) == 0


@pytest.mark.parametrize("problem", ["STREAM_CAPTURE_IMPLICIT", "UNKNOWN"])
def test_the_default_stream_while_another_is_captured(driver: FakeDriver, context: PrimaryContext, problem: str) -> None:
    buffer = CudaBuffer.allocate(context, 16)
    use(buffer, Stream.legacy(context))
    driver.broken["cuStreamIsCapturing"] = f"CUDA_ERROR_{problem}"
    if problem == "UNKNOWN":
        with pytest.raises(DriverError):
            buffer.free()
        return
    buffer.free()
    assert len(driver.live) == 1
    driver.broken.clear()
    with context:
        context.parked.sweep()
    assert not driver.live


def test_reading_waits_for_launches(driver: FakeDriver, context: PrimaryContext) -> None:
    stream, buffer = Stream.create(context), CudaBuffer.allocate(context, 4)
    driver.hold(stream.handle)
    with context:
        driver.cuMemsetD8Async(buffer.address, 7, 4, stream.handle)
        buffer.used_on(stream)
    assert read(buffer, 0, 4) == b"\x07" * 4
    assert not buffer.uses
    raw = Stream.of(context, stream.handle)
    driver.hold(stream.handle)
    with context:
        driver.cuMemsetD8Async(buffer.address, 8, 4, stream.handle)
        buffer.used_on(raw)
    assert read(buffer, 0, 4) == b"\x08" * 4
    assert not buffer.uses


# ---- borrowed
class Tensor:
    """Another library's memory, freed with it."""

    def __init__(self, driver: FakeDriver, device: int = 0, context: int | None = None) -> None:
        self.address = driver.foreign_allocation(64, device, context)
        weakref.finalize(self, setattr, driver.memory[self.address], "alive", False)


def test_borrowed_memory_keeps_its_owner(driver: FakeDriver, context: PrimaryContext) -> None:
    tensor = Tensor(driver)
    buffer = CudaBuffer.borrow(context, tensor.address + 16, 48, keep=tensor)
    address = tensor.address
    assert not buffer.owned
    assert "borrowed" in repr(buffer)
    del tensor
    gc.collect()
    write(buffer, 0, b"theirs")
    assert driver.bytes_at(address + 16, 6) == b"theirs"
    stream = Stream.create(context)
    driver.hold(stream.handle)
    use(buffer, stream)
    del buffer
    gc.collect()
    assert driver.memory[address].alive, "a launch is using it"
    driver.finish()
    with context:
        context.parked.sweep()
    assert not driver.memory[address].alive
    assert driver.calls["cuMemFree"] == driver.calls["cuMemFreeAsync"] == 0


def test_freeing_borrowed_memory_lets_go_of_its_owner(driver: FakeDriver, context: PrimaryContext) -> None:
    tensor = Tensor(driver)
    buffer = CudaBuffer.borrow(context, tensor.address, 64, keep=tensor)
    seen = weakref.ref(tensor)
    del tensor
    buffer.free()
    gc.collect()
    assert seen() is None


def test_memory_that_nobody_keeps_is_borrowed_all_the_same(driver: FakeDriver, context: PrimaryContext) -> None:
    tensor = Tensor(driver)
    buffer = CudaBuffer.borrow(context, tensor.address, 64, keep=None)
    assert not buffer.owned
    buffer.free()
    assert driver.memory[tensor.address].alive


def borrowed(context: PrimaryContext, address: int, nbytes: int) -> str:
    with pytest.raises(ArgumentError) as caught:
        CudaBuffer.borrow(context, address, nbytes, keep=object())
    return caught.value.rule


def test_what_is_not_borrowed(driver: FakeDriver, context: PrimaryContext, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = Tensor(driver), Tensor(driver, device=1)
    assert borrowed(context, 0x1234, 16) == "OX5312"
    with context:
        host = driver.cuMemHostAlloc(64, 0)[1]
    assert borrowed(context, host, 16) == "OX5312"
    assert borrowed(context, there.address, 16) == "OX5311"
    assert borrowed(context, here.address, 65) == "OX5313"
    assert borrowed(context, here.address, 0) == "OX5313"
    own = Tensor(driver, context=0xABC)
    assert borrowed(context, own.address, 64) == "OX5311"
    real = memory._about
    managed = int(driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_IS_MANAGED)
    monkeypatch.setattr(memory, "_about", lambda d, kind, at: 1 if int(kind) == managed else real(d, kind, at))
    assert borrowed(context, here.address, 64) == "OX5312"
    del there, own
    gc.collect()


def test_a_driver_that_does_not_say_how_much_there_is(driver: FakeDriver, context: PrimaryContext, monkeypatch: pytest.MonkeyPatch) -> None:
    tensor, real = Tensor(driver), memory._about
    monkeypatch.setattr(memory, "_about", lambda d, kind, at: None if "RANGE" in kind.name else real(d, kind, at))
    assert CudaBuffer.borrow(context, tensor.address, 1 << 30, keep=tensor).nbytes == 1 << 30


# ---- the wrong device
def test_memory_of_another_device(driver: FakeDriver, context: PrimaryContext) -> None:
    other = PrimaryContext(driver, 1)
    theirs = CudaBuffer.allocate(other, 16)
    assert owned_by(other, theirs) is theirs
    for wrong in (theirs, object()):
        with pytest.raises(LifetimeError) as caught:
            owned_by(context, wrong)
        assert caught.value.rule == "OX5311"
    mine = CudaBuffer.allocate(context, 16)
    with pytest.raises(LifetimeError):
        copy(mine, 0, theirs, 0, 16)
    other.close()


# ---- copies
def test_copies(driver: FakeDriver, context: PrimaryContext) -> None:
    one, two = CudaBuffer.allocate(context, 16), CudaBuffer.allocate(context, 16)
    write(one, 4, memoryview(b"abcd"))
    write(one, 8, bytearray(b"efgh"))
    copy(two, 0, one, 4, 8)
    assert read(two, 0, 8) == b"abcdefgh"
    fill(two, 1, 2, 0x2A)
    host = bytearray(4)
    read_into(two, 0, host)
    assert host == b"a**d"
    write(one, 16, b"")
    copy(one, 0, two, 16, 0)
    fill(one, 0, 0, 0)
    assert read(one, 3, 0) == b""


@pytest.mark.parametrize(("offset", "nbytes"), [(0, 17), (16, 1), (-1, 2), (1 << 40, 1), (0, -1)])
def test_copies_stay_inside(context: PrimaryContext, offset: int, nbytes: int) -> None:
    one, two = CudaBuffer.allocate(context, 16), CudaBuffer.allocate(context, 64)
    data = b"x" * max(nbytes, 0)
    attempts: list[Callable[[], object]] = [
        lambda: read(one, offset, nbytes),
        lambda: fill(one, offset, nbytes, 0),
        lambda: copy(one, offset, two, 0, nbytes),
        lambda: copy(two, 0, one, offset, nbytes),
    ]
    if nbytes >= 0:
        attempts += [lambda: write(one, offset, data), lambda: read_into(one, offset, bytearray(nbytes))]
    for attempt in attempts:
        with pytest.raises(UsageError) as caught:
            attempt()
        assert caught.value.rule == "OX5313"


def test_a_fault_of_a_kernel_shows_where_the_host_waits(driver: FakeDriver, context: PrimaryContext) -> None:
    buffer = CudaBuffer.allocate(context, 16)
    driver.fault("CUDA_ERROR_MISALIGNED_ADDRESS")
    with pytest.raises(DeviceFaultError) as caught:
        read(buffer, 0, 4)
    assert caught.value.code == 716
    context.close()
    for allocation in driver.live:
        allocation.alive = False


# ---- on a GPU
@pytest.mark.gpu
def test_real_memory() -> None:
    from oxidecopy.engines.cuda.driver import check, load_driver

    context = PrimaryContext(load_driver(), 0)
    one, two = CudaBuffer.allocate(context, 1 << 20), CudaBuffer.allocate(context, 1 << 20)
    data = bytes(range(256)) * 4096
    write(one, 0, data)
    copy(two, 0, one, 0, len(data))
    fill(two, 0, 16, 0x5A)
    assert read(two, 0, len(data)) == b"\x5a" * 16 + data[16:]
    stream = Stream.create(context)
    with context:
        context.driver.cuMemsetD8Async(two.address, 1, 1 << 20, stream.handle)
        two.used_on(stream)
    assert read(two, (1 << 20) - 4, 4) == b"\x01" * 4
    part = CudaBuffer.borrow(context, one.address + 256, 256, keep=one)
    assert read(part, 0, 4) == data[256:260]
    assert borrowed(context, one.address, (1 << 20) + (1 << 26)) == "OX5313"
    del part
    with context:
        plain = int(check(context.driver.cuMemAlloc(4096), "cuMemAlloc"))
    assert CudaBuffer.borrow(context, plain, 4096, keep=object()).alive
    with context:
        check(context.driver.cuMemFree(plain), "cuMemFree")
    before = context.memory_info()[0]
    for _ in range(200):
        big = CudaBuffer.allocate(context, 1 << 28)
        with context:
            big.used_on(stream)
        del big
    context.synchronize()
    assert context.memory_info()[0] >= before - (1 << 30)
    with pytest.raises(OutOfMemoryError):
        CudaBuffer.allocate(context, 1 << 42)
    context.health()
    context.close()


# ---- captures
def test_memory_of_a_capture_is_not_waited_for(driver: FakeDriver, context: PrimaryContext) -> None:
    used, other = CudaBuffer.allocate(context, 64), CudaBuffer.allocate(context, 64)
    stream = Stream.create(context)
    with context:
        driver.cuStreamBeginCapture(stream.handle, driver.CUstreamCaptureMode(1))
        used.used_on(stream)
    ways: list[Callable[[], object]] = [
        lambda: read(used, 0, 4),
        lambda: write(used, 0, b"1234"),
        lambda: fill(used, 0, 4, 0),
        lambda: copy(used, 0, other, 0, 4),
        lambda: copy(other, 0, used, 0, 4),
    ]
    for way in ways:
        with pytest.raises(UsageError) as caught:
            way()
        assert caught.value.rules == ("OX5314",)
        assert "graph.replay()" in caught.value.diagnostics[0].fix
    assert driver.calls["cuStreamSynchronize"] == (2 if driver.gpus[0].attributes == {} else 0)  # of the allocations only
    write(other, 0, b"what no capture uses")
    assert read(other, 0, 4) == b"what"
    with context:
        assert not driver.cuStreamEndCapture(stream.handle)[0]
    read(used, 0, 4)


def test_what_a_capture_does_not_allow_is_said_as_that(driver: FakeDriver, context: PrimaryContext) -> None:
    buffer = CudaBuffer.allocate(context, 64)
    driver.fail["cuMemcpyDtoH"] = "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"
    with pytest.raises(DriverError) as caught:
        read(buffer, 0, 4)
    assert (caught.value.rules, caught.value.name) == (("OX5315",), "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT")


# ---- memory that was mapped piece by piece
def test_memory_in_pieces_is_borrowed_as_a_whole(driver: FakeDriver, context: PrimaryContext) -> None:
    at = driver.mapped_allocation((4096, 0), (4096, 0), (8192, 0))
    keep = object()
    for start, nbytes in ((at, 16_384), (at + 100, 16_284), (at + 4096, 12_288), (at + 5000, 10)):
        assert CudaBuffer.borrow(context, start, nbytes, keep=keep).address == start
    for start, nbytes in ((at, 16_385), (at + 8192, 8193), (at + 5000, 1 << 40)):
        with pytest.raises(ArgumentError) as caught:
            CudaBuffer.borrow(context, start, nbytes, keep=keep)
        assert caught.value.rules == ("OX5313",)
    for each in driver.live:
        each.alive = False


def test_pieces_of_another_device_and_neighbours_are_no_pieces(driver: FakeDriver, context: PrimaryContext) -> None:
    split = driver.mapped_allocation((4096, 0), (4096, 1))
    pool = driver.mapped_allocation((4096, 0), (4096, 0))
    driver.memory[pool].pooled = True
    own = driver.mapped_allocation((4096, 0), (4096, 0))
    driver.memory[own].context = int(context.handle)
    for at in (split, pool, own):
        with pytest.raises(ArgumentError) as caught:
            CudaBuffer.borrow(context, at, 8192, keep=object())
        assert caught.value.rules == ("OX5313",)
    for each in driver.live:
        each.alive = False
