"""What each launch needs of its own while it is on the device: a report that it can write, and a counter. Both come from a pool.

A pool allocates rarely, so that launches in a stream that is being captured allocate nothing. `Watch` knows whose report is whose: it reads
them when the host has waited for something, and raises what they say.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, final

from oxidecopy.engines.cuda.abi import REPORT_BYTES
from oxidecopy.engines.cuda.context import PrimaryContext
from oxidecopy.engines.cuda.memory import CudaBuffer
from oxidecopy.engines.cuda.pinned import HostBuffer
from oxidecopy.engines.cuda.quiet import zero
from oxidecopy.engines.cuda.report import Facts, failure
from oxidecopy.errors import DeadlockError, ExecutionError

SLOTS_PER_CHUNK: Final = 16
REPORT_PITCH: Final = -(-REPORT_BYTES // 256) * 256
COUNTER_PITCH: Final = 128  # bytes: a cache line each, as CTAs of several launches step theirs at the same time
COUNTER_BYTES: Final = 8  # next tile, CTAs that are done


@final
class Slot:
    """A report in host memory that the device writes, and the counter of one launch.

    Attributes:
        report: the report's address for the device.
        counter: the counter's address; its words are 0 between launches.
        words: the report's words as the host sees them; the first is not 0 once a launch was given up. Not to be read after the context
            was closed.
    """

    __slots__ = ("_counters", "_offset", "_reports", "_start", "counter", "report", "words")

    def __init__(self, reports: HostBuffer, counters: CudaBuffer, number: int) -> None:
        self._reports = reports
        self._counters = counters
        self._offset = number * COUNTER_PITCH
        self._start = number * REPORT_PITCH
        self.report = reports.address + self._start
        self.counter = counters.address + self._offset
        self.words = self._bytes().cast("I")

    def read(self) -> bytes:
        """The report as it is now; raises LifetimeError when it is no more."""
        return self._bytes().tobytes()

    def reset(self) -> None:
        """Makes it new after a launch that was given up. Nothing of it may be running."""
        self._bytes()[:] = bytes(REPORT_BYTES)
        zero(self._counters, self._offset, COUNTER_BYTES)

    def _bytes(self) -> memoryview:
        return self._reports.view[self._start : self._start + REPORT_BYTES]


@final
class SlotPool:
    """Slots of one context."""

    def __init__(self, context: PrimaryContext) -> None:
        self._context = context
        self._free: list[Slot] = []
        self._made: list[None] = []  # as long as slots were made: threads make them at once

    @property
    def taken(self) -> int:
        """Slots that are in use."""
        return len(self._made) - len(self._free)

    def take(self) -> Slot:
        """A slot with an empty report and a counter of 0."""
        while True:
            try:
                return self._free.pop()  # not looked at first: another thread may take the last one
            except IndexError:
                self._make()

    def _make(self) -> None:
        reports = HostBuffer(self._context, SLOTS_PER_CHUNK * REPORT_PITCH)
        counters = CudaBuffer.allocate(self._context, SLOTS_PER_CHUNK * COUNTER_PITCH)
        zero(counters, 0, counters.nbytes)
        self._made += [None] * SLOTS_PER_CHUNK
        self._free += [Slot(reports, counters, number) for number in range(SLOTS_PER_CHUNK)]

    def give(self, slot: Slot) -> None:
        """Takes a slot back that is as `take` gave it."""
        self._free.append(slot)


@final
class Watch:
    """The slots of all launches that may still say something, and what was said by those that are no more."""

    def __init__(self, context: PrimaryContext) -> None:
        self._context = context
        self.pool = SlotPool(context)
        self._facts: dict[Slot, Facts] = {}
        self._awaited: set[Slot] = set()
        self._errors: list[ExecutionError] = []

    def begin(self, facts: Facts) -> Slot:
        """A slot for a launch, whose report is put into words with `facts`."""
        slot = self.pool.take()
        self._facts[slot] = facts
        return slot

    def end(self, slot: Slot) -> None:
        """Takes a slot back of which nothing is running; what its report says is raised by the next `check`."""
        self._collect(slot, self._facts.pop(slot))
        self.pool.give(slot)

    @contextmanager
    def awaiting(self, slot: Slot) -> Iterator[None]:
        """A thread waits for this launch: what it reports is raised by `check(slot)`, not in another thread that checks before."""
        self._awaited.add(slot)
        try:
            yield
        finally:
            self._awaited.discard(slot)

    def check(self, mine: Slot | None = None) -> None:
        """Raises what launches have reported until now, once; the launches can then be repeated. Others await theirs: those are left.

        Raises:
            DeadlockError: a wait was given up.
            ExecutionError: anything else that a report says.
        """
        self._context.require_open()
        # A list: finalizers, which end launches, may run at any point.
        if not self._errors and not any(slot.words[0] for slot in list(self._facts) if slot is mine or slot not in self._awaited):
            return
        # Warps may still be writing their entries, and what is reset below may not be in use.
        self._context.synchronize()
        for slot, facts in list(self._facts.items()):
            if slot is mine or slot not in self._awaited:
                self._collect(slot, facts)
        errors, self._errors = self._errors, []
        if errors:
            worst = next((e for e in errors if not isinstance(e, DeadlockError)), errors[0])
            raise type(worst)(*(said for error in errors for said in error.diagnostics))

    def _collect(self, slot: Slot, facts: Facts) -> None:
        error = failure(slot.read(), facts)
        if error is not None:
            self._errors.append(error)
            slot.reset()
