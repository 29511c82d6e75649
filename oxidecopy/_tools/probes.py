"""What a GPU does where documents are silent: `python -m oxidecopy._tools.probes [--output FILE.json]`.

Two questions whose answers `docs/hardware.md` gives and no engine relies on: after how many bulk copies a thread that issues them has to
wait (loads, stores, both in turn; one or two CTAs on a multiprocessor), and how much of a window a stream leaves in L2 when a fraction of
the stream's lines is `evict_first`. It needs a GPU and NVRTC (the extra `emit`).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
import numpy.typing as npt

import oxidecopy as ox
from oxidecopy.engines.base import Buffer, RawLaunch, RawParameter
from oxidecopy.engines.cuda.elf import read_cubin
from oxidecopy.engines.cuda.engine import CudaEngine
from oxidecopy.engines.cuda.nvrtc import compile_cubin

ISSUES: Final = 28  # copies that one thread issues, one behind the other: less than 2^20 bytes that a barrier can expect
COPY_BYTES: Final = 32 << 10  # 256 cycles of the copy engine, more than an issue takes
KINDS: Final = ("loads", "stores", "in turn")
FULL_SHARED: Final = {1: 200 << 10, 2: 100 << 10}  # bytes that let so many CTAs onto a multiprocessor
STALL: Final = 1.5  # an issue that takes so many times the usual has waited
WINDOW: Final = 16 << 20  # bytes
STREAM: Final = 96 << 20
SAMPLES: Final = 4096  # places of the window whose latency is taken
FRACTIONS: Final = (0.0, 0.25, 0.5, 0.75, 0.875, 1.0)

SOURCE: Final = r"""
using u32 = unsigned;
using u64 = unsigned long long;
extern __shared__ __align__(128) unsigned char shared[];
#define FN extern "C" __global__ void
__device__ u32 at(const void* p) { return static_cast<u32>(__cvta_generic_to_shared(p)); }
__device__ void init(u32 bar) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; fence.mbarrier_init.release.cluster;" ::"r"(bar) : "memory");
}
__device__ void expect(u32 bar, u32 bytes) {
    asm volatile("{.reg .b64 t; mbarrier.arrive.expect_tx.shared::cta.b64 t, [%0], %1;}" ::"r"(bar), "r"(bytes) : "memory");
}
__device__ void wait(u32 bar, u32 parity) {
    for (u32 done = 0, turns = 0; !done && turns < 1u << 24; ++turns)
        asm volatile("{.reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                     : "=r"(done) : "r"(bar), "r"(parity) : "memory");
}
__device__ void load(u32 dst, const void* src, u32 bytes, u32 bar) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(dst), "l"(src), "r"(bytes), "r"(bar) : "memory");
}
__device__ void store(void* dst, u32 src, u32 bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(dst), "r"(src), "r"(bytes) : "memory");
}
__device__ void stored() { asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory"); }

// kind 0: loads, 1: stores, 2: in turn. Each block has its own piece of memory; stamps[block][i] is the clock after the i-th issue.
FN queue(u64 kind, u64 n, u64 bytes, unsigned char* memory, u64* stamps) {
    const u32 bar = at(shared), tile = at(shared + 1024);
    unsigned char* mine = memory + static_cast<u64>(blockIdx.x) * n * bytes;
    init(bar);
    for (u32 round = 0; round < 2; ++round) {  // the first one warms up
        u32 loads = 0;
        for (u32 i = 0; i < n; ++i) loads += kind == 0 || (kind == 2 && i % 2 == 0);
        expect(bar, loads * static_cast<u32>(bytes));
        u64* out = stamps + static_cast<u64>(blockIdx.x) * (n + 1);
        out[0] = clock64();
        for (u32 i = 0; i < n; ++i) {
            if (kind == 0 || (kind == 2 && i % 2 == 0)) load(tile, mine + i * bytes, static_cast<u32>(bytes), bar);
            else store(mine + i * bytes, tile + 32768, static_cast<u32>(bytes));
            out[i + 1] = clock64();
        }
        stored();
        wait(bar, round & 1);
    }
}

// Reads it all, by lines of 128 bytes; `fraction` of a stream's lines are evict_first.
FN stream(const uint4* memory, u64 n, u64 first, float* fraction, u32* sum) {
    u64 policy;
    if (first) asm("createpolicy.fractional.L2::evict_first.L2::evict_unchanged.b64 %0, %1;" : "=l"(policy) : "f"(*fraction));
    else asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
    u32 s = 0;
    for (u64 i = blockIdx.x * 1024ull + threadIdx.x; i < n; i += gridDim.x * 1024ull) {
        uint4 v;
        asm volatile("ld.global.L1::no_allocate.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
                     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(memory + i), "l"(policy));
        s += v.x ^ v.y ^ v.z ^ v.w;
    }
    if (s == 0x12345) *sum = s;
}

// Cycles of single loads, at places that are `step` bytes apart.
FN latency(const unsigned char* memory, u64 step, u64 n, u64* cycles) {
    const u32 bar = at(shared), tile = at(shared + 1024);
    init(bar);
    for (u64 i = blockIdx.x, turn = 0; i < n; i += gridDim.x, ++turn) {
        const u64 start = clock64();
        expect(bar, 128);
        load(tile, memory + i * step, 128, bar);
        wait(bar, turn & 1);
        cycles[i] = clock64() - start;
    }
}

"""


class Probes:
    """The kernels on one device."""

    def __init__(self, engine: CudaEngine) -> None:
        self.engine = engine
        self.cubin = compile_cubin(SOURCE, arch=f"sm_{engine.sm}a", options=("--std=c++17",)).cubin
        self.places = {name: kernel.parameters for name, kernel in read_cubin(self.cubin).kernels.items()}

    def memory(self, data: npt.NDArray[Any]) -> Buffer:
        """A copy of an array on the device."""
        buffer = self.engine.allocate(data.nbytes)
        self.engine.write(buffer, 0, memoryview(data.tobytes()))
        return buffer

    def run(self, kernel: str, grid: int, *arguments: int | Buffer, threads: int = 1, shared: int = 48 << 10) -> None:
        """Launches a kernel and waits for it; integers are 64 bits wide."""
        values = [a if isinstance(a, int) else a.address for a in arguments]
        parameters = [
            RawParameter(name=f"p{i}", offset=place.offset, nbytes=8, value=value.to_bytes(8, "little"))
            for i, (place, value) in enumerate(zip(self.places[kernel], values, strict=True))
        ]
        launch = RawLaunch(
            image=self.cubin,
            kernel=kernel,
            grid=(grid, 1, 1),
            threads=(threads, 1, 1),
            cluster=None,
            shared_bytes=shared,
            parameters=tuple(parameters),
            parameter_bytes=8 * len(parameters),
        )
        self.engine.launch_raw(launch, None)
        self.engine.synchronize()

    def read(self, buffer: Buffer, dtype: type[np.generic]) -> npt.NDArray[Any]:
        """All of a buffer."""
        return np.frombuffer(self.engine.read(buffer, 0, buffer.nbytes), dtype)

    # ---- the queue
    def queue(self) -> Iterator[dict[str, Any]]:
        """For each kind of copies and number of CTAs: cycles of each issue, and after how many one had to wait (0: none had)."""
        for ctas, shared in FULL_SHARED.items():
            grid = ctas * self.engine.context.gpu.sms if ctas > 1 else 1
            memory = self.engine.allocate(grid * ISSUES * COPY_BYTES)
            stamps = self.engine.allocate(grid * (ISSUES + 1) * 8)
            for number, kind in enumerate(KINDS):
                self.run("queue", grid, number, ISSUES, COPY_BYTES, memory, stamps, shared=shared)
                steps = np.diff(self.read(stamps, np.uint64).reshape(grid, ISSUES + 1).astype(np.int64), axis=1)
                cycles = [int(x) for x in np.median(steps, axis=0)]
                usual = median(cycles[1:5])
                waits = [i for i, c in enumerate(cycles) if i and c > STALL * usual]
                yield {
                    "ctas_per_multiprocessor": ctas,
                    "blocks": grid,
                    "kind": kind,
                    "bytes": COPY_BYTES,
                    "cycles": cycles,
                    "issued_before_a_wait": waits[0] if waits else 0,
                }

    # ---- fractional policies
    def fractions(self) -> dict[str, Any]:
        """The share of a window that L2 still has after a stream, by the fraction of evict_first lines."""
        window = self.memory(np.zeros(WINDOW, np.uint8))
        stream = self.memory(np.zeros(STREAM, np.uint8))
        cycles, total = self.engine.allocate(SAMPLES * 8), self.engine.allocate(8)

        def read(buffer: Buffer, fraction: float | None) -> None:
            value = self.memory(np.array([fraction or 0.0, 0.0], np.float32))
            self.run("stream", 1024, buffer, buffer.nbytes // 16, int(bool(fraction)), value, total, threads=1024, shared=0)

        def latencies() -> npt.NDArray[np.int64]:
            self.run("latency", 128, window, WINDOW // SAMPLES, SAMPLES, cycles)
            found: npt.NDArray[np.int64] = self.read(cycles, np.uint64).astype(np.int64)
            return found

        read(window, None)
        hit = int(np.median(latencies()))
        read(stream, None)
        miss = int(np.median(latencies()))
        border = (hit + miss) // 2
        kept = {}
        for fraction in FRACTIONS:
            read(window, None)
            read(stream, fraction)
            kept[str(fraction)] = round(float(np.mean(latencies() < border)), 3)
        return {"window_bytes": WINDOW, "stream_bytes": STREAM, "cycles_hit": hit, "cycles_miss": miss, "kept": kept}


def main(argv: Sequence[str] | None = None) -> int:
    """Prints what was found; writes it with date and device."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", metavar="FILE.json", type=Path, help="write it with date and device")
    options = parser.parse_args(argv)
    dev = ox.Device.open("cuda:0")
    if not isinstance(dev.engine, CudaEngine):
        raise SystemExit("cuda:0 is no GPU of the engine")
    probes = Probes(dev.engine)
    found: dict[str, Any] = {"queue": list(probes.queue()), "evict_first": probes.fractions()}
    for row in found["queue"]:
        what = f"{row['ctas_per_multiprocessor']} CTA(s), {row['kind']}"
        print(f"{what}: {row['issued_before_a_wait']} before a wait, cycles {row['cycles']}")
    print(found["evict_first"])
    if options.output:
        head = {
            "command": "python -m oxidecopy._tools.probes",
            "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "device": dev.engine.context.gpu.name,
        }
        options.output.write_text(json.dumps({**head, **found}) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
