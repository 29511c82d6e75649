"""Triton: an elementwise kernel, in block sizes of which one is the fastest."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from oxidecopy.bench.peers import Call, Given

_BLOCKS: Final = ((1024, 4), (2048, 4), (4096, 8))  # elements, warps


def start(work: str, given: Given) -> Mapping[str, Call]:
    """As `oxidecopy.bench.peers` says."""
    torch: Any = import_module("torch")
    kernels: Any = import_module("oxidecopy.bench.peers.triton_kernels")
    stream = torch.cuda.ExternalStream(given.stream.handle)
    a, b = map(torch.from_dlpack, given.inputs)
    out = torch.from_dlpack(given.output)
    kernel = {"fused": kernels.fused}[work]

    def on_stream(block: int, warps: int) -> None:
        with torch.cuda.stream(stream):
            kernel[(out.numel() // block,)](a, b, out, *given.scalars, BLOCK=block, num_warps=warps)

    for block, warps in _BLOCKS:
        on_stream(block, warps)
    return {f"blocks of {block}, {warps} warps": partial(on_stream, block, warps) for block, warps in _BLOCKS}
