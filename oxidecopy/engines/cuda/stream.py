"""Streams and events of one context: made here, or borrowed from whoever else made them."""

from __future__ import annotations

from contextlib import suppress
from operator import index
from typing import Final, Self, final

from oxidecopy.engines.cuda.context import Ownership, PrimaryContext
from oxidecopy.engines.cuda.driver import check
from oxidecopy.errors import ArgumentError, Diagnostic, LifetimeError

NO_STREAM: Final = "OX5320"
OTHER_DEVICE: Final = "OX5321"
CLOSED: Final = "OX5322"
NO_TIME: Final = "OX5323"

LEGACY: Final = 1  # CU_STREAM_LEGACY: the default stream, whatever CUDA_API_PER_THREAD_DEFAULT_STREAM makes of 0
PER_THREAD: Final = 2  # CU_STREAM_PER_THREAD: another stream in each thread
_DEFAULTS: Final = frozenset({LEGACY, PER_THREAD})  # numbers that name a stream in any context
_HANDLE_LIMIT: Final = 1 << 64


def stream_handle(of: object) -> int:
    """The driver's handle of a stream.

    Args:
        of: an `ox.Stream`, any object with `__cuda_stream__` (cuda.core, torch, cupy, ...), or the handle as an integer, such as
            `torch.cuda.current_stream().cuda_stream` or `cupy.cuda.get_current_stream().ptr`.

    Raises:
        ArgumentError: when it is none of them (OX5320).
    """
    if isinstance(of, int) and not isinstance(of, bool):
        handle: object = of
    else:
        handle = _by_protocol(of)
    if isinstance(handle, int) and 0 <= handle < _HANDLE_LIMIT:
        return handle
    raise ArgumentError(
        Diagnostic(
            rule=NO_STREAM,
            what="this is no CUDA stream",
            got=repr(of),
            required="an ox.Stream, an object with __cuda_stream__, or a stream handle as an integer",
            fix=way_out(of),
        )
    )


def _by_protocol(of: object) -> object:
    """The handle in (version, handle), which `__cuda_stream__` gives; some libraries made it an attribute."""
    given = getattr(of, "__cuda_stream__", None)
    pair = given() if callable(given) else given
    if isinstance(pair, tuple) and len(pair) == 2 and pair[0] == 0:  # version 0 is the only one there is
        with suppress(TypeError):
            return index(pair[1])
    return None


def way_out(of: object) -> str:
    """What to pass instead of something that names no stream."""
    for attribute in ("cuda_stream", "ptr", "handle"):
        if isinstance(getattr(of, attribute, None), int):
            return f"pass its `.{attribute}`"
    if hasattr(of, "__int__") and not isinstance(of, int | float):  # as numba's have
        return "pass int(stream)"
    return "ox.Stream(dev)"


