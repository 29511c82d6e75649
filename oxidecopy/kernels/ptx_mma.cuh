// The tensor cores of compute capability 9.0: products of tiles in shared memory by a warpgroup (PTX wgmma), and what goes with them.
#pragma once
#include "ptx.cuh"

namespace ptx {

// ---- ordering. Between `wgmma_fence` and the wait for their group nobody but wgmma touches the accumulators.
OX_DEVICE void wgmma_fence() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

OX_DEVICE void wgmma_commit_group() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int PENDING>
OX_DEVICE void wgmma_wait_group() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// One arrival at a barrier of any CTA of the cluster. It orders what tensor cores have read, for which the wait for their group is enough:
// the scope of the cluster would cost a fence of all memory.
OX_DEVICE void mbarrier_arrive_peer(u32 bar) {
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(bar) : "memory");
}

// Registers of each thread: a warpgroup takes some out of the CTA's pool, or puts some in.
template <int REGISTERS>
OX_DEVICE void setmaxnreg_inc() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

template <int REGISTERS>
OX_DEVICE void setmaxnreg_dec() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

// True where `value` holds for any of the threads that come.
template <u32 NUMBER>
OX_DEVICE bool barrier_red_or(u32 threads, bool value) {
    u32 any;
    asm volatile(
        "{\n.reg .pred p, q;\nsetp.ne.u32 q, %3, 0;\nbarrier.cta.red.or.pred p, %1, %2, q;\nselp.u32 %0, 1, 0, p;\n}"
        : "=r"(any)
        : "n"(NUMBER), "r"(threads), "r"(static_cast<u32>(value))
        : "memory");
    return any != 0;
}

// Four matrices of 8 x 8 elements of 16 bits: lane 8 * m + i has the address of row i of matrix m.
OX_DEVICE void stmatrix_x4(u32 address, u32 a, u32 b, u32 c, u32 d) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared::cta.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}

// Two or four bytes, one after the other as written; 0 where it is not so.
OX_DEVICE u32 ld_global_if(u64 address, u32 bytes, bool is) {
    u32 value;
    asm volatile(
        "{\n.reg .pred p, q;\n.reg .b16 half;\nsetp.ne.u32 p, %3, 0;\nsetp.eq.and.u32 q, %2, 4, p;\nsetp.eq.and.u32 p, %2, 2, p;\n"
        "mov.b32 %0, 0;\nmov.b16 half, 0;\n@p ld.global.b16 half, [%1];\n@p cvt.u32.u16 %0, half;\n@q ld.global.b32 %0, [%1];\n}"
        : "=&r"(value)
        : "l"(address), "r"(bytes), "r"(static_cast<u32>(is))
        : "memory");
    return value;
}

OX_DEVICE u32 ld_global_u32(u64 address) {
    u32 v;
    asm volatile("ld.global.b32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
    return v;
}

OX_DEVICE uint2 ld_global_v2(u64 address) {
    uint2 v;
    asm volatile("ld.global.v2.b32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(address) : "memory");
    return v;
}

// ---- wgmma: d[BASE ...] += a * b, without ADD = a * b. 64 rows, N columns, f32; a and b are low words of descriptors of tiles. The high
// one says that eight rows are 1,024 bytes, swizzled by 128.
#define OX_ROWS "0x40000040"
#define OX_REGS32 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, " \
                  "%24, %25, %26, %27, %28, %29, %30, %31"
#define OX_REGS64 OX_REGS32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, " \
                  "%51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define OX_REGS48 OX_REGS32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define OX_REGS96 OX_REGS64 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, " \
                  "%83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define OX_REGS128 OX_REGS64 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, " \
                   "%83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, "  \
                   "%104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, "   \
                   "%122, %123, %124, %125, %126, %127"
#define OX_D4(I) "+f"(d[BASE + I]), "+f"(d[BASE + I + 1]), "+f"(d[BASE + I + 2]), "+f"(d[BASE + I + 3])
#define OX_D16(I) OX_D4(I), OX_D4(I + 4), OX_D4(I + 8), OX_D4(I + 12)
#define OX_D32(I) OX_D16(I), OX_D16(I + 16)
#define OX_D64(I) OX_D32(I), OX_D32(I + 32)
#define OX_D48(I) OX_D32(I), OX_D16(I + 32)
#define OX_D96(I) OX_D64(I), OX_D32(I + 64)
#define OX_D128(I) OX_D64(I), OX_D64(I + 64)

// TYPES: ".bf16.bf16" and so on; K: of 32 bytes. TRANS: which of a and b lie with M, N innermost (elements of 16 bits alone).
#define OX_WGMMA(NAME, N, K, TYPES, OUT, A, B, C, TRANS)                                                                       \
    template <u32 BASE, bool ADD, u32 SIZE>                                                                                     \
    OX_DEVICE void NAME##_n##N(f32 (&d)[SIZE], u32 a, u32 b) {                                                                  \
        asm volatile("{\n.reg .b64 a, b;\nmov.b64 a, {%" #A ", " OX_ROWS "};\nmov.b64 b, {%" #B ", " OX_ROWS "};\n"               \
                     "wgmma.mma_async.sync.aligned.m64n" #N "k" #K ".f32" TYPES " " OX_REGS##OUT "}, a, b, %" #C ", 1, 1" TRANS     \
                     ";\n}"                                                                                                     \
                     : OX_D##OUT(0)                                                                                             \
                     : "r"(a), "r"(b), "n"(ADD));                                                                               \
    }
#define OX_WGMMA_ALL(NAME, K, TYPES, TRANS)               \
    OX_WGMMA(NAME, 64, K, TYPES, 32, 32, 33, 34, TRANS)   \
    OX_WGMMA(NAME, 96, K, TYPES, 48, 48, 49, 50, TRANS)   \
    OX_WGMMA(NAME, 128, K, TYPES, 64, 64, 65, 66, TRANS)  \
    OX_WGMMA(NAME, 192, K, TYPES, 96, 96, 97, 98, TRANS)  \
    OX_WGMMA(NAME, 256, K, TYPES, 128, 128, 129, 130, TRANS)

OX_WGMMA_ALL(wgmma_bf16, 16, ".bf16.bf16", ", 0, 0")
OX_WGMMA_ALL(wgmma_bf16_ta, 16, ".bf16.bf16", ", 1, 0")
OX_WGMMA_ALL(wgmma_bf16_tb, 16, ".bf16.bf16", ", 0, 1")
OX_WGMMA_ALL(wgmma_bf16_tab, 16, ".bf16.bf16", ", 1, 1")
OX_WGMMA_ALL(wgmma_f16, 16, ".f16.f16", ", 0, 0")
OX_WGMMA_ALL(wgmma_f16_ta, 16, ".f16.f16", ", 1, 0")
OX_WGMMA_ALL(wgmma_f16_tb, 16, ".f16.f16", ", 0, 1")
OX_WGMMA_ALL(wgmma_f16_tab, 16, ".f16.f16", ", 1, 1")
OX_WGMMA_ALL(wgmma_e4m3_e4m3, 32, ".e4m3.e4m3", "")
OX_WGMMA_ALL(wgmma_e4m3_e5m2, 32, ".e4m3.e5m2", "")
OX_WGMMA_ALL(wgmma_e5m2_e4m3, 32, ".e5m2.e4m3", "")
OX_WGMMA_ALL(wgmma_e5m2_e5m2, 32, ".e5m2.e5m2", "")
OX_WGMMA_ALL(wgmma_tf32, 8, ".tf32.tf32", "")
#undef OX_WGMMA_ALL
#undef OX_WGMMA
#undef OX_ROWS

}  // namespace ptx
