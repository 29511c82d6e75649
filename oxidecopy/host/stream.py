"""`Stream` and `Event`: order and time on a device.

On the simulator each launch runs to its end at once, so nothing is ever in flight there.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Self, final

from oxidecopy.engines.cuda.context import PrimaryContext
from oxidecopy.engines.cuda.stream import CLOSED, NO_TIME, OTHER_DEVICE, PER_THREAD, stream_handle
from oxidecopy.engines.cuda.stream import Event as CudaEvent
from oxidecopy.engines.cuda.stream import Stream as CudaStream
from oxidecopy.errors import ArgumentError, LifetimeError
from oxidecopy.host.arrays import refusal
from oxidecopy.host.device import Device
from oxidecopy.typed.refusal import described, flag

if TYPE_CHECKING:
    from oxidecopy.host.pipeline import SupportsCudaStream


@final
class Stream:
    """A stream: what it is given runs in order, and beside what other streams are given (`pipe[grid].on(stream)(...)`).

    It waits for no other stream, the default one included: `wait` for an event to order it after their work.

    Args:
        device: where.

    Attributes:
        device: where.

    >>> import oxidecopy as ox
    >>> dev = ox.Device.open("sim")
    >>> stream = ox.Stream(dev)
    >>> stream.record().query()
    True
    """

    __slots__ = ("_closed", "_cuda", "device")

    def __init__(self, device: Device) -> None:
        context = _context_of(device)
        self.device = device
        self._cuda = None if context is None else CudaStream.create(context)
        self._closed = False

    @classmethod
    def of(cls, device: Device, stream: SupportsCudaStream | int) -> Self:
        """Another library's stream: any object with `__cuda_stream__`, or a handle such as torch's `.cuda_stream` and cupy's `.ptr`.

        The object is kept alive; of a handle the caller sees to that.

        Raises:
            ArgumentError: when it is no stream, or one of another device, or `device` is a simulator.
        """
        context = _context_of(device)
        if context is None:
            raise ArgumentError(
                refusal(
                    OTHER_DEVICE,
                    f"{device.name} has no streams of other libraries",
                    got=repr(stream),
                    required="a GPU",
                    fix="ox.Stream(dev) makes one of the simulator's own",
                )
            )
        made = cls.__new__(cls)
        made.device, made._cuda, made._closed = device, CudaStream.of(context, stream), False
        return made

    @property
    def handle(self) -> int:
        """The driver's number for it; 0 on the simulator."""
        return 0 if self._open() is None else self.__cuda_stream__()[1]

    @property
    def inner(self) -> CudaStream | None:
        """The engine's own stream: launches know by it when this one is closed. None on the simulator."""
        return self._open()

    def __cuda_stream__(self) -> tuple[int, int]:
        """The protocol by which other libraries take it.

        Raises:
            ArgumentError: on the simulator, whose streams mean nothing to other libraries.
        """
        inner = self._open()
        if inner is None:
            what = f"a stream of {self.device.name} is none of CUDA's"
            fix = "make it on the device that it is used on: ox.Stream(dev)"
            raise ArgumentError(refusal(OTHER_DEVICE, what, got=repr(self), required="a stream of a GPU", fix=fix))
        return inner.__cuda_stream__()

    @property
    def capturing(self) -> bool:
        """What it is given now becomes part of a graph."""
        inner = self._open()
        return inner is not None and inner.capturing

    def synchronize(self) -> None:
        """Waits for all that it was given.

        Raises:
            ExecutionError: what went wrong in launches on it.
        """
        inner = self._open()
        if inner is not None:
            inner.synchronize()

    def query(self) -> bool:
        """True when all that it was given is done; does not wait."""
        inner = self._open()
        return inner is None or inner.query()

    def wait(self, event: Event) -> None:
        """What it is given from now on starts after `event`, which may be another GPU's; the host does not wait."""
        inner, other = self._open(), _inside(event.device if _same_kind(self, event) else self.device, event)
        if inner is not None and other is not None:
            inner.wait(other)

    def record(self, event: Event | None = None) -> Event:
        """Records `event`, or a new one: it passes when all that the stream was given until now is done."""
        inner = self._open()
        event = Event(self.device) if event is None else event
        other = _inside(self.device, event)
        if inner is not None and other is not None:
            inner.record(other)
        event._pass()
        return event

    def close(self) -> None:
        """Waits for all that it was given; a stream made here is destroyed. Any number of times."""
        if self._cuda is not None:
            self._cuda.close()
        self._closed, self._cuda = True, None

    def _open(self) -> CudaStream | None:
        if self._closed:
            raise LifetimeError(refusal(CLOSED, "the stream was closed", got=repr(self), required="an open stream", fix="ox.Stream(dev)"))
        return self._cuda

    def __repr__(self) -> str:
        return f"Stream({self.device.name!r}{', closed' if self._closed else ''})"