@final
class Stream:
    """A stream of a context. Use `create`, `legacy` or `of`.

    Attributes:
        context: where its work runs.
        stable: the handle names the same stream for as long as this object lives, in any thread.
    """

    __slots__ = ("__weakref__", "_closed", "_handle", "_keep", "_ownership", "context", "stable")

    def __init__(self, context: PrimaryContext, handle: int, *, keep: object = None, owned: bool = False) -> None:
        self.context = context
        self._handle = handle
        self._keep = keep
        self._closed = False
        self.stable = handle == LEGACY or (handle != PER_THREAD and (owned or keep is not None))
        driver = context.driver
        self._ownership: Ownership | None = None
        if owned:
            self._ownership = context.own(self, lambda: check(driver.cuStreamDestroy(handle), "cuStreamDestroy"))

    @classmethod
    def create(cls, context: PrimaryContext) -> Self:
        """A new stream, which waits for no other (not for the default stream either)."""
        driver = context.driver
        with context:
            made = check(driver.cuStreamCreate(int(driver.CUstream_flags.CU_STREAM_NON_BLOCKING)), "cuStreamCreate", str(context))
        return cls(context, int(made), owned=True)

    @classmethod
    def legacy(cls, context: PrimaryContext) -> Self:
        """The default stream: it waits for the context's other streams, but for those made not to."""
        return cls(context, LEGACY)

    @classmethod
    def given(cls, context: PrimaryContext, stream: object) -> Stream:
        """What a launch was told to go to: an `ox.Stream` is one of ours inside, None is the default stream, anything else as `of`."""
        return cls.legacy(context) if stream is None else cls.of(context, getattr(stream, "inner", stream))

    @classmethod
    def of(cls, context: PrimaryContext, stream: object) -> Stream:
        """Whatever `stream_handle` takes, as a stream of `context`; the object is kept alive.

        Raises:
            ArgumentError: it is no stream (OX5320), or one of another device (OX5321).
            LifetimeError: it was closed (OX5322).
        """
        if isinstance(stream, Stream):
            if stream.context is not context:
                raise _other_device(context, stream.context.handle, repr(stream))
            stream.handle  # noqa: B018  # raises when it was closed
            return stream
        handle = stream_handle(stream) or LEGACY  # what libraries of the run-time API mean by 0
        if handle not in _DEFAULTS:
            found = check(context.driver.cuStreamGetCtx(handle), "cuStreamGetCtx", repr(stream))
            if int(found) != int(context.handle):
                raise _other_device(context, found, repr(stream))
        return cls(context, handle, keep=None if isinstance(stream, int) else stream)

    @property
    def handle(self) -> int:
        """The driver's number for it.

        Raises:
            LifetimeError: when it was closed (OX5322).
        """
        if self.closed:
            raise LifetimeError(Diagnostic(rule=CLOSED, what="the stream was closed", required="an open stream", fix="ox.Stream(dev)"))
        return self._handle

    def __cuda_stream__(self) -> tuple[int, int]:
        """The protocol by which other libraries take it."""
        return 0, self.handle

    @property
    def closed(self) -> bool:
        """It was closed, or its context was; all that it was given is done."""
        return self._closed or self.context.closed or (self._ownership is not None and not self._ownership.alive)

    @property
    def capturing(self) -> bool:
        """What it is given now becomes part of a graph."""
        driver = self.context.driver
        with self.context:  # the default streams' handles name one in the current context
            status = check(driver.cuStreamIsCapturing(self.handle), "cuStreamIsCapturing", str(self))
        return status != driver.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE

    def synchronize(self) -> None:
        """Waits for all that it was given.

        Raises:
            DeviceFaultError: when a kernel faulted.
            ExecutionError: what launches on it (and on other streams, until now) have to say.
        """
        with self.context:
            check(self.context.driver.cuStreamSynchronize(self.handle), "cuStreamSynchronize", str(self))
        self.context.waited()

    def query(self) -> bool:
        """True when all that it was given is done; does not wait."""
        driver = self.context.driver
        with self.context:
            answer = driver.cuStreamQuery(self.handle)
        if answer[0] == driver.CUresult.CUDA_ERROR_NOT_READY:
            return False
        check(answer, "cuStreamQuery", str(self))
        return True

    def wait(self, event: Event) -> None:
        """What it is given from now on starts after `event`; the host does not wait."""
        with self.context:
            check(self.context.driver.cuStreamWaitEvent(self.handle, event.handle, 0), "cuStreamWaitEvent", str(self))

    def record(self, event: Event | None = None) -> Event:
        """Records `event`, or a new one: it passes when all that the stream was given until now is done."""
        event = Event(self.context) if event is None else event
        event.record(self)
        return event

    def close(self) -> None:
        """Waits for all that it was given; it cannot be used any more. Any number of times.

        If it was made here, the driver's stream goes with this object: another thread may be waiting for it just now.
        """
        if self.closed:
            return
        if self._ownership is not None:
            self.synchronize()
        self._closed = True
        self._keep = None
        self.context.left += 1  # prepared launches on it look before the next call

    def __str__(self) -> str:
        return f"stream {self._handle:#x} of {self.context}"

    def __repr__(self) -> str:
        return f"Stream({self._handle:#x}, {self.context}{', closed' if self.closed else ''})"


