// Enough of CUDA for emitted kernels on a CPU: threads are fibers of one OS thread, switched where they wait, in an order under a seed.
// Copies are the simulator's, called back; loads land late. Stands in for `namespace ptx` and for the functions written in PTX.
#include <ucontext.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#define __device__
#define __forceinline__ inline
#define __global__
#define __launch_bounds__(n)
#define __grid_constant__

namespace cpu {

struct Dim {
    unsigned x, y, z;
};
struct Barrier {
    unsigned expected, pending, phase;
    long long tx;
};
struct Sync {
    unsigned arrived, generation;
};
struct Cta {
    unsigned char* memory;
    Dim block;
    std::map<unsigned, Barrier> barriers;
    Sync syncs[16];
};
struct Fiber {
    ucontext_t context;
    unsigned cta, thread, seen;
    bool done;
};
struct Load {
    int map;
    unsigned rank, to, bar;
    int coords[5];
    int count;
};

static std::vector<Cta> ctas;
static std::vector<Fiber> fibers;
static std::vector<Load> loads;
static std::vector<char*> stacks;  // kept from cluster to cluster
constexpr unsigned stack_bytes = 1 << 18;
static Sync cluster;
static ucontext_t scheduler;
static Fiber* me;
static unsigned threads, window = 1024, trapped, polls;
static unsigned long long events, seed;
static void (*kernel)();

extern "C" {
unsigned (*copy_in)(int map, unsigned rank, unsigned to, const int* coords, int count);
void (*copy_out)(int map, unsigned rank, unsigned from, const int* coords, int count, const char* op);
}

static unsigned random_below(unsigned n) {
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)(seed >> 33) % n;
}

__attribute__((noinline)) static void yield() {
    swapcontext(&me->context, &scheduler);
}

template <class Condition>
static void wait(Condition over) {
    while (!over()) yield();
    ++events;
}

static Barrier& barrier(unsigned address) {
    return ctas[address >> 24].barriers[address & 0xffffff];
}

static void test(Barrier& b) {
    ++events;
    if (b.pending == 0 && b.tx == 0) ++b.phase, b.pending = b.expected;
}

static void arrive(Barrier& b) {
    if (b.pending == 0) trapped = 2;
    --b.pending;
    test(b);
}

static void sync(Sync& s, unsigned count) {
    ++events;
    const unsigned generation = s.generation;
    if (++s.arrived == count) {
        s.arrived = 0, ++s.generation;
    } else {
        wait([&] { return s.generation != generation; });
    }
}

static void land(const Load& l) {
    const unsigned bytes = copy_in(l.map, l.rank, l.to & 0xffffff, l.coords, l.count);
    Barrier& b = barrier(l.rank << 24 | (l.bar & 0xffffff));
    b.tx -= bytes;
    test(b);
}

}  // namespace cpu

static cpu::Dim threadIdx, blockIdx, gridDim;
static unsigned char* shared;

static unsigned __cvta_generic_to_shared(const unsigned char*) {
    return cpu::me->cta << 24 | cpu::window;
}
static void __syncthreads() {
    cpu::sync(cpu::ctas[cpu::me->cta].syncs[0], cpu::threads);
}
static void __trap() {
    cpu::trapped = 1;
    for (;;) cpu::yield();
}
static unsigned atomicAdd(unsigned* at, unsigned n) {
    const unsigned old = *at;
    *at += n;
    return old;
}

