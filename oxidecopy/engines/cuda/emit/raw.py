"""An emitted kernel compiled here, and as a launch with the verified program's arguments."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from oxidecopy.engines.base import Bindings, BoundArray, BoundMap, Buffer, RawLaunch, RawParameter
from oxidecopy.engines.cuda.elf import read_cubin
from oxidecopy.engines.cuda.emit.source import Emitted, emitted
from oxidecopy.engines.cuda.nvrtc import compile_cubin
from oxidecopy.program.verified import VerifiedProgram

if TYPE_CHECKING:
    from oxidecopy.engines.cuda.engine import CudaEngine

COUNTERS_BYTES: Final = 256  # room for the counters of a kernel


@lru_cache(maxsize=256)
def compiled(made: Emitted, sm: int, *options: str) -> bytes:
    """The cubin for a compute capability, by NVRTC; the same source is compiled once."""
    return compile_cubin(made.source, arch=f"sm_{sm}a", options=("--std=c++17", *options)).cubin


def raw_launch(made: Emitted, cubin: bytes, verified: VerifiedProgram, bindings: Bindings, counter: Buffer) -> RawLaunch:
    """The launch of `made`, compiled to `cubin`, with the program's arguments.

    Args:
        made: what `emitted(verified)` gave.
        cubin: its source, compiled for the device.
        verified: the program.
        bindings: its arguments.
        counter: a u32 for each counter of the kernel, all 0 when the launch begins.
    """
    kernel = read_cubin(cubin).kernels[made.kernel_name]
    counters = [p.of for p in made.parameters if p.kind == "counter"]
    addresses = {of: counter.address + 4 * i for i, of in enumerate(counters)}
    parameters = []
    for parameter, place in zip(made.parameters, kernel.parameters, strict=True):
        value: BoundMap | tuple[BoundMap, ...] | BoundArray | bytes
        if parameter.kind == "map":
            value = bindings.maps[parameter.of]
        elif parameter.kind == "table":
            value = tuple([bindings.maps[name] for name in verified.program.maps[parameter.of].bound_names])
        elif parameter.kind == "array":
            value = bindings.arrays[parameter.of]
        else:
            value = parameter.pack(verified.assumptions.launch, maps={}, addresses={}, scalars=bindings.scalars, counters=addresses)
        parameters.append(RawParameter(name=parameter.name, offset=place.offset, nbytes=place.size, value=value))
    return RawLaunch(
        image=cubin,
        kernel=made.kernel_name,
        grid=bindings.grid,
        threads=(made.threads, 1, 1),
        cluster=None if made.cluster == (1, 1, 1) else made.cluster,
        shared_bytes=made.shared_bytes,
        parameters=tuple(parameters),
        parameter_bytes=kernel.parameter_bytes,
    )


def run_emitted(engine: CudaEngine, verified: VerifiedProgram, bindings: Bindings) -> None:
    """Compiles a program's CUDA C++, launches it and waits. Waits in the kernel are bounded, so that a program that hangs ends."""
    made = emitted(verified)
    counter = engine.allocate(COUNTERS_BYTES)
    engine.fill(counter, 0, COUNTERS_BYTES, 0)
    cubin = compiled(made, engine.sm, "-DOXIDECOPY_BOUNDED_WAITS")
    engine.launch_raw(raw_launch(made, cubin, verified, bindings, counter), None)
