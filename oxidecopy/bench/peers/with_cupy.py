"""CuPy: an elementwise kernel. It is given the bits of bf16 as integers, and rounds by the machine's own instruction."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import oxidecopy as ox

if TYPE_CHECKING:
    from oxidecopy.bench.peers import Array, Call, Given

_FUSED: Final = """
float made = fmaxf(a * x + b * y - z, 0.0f);
unsigned short bits;
asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(made));
out = bits;
"""


def start(work: str, given: Given) -> Mapping[str, Call]:
    """As `oxidecopy.bench.peers` says."""
    cupy: Any = import_module("cupy")
    body = {"fused": _FUSED}[work]
    kernel = cupy.ElementwiseKernel("float32 a, float32 b, float32 x, float32 y, float32 z", "uint16 out", body, work)
    a, b = (_borrowed(cupy, array, "float32") for array in given.inputs)
    out = _borrowed(cupy, given.output, "uint16")
    stream = cupy.cuda.ExternalStream(given.stream.handle)
    scalars = [cupy.float32(value) for value in given.scalars]

    def on_stream() -> None:
        with stream:
            kernel(a, b, *scalars, out)

    on_stream()
    return {"cupy.ElementwiseKernel": on_stream}


def _borrowed(cupy: Any, a: ox.GlobalArray[Any, Any] | Array, dtype: str) -> Any:
    """The array's memory as one of CuPy's, of a type with as many bytes."""
    memory = cupy.cuda.UnownedMemory(a.buffer.address + a.offset_bytes, a.buffer.nbytes - a.offset_bytes, a)
    return cupy.ndarray(a.shape, dtype, cupy.cuda.MemoryPointer(memory, 0))