template <class To, class From>
static To bits_as(From x) {
    To y;
    static_assert(sizeof x == sizeof y, "");
    memcpy(&y, &x, sizeof y);
    return y;
}
static float __uint_as_float(unsigned x) { return bits_as<float>(x); }
static unsigned __float_as_uint(float x) { return bits_as<unsigned>(x); }
static double __longlong_as_double(long long x) { return bits_as<double>(x); }
static long long __double_as_longlong(double x) { return bits_as<long long>(x); }
static float __fadd_rn(float a, float b) { return a + b; }
static float __fsub_rn(float a, float b) { return a - b; }
static float __fmul_rn(float a, float b) { return a * b; }
static float __fdiv_rn(float a, float b) { return a / b; }
static double __dadd_rn(double a, double b) { return a + b; }
static double __dsub_rn(double a, double b) { return a - b; }
static double __dmul_rn(double a, double b) { return a * b; }
static double __ddiv_rn(double a, double b) { return a / b; }
static float __double2float_rn(double x) { return (float)x; }
static float __double2float_rz(double x) {
    const float near = (float)x;
    return fabs((double)near) > fabs(x) ? nextafterf(near, 0.0f) : near;
}
static float __ull2float_rz(unsigned long long x) {
    const float near = (float)x;
    return (__uint128_t)near > x ? nextafterf(near, 0.0f) : near;
}
static float __ull2float_rn(unsigned long long x) { return (float)x; }
static float __ll2float_rn(long long x) { return (float)x; }
static float __uint2float_rn(unsigned x) { return (float)x; }
static float __int2float_rn(int x) { return (float)x; }
static double __ull2double_rn(unsigned long long x) { return (double)x; }
static double __ll2double_rn(long long x) { return (double)x; }
template <class To>
static To clamped(double x, double low, double above, To least, To most) {  // NaN is whatever the hardware gives, never 0
    return x != x ? most : x <= low ? least : x >= above ? most : (To)x;
}
static int __double2int_rz(double x) { return clamped<int>(x, -0x1p31, 0x1p31, INT32_MIN, INT32_MAX); }
static unsigned __double2uint_rz(double x) { return clamped<unsigned>(x, 0, 0x1p32, 0, UINT32_MAX); }
static long long __double2ll_rz(double x) { return clamped<long long>(x, -0x1p63, 0x1p63, INT64_MIN, INT64_MAX); }
static unsigned long long __double2ull_rz(double x) { return clamped<unsigned long long>(x, 0, 0x1p64, 0, UINT64_MAX); }
static int __float2int_rz(float x) { return __double2int_rz(x); }
static unsigned __float2uint_rz(float x) { return __double2uint_rz(x); }
static long long __float2ll_rz(float x) { return __double2ll_rz(x); }
static unsigned long long __float2ull_rz(float x) { return __double2ull_rz(x); }
static unsigned umin(unsigned a, unsigned b) { return a < b ? a : b; }

namespace cpu {

// A float rounded to nearest even to `digits` after the point; NaN is whatever the hardware gives.
static unsigned narrow(float x, int digits, int bias, unsigned infinity, unsigned largest, bool saturate, unsigned sign) {
    sign = __float_as_uint(x) >> 31 ? sign : 0;
    const double size = fabs((double)x);
    if (x != x) return sign;
    if (size == 0) return sign;
    if (std::isinf(size)) return sign | (saturate ? largest : infinity);
    int exponent;
    frexp(size, &exponent);
    const int step = (exponent - 1 < 1 - bias ? 1 - bias : exponent - 1) - digits;
    const unsigned bits = (unsigned)(nearbyint(ldexp(size, -step)) + (double)((step + digits + bias - 1) << digits));
    return sign | (bits > largest ? (saturate ? largest : infinity) : bits);
}

static float widen(unsigned bits, int digits, int bias, unsigned magnitude, unsigned infinity) {
    const unsigned size = bits & magnitude;
    const double sign = bits > magnitude ? -1.0 : 1.0;
    if (size > infinity) return NAN;
    if (size == infinity && digits != 3) return (float)(sign * INFINITY);
    const int exponent = (int)(size >> digits);
    const double fraction = (double)(size & ((1u << digits) - 1)) + (exponent ? (1 << digits) : 0);
    return (float)(sign * ldexp(fraction, (exponent ? exponent : 1) - bias - digits));
}

}  // namespace cpu

