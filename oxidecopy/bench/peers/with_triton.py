"""Triton: an elementwise kernel, in block sizes of which one is the fastest; gathered rows and a product, in tiles likewise."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from oxidecopy.bench.lines import row_numbers

if TYPE_CHECKING:
    from oxidecopy.bench.peers import Call, Given

_TILES: Final = ((128, 256, 64, 3, 8), (128, 128, 64, 4, 4), (64, 256, 64, 4, 4))  # rows, columns, depth, stages, warps
_GROUP: Final = 8
_GATHERED: Final = ((1 << 11, 4), (1 << 12, 4), (1 << 13, 8))  # elements of a tile, warps
_COLUMNS: Final = 2048  # of a tile, at most
_BLOCKS: Final = ((1024, 4), (2048, 4), (4096, 8))  # elements, warps


def start(work: str, given: Given) -> Mapping[str, Call]:
    """As `oxidecopy.bench.peers` says."""
    torch: Any = import_module("torch")
    kernels: Any = import_module("oxidecopy.bench.peers.triton_kernels")
    stream = torch.cuda.ExternalStream(given.stream.handle)
    if work.startswith("product"):
        return _product(torch, kernels, stream, work, given)
    if work.startswith("rows of"):
        return _rows(torch, kernels, stream, given)
    a, b = map(torch.from_dlpack, given.inputs)
    out = torch.from_dlpack(given.output)
    kernel = {"fused": kernels.fused}[work]

    def on_stream(block: int, warps: int) -> None:
        with torch.cuda.stream(stream):
            kernel[(out.numel() // block,)](a, b, out, *given.scalars, BLOCK=block, num_warps=warps)

    for block, warps in _BLOCKS:
        on_stream(block, warps)
    return {f"blocks of {block}, {warps} warps": partial(on_stream, block, warps) for block, warps in _BLOCKS}


def _rows(torch: Any, kernels: Any, stream: Any, given: Given) -> Mapping[str, Call]:
    table, out = torch.from_dlpack(given.inputs[0]), torch.from_dlpack(given.output)
    numbers = torch.from_numpy(row_numbers(out.shape[0])).to(out.device)
    width = out.shape[1]

    def gather(rows: int, columns: int, warps: int) -> None:
        with torch.cuda.stream(stream):
            kernels.rows[(out.numel() // (rows * columns),)](table, numbers, out, width, ROWS=rows, COLUMNS=columns, num_warps=warps)

    columns = min(width, _COLUMNS)
    ways: dict[str, Call] = {
        f"tiles of {elements // columns} x {columns}, {warps} warps": partial(gather, elements // columns, columns, warps)
        for elements, warps in _GATHERED
    }
    for call in ways.values():
        call()
    return ways


def _product(torch: Any, kernels: Any, stream: Any, work: str, given: Given) -> Mapping[str, Call]:
    a, b, bias = map(torch.from_dlpack, given.inputs)
    out = torch.from_dlpack(given.output)
    (m, k), n = a.shape, b.shape[0]

    def multiply(rows: int, columns: int, depth: int, stages: int, warps: int) -> None:
        grid = -(-m // rows) * -(-n // columns)
        sizes = {"ROWS": rows, "COLUMNS": columns, "DEPTH": depth, "GROUP": _GROUP}
        with torch.cuda.stream(stream):
            kernels.product[(grid,)](a, b, out, m, n, k, **sizes, num_stages=stages, num_warps=warps)

    def cublas(block: int, warps: int) -> None:
        with torch.cuda.stream(stream):
            torch.mm(a, b.T, out=out)
            kernels.biased[(out.numel() // block,)](out, bias, n, BLOCK=block, num_warps=warps)

    ways: dict[str, Call]
    if work == "product":
        ways = {f"tiles of {tile[0]} x {tile[1]}": partial(multiply, *tile) for tile in _TILES}
    else:
        ways = {f"torch.mm, then blocks of {block}, {warps} warps": partial(cublas, block, warps) for block, warps in _BLOCKS}
    for call in ways.values():
        call()
    return ways
