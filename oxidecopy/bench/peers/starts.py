"""Scripts that launch a copy for the first time and then often, ours and those of peers; each is run in a process of its own.

A peer's script prints the milliseconds of its first launch, from the source of its kernel to the end of the copy, with device and arrays
there already, and the microseconds of a later launch. Ours prints in between what of the first launch is recording and proof. The peers
keep what they compile in folders that are empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

_LATER: Final = """
def later(call, wait, calls=500, batches=9):
    took = []
    for _ in range(batches):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        took.append(time.perf_counter() - start)
        wait()
    return 1e6 * sorted(took)[batches // 2] / calls
"""

OURS: Final = f"""
import time
import numpy as np
import oxidecopy as ox
{_LATER}
dev = ox.Device.open("cuda:0")
src, dst = dev.zeros((512, 512), ox.f32), dev.zeros((512, 512), ox.f32)
dev.synchronize()
start = time.perf_counter()

@ox.pipeline(warps=ox.roles(producer=1, consumers=(), store=1))
def copy(cta: ox.Cta, a: ox.TmaDescriptor[ox.f32, ox.D2], b: ox.TmaDescriptor[ox.f32, ox.D2]) -> None:
    ring = cta.ring(stages=4, tiles=(a,))
    with cta.producer() as leader:
        for at in cta.tiles(a):
            with ring.produce(leader) as (slot,):
                slot.load(a, at)
    with cta.storer() as leader:
        for at in cta.tiles(a):
            ring.forward(leader, b, at)

maps = ox.TmaDescriptor.tiled(src, box=(64, 64)), ox.TmaDescriptor.tiled(dst, box=(64, 64))
bound = copy[16].bind(*maps)
bound.verify()
packed = time.perf_counter()
bound()
done = time.perf_counter()
stream = ox.Stream(dev)
print(1e3 * (done - start), 1e3 * (packed - start), later(copy[16].on(stream).prepare(*maps), stream.synchronize))
"""

CUDA_CORE: Final = f"""
import time
import numpy as np
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch
{_LATER}
N = 512 * 512
dev = Device(0)
dev.set_current()
stream = dev.create_stream()
src, dst = dev.allocate(4 * N, stream=stream), dev.allocate(4 * N, stream=stream)
stream.sync()
start = time.perf_counter()
source = '''
extern "C" __global__ void copy(const float4* src, float4* dst, int n) {{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) dst[i] = src[i];
}}
'''
arch = "sm_" + "".join(map(str, dev.compute_capability))
kernel = Program(source, "c++", ProgramOptions(arch=arch)).compile("cubin").get_kernel("copy")
config = LaunchConfig(grid=N // 4 // 256, block=256)
arguments = int(src.handle), int(dst.handle), np.int32(N // 4)
launch(stream, config, kernel, *arguments)
stream.sync()
done = time.perf_counter()
print(1e3 * (done - start), later(lambda: launch(stream, config, kernel, *arguments), stream.sync))
"""

CUPY: Final = f"""
import os, tempfile, time
os.environ["CUPY_CACHE_DIR"] = tempfile.mkdtemp()
import cupy
{_LATER}
src, dst = cupy.zeros((512, 512), cupy.float32), cupy.zeros((512, 512), cupy.float32)
stream = cupy.cuda.get_current_stream()
stream.synchronize()
start = time.perf_counter()
copy = cupy.ElementwiseKernel("float32 src", "float32 dst", "dst = src", "copy")
copy(src, dst)
stream.synchronize()
done = time.perf_counter()
print(1e3 * (done - start), later(lambda: copy(src, dst), stream.synchronize))
"""

TRITON: Final = f"""
import importlib.util, os, pathlib, tempfile, time
folder = pathlib.Path(tempfile.mkdtemp())
os.environ["TRITON_CACHE_DIR"] = str(folder / "cache")
import torch
import triton
{_LATER}
(folder / "kernel.py").write_text('''
import triton
import triton.language as tl

@triton.jit
def copy(src, dst, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(dst + at, tl.load(src + at))
''')
src, dst = (torch.zeros((512, 512), device="cuda") for _ in range(2))
torch.cuda.synchronize()
start = time.perf_counter()
spec = importlib.util.spec_from_file_location("kernel", folder / "kernel.py")
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
grid = (512 * 512 // 1024,)
module.copy[grid](src, dst, BLOCK=1024)
torch.cuda.synchronize()
done = time.perf_counter()
print(1e3 * (done - start), later(lambda: module.copy[grid](src, dst, BLOCK=1024), torch.cuda.synchronize))
"""


@final
@dataclass(frozen=True, slots=True)
class Start:
    """A peer's script; `of` says what it launches."""

    name: str
    of: str
    script: str


PEERS: Final = (
    Start("cuda.core", "a copy in CUDA C++, compiled by cuda.core", CUDA_CORE),
    Start("CuPy", "a copy by `cupy.ElementwiseKernel`", CUPY),
    Start("Triton", "a copy by `triton.jit`", TRITON),
)
