"""How a host launches an emitted kernel through the driver API: a function under a macro, with what its maps must say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from oxidecopy.engines.cuda.emit.names import comment
from oxidecopy.engines.cuda.emit.parameters import Parameter
from oxidecopy.isa.limits import CLUSTER_PORTABLE_MAX
from oxidecopy.program.program import Launch, Program
from oxidecopy.program.tensor_map import TensorMap

DEFAULT_SHARED: Final = 48 * 1024  # more must be asked for (CUDA Programming Guide, cudaFuncSetAttribute)
_TYPES: Final = {"map": "const CUtensorMap&", "table": "CUdeviceptr", "array": "CUdeviceptr", "counter": "CUdeviceptr"}


def launch_snippet(program: Program, launch: Launch, parameters: Sequence[Parameter], kernel: str, shared: int) -> str:
    """For a host compiler only, so that the source stays free of includes elsewhere."""
    return "\n".join(_lines(program, launch, parameters, kernel, shared))


def _lines(program: Program, launch: Launch, parameters: Sequence[Parameter], kernel: str, shared: int) -> Iterator[str]:
    yield "#ifdef OXIDECOPY_HOST  // the launch through the driver API; `function` is the kernel's CUfunction"
    yield "#include <cuda.h>"
    yield ""
    for name, bound in launch.maps:
        yield from _map(name, bound)
    for p in parameters:
        if p.kind == "table":
            yield f"// {p.name}: those maps one after the other in device memory, 128 bytes each, at a multiple of 128."
        if p.kind == "counter":
            yield f"// {p.name}: one u32, 0 before each launch (cuMemsetD32Async)."
    declared = "".join(f", {_TYPES.get(p.kind, p.ctype)} {p.name}" for p in parameters)
    x, y, z = launch.grid
    yield f"// The grid that was verified: ({x}, {y}, {z})."
    yield f"inline CUresult launch_{kernel}(CUfunction function, CUstream stream, const unsigned (&grid)[3]{declared}) {{"
    if shared > DEFAULT_SHARED:
        yield f"    cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, {shared});"
    if program.cluster_size > CLUSTER_PORTABLE_MAX:
        yield "    cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);"
    yield "    CUlaunchConfig config = {};"
    yield "    config.gridDimX = grid[0], config.gridDimY = grid[1], config.gridDimZ = grid[2];"
    yield f"    config.blockDimX = {program.threads}, config.blockDimY = 1, config.blockDimZ = 1;"
    yield f"    config.sharedMemBytes = {shared};"
    yield "    config.hStream = stream;"
    if program.cluster_size > 1:
        cx, cy, cz = program.cluster
        yield "    CUlaunchAttribute cluster = {};"
        yield "    cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;"
        yield f"    cluster.value.clusterDim.x = {cx}, cluster.value.clusterDim.y = {cy}, cluster.value.clusterDim.z = {cz};"
        yield "    config.attrs = &cluster, config.numAttrs = 1;"
    values = ", ".join(f"const_cast<CUtensorMap*>(&{p.name})" if p.kind == "map" else f"&{p.name}" for p in parameters)
    yield f"    void* arguments[] = {{{values}}};" if values else "    void** arguments = nullptr;"
    yield "    return cuLaunchKernelEx(&config, function, arguments, nullptr);"
    yield "}"
    yield "#endif"


def _map(name: str, bound: TensorMap) -> Iterator[str]:
    """What cuTensorMapEncodeTiled is told; it takes the innermost dimension first."""

    def inner_first(values: tuple[int, ...]) -> str:
        return "{" + ", ".join(map(str, reversed(values))) + "}"

    yield f"// {comment(name)}: cuTensorMapEncodeTiled with {bound.dtype} (type {bound.dtype_info.driver_enum}), rank {bound.rank},"
    yield f"//   globalDim {inner_first(bound.global_dim)}, globalStrides {inner_first(bound.global_strides)},"
    yield f"//   boxDim {inner_first(bound.box_dim)}, elementStrides {inner_first(bound.element_strides)},"
    yield f"//   swizzle {bound.swizzle_info.driver_enum}, l2Promotion {bound.l2_promotion} bytes, oobFill {bound.oob_fill}."
