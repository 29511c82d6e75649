"""`Repeatable`: a kernel with everything packed, on one stream. Calling it is one driver call and a few comparisons.

What a call does beside the driver's: it sees that nothing was freed or closed since the last time (`PrimaryContext.left`), and that the
launch before was not given up (a word of host memory). Memory is told once that it may be in use on the stream (`Uses.keep`).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from oxidecopy.engines.cuda.context import PrimaryContext
from oxidecopy.engines.cuda.driver import check, name_of
from oxidecopy.engines.cuda.in_flight import Uses
from oxidecopy.engines.cuda.launch import LaunchShape, ParameterBlock, launch_config
from oxidecopy.engines.cuda.memory import CudaBuffer
from oxidecopy.engines.cuda.module import Kernel
from oxidecopy.engines.cuda.stream import Stream

if TYPE_CHECKING:
    from cuda.bindings.driver import CUresult

_QUIET = memoryview(bytes(4)).cast("I")


class Repeatable:
    """A launch that can be repeated.

    Attributes:
        kernel: what it runs.
        shape: grid and the like.
        stream: where.
        block: its parameters.
        buffers: the memory it uses, kept alive by it.
        uses: where it is in flight.
    """

    __slots__ = (
        "__weakref__",
        "_config",
        "_context",
        "_function",
        "_kept",
        "_launch",
        "_left",
        "_loose",
        "_pointers",
        "_words",
        "block",
        "buffers",
        "kernel",
        "shape",
        "stream",
        "uses",
    )

    def __init__(
        self,
        context: PrimaryContext,
        kernel: Kernel,
        shape: LaunchShape,
        stream: Stream,
        block: ParameterBlock,
        buffers: tuple[CudaBuffer, ...],
        words: memoryview[int] = _QUIET,
    ) -> None:
        """The first of `words` is not 0 once a launch before was given up."""
        driver = context.driver
        self.kernel, self.shape, self.stream, self.block, self.buffers = kernel, shape, stream, block, buffers
        self.uses = Uses(driver)
        self._context = context
        self._left = -1
        self._words = words
        self._launch: Callable[..., tuple[CUresult]] = driver.cuLaunchKernelEx
        self._loose = not stream.stable
        self._config = launch_config(driver, shape, stream.handle)
        self._function = kernel.function
        self._pointers = block.pointers
        self._kept: list[Uses] = []  # told that the stream may use them
        weakref.finalize(self, _unkeep, self._kept)

    def __call__(self) -> None:
        """Launches; does not wait."""
        if self._loose:
            self.follow()
        if self._context.left != self._left or self._words[0]:
            self._renew()
            with self._context:  # nobody may have made one current in this thread yet; later calls find out by trying
                result = self._launch(self._config, self._function, self._pointers, 0)[0]
        else:
            result = self._launch(self._config, self._function, self._pointers, 0)[0]
        if result:
            self._again(result)
        if self._loose:
            self._note()

    def bare(self) -> Callable[[], tuple[CUresult]]:
        """The driver call alone, with nothing looked at: to measure what a call costs beside it. The context must be current."""
        return partial(self._launch, self._config, self._function, self._pointers, 0)

    def used_on(self, stream: Stream) -> None:
        """It was launched on `stream` by something else than a call, such as a graph. The context is current."""
        for used in (self.uses, *(buffer.uses for buffer in self.buffers)):
            used.note(stream)

    # ---- not on the fast path
    def follow(self) -> None:
        """For a stream whose handle nobody keeps: it may be another one's by now, and shares memory with the launch before."""
        if self.uses:
            with self._context, self._context.relaxed():
                if not self.stream.capturing:
                    self.uses.join(self.stream)

    def settle(self) -> None:
        """Raises what is left to say of launches before this one."""

    def _renew(self) -> None:
        """Raises when something that it needs is gone, or when an earlier launch was given up."""
        left, self._left = self._look(), -1
        for buffer in self.buffers:
            buffer.address  # noqa: B018  # raises when it was freed
        if not self._loose:
            self._keep([self.uses, *[buffer.uses for buffer in self.buffers]])
        self._left = left

    def _look(self) -> int:
        """Raises when all of it is gone, or when an earlier launch was given up; else how many things were let go before."""
        left = self._context.left  # before the looks: what another thread frees meanwhile is seen by the next call
        self._context.require_open()
        self.stream.handle  # noqa: B018  # raises when it was closed
        self.settle()
        self._left = left
        return left

    def _keep(self, wanted: list[Uses]) -> None:
        """Tells those; nothing is untold in between that stays, since another thread may be calling as well."""
        if wanted == self._kept:  # they are told apart by what they are
            return
        for used in wanted:
            used.keep(self.stream, id(self._kept))
        gone = [used for used in self._kept if used not in wanted]
        self._kept[:] = wanted
        for used in gone:
            used.unkeep(id(self._kept))

    def _note(self) -> None:
        """For a stream whose handle nobody keeps: events are recorded now. A graph that is being captured keeps what it uses itself."""
        with self._context, self._context.relaxed():
            if not self.stream.capturing:
                self.used_on(self.stream)

    def _again(self, result: CUresult) -> None:
        """The launch was refused: perhaps only because another context is current, or none."""
        if name_of(result) in ("CUDA_ERROR_INVALID_CONTEXT", "CUDA_ERROR_INVALID_HANDLE"):
            with self._context:
                result = self._launch(self._config, self._function, self._pointers, 0)[0]
        self._context.not_lost(result)
        check((result,), "cuLaunchKernelEx", f"`{self.kernel.name}`, {self.shape}")


def _unkeep(kept: list[Uses]) -> None:
    """No more launches come."""
    for used in kept:
        used.unkeep(id(kept))
