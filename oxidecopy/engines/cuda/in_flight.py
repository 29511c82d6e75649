"""Who may still be using what: memory is let go only after the launches that use it.

The rule. A launch tells each buffer the stream it went to (`Uses.note`). When a buffer is dropped, an event is recorded on each of those
streams then: it stands for everything they were given until now, the launches that use the buffer included. Memory of a pool is freed on a
private stream that waits for those events (cuMemFreeAsync is ordered by streams, so the host does not wait). Everything else (host memory
that kernels write, tensors borrowed from another library) is parked until the events have passed.

A stream whose handle nobody keeps alive (a raw integer) may be gone by then: there the event is recorded right after the launch.

Several threads may launch, wait and drop at once, and a finalizer may run between any two steps of this. So what is noted carries the round
it was noted in: a wait begins a new round, and forgets only what it has waited for, not what was noted meanwhile.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import RLock
from typing import TYPE_CHECKING, Final, final

from oxidecopy.engines.cuda.driver import Driver, check
from oxidecopy.errors import DriverError, LifetimeError, OxidecopyError

if TYPE_CHECKING:
    from oxidecopy.engines.cuda.stream import Stream

_Noted = tuple[int, int]  # a stream's handle, and the round in which it was noted
STREAMS_KEPT: Final = 8  # that something is noted on before it is asked which of them are done
_RECORDING: Final = RLock()  # one for all: finalizers record events, too, and with several they could wait for each other


@final
class Uses:
    """The streams on which something is in use, and with which events it will not be any more."""

    __slots__ = ("_driver", "_events", "_kept", "_most", "_round", "_spare", "_streams")

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._round = 0
        self._most = STREAMS_KEPT
        self._kept: dict[int, Stream] = {}  # who keeps it -> a stream that stays noted, whatever is waited for
        self._streams: dict[_Noted, Stream] = {}
        self._events: dict[_Noted, int] = {}  # for streams that may be gone when they are asked
        self._spare: list[int] = []  # events to record again: others may still be waiting for them, so they live until `take_events`

    def __bool__(self) -> bool:
        return bool(self._streams or self._events or self._kept)

    def note(self, stream: Stream) -> None:
        """A launch that uses it was just given to `stream`. The context is current."""
        self._prune()
        noted = (stream.handle, self._round)
        if stream.stable:
            self._streams[noted] = stream
            return
        with _RECORDING:
            event = self._events.get(noted)
            if event is None:
                event = self._events[noted] = self._spare.pop() if self._spare else new_event(self._driver)
            check(self._driver.cuEventRecord(event, stream.handle), "cuEventRecord", str(stream))

    def note_stable(self, stream: Stream, handle: int) -> None:
        """`note` for a stable stream that is open and has this handle: it is called for every launch with other memory."""
        if len(self._streams) > self._most:
            self._prune()
        self._streams[handle, self._round] = stream

    def keep(self, stream: Stream, by: int) -> None:
        """Launches that use it may be given to `stream`, a stable one, without a word, until `unkeep`; `by` is whose word that is."""
        self._prune()
        self._kept[by] = stream

    def unkeep(self, by: int) -> None:
        """Undoes `keep`: from now on the stream is noted as after a last launch."""
        stream = self._kept.get(by)
        handle = _open_handle(stream) if stream is not None else None
        if stream is not None and handle is not None:
            self._streams[handle, self._round] = stream
        self._kept.pop(by, None)

    def in_capture(self) -> Stream | None:
        """A stream that uses it and is being captured now, if any: it cannot be waited for. The context is current."""
        with _RECORDING:
            streams = [*self._streams.values(), *self._kept.values()]
        return next((stream for stream in dict.fromkeys(streams) if _in_capture(stream)), None)

    def join(self, target: Stream) -> None:
        """What `target` is given from now on starts after all that uses it now; the host does not wait. The context is current."""
        with _RECORDING:
            streams, events = [*self._streams.values(), *self._kept.values()], list(self._events.values())
            for stream in dict.fromkeys(streams):
                handle = _open_handle(stream)
                if handle is None or handle == target.handle:
                    continue
                event = new_event(self._driver)
                try:
                    check(self._driver.cuEventRecord(event, handle), "cuEventRecord", str(stream))
                    check(self._driver.cuStreamWaitEvent(target.handle, event, 0), "cuStreamWaitEvent", str(target))
                finally:
                    self._driver.cuEventDestroy(event)  # the driver keeps it for as long as somebody waits for it
            for event in events:
                check(self._driver.cuStreamWaitEvent(target.handle, event, 0), "cuStreamWaitEvent", str(target))

    def synchronize(self) -> None:
        """Waits until it is in use no more. The context is current."""
        with _RECORDING:
            self._round += 1
            streams, events = list(self._streams.items()), list(self._events.items())
        for stream in dict.fromkeys([*(stream for _, stream in streams), *list(self._kept.values())]):
            handle = _open_handle(stream)
            if handle is not None:
                check(self._driver.cuStreamSynchronize(handle), "cuStreamSynchronize", str(stream))
        for _, event in events:
            check(self._driver.cuEventSynchronize(event), "cuEventSynchronize")
        for noted, _ in streams:
            self._streams.pop(noted, None)
        for noted, event in events:
            if self._events.pop(noted, None) is not None:
                self._spare.append(event)

    def take_events(self, events: list[int]) -> None:
        """Adds events that pass when it is in use no more; the caller destroys them.

        Streams being captured are left noted, and so are those at which the driver fails: ask again later.
        """
        with _RECORDING:
            events += self._events.values()
            self._events, spare, self._spare = {}, self._spare, []
        for event in spare:
            self._driver.cuEventDestroy(event)
        for by in list(self._kept):
            self.unkeep(by)
        recorded = set()
        for noted, stream in list(self._streams.items()):
            handle = _open_handle(stream)
            if handle is not None and handle not in recorded:
                if _in_capture(stream):  # an event recorded now would be part of the capture, or spoil it
                    continue
                event = new_event(self._driver)
                events.append(event)
                check(self._driver.cuEventRecord(event, handle), "cuEventRecord", str(stream))
                recorded.add(handle)
            self._streams.pop(noted, None)

    def _prune(self) -> None:
        """Forgets streams that are done, once there are many: memory that is never waited for may have been used on any number of them."""
        if len(self._streams) <= self._most:
            return
        with _RECORDING:
            self._round += 1
            streams = list(self._streams.items())
        for noted, stream in streams:
            if _is_done(stream):
                self._streams.pop(noted, None)
        self._most = STREAMS_KEPT + 2 * len(self._streams)


@final
class _Parking:
    """One thing that waits: its events, streams that could not be asked yet, and what to do then."""

    __slots__ = ("events", "release", "uses")

    def __init__(self, uses: Uses, release: Callable[[], None]) -> None:
        self.uses = uses
        self.release = release
        self.events: list[int] = []


@final
class Parked:
    """What waits for launches in flight. Swept whenever something is allocated, freed or parked: nothing polls."""

    __slots__ = ("_driver", "_waiting")

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._waiting: deque[_Parking] = deque()  # taken from and given to in single steps: finalizers may run at any point, in any thread

    def __len__(self) -> int:
        return len(self._waiting)

    def park(self, uses: Uses, release: Callable[[], None]) -> None:
        """Calls `release` once nothing uses it any more; at once where nothing does. The context is current."""
        self._waiting.append(_Parking(uses, release))
        self.sweep()

    def sweep(self) -> None:
        """Lets go of what is in use no more. The context is current."""
        for _ in range(len(self._waiting)):
            parking = self._next()
            if parking is None:
                return
            try:
                parking.uses.take_events(parking.events)
                parking.events = [event for event in parking.events if not self._passed(event)]
            except BaseException:  # the driver failed: it waits on
                self._waiting.append(parking)
                raise
            if parking.events or parking.uses:
                self._waiting.append(parking)
            else:
                parking.release()

    def drain(self) -> None:
        """Waits for all of it but what streams use that are being captured, then lets go. The context is current."""
        for _ in range(len(self._waiting)):
            parking = self._next()
            if parking is None:
                return
            parking.uses.take_events(parking.events)
            for event in parking.events:
                self._driver.cuEventSynchronize(event)
                self._driver.cuEventDestroy(event)
            parking.events = []
            if parking.uses:
                self._waiting.append(parking)
            else:
                parking.release()

    def _next(self) -> _Parking | None:
        try:
            return self._waiting.popleft()
        except IndexError:  # another thread was faster
            return None

    def _passed(self, event: int) -> bool:
        """It passed, or never will because the context is lost; then it is destroyed."""
        if self._driver.cuEventQuery(event)[0] == self._driver.CUresult.CUDA_ERROR_NOT_READY:
            return False
        self._driver.cuEventDestroy(event)
        return True


def _open_handle(stream: Stream) -> int | None:
    """Its handle, which is good for as long as the object is held; None when it was closed, by another thread perhaps: then it is done."""
    try:
        return stream.handle
    except LifetimeError:
        return None


def _is_done(stream: Stream) -> bool:
    """Nothing that it was given is left to do. Where that cannot be told, it is not."""
    if _open_handle(stream) is None:
        return True
    try:
        with stream.context, stream.context.relaxed():
            return not _in_capture(stream) and stream.query()
    except OxidecopyError:
        return False


def _in_capture(stream: Stream) -> bool:
    """It is captured; or it is the default stream, and one that it would have to wait for is: the driver then does not even answer."""
    try:
        return stream.capturing
    except LifetimeError:  # closed by another thread
        return False
    except DriverError as error:
        if error.name == "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT":
            return True
        raise


def new_event(driver: Driver) -> int:
    """An event to wait for, without a time."""
    return int(check(driver.cuEventCreate(int(driver.CUevent_flags.CU_EVENT_DISABLE_TIMING)), "cuEventCreate"))
