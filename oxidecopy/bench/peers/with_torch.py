"""torch in eager mode: what its users write; each call makes its own result."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oxidecopy.bench.peers import Call, Given


def start(work: str, given: Given) -> Mapping[str, Call]:
    """As `oxidecopy.bench.peers` says."""
    torch: Any = import_module("torch")
    stream = torch.cuda.ExternalStream(given.stream.handle)
    x = torch.from_dlpack(given.inputs[0])
    calls: dict[str, tuple[str, Call]] = {
        "permute": ("x.permute(0, 2, 1, 3).contiguous()", lambda: x.permute(0, 2, 1, 3).contiguous()),
        "transpose": ("x.T.contiguous()", x.T.contiguous),
        "cast": ("x.to(torch.bfloat16)", lambda: x.to(torch.bfloat16)),
        "sums": ("x.sum(1)", partial(x.sum, 1)),
    }
    words, call = calls[work]

    def on_stream() -> object:
        with torch.cuda.stream(stream):
            return call()

    with torch.cuda.stream(stream):
        torch.from_dlpack(given.output).copy_(call())
    return {words: on_stream}
