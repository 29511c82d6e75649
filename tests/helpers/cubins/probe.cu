// Kernels that differ in what a cubin says of them. The cubins beside it are made from it by NVRTC 12.9 and 13.0, without options:
// tests/engines/cuda/test_elf.py makes them again where these compilers are installed, and compares.
struct alignas(64) Map { unsigned char bytes[128]; };
struct Three { float x, y, z; };
struct Huge { unsigned char bytes[4100]; };

extern "C" __global__ void __launch_bounds__(128)
scale(const __grid_constant__ Map src, float* out, float alpha, long long n, unsigned char c, unsigned short h) {
  __shared__ float s[32];
  s[threadIdx.x & 31] = alpha;
  __syncthreads();
  out[threadIdx.x] = s[(threadIdx.x * 7) & 31] * alpha + (float)n + c + h + src.bytes[threadIdx.x];
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) clustered(float* out, const __grid_constant__ Map src) {
  out[threadIdx.x] = src.bytes[threadIdx.x];
}

extern "C" __global__ void __launch_bounds__(256, 2, 8) bounded(float* out) { out[threadIdx.x] = 1; }

extern "C" __global__ void __block_size__((64, 2, 1), (2, 1, 1)) fixed(float* out) { out[threadIdx.x] = 1; }

extern "C" __global__ void nothing() {}

extern "C" __global__ void by_pointer(const Map* src, float* out) { out[threadIdx.x] = src->bytes[threadIdx.x]; }

extern "C" __global__ void huge(const __grid_constant__ Huge h, float* out, int n) { out[0] = h.bytes[n]; }

__global__ void mangled(int a, Three p, double d) {
  volatile float q[100];
  for (int i = 0; i < 100; i++) q[i] = p.x * i;
  if (q[a % 100] > d) __trap();
}
