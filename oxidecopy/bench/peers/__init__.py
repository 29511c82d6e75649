"""Other ways to do what is measured: torch, Triton, CuPy, cuda.core, CUDA C++. Each is optional: a row says so where one is missing.

A peer's module has `start(work, given)`: ways to start that work on the stream, by their names, of which the fastest counts. When it
returns, one of them has run, and the output holds the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, Protocol, cast, final

import oxidecopy as ox
from oxidecopy.bench.children import ChildError
from oxidecopy.engines.cuda.engine import CudaEngine
from oxidecopy.engines.cuda.stream import Stream

Call = Callable[[], object]
Array = ox.GlobalArray[Any, Any]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a peer works on."""

    engine: CudaEngine
    stream: Stream
    inputs: Sequence[Array]
    output: Array
    scalars: tuple[float, ...]


class Peer(Protocol):
    """One of this room's modules."""

    def start(self, work: str, given: Given, /) -> Mapping[str, Call]: ...


_MODULES: Final = {"torch": "with_torch", "Triton": "with_triton", "CuPy": "with_cupy", "CUDA C++": "with_cuda"}


def peer(name: str) -> Peer:
    """The peer of a name; its library is imported when it starts something."""
    return cast("Peer", import_module(f"{__name__}.{_MODULES[name]}"))


def why_absent(error: Exception) -> str:
    """What the row of a peer says that could not be measured; of a child's error the message is what the child said last."""
    first = (str(error).strip().splitlines() or [""])[0]
    words = first if isinstance(error, ChildError) else f"{type(error).__name__}: {first}"
    return "not installed" if words.startswith(("ModuleNotFoundError", "ImportError")) else f"failed: {words}"
