"""Who may still be using what: memory is let go only after the launches that use it.

The rule. A launch tells each buffer the stream it went to (`Uses.note`). When a buffer is dropped, an event is recorded on each of those
streams then: it stands for everything they were given until now, the launches that use the buffer included. Memory of a pool is freed on a
private stream that waits for those events (cuMemFreeAsync is ordered by streams, so the host does not wait). Everything else (host memory
that kernels write, tensors borrowed from another library) is parked until the events have passed.

A stream whose handle nobody keeps alive (a raw integer) may be gone by then: there the event is recorded right after the launch.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from typing import TYPE_CHECKING, final

from oxidecopy.engines.cuda.driver import Driver, check
from oxidecopy.errors import DriverError

if TYPE_CHECKING:
    from oxidecopy.engines.cuda.stream import Stream


@final
class Uses:
    """The streams on which something is in use, and with which events it will not be any more."""

    __slots__ = ("_driver", "_events", "_kept", "_streams")

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._kept: Counter[int] = Counter()  # handles of streams that stay noted, whatever is waited for
        self._streams: dict[int, Stream] = {}
        self._events: dict[int, int] = {}  # stream handle -> event, for streams that may be gone when they are asked

    def __bool__(self) -> bool:
        return bool(self._streams or self._events)

    def note(self, stream: Stream) -> None:
        """A launch that uses it was just given to `stream`. The context is current."""
        if stream.stable:
            self._streams[stream.handle] = stream
            return
        event = self._events.get(stream.handle)
        if event is None:
            event = self._events[stream.handle] = new_event(self._driver)
        check(self._driver.cuEventRecord(event, stream.handle), "cuEventRecord", str(stream))

    def keep(self, stream: Stream) -> None:
        """Launches that use it may be given to `stream`, a stable one, without a word, until `unkeep`."""
        self._streams[stream.handle] = stream
        self._kept[stream.handle] += 1

    def unkeep(self, handle: int) -> None:
        """Undoes one `keep`: from now on the stream is noted as after a last launch."""
        self._kept[handle] -= 1
        if self._kept[handle] <= 0:
            del self._kept[handle]

    def synchronize(self) -> None:
        """Waits until it is in use no more. The context is current."""
        for stream in self._streams.values():
            if not stream.closed:
                check(self._driver.cuStreamSynchronize(stream.handle), "cuStreamSynchronize", str(stream))
        for event in self._events.values():
            check(self._driver.cuEventSynchronize(event), "cuEventSynchronize")
        self._forget()

    def take_events(self) -> list[int]:
        """Events that pass when it is in use no more; the caller destroys them. Streams being captured are left noted: ask again later."""
        events = list(self._events.values())
        self._events.clear()
        for handle, stream in list(self._streams.items()):
            if not stream.closed:
                if _in_capture(stream):  # an event recorded now would be part of the capture, or spoil it
                    continue
                event = new_event(self._driver)
                events.append(event)
                check(self._driver.cuEventRecord(event, handle), "cuEventRecord", str(stream))
            del self._streams[handle]
        return events

    def _forget(self) -> None:
        for handle in self._streams.keys() - self._kept.keys():
            del self._streams[handle]
        for event in self._events.values():
            self._driver.cuEventDestroy(event)
        self._events.clear()


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
            parking.events += parking.uses.take_events()
            parking.events = [event for event in parking.events if not self._passed(event)]
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
            for event in [*parking.events, *parking.uses.take_events()]:
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


def _in_capture(stream: Stream) -> bool:
    """It is captured; or it is the default stream, and one that it would have to wait for is: the driver then does not even answer."""
    try:
        return stream.capturing
    except DriverError as error:
        if error.name == "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT":
            return True
        raise


def new_event(driver: Driver) -> int:
    """An event to wait for, without a time."""
    return int(check(driver.cuEventCreate(int(driver.CUevent_flags.CU_EVENT_DISABLE_TIMING)), "cuEventCreate"))
