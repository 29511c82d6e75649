// The tensor copies of PTX, one function per form; coordinates with dimension 0, the innermost, first.
#pragma once
#include "ptx.cuh"

namespace ptx {

struct Coords {
    i32 c[5];
};

#define OX_C1 "{%3}"
#define OX_C2 "{%3, %4}"
#define OX_C3 "{%3, %4, %5}"
#define OX_C4 "{%3, %4, %5, %6}"
#define OX_C5 "{%3, %4, %5, %6, %7}"
#define OX_R1 "r"(at.c[0])
#define OX_R2 OX_R1, "r"(at.c[1])
#define OX_R3 OX_R2, "r"(at.c[2])
#define OX_R4 OX_R3, "r"(at.c[3])
#define OX_R5 OX_R4, "r"(at.c[4])

// global -> shared, of this CTA or of those in `mask`; the bytes are reported to `bar` of each that receives them
#define OX_G2S(N)                                                                                                                    \
    OX_DEVICE void cp_async_bulk_tensor_##N##d_g2s(u32 to, u64 map, u32 bar, const Coords& at) {                                     \
        asm volatile("cp.async.bulk.tensor." #N "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, " OX_C##N     \
                     "], [%2];" ::"r"(to), "l"(map), "r"(bar), OX_R##N : "memory");                                                  \
    }                                                                                                                                \
    OX_DEVICE void cp_async_bulk_tensor_##N##d_g2s_multicast(u32 to, u64 map, u32 bar, const Coords& at, u32 mask) {                 \
        asm volatile("cp.async.bulk.tensor." #N "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "     \
                     "[%0], [%1, " OX_C##N "], [%2], %" OX_LAST##N ";" ::"r"(to), "l"(map), "r"(bar), OX_R##N,                       \
                     "h"(static_cast<u16>(mask)) : "memory");                                                                        \
    }
#define OX_LAST1 "4"
#define OX_LAST2 "5"
#define OX_LAST3 "6"
#define OX_LAST4 "7"
#define OX_LAST5 "8"
OX_G2S(1)
OX_G2S(2)
OX_G2S(3)
OX_G2S(4)
OX_G2S(5)
#undef OX_G2S

// shared -> global, and the reductions; in the executing thread's open bulk group. %2 is not used: coordinates count from %3.
#define OX_STORE(NAME, FORM, N)                                                                                                      \
    OX_DEVICE void NAME(u64 map, u32 from, const Coords& at) {                                                                       \
        asm volatile(FORM "." #N "d.global.shared::cta" OX_OP ".tile.bulk_group [%0, " OX_C##N "], [%1];" ::"l"(map), "r"(from),     \
                     "r"(0), OX_R##N : "memory");                                                                                    \
    }
#define OX_OP ""
OX_STORE(cp_async_bulk_tensor_1d_s2g, "cp.async.bulk.tensor", 1)
OX_STORE(cp_async_bulk_tensor_2d_s2g, "cp.async.bulk.tensor", 2)
OX_STORE(cp_async_bulk_tensor_3d_s2g, "cp.async.bulk.tensor", 3)
OX_STORE(cp_async_bulk_tensor_4d_s2g, "cp.async.bulk.tensor", 4)
OX_STORE(cp_async_bulk_tensor_5d_s2g, "cp.async.bulk.tensor", 5)
#undef OX_OP

#define OX_REDUCE(OP)                                                                        \
    OX_STORE(cp_reduce_async_bulk_tensor_1d_##OP, "cp.reduce.async.bulk.tensor", 1)          \
    OX_STORE(cp_reduce_async_bulk_tensor_2d_##OP, "cp.reduce.async.bulk.tensor", 2)          \
    OX_STORE(cp_reduce_async_bulk_tensor_3d_##OP, "cp.reduce.async.bulk.tensor", 3)          \
    OX_STORE(cp_reduce_async_bulk_tensor_4d_##OP, "cp.reduce.async.bulk.tensor", 4)          \
    OX_STORE(cp_reduce_async_bulk_tensor_5d_##OP, "cp.reduce.async.bulk.tensor", 5)
#define OX_OP ".add"
OX_REDUCE(add)
#undef OX_OP
#define OX_OP ".min"
OX_REDUCE(min)
#undef OX_OP
#define OX_OP ".max"
OX_REDUCE(max)
#undef OX_OP
#define OX_OP ".inc"
OX_REDUCE(inc)
#undef OX_OP
#define OX_OP ".dec"
OX_REDUCE(dec)
#undef OX_OP
#define OX_OP ".and"
OX_REDUCE(and)
#undef OX_OP
#define OX_OP ".or"
OX_REDUCE(or)
#undef OX_OP
#define OX_OP ".xor"
OX_REDUCE(xor)
#undef OX_OP
#undef OX_REDUCE
#undef OX_STORE

// Asks for a tensor map, so that the first copy does not wait for it.
OX_DEVICE void prefetch_tensormap(u64 map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

}  // namespace ptx
