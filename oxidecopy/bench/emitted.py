"""The hand-written peer: a program as `oxidecopy emit` writes it, compiled by NVRTC."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from oxidecopy.engines.cuda.driver import check
from oxidecopy.engines.cuda.emit import emitted
from oxidecopy.engines.cuda.emit.raw import raw_launch

if TYPE_CHECKING:
    from oxidecopy.engines.base import Bindings
    from oxidecopy.engines.cuda.engine import CudaEngine
    from oxidecopy.engines.cuda.stream import Stream
    from oxidecopy.program.verified import VerifiedProgram


def hand_written(engine: CudaEngine, verified: VerifiedProgram, bindings: Bindings, stream: Stream) -> Callable[[], None]:
    """Starts the program on `stream` at each call, its counter set to 0 before."""
    made = emitted(verified)
    counter = engine.allocate(256)
    launch = raw_launch(made, compiled(made.source, f"sm_{engine.sm}a"), verified, bindings, counter)
    counted = any(p.kind == "counter" for p in made.parameters)

    def start() -> None:
        if counted:
            with engine.context:
                check(engine.context.driver.cuMemsetD8Async(counter.address, 0, 256, stream.handle), "cuMemsetD8Async")
        engine.launch_raw(launch, stream)

    return start


@lru_cache(maxsize=256)
def compiled(source: str, arch: str) -> bytes:
    """The cubin. The compiler's wrapper is a tool of the checkout, a stranger to this room: it is loaded by its name."""
    nvrtc: Any = import_module("oxidecopy._tools.nvrtc")
    cubin: bytes = nvrtc.compile_cubin(source, arch=arch, options=("--std=c++17",)).cubin
    return cubin
