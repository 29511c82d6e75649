"""Memory that goes to other libraries of the process, and memory of theirs: who waits for whom, and how long it lives."""

from __future__ import annotations

import weakref
from contextlib import suppress
from typing import Final, final

from oxidecopy.engines.cuda.context import PrimaryContext
from oxidecopy.engines.cuda.driver import check
from oxidecopy.engines.cuda.in_flight import new_event
from oxidecopy.engines.cuda.memory import CudaBuffer, refuse_capture
from oxidecopy.engines.cuda.stream import Stream

DLPACK_CUDA: Final = 2  # kDLCUDA


@final
class Loan:
    """Memory in the hands of another library, which holds this; when it lets go, the memory lives on until the default stream is done.

    By then nobody says on which streams it was used. The default stream is where libraries work unless they are told otherwise, and it
    waits for all but the streams that were made not to be waited for.
    """

    __slots__ = ("__weakref__", "buffer")

    def __init__(self, buffer: CudaBuffer) -> None:
        self.buffer = buffer
        weakref.finalize(self, _returned, buffer).atexit = False  # as in `PrimaryContext`


def _returned(buffer: CudaBuffer) -> None:
    with suppress(Exception):  # in a finalizer there is nobody to hand it to
        if buffer.alive:
            with buffer.context:
                buffer.used_on(Stream.legacy(buffer.context))


def lend(buffer: CudaBuffer, stream: int | None) -> tuple[int, Loan]:
    """The address of live memory, and the loan; `stream` (None: nobody) waits for all that uses it now.

    Raises:
        UsageError: when a capture uses it: what is captured has not run (OX5314).
    """
    context = buffer.context
    if stream is not None and buffer.uses:
        on = Stream.of(context, stream)
        refuse_capture(buffer)
        with context, context.relaxed():
            buffer.uses.join(on)
    return buffer.address, Loan(buffer)


def order(context: PrimaryContext, after: int, before: object) -> None:
    """What stream `before` is given from now on starts after what `after` was given until now."""
    first, then = Stream.of(context, after), Stream.given(context, before)
    if first.handle == then.handle:
        return
    driver = context.driver
    with context, context.relaxed():
        event = new_event(driver)
        try:
            check(driver.cuEventRecord(event, first.handle), "cuEventRecord", str(first))
            check(driver.cuStreamWaitEvent(then.handle, event, 0), "cuStreamWaitEvent", str(then))
        finally:
            driver.cuEventDestroy(event)