@final
class Event:
    """A point in a stream, to wait for or to measure from.

    Args:
        context: where.
        timing: it has a time; without it is cheaper.

    Attributes:
        recorded: it was, at least once.
    """

    __slots__ = ("__weakref__", "_handle", "_ownership", "context", "recorded", "timing")

    def __init__(self, context: PrimaryContext, *, timing: bool = True) -> None:
        driver, flags = context.driver, context.driver.CUevent_flags
        wanted = flags.CU_EVENT_DEFAULT if timing else flags.CU_EVENT_DISABLE_TIMING
        with context:
            handle = int(check(driver.cuEventCreate(int(wanted)), "cuEventCreate", str(context)))
        self.context = context
        self.timing = timing
        self._handle = handle
        self.recorded = False
        self._ownership = context.own(self, lambda: check(driver.cuEventDestroy(handle), "cuEventDestroy"))

    @property
    def handle(self) -> int:
        """The driver's number for it.

        Raises:
            LifetimeError: when it was closed (OX5322).
        """
        if not self._ownership.alive:
            raise LifetimeError(Diagnostic(rule=CLOSED, what="the event was closed", required="an open event", fix="ox.Event(dev)"))
        return self._handle

    def record(self, stream: Stream) -> None:
        """It passes when all that `stream` was given until now is done."""
        if stream.context is not self.context:
            raise _other_device(self.context, stream.context.handle, repr(stream))
        with self.context:
            check(self.context.driver.cuEventRecord(self.handle, stream.handle), "cuEventRecord", str(stream))
        self.recorded = True

    def synchronize(self) -> None:
        """Waits for it; not at all when it was never recorded."""
        with self.context:
            check(self.context.driver.cuEventSynchronize(self.handle), "cuEventSynchronize", str(self.context))
        self.context.waited()

    def query(self) -> bool:
        """True when it has passed, or was never recorded."""
        driver = self.context.driver
        with self.context:
            answer = driver.cuEventQuery(self.handle)
        if answer[0] == driver.CUresult.CUDA_ERROR_NOT_READY:
            return False
        check(answer, "cuEventQuery", str(self.context))
        return True

    def milliseconds_since(self, start: Event) -> float:
        """Time on the device from `start` to this event, in steps of about half a microsecond; waits for both.

        Raises:
            LifetimeError: when one of them has no time or was not recorded (OX5323), or they are of two devices (OX5321).
        """
        if start.context is not self.context:
            raise _other_device(self.context, start.context.handle, repr(start))
        for event in (start, self):
            if not (event.timing and event.recorded):
                raise LifetimeError(
                    Diagnostic(
                        rule=NO_TIME,
                        what="the event has no time",
                        got="never recorded" if event.timing else "made with timing=False",
                        required="two events with times, both recorded",
                        fix="stream.record(event) before and after the work",
                    )
                )
            event.synchronize()
        driver = self.context.driver
        with self.context:
            return check(driver.cuEventElapsedTime(start.handle, self.handle), "cuEventElapsedTime", str(self.context))

    def close(self) -> None:
        """Destroys it; streams that wait for it still do. Any number of times."""
        self._ownership.end()

    def __repr__(self) -> str:
        return f"Event({self._handle:#x}, {self.context}{'' if self._ownership.alive else ', closed'})"


def _other_device(context: PrimaryContext, found: object, what: str) -> ArgumentError:
    return ArgumentError(
        Diagnostic(
            rule=OTHER_DEVICE,
            what=f"a stream or event of another device, or of another context, is used on {context}",
            got=f"{what}, of context {found}",
            required=f"one of {context}'s primary context",
            fix="use streams and arrays of one device",
        )
    )