@final
class Event:
    """A point in a stream, to wait for or to measure from: `stream.record(event)`.

    Args:
        device: where.
        timing: it has a time; without it is cheaper.

    Attributes:
        device: where.
        timing: it has a time.
    """

    __slots__ = ("_closed", "_cuda", "_seconds", "device", "timing")

    def __init__(self, device: Device, *, timing: bool = True) -> None:
        context = _context_of(device)
        self.device = device
        self.timing = flag(timing, "timing")
        self._cuda = None if context is None else CudaEvent(context, timing=timing)
        self._seconds: float | None = None
        self._closed = False

    def synchronize(self) -> None:
        """Waits for it; not at all when it was never recorded."""
        inner = self._open()
        if inner is not None:
            inner.synchronize()

    def query(self) -> bool:
        """True when it has passed, or was never recorded."""
        inner = self._open()
        return inner is None or inner.query()

    def milliseconds_since(self, start: Event) -> float:
        """Time from `start` to this event: the device's, in steps of about half a microsecond; on the simulator this machine's.

        Waits for both.

        Raises:
            LifetimeError: when one of them was made with timing=False, or was never recorded.
        """
        inner, other = self._open(), _inside(self.device, start)
        for event in (start, self):
            if not event.timing or event._seconds is None:
                got = "never recorded" if event.timing else "made with timing=False"
                fix = "stream.record(event) before and after the work"
                raise LifetimeError(
                    refusal(NO_TIME, "the event has no time", got=got, required="two events with times, both recorded", fix=fix)
                )
        if inner is not None and other is not None:
            return inner.milliseconds_since(other)
        return 1000 * ((self._seconds or 0) - (start._seconds or 0))

    def close(self) -> None:
        """Destroys it; streams that wait for it still do. Any number of times."""
        if self._cuda is not None:
            self._cuda.close()
        self._closed = True

    def _pass(self) -> None:
        self._seconds = perf_counter()

    def _open(self) -> CudaEvent | None:
        if self._closed:
            raise LifetimeError(refusal(CLOSED, "the event was closed", got=repr(self), required="an open event", fix="ox.Event(dev)"))
        return self._cuda

    def __repr__(self) -> str:
        return f"Event({self.device.name!r}{', closed' if self._closed else ''})"


def _inside(device: Device, event: Event) -> CudaEvent | None:
    """The engine's event, where the event is one of this device."""
    known: object = event
    if not isinstance(known, Event) or known.device is not device:
        required = f"one of this {device.name}"
        what = f"what is no event, or one of another device, is used on {device.name}"
        raise ArgumentError(refusal(OTHER_DEVICE, what, got=repr(event), required=required, fix="use streams and events of one device"))
    return event._open()


def _context_of(device: Device) -> PrimaryContext | None:
    """The GPU's context; None on a simulator."""
    known: object = device
    if not isinstance(known, Device):
        what, fix = "streams and events are made on a device", "ox.Stream(ox.Device.open())"
        raise ArgumentError(refusal(OTHER_DEVICE, what, got=described(known), required="an ox.Device", fix=fix))
    context = getattr(device.engine, "context", None)
    return context if isinstance(context, PrimaryContext) else None


def _same_kind(stream: Stream, event: Event) -> bool:
    """An event of the same kind of device: streams of a GPU wait for events of all GPUs."""
    known: object = event
    return isinstance(known, Event) and type(known.device.engine) is type(stream.device.engine)


def is_per_thread(stream: SupportsCudaStream | int) -> bool:
    """It is CUDA's default stream of each thread, by its number or as an object of another library."""
    return not isinstance(stream, Stream) and stream_handle(stream) == PER_THREAD
