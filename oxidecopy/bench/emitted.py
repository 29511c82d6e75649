"""The hand-written peer: a program as `oxidecopy emit` writes it, compiled by NVRTC."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from oxidecopy.engines.cuda.driver import check
from oxidecopy.engines.cuda.emit import emitted
from oxidecopy.engines.cuda.emit.raw import COUNTERS_BYTES, compiled, raw_launch

if TYPE_CHECKING:
    from oxidecopy.engines.base import Bindings
    from oxidecopy.engines.cuda.engine import CudaEngine
    from oxidecopy.engines.cuda.stream import Stream
    from oxidecopy.program.verified import VerifiedProgram


def hand_written(engine: CudaEngine, verified: VerifiedProgram, bindings: Bindings, stream: Stream) -> Callable[[], None]:
    """Starts the program on `stream` at each call, its counter set to 0 before."""
    made = emitted(verified)
    counter = engine.allocate(COUNTERS_BYTES)
    launch = raw_launch(made, compiled(made, engine.sm), verified, bindings, counter)
    counted = any(p.kind == "counter" for p in made.parameters)

    def start() -> None:
        if counted:
            with engine.context:
                check(engine.context.driver.cuMemsetD8Async(counter.address, 0, COUNTERS_BYTES, stream.handle), "cuMemsetD8Async")
        engine.launch_raw(launch, stream)

    return start
