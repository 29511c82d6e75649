"""A GPU's primary context: retained, never created, so that torch, cupy and jax in the same process share it and its memory.

It is pushed for each use and popped after it, so that whatever was current before is current again:

    with context:
        check(driver.cuMemsetD8(...), "cuMemsetD8")

What lives in it (buffers, streams, events, modules) is registered with `own`: it is released when its Python object is dropped, at the
latest when the context closes, with the context current and without ever raising. A context outlives what it owns. When the interpreter
ends, nothing is called: launches may be in flight, other libraries may be gone already, and the driver frees what a process held.

A forked child has none of it: CUDA does not survive a fork (measured: cuInit answers NOT_INITIALIZED there). So contexts are closed in the
child, without a call.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, final

from oxidecopy.engines.cuda.driver import Driver, check, name_of, start
from oxidecopy.engines.cuda.faults import earlier_fault, is_lost
from oxidecopy.engines.cuda.in_flight import Parked
from oxidecopy.engines.cuda.probe import Gpu, describe
from oxidecopy.errors import Diagnostic, LifetimeError

if TYPE_CHECKING:
    from cuda.bindings.driver import CUcontext, CUresult

CLOSED: Final = "OX5306"


@final
class PrimaryContext:
    """The primary context of GPU `ordinal`.

    Attributes:
        driver: the calls.
        ordinal: as in `cuda:0`.
        gpu: name, compute capability and limits.
        handle: the driver's.
        parked: what waits for launches in flight before it is let go.
        left: how many things that lived in it were let go: while it is the same, whatever was alive still is.
        after_wait: called when the host has waited for a stream or an event, to raise what launches have to say.
    """

    __slots__ = (
        "__weakref__",
        "_forked",
        "_held",
        "_release",
        "after_wait",
        "driver",
        "gpu",
        "handle",
        "left",
        "ordinal",
        "owned",
        "parked",
    )

    def __init__(self, driver: Driver, ordinal: int) -> None:
        start(driver)
        self.driver = driver
        self.ordinal = ordinal
        self.gpu: Gpu = describe(driver, ordinal)
        device = int(check(driver.cuDeviceGet(ordinal), "cuDeviceGet"))
        self.handle: CUcontext = check(driver.cuDevicePrimaryCtxRetain(device), "cuDevicePrimaryCtxRetain", str(self))
        self.owned: set[Ownership] = set()
        self.parked = Parked(driver)
        self.left = 0
        self.after_wait: list[Callable[[], None]] = []
        self._held = _Held(driver, device, self.handle)
        self._release = weakref.finalize(self, self._held.release)
        self._release.atexit = False  # the process ends, and the driver frees all of it, in an order that it knows
        self._forked = False
        _CONTEXTS.add(self)

    # ---- use
    def __enter__(self) -> Self:
        if not self._release.alive:
            self.require_open()
        answer = self.driver.cuCtxPushCurrent(self.handle)
        if answer[0]:
            check(answer, "cuCtxPushCurrent", str(self))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        answer = self.driver.cuCtxPopCurrent()
        if answer[0] and error is None:  # an error on its way out says more than the pop that failed after it
            check(answer, "cuCtxPopCurrent", str(self))

    def health(self, doing: str = "this launch") -> None:
        """Asks whether the context still works, before something is started in it; waits for nothing.

        A fault of an earlier kernel is seen here once that kernel has ended. Launches that are still running can fault later: what runs to
        its end in one call asks here first, then waits, so what it sees is its own unless other streams were busy.

        Raises:
            EarlierFaultError: when a kernel faulted before.
        """
        with self, self.relaxed():
            self.not_lost(self.driver.cuStreamQuery(self.private_stream(0, doing))[0], doing)

    def not_lost(self, result: CUresult, doing: str = "this launch") -> None:
        """For the answer of a call that starts something: the code of a lost context means that it was lost before, and nothing started."""
        if result and is_lost(name_of(result)):
            raise earlier_fault(name_of(result), int(result), doing, str(self))

    @contextmanager
    def relaxed(self) -> Iterator[None]:
        """Calls made inside leave stream captures of other code alone: without it, a query or a free spoils them."""
        relaxed = self.driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        before = check(self.driver.cuThreadExchangeStreamCaptureMode(relaxed), "cuThreadExchangeStreamCaptureMode")
        try:
            yield
        finally:
            self.driver.cuThreadExchangeStreamCaptureMode(before)

    def private_stream(self, index: int, doing: str = "this call") -> int:
        """A stream that nobody else knows and that waits for no other: 0 to allocate and ask on, 1 to free on. The context is current."""
        streams = self._held.streams
        while len(streams) <= index:
            made = self.driver.cuStreamCreate(int(self.driver.CUstream_flags.CU_STREAM_NON_BLOCKING))
            self.not_lost(made[0], doing)
            streams.append(int(check(made, "cuStreamCreate", str(self))))
        return streams[index]

    def memory_info(self) -> tuple[int, int]:
        """Free and total bytes of the device."""
        with self:
            return check(self.driver.cuMemGetInfo(), "cuMemGetInfo", str(self))

    def synchronize(self) -> None:
        """Waits for everything that was started in the context, by whoever it was."""
        with self:
            check(self.driver.cuCtxSynchronize(), "cuCtxSynchronize", str(self))
            with self.relaxed():
                self.parked.sweep()

    def waited(self) -> None:
        """The host has waited for something: what launches until then have to say is raised here."""
        for ask in self.after_wait:
            ask()

    # ---- ownership
    def own(self, owner: object, release: Callable[[], None]) -> Ownership:
        """Has `release` called once, with the context current, when `owner` is dropped; `release` must not hold `owner`."""
        return Ownership(self, owner, release)

    @property
    def closed(self) -> bool:
        """It was closed, and nothing of it can be used any more."""
        return not self._release.alive

    def close(self) -> None:
        """Lets go of everything in it, after the launches in flight, then of the context itself. Never raises; any number of times."""
        if self.closed:
            return
        with suppress(Exception), self, self.relaxed():
            self.driver.cuCtxSynchronize()  # kernels may be writing to what is let go here
            for ownership in list(self.owned):
                ownership.drop()
            self.parked.drain()
        self.owned.clear()  # whatever could not be let go
        self._release()

    def abandon(self) -> None:
        """In the child of a fork: nothing of it can be used, and nothing is let go."""
        self._forked = True
        self._release.detach()
        self.left += 1  # so that prepared launches look before they touch anything

    def require_open(self) -> None:
        """Raises LifetimeError when it was closed."""
        if self.closed:
            raise self._closed()

    def _closed(self) -> LifetimeError:
        what, fix = f"{self} was closed", "open the device again and copy the data to it"
        if self._forked:
            what, fix = f"{self} was opened before this process was forked", 'start processes with multiprocessing.get_context("spawn")'
        return LifetimeError(Diagnostic(rule=CLOSED, what=what, required="an open device", fix=fix))

    def __str__(self) -> str:
        return f"cuda:{self.ordinal}"

    def __repr__(self) -> str:
        return f"PrimaryContext({self.ordinal}, {self.gpu.name!r}{', closed' if self.closed else ''})"


_CONTEXTS: Final[weakref.WeakSet[PrimaryContext]] = weakref.WeakSet()


def _abandon_all() -> None:
    for context in list(_CONTEXTS):
        context.abandon()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_abandon_all)


@final
class Ownership:
    """One thing that lives in a context, and how it is let go: by `end`, or when its Python object is dropped."""

    __slots__ = ("__weakref__", "_finalizer", "_release", "context")

    def __init__(self, context: PrimaryContext, owner: object, release: Callable[[], None]) -> None:
        self.context = context
        self._release = release
        context.owned.add(self)
        self._finalizer = weakref.finalize(owner, self.drop)
        self._finalizer.atexit = False  # see `PrimaryContext`

    @property
    def alive(self) -> bool:
        """It was not let go yet."""
        return self in self.context.owned

    def end(self) -> None:
        """Lets go now; a driver call that fails raises. Nothing happens the second time."""
        try:
            self.context.owned.remove(self)  # one step: another thread may be ending it, too
        except KeyError:
            return
        self.context.left += 1
        self._finalizer.detach()
        release, self._release = self._release, _nothing  # what it holds goes, too
        with self.context, self.context.relaxed():
            release()

    def drop(self) -> None:
        """The same without an error: in a finalizer there is nobody to hand it to."""
        with suppress(Exception):
            self.end()


def _nothing() -> None:
    """Nothing is left to let go."""


@final
class _Held:
    """What a context gives back at its end; it does not hold the context, whose finalizer calls it."""

    __slots__ = ("device", "driver", "handle", "streams")

    def __init__(self, driver: Driver, device: int, handle: CUcontext) -> None:
        self.driver = driver
        self.device = device
        self.handle = handle
        self.streams: list[int] = []

    def release(self) -> None:
        with suppress(Exception):  # called by a finalizer, too
            if self.streams and not self.driver.cuCtxPushCurrent(self.handle)[0]:
                for stream in self.streams:
                    self.driver.cuStreamDestroy(stream)
                self.driver.cuCtxPopCurrent()
            self.driver.cuDevicePrimaryCtxRelease(self.device)
