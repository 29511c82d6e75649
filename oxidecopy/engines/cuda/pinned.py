"""Page-locked host memory that kernels write: for reports that the host reads without a copy."""

from __future__ import annotations

import ctypes
from functools import partial
from typing import TYPE_CHECKING, final

from oxidecopy.engines.base import FREED
from oxidecopy.engines.cuda.context import Ownership, PrimaryContext
from oxidecopy.engines.cuda.driver import check
from oxidecopy.engines.cuda.in_flight import Uses
from oxidecopy.errors import Diagnostic, LifetimeError

if TYPE_CHECKING:
    from oxidecopy.engines.cuda.stream import Stream


@final
class HostBuffer:
    """Zeroed host memory that kernels of the context see at `address`.

    Attributes:
        context: whose kernels see it.
        nbytes: its size.
        address: its first byte, for kernels.
        uses: the streams of the launches that use it.
    """

    __slots__ = ("__weakref__", "_host", "_ownership", "address", "context", "nbytes", "uses")

    def __init__(self, context: PrimaryContext, nbytes: int) -> None:
        driver = context.driver
        with context, context.relaxed():
            host = check(
                driver.cuMemHostAlloc(nbytes, driver.CU_MEMHOSTALLOC_PORTABLE | driver.CU_MEMHOSTALLOC_DEVICEMAP), "cuMemHostAlloc"
            )
            self.uses = Uses(driver)
            self._ownership: Ownership = context.own(self, partial(_free_host, context, host, self.uses))
            self.address = int(check(driver.cuMemHostGetDevicePointer(host, 0), "cuMemHostGetDevicePointer"))
        self.context = context
        self.nbytes = nbytes
        self._host = host
        self.view[:] = bytes(nbytes)

    @property
    def view(self) -> memoryview:
        """Its bytes. Not to be kept: they go when this object goes.

        Raises:
            LifetimeError: when it was freed (OX5310).
        """
        if not self._ownership.alive:
            raise LifetimeError(
                Diagnostic(rule=FREED, what="host memory is used after it was freed", got=f"{self.nbytes:,} bytes", required="live memory")
            )
        return memoryview((ctypes.c_ubyte * self.nbytes).from_address(self._host)).cast("B")

    def used_on(self, stream: Stream) -> None:
        """As for `CudaBuffer`."""
        self.uses.note(stream)

    def free(self) -> None:
        """Lets go of it, after the launches that use it. Any number of times."""
        self._ownership.end()


def _free_host(context: PrimaryContext, host: int, uses: Uses) -> None:
    driver = context.driver
    context.parked.park(uses, lambda: check(driver.cuMemFreeHost(host), "cuMemFreeHost"))