namespace ptx {

typedef unsigned u32;
struct Map {
    int index;
};
static void mbarrier_init(u32 bar, u32 count) {
    cpu::barrier(bar) = {count, count, 0, 0};
    ++cpu::events;
}
static void mbarrier_inval(u32) {}
static void mbarrier_arrive(u32 bar) { cpu::arrive(cpu::barrier(bar)); }
static void mbarrier_arrive_remote(u32 bar) { mbarrier_arrive(bar); }
static void mbarrier_arrive_drop(u32 bar) {
    --cpu::barrier(bar).expected;
    mbarrier_arrive(bar);
}
static void mbarrier_expect_tx(u32 bar, u32 bytes) {
    cpu::barrier(bar).tx += bytes;
    if (bytes) cpu::test(cpu::barrier(bar));
}
static void mbarrier_complete_tx(u32 bar, u32 bytes) {
    cpu::barrier(bar).tx -= bytes;
    if (bytes) cpu::test(cpu::barrier(bar));
}
static void mbarrier_arrive_expect_tx(u32 bar, u32 bytes) {
    mbarrier_expect_tx(bar, bytes);
    mbarrier_arrive(bar);
}
static void mbarrier_arrive_expect_tx_remote(u32 bar, u32 bytes) { mbarrier_arrive_expect_tx(bar, bytes); }
static bool mbarrier_test_wait_parity(u32 bar, u32 parity) { return (cpu::barrier(bar).phase & 1) != parity; }
static bool mbarrier_try_wait_parity(u32 bar, u32 parity) {
    if (!mbarrier_test_wait_parity(bar, parity)) cpu::yield();
    return mbarrier_test_wait_parity(bar, parity);
}
static void mbarrier_wait_parity(u32 bar, u32 parity) {
    cpu::wait([=] { return mbarrier_test_wait_parity(bar, parity); });
}
// Tokens as states: here twice the phase and 1, so that no word of 0 is one.
typedef unsigned long long u64;
static u64 mbarrier_arrive_state(u32 bar) {
    const u64 state = 2ull * cpu::barrier(bar).phase + 1;
    mbarrier_arrive(bar);
    return state;
}
static u64 mbarrier_arrive_drop_state(u32 bar) {
    const u64 state = 2ull * cpu::barrier(bar).phase + 1;
    mbarrier_arrive_drop(bar);
    return state;
}
static u64 mbarrier_arrive_expect_tx_state(u32 bar, u32 bytes) {
    const u64 state = 2ull * cpu::barrier(bar).phase + 1;
    mbarrier_arrive_expect_tx(bar, bytes);
    return state;
}
static bool mbarrier_try_wait(u32 bar, u64 state) {
    const unsigned behind = cpu::barrier(bar).phase - (unsigned)(state >> 1);
    if (!(state & 1) || behind > 1) __trap();  // hardware knows the current phase and the last
    if (!behind) cpu::yield();
    return cpu::barrier(bar).phase != (unsigned)(state >> 1);
}
static void mbarrier_wait_state(u32 bar, u64 state) {
    cpu::wait([=] { return mbarrier_try_wait(bar, state); });
}
template <class T>
static T& word(u32 address) {
    return *reinterpret_cast<T*>(cpu::ctas[cpu::me->cta].memory + (address & 0xffffff));
}
static u32 atom_add_shared(u32 address, u32 value) {
    const u32 old = word<u32>(address);
    word<u32>(address) = old + value;
    return old;
}
static u64 ld_acquire_shared(u32 address) {  // asked again and again: that alone does not mean that somebody is stuck
    if (++cpu::polls < 1000000) ++cpu::events;
    cpu::yield();
    return word<u64>(address);
}
static void st_shared(u32 address, u64 value) { word<u64>(address) = value; }
static void st_release_shared(u32 address, u64 value) {
    word<u64>(address) = value;
    ++cpu::events;
}
static u32 mapa(u32 address, u32 rank) { return (address & 0xffffff) | rank << 24; }
static u32 cluster_ctarank() { return cpu::me->cta; }
static void cp_async_bulk_commit_group() {}
template <int N>
static void cp_async_bulk_wait_group() {}
template <int N>
static void cp_async_bulk_wait_group_read() {}
static void fence_proxy_async_shared_cta() {}
static void fence_mbarrier_init_release_cluster() {}
static void bar_sync(u32 number, u32 count) { cpu::sync(cpu::ctas[cpu::me->cta].syncs[number], count); }
static void barrier_cluster_arrive_release() {
    cpu::me->seen = cpu::cluster.generation;
    ++cpu::events;
    if (++cpu::cluster.arrived == cpu::fibers.size()) cpu::cluster.arrived = 0, ++cpu::cluster.generation;
}
static void barrier_cluster_wait_acquire() {
    const unsigned seen = cpu::me->seen;
    cpu::wait([=] { return cpu::cluster.generation != seen; });
}
template <class... C>
static void load(u32 to, const void* map, u32 bar, unsigned mask, C... coords) {
    for (unsigned rank = 0; rank < cpu::ctas.size(); ++rank) {
        if (mask >> rank & 1) cpu::loads.push_back({static_cast<const Map*>(map)->index, rank, to, bar, {coords...}, sizeof...(C)});
    }
    ++cpu::events;
}
template <class... C>
static void store(const char* op, const void* map, u32 from, C... coords) {
    const int at[] = {coords...};
    cpu::copy_out(static_cast<const Map*>(map)->index, from >> 24, from & 0xffffff, at, sizeof...(C), op);
}

}  // namespace ptx

