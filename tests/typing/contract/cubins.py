from __future__ import annotations

from pathlib import Path

import oxidecopy as ox

F32x2 = ox.TmaDescriptor[ox.f32, ox.D2]
Out = ox.GlobalArray[ox.f32, ox.D2]
FILE = Path(__file__).parents[2] / "helpers" / "cubins" / "probe_cuda12.sm_90a.cubin"
cubin = ox.Cubin(FILE)


@cubin.kernel("scale", threads=128, shared_bytes=1024)
def own(src: F32x2, out: Out, alpha: ox.Scalar[ox.f32], n: ox.Idx, c: ox.Scalar[ox.u8], h: ox.Scalar[ox.u16]) -> None: ...


@cubin.kernel("clustered", threads=(32, 2))
def swizzled(out: Out, src: ox.TmaDescriptor[ox.f32, ox.D2, ox.Swizzle128B]) -> None: ...


def own_ok(src: F32x2, out: Out, turned: ox.TmaDescriptor[ox.f32, ox.D2, ox.Swizzle128B], info: ox.KernelInfo) -> None:
    if info.max_threads < 2:
        own[4, 2](src, out, 1.5, 3, 1, 2)
        own[ox.Grid(x=4)](src, out, alpha=1, n=3, c=1, h=2)
        own[4].on(7)(turned, out, 1.5, 3, 1, 2)
        ready: ox.CubinLaunch = own[4].prepare(src, out, 1.5, 3, 1, 2)
        ready()
        swizzled[2](out, turned)


def own_kernels(
    src: F32x2, out: Out, half: ox.GlobalArray[ox.f16, ox.D2], cube: ox.GlobalArray[ox.f32, ox.D3], src16: ox.TmaDescriptor[ox.f16, ox.D2]
) -> None:
    own[4, 2](src16, out, 1.5, 3, 1, 2)  # E dtype of src
    own[4, 2](ox.TmaDescriptor.tiled(cube, box=(1, 4, 64)), out, 1.5, 3, 1, 2)  # E rank of src
    own[4, 2](src, half, 1.5, 3, 1, 2)  # E dtype of out
    own[4, 2](src, cube, 1.5, 3, 1, 2)  # E rank of out
    own[4, 2](out, src, 1.5, 3, 1, 2)  # E array and descriptor swapped
    own[4, 2](src, out, "1.5", 3, 1, 2)  # E str scalar
    own[4, 2](src, out, 1.5, 3.5, 1, 2)  # E float index
    own[4, 2](src, out, 1.5, 3, 1)  # E an argument is missing
    own[4, 2](src, out, 1.5, 3, 1, 2, 3)  # E an argument too many
    own[4, 2](src, out, 1.5, 3, 1, 2, stream=0)  # E no such keyword
    own[4, 2].prepare(src, half, 1.5, 3, 1, 2)  # E dtype of out
    own[4, 2].on(7)(src, half, 1.5, 3, 1, 2)  # E dtype of out
    own[4, 2].on("7")(src, out, 1.5, 3, 1, 2)  # E no stream
    own[4, 2, 1, 1](src, out, 1.5, 3, 1, 2)  # E grid rank
    own["4"](src, out, 1.5, 3, 1, 2)  # E grid type
    own(src, out, 1.5, 3, 1, 2)  # E no grid
    swizzled[2](out, src)  # E swizzle


def bounded(out: Out) -> None: ...


def own_declarations() -> None:
    ox.Cubin(3)  # E no path
    cubin.kernel("bounded")(bounded)  # E no threads
    cubin.kernel("bounded", threads="32")(bounded)  # E threads
    cubin.kernel("bounded", threads=(32, 1, 1, 1))(bounded)  # E threads
    cubin.kernel("bounded", threads=32, cluster=2.0)(bounded)  # E cluster
    cubin.kernel("bounded", threads=32, shared_bytes=None)(bounded)  # E shared memory
    cubin.kernel(7, threads=32)(bounded)  # E no name
    cubin.kernel("bounded", threads=32)(7)  # E no function
