"""Streams and events: made here or borrowed, of one context, closed once."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from oxidecopy.engines.cuda.context import PrimaryContext
from oxidecopy.engines.cuda.stream import LEGACY, PER_THREAD, Event, Stream, stream_handle
from oxidecopy.errors import ArgumentError, DeviceFaultError, DriverError, LifetimeError
from tests.helpers.fake_driver import FakeDriver, FakeGpu


class Theirs:
    """A stream of another library."""

    def __init__(self, handle: int, version: int = 0) -> None:
        self.handle, self.version = handle, version

    def __cuda_stream__(self) -> tuple[int, int]:
        return self.version, self.handle


@pytest.fixture
def driver() -> FakeDriver:
    return FakeDriver([FakeGpu(), FakeGpu("Second")])


@pytest.fixture
def context(driver: FakeDriver) -> Iterator[PrimaryContext]:
    made = PrimaryContext(driver, 0)
    yield made
    made.close()
    assert not driver.stack


# ---- handles
def test_handles(context: PrimaryContext) -> None:
    stream = Stream.create(context)
    assert stream_handle(stream) == stream.handle
    assert stream_handle(Theirs(0x55)) == 0x55
    assert stream_handle(SimpleNamespace(__cuda_stream__=(0, 7))) == 7
    assert stream_handle(0) == 0
    assert stream_handle((1 << 64) - 1) == (1 << 64) - 1


@pytest.mark.parametrize(
    ("wrong", "fix"),
    [
        ("stream", "ox.Stream(dev)"),
        (None, "ox.Stream(dev)"),
        (True, "ox.Stream(dev)"),
        (-1, "ox.Stream(dev)"),
        (1 << 64, "ox.Stream(dev)"),
        (3.0, "ox.Stream(dev)"),
        (Theirs(5, version=1), "pass its `.handle`"),
        *((SimpleNamespace(__cuda_stream__=(0, handle)), "ox.Stream(dev)") for handle in (None, "5", "five", 5.0, (5,))),
        (SimpleNamespace(__cuda_stream__=5), "ox.Stream(dev)"),
        (SimpleNamespace(cuda_stream=5), "pass its `.cuda_stream`"),
        (SimpleNamespace(ptr=5), "pass its `.ptr`"),
    ],
)
def test_what_is_no_stream(wrong: object, fix: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        stream_handle(wrong)
    assert (caught.value.rule, caught.value.diagnostics[0].fix) == ("OX5320", fix)


# ---- streams
def test_a_stream_of_its_own(driver: FakeDriver, context: PrimaryContext) -> None:
    stream = Stream.create(context)
    handle = stream.handle
    assert driver.streams[handle].non_blocking
    assert stream.stable
    assert stream.__cuda_stream__() == (0, handle)
    assert stream.query()
    stream.synchronize()
    assert not stream.capturing
    assert (str(stream), repr(stream)) == (f"stream {handle:#x} of cuda:0", f"Stream({handle:#x}, cuda:0)")
    del stream
    gc.collect()
    assert handle not in driver.streams


def test_closing_waits_and_is_final(driver: FakeDriver, context: PrimaryContext) -> None:
    stream = Stream.create(context)
    driver.hold(stream.handle)
    event = stream.record()
    assert not stream.query()
    assert not event.query()
    stream.close()
    stream.close()
    assert event.query()
    assert stream.closed
    assert repr(stream).endswith(", closed)")
    for use in (stream.synchronize, stream.query, stream.record, stream.__cuda_stream__, lambda: Stream.of(context, stream)):
        with pytest.raises(LifetimeError) as caught:
            use()
        assert caught.value.rule == "OX5322"


def test_waiting_lets_launches_speak(context: PrimaryContext) -> None:
    stream, heard = Stream.create(context), []
    context.after_wait.append(lambda: heard.append("asked"))
    event = stream.record()
    stream.query()
    event.query()
    assert heard == []
    stream.synchronize()
    event.synchronize()
    assert heard == ["asked", "asked"]


def test_streams_go_with_their_context(context: PrimaryContext) -> None:
    stream, event = Stream.create(context), Event(context)
    context.close()
    assert stream.closed
    stream.close()
    event.close()
    for closed in (stream, event):
        with pytest.raises(LifetimeError):
            closed.handle  # noqa: B018


def test_the_default_stream(driver: FakeDriver, context: PrimaryContext) -> None:
    stream = Stream.legacy(context)
    assert (stream.handle, stream.stable) == (LEGACY, True)
    stream.synchronize()
    stream.close()
    assert driver.calls["cuStreamDestroy"] == 0


def test_borrowed_streams(driver: FakeDriver, context: PrimaryContext) -> None:
    made = Stream.create(context)
    theirs = Theirs(made.handle)
    stream, raw = Stream.of(context, theirs), Stream.of(context, made.handle)
    assert (stream.handle, stream.stable) == (made.handle, True)
    assert (raw.handle, raw.stable) == (made.handle, False)
    assert (Stream.of(context, 0).handle, Stream.of(context, 0).stable) == (LEGACY, True)
    assert Stream.of(context, Theirs(0)).handle == LEGACY
    assert [Stream.of(context, each).stable for each in (PER_THREAD, Theirs(PER_THREAD))] == [False, False]
    assert Stream.of(context, made) is made
    seen = weakref.ref(theirs)
    del theirs
    gc.collect()
    assert seen() is not None
    stream.close()
    gc.collect()
    assert seen() is None
    raw.close()
    assert made.handle in driver.streams


def test_streams_of_another_device(driver: FakeDriver, context: PrimaryContext) -> None:
    other = PrimaryContext(driver, 1)
    theirs = Stream.create(other)
    for wrong in (theirs, theirs.handle, Theirs(theirs.handle)):
        with pytest.raises(ArgumentError) as caught:
            Stream.of(context, wrong)
        assert caught.value.rule == "OX5321"
    event = Event(context)
    with pytest.raises(ArgumentError):
        theirs.record(event)
    other.close()


def test_a_handle_that_nobody_knows(context: PrimaryContext) -> None:
    with pytest.raises(DriverError) as caught:
        Stream.of(context, 0xABC)
    assert caught.value.call == "cuStreamGetCtx"


def test_capturing(driver: FakeDriver, context: PrimaryContext) -> None:
    stream = Stream.create(context)
    with context:
        driver.cuStreamBeginCapture(stream.handle, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
    assert stream.capturing
    with pytest.raises(DriverError) as caught:
        stream.synchronize()
    assert "capture" in caught.value.diagnostics[0].what
    with context:
        driver.cuStreamEndCapture(stream.handle)


def test_faults_show(driver: FakeDriver, context: PrimaryContext) -> None:
    stream, event = Stream.create(context), Event(context)
    driver.fault()
    for ask in (stream.query, stream.synchronize, event.query, event.synchronize):
        with pytest.raises(DeviceFaultError):
            ask()


# ---- events
def test_waiting_for_an_event(driver: FakeDriver, context: PrimaryContext) -> None:
    one, two = Stream.create(context), Stream.create(context)
    driver.hold(one.handle)
    event = one.record(Event(context, timing=False))
    two.wait(event)
    after = two.record()
    assert not after.query()
    driver.finish()
    assert after.query()
    event.synchronize()
    assert event.recorded


def test_time(context: PrimaryContext) -> None:
    stream = Stream.create(context)
    start, end = stream.record(), stream.record()
    assert end.milliseconds_since(start) > 0


def test_what_has_no_time(driver: FakeDriver, context: PrimaryContext) -> None:
    stream, other = Stream.create(context), PrimaryContext(driver, 1)
    good, never, untimed = stream.record(), Event(context), stream.record(Event(context, timing=False))
    for start, end, got in ((good, never, "never recorded"), (untimed, good, "made with timing=False"), (never, good, "never recorded")):
        with pytest.raises(LifetimeError) as caught:
            end.milliseconds_since(start)
        assert (caught.value.rule, caught.value.diagnostics[0].got) == ("OX5323", got)
    with pytest.raises(ArgumentError):
        good.milliseconds_since(Event(other))
    other.close()


def test_closed_events(driver: FakeDriver, context: PrimaryContext) -> None:
    stream, event = Stream.create(context), Event(context)
    event.close()
    event.close()
    assert not driver.events
    assert repr(event).endswith(", closed)")
    for use in (event.synchronize, event.query, lambda: stream.record(event), lambda: stream.wait(event)):
        with pytest.raises(LifetimeError) as caught:
            use()
        assert caught.value.rule == "OX5322"
    dropped = Event(context)
    assert driver.events
    del dropped
    gc.collect()
    assert not driver.events


# ---- on a GPU
@pytest.mark.gpu
def test_real_streams() -> None:
    from oxidecopy.engines.cuda.driver import check, load_driver
    from oxidecopy.engines.cuda.memory import CudaBuffer

    context = PrimaryContext(load_driver(), 0)
    stream, buffer = Stream.create(context), CudaBuffer.allocate(context, 1 << 28)
    start = stream.record()
    with context:
        check(context.driver.cuMemsetD8Async(buffer.address, 1, 1 << 28, stream.handle), "cuMemsetD8Async")
    end = stream.record()
    assert end.milliseconds_since(start) > 0
    assert stream.query()
    assert Stream.of(context, stream.handle).handle == stream.handle
    Stream.legacy(context).synchronize()
    mode = context.driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL
    with context:
        check(context.driver.cuStreamBeginCapture(stream.handle, mode), "cuStreamBeginCapture")
    assert stream.capturing
    context.health()  # leaves the capture alone
    with context:
        context.driver.cuGraphDestroy(check(context.driver.cuStreamEndCapture(stream.handle), "cuStreamEndCapture"))
    stream.close()
    context.close()


@pytest.mark.gpu
def test_streams_of_torch() -> None:
    torch = pytest.importorskip("torch")
    from oxidecopy.engines.cuda.driver import load_driver

    x = torch.arange(1 << 20, device="cuda:0")
    context = PrimaryContext(load_driver(), 0)
    theirs = torch.cuda.Stream()
    assert Stream.of(context, theirs.cuda_stream).handle == theirs.cuda_stream
    Stream.of(context, torch.cuda.current_stream().cuda_stream).synchronize()
    context.close()
    assert int(x.sum()) == (1 << 20) * ((1 << 20) - 1) // 2