// One cluster from its first op to its last: 0 done, 1 a trap, 2 an arrival too many, 3 nobody can go on.
static void fiber_main() {
    cpu::kernel();
    cpu::me->done = true;
    ++cpu::events;
    cpu::yield();
}

extern "C" int run_cluster(void (*kernel)(), unsigned threads, const unsigned* grid, unsigned size, const unsigned* blocks,
                           unsigned char* const* memory, unsigned long long seed) {
    cpu::kernel = kernel, cpu::threads = threads, cpu::seed = seed, cpu::trapped = cpu::polls = 0, cpu::cluster = {};
    cpu::ctas.assign(size, cpu::Cta());
    cpu::fibers = std::vector<cpu::Fiber>(size * threads);
    cpu::loads.clear();
    gridDim = {grid[0], grid[1], grid[2]};
    for (unsigned c = 0; c < size; ++c) {
        cpu::ctas[c].memory = memory[c];
        cpu::ctas[c].block = {blocks[3 * c], blocks[3 * c + 1], blocks[3 * c + 2]};
        for (unsigned t = 0; t < threads; ++t) {
            cpu::Fiber& f = cpu::fibers[c * threads + t];
            f.cta = c, f.thread = t, f.done = false;
            if (cpu::stacks.size() <= c * threads + t) cpu::stacks.push_back(static_cast<char*>(malloc(cpu::stack_bytes)));
            getcontext(&f.context);
            f.context.uc_stack.ss_sp = cpu::stacks[c * threads + t], f.context.uc_stack.ss_size = cpu::stack_bytes;
            f.context.uc_link = &cpu::scheduler;
            makecontext(&f.context, fiber_main, 0);
        }
    }
    for (;;) {
        const unsigned long long before = cpu::events;
        bool alive = false;
        const unsigned first = cpu::random_below((unsigned)cpu::fibers.size());
        for (unsigned i = 0; i < cpu::fibers.size(); ++i) {
            cpu::Fiber& f = cpu::fibers[(first + i) % cpu::fibers.size()];
            if (f.done) continue;
            alive = true;
            cpu::me = &f;
            threadIdx = {f.thread, 0, 0}, blockIdx = cpu::ctas[f.cta].block, shared = cpu::ctas[f.cta].memory + cpu::window;
            swapcontext(&cpu::scheduler, &f.context);
            if (cpu::trapped) return (int)cpu::trapped;
        }
        const bool stuck = before == cpu::events;
        if (!cpu::loads.empty() && (stuck || !alive || cpu::random_below(3) == 0)) {
            const unsigned i = cpu::random_below((unsigned)cpu::loads.size());
            const cpu::Load l = cpu::loads[i];
            cpu::loads.erase(cpu::loads.begin() + i);
            cpu::land(l);
        } else if (!alive) {
            return 0;
        } else if (stuck) {
            return 3;
        }
    }
}
