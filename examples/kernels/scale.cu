// The kernel of lesson 16: a box comes by TMA, is scaled on its way out, and leaves by plain stores.
//
// scale.sm_90a.cubin is made from this file by NVRTC 12.9 (pip install 'oxidecopy[kernels]'), here in this folder, bit for bit:
//
//   python -c "from pathlib import Path as P; from oxidecopy._tools.nvrtc import compile_cubin, find_library; \
//     P('scale.sm_90a.cubin').write_bytes(compile_cubin(P('scale.cu').read_text(), library=find_library(12)).cubin)"
//
// Any compiler will do for your own: nvcc -cubin -arch=sm_90a -o scale.sm_90a.cubin scale.cu

constexpr int BOX = 64;  // rows and columns
constexpr unsigned TILE_BYTES = BOX * BOX * sizeof(float);

// What cuda.h calls CUtensorMap. A map is passed by value, as a grid constant: the hardware reads it where the parameters are.
struct alignas(64) TensorMap {
  unsigned char opaque[128];
};

__device__ unsigned shared_address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

// extern "C": in the cubin the kernel has this name, and not a mangled one.
extern "C" __global__ void __launch_bounds__(128)
scale(const __grid_constant__ TensorMap src, float* out, int rows, int cols, float alpha) {
  extern __shared__ __align__(128) float tile[];  // BOX x BOX, and 8 bytes behind it
  const unsigned data = shared_address(tile), full = data + TILE_BYTES;
  const int y = blockIdx.y * BOX, x = blockIdx.x * BOX;

  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(full) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(full), "r"(TILE_BYTES) : "memory");
    // The hardware counts dimensions from the innermost one: x, then y.
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(data),
                 "l"(&src), "r"(x), "r"(y), "r"(full)
                 : "memory");
  }
  unsigned landed = 0;
  while (!landed) {
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                 : "=r"(landed)
                 : "r"(full)
                 : "memory");
  }
  for (int i = threadIdx.x; i < BOX * BOX; i += blockDim.x) {
    const int row = y + i / BOX, col = x + i % BOX;
    if (row < rows && col < cols) out[static_cast<long long>(row) * cols + col] = tile[i] * alpha;
  }
}
