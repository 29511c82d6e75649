"""CUDA C++, compiled by NVRTC: what is added up by atomics, element by element and four at a time."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Final

from oxidecopy.engines.base import RawLaunch, RawParameter
from oxidecopy.engines.cuda.elf import read_cubin
from oxidecopy.engines.cuda.nvrtc import compile_cubin

if TYPE_CHECKING:
    from oxidecopy.bench.peers import Call, Given

_THREADS: Final = 256
# Both run through the array in its own order. ROWS and COLUMNS are the output's, WIDTH is the array's; all are powers of two.
SOURCE: Final = """
extern "C" __global__ void add_one(const float* __restrict__ src, float* total) {
    const size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&total[at / WIDTH % ROWS * COLUMNS + at % COLUMNS], src[at]);
}
extern "C" __global__ void add_four(const float4* __restrict__ src, float4* total) {
    const size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&total[(at / (WIDTH / 4) % ROWS * COLUMNS + at * 4 % COLUMNS) / 4], src[at]);
}
"""
_WAYS: Final = {"atomicAdd of float": ("add_one", 1), "atomicAdd of float4": ("add_four", 4)}


def start(work: str, given: Given) -> Mapping[str, Call]:
    """As `oxidecopy.bench.peers` says."""
    assert work == "added"  # the one work with this peer
    cubin = compile_cubin(SOURCE, arch=f"sm_{given.engine.sm}a", options=options(given)).cubin
    launches = {words: launch(cubin, kernel, each, given) for words, (kernel, each) in _WAYS.items()}
    calls = {words: partial(given.engine.launch_raw, made, given.stream) for words, made in launches.items()}
    next(iter(calls.values()))()
    return calls


def options(given: Given) -> tuple[str, ...]:
    """What the source leaves open."""
    rows, columns = given.output.shape
    return "--std=c++17", f"-DROWS={rows}u", f"-DCOLUMNS={columns}u", f"-DWIDTH={given.inputs[0].shape[1]}u"


def launch(cubin: bytes, kernel: str, each: int, given: Given) -> RawLaunch:
    """A thread for every `each` elements."""
    info = read_cubin(cubin).kernels[kernel]
    values = [(a.buffer.address + a.offset_bytes).to_bytes(8, "little") for a in (*given.inputs, given.output)]
    return RawLaunch(
        image=cubin,
        kernel=kernel,
        grid=(prod(given.inputs[0].shape) // each // _THREADS, 1, 1),
        threads=(_THREADS, 1, 1),
        cluster=None,
        shared_bytes=0,
        parameters=tuple(
            [
                RawParameter(name=f"p{i}", offset=place.offset, nbytes=place.size, value=value)
                for i, (place, value) in enumerate(zip(info.parameters, values, strict=True))
            ]
        ),
        parameter_bytes=info.parameter_bytes,
    )
