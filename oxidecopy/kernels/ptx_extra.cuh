// Copies with a cache policy, im2col copies, plain bulk copies and prefetches: one function per PTX form.
#pragma once
#include "ptx_tensor.cuh"

namespace ptx {

// ---- cache policies
#define OX_POLICY(PRIMARY, SECONDARY)                                                                                               \
    OX_DEVICE u64 createpolicy_##PRIMARY##_##SECONDARY(f32 fraction) {                                                              \
        u64 policy;                                                                                                                 \
        asm("createpolicy.fractional.L2::" #PRIMARY ".L2::" #SECONDARY ".b64 %0, %1;" : "=l"(policy) : "f"(fraction));              \
        return policy;                                                                                                              \
    }
OX_POLICY(evict_normal, evict_unchanged)
OX_POLICY(evict_first, evict_unchanged)
OX_POLICY(evict_last, evict_unchanged)
OX_POLICY(evict_unchanged, evict_unchanged)
OX_POLICY(evict_normal, evict_first)
OX_POLICY(evict_first, evict_first)
OX_POLICY(evict_last, evict_first)
OX_POLICY(evict_unchanged, evict_first)
#undef OX_POLICY

// ---- tensor copies with a policy. MODE "tile" of ranks 1 to 5; of the im2col forms ranks 3 to 5. Coordinates count from %4, offsets follow.
#define OX_X1 "{%4}"
#define OX_X2 "{%4, %5}"
#define OX_X3 "{%4, %5, %6}"
#define OX_X4 "{%4, %5, %6, %7}"
#define OX_X5 "{%4, %5, %6, %7, %8}"
#define OX_O3 ", {%7}"
#define OX_O4 ", {%8, %9}"
#define OX_O5 ", {%9, %10, %11}"
#define OX_H3 , "h"(o.w)
#define OX_H4 , "h"(o.w), "h"(o.h)
#define OX_H5 , "h"(o.w), "h"(o.h), "h"(o.d)
#define OX_NONE

struct Offsets {
    u16 w, h, d;
};

#define OX_G2S(NAME, MODE, N, OFFSET_TEXT, OFFSETS, OFFSET_VALUES, MASK)                                                             \
    OX_DEVICE void NAME##_##N##d(u32 to, u64 map, u32 bar, const Coords& at, u64 policy OFFSETS) {                                   \
        asm volatile("cp.async.bulk.tensor." #N "d.shared::cluster.global." MODE ".mbarrier::complete_tx::bytes.L2::cache_hint "     \
                     "[%0], [%1, " OX_X##N "], [%2]" OFFSET_TEXT ", %3;" ::"r"(to), "l"(map), "r"(bar), "l"(policy), OX_R##N         \
                     OFFSET_VALUES : "memory");                                                                                      \
    }                                                                                                                                \
    OX_DEVICE void NAME##_##N##d_multicast(u32 to, u64 map, u32 bar, const Coords& at, u64 policy, u16 mask OFFSETS) {               \
        asm volatile("cp.async.bulk.tensor." #N "d.shared::cluster.global." MODE ".mbarrier::complete_tx::bytes.multicast::cluster" \
                     ".L2::cache_hint [%0], [%1, " OX_X##N "], [%2]" OFFSET_TEXT ", %" MASK ", %3;" ::"r"(to), "l"(map), "r"(bar),   \
                     "l"(policy), OX_R##N OFFSET_VALUES, "h"(mask) : "memory");                                                      \
    }
#define OX_OFFSETS , const Offsets& o
OX_G2S(g2s_hint, "tile", 1, "", OX_NONE, OX_NONE, "5")
OX_G2S(g2s_hint, "tile", 2, "", OX_NONE, OX_NONE, "6")
OX_G2S(g2s_hint, "tile", 3, "", OX_NONE, OX_NONE, "7")
OX_G2S(g2s_hint, "tile", 4, "", OX_NONE, OX_NONE, "8")
OX_G2S(g2s_hint, "tile", 5, "", OX_NONE, OX_NONE, "9")
OX_G2S(g2s_im2col, "im2col", 3, OX_O3, OX_OFFSETS, OX_H3, "8")
OX_G2S(g2s_im2col, "im2col", 4, OX_O4, OX_OFFSETS, OX_H4, "10")
OX_G2S(g2s_im2col, "im2col", 5, OX_O5, OX_OFFSETS, OX_H5, "12")
#undef OX_G2S

#define OX_PREFETCH(NAME, MODE, N, OFFSET_TEXT, OFFSETS, OFFSET_VALUES)                                                              \
    OX_DEVICE void NAME##_##N##d(u64 map, const Coords& at, u64 policy OFFSETS) {                                                    \
        asm volatile("cp.async.bulk.prefetch.tensor." #N "d.L2.global." MODE ".L2::cache_hint [%0, " OX_X##N "]" OFFSET_TEXT ", %3;" \
                     ::"l"(map), "r"(0), "r"(0), "l"(policy), OX_R##N OFFSET_VALUES : "memory");                                     \
    }
OX_PREFETCH(prefetch_hint, "tile", 1, "", OX_NONE, OX_NONE)
OX_PREFETCH(prefetch_hint, "tile", 2, "", OX_NONE, OX_NONE)
OX_PREFETCH(prefetch_hint, "tile", 3, "", OX_NONE, OX_NONE)
OX_PREFETCH(prefetch_hint, "tile", 4, "", OX_NONE, OX_NONE)
OX_PREFETCH(prefetch_hint, "tile", 5, "", OX_NONE, OX_NONE)
OX_PREFETCH(prefetch_im2col, "im2col", 3, OX_O3, OX_OFFSETS, OX_H3)
OX_PREFETCH(prefetch_im2col, "im2col", 4, OX_O4, OX_OFFSETS, OX_H4)
OX_PREFETCH(prefetch_im2col, "im2col", 5, OX_O5, OX_OFFSETS, OX_H5)
#undef OX_PREFETCH

#define OX_S2G(NAME, FORM, OP, MODE, N)                                                                                              \
    OX_DEVICE void NAME##_##N##d(u64 map, u32 from, const Coords& at, u64 policy) {                                                  \
        asm volatile(FORM "." #N "d.global.shared::cta" OP "." MODE ".bulk_group.L2::cache_hint [%0, " OX_X##N "], [%1], %3;"        \
                     ::"l"(map), "r"(from), "r"(0), "l"(policy), OX_R##N : "memory");                                                \
    }
#define OX_S2G_RANKS(NAME, FORM, OP)                        \
    OX_S2G(NAME##_hint, FORM, OP, "tile", 1)                \
    OX_S2G(NAME##_hint, FORM, OP, "tile", 2)                \
    OX_S2G(NAME##_hint, FORM, OP, "tile", 3)                \
    OX_S2G(NAME##_hint, FORM, OP, "tile", 4)                \
    OX_S2G(NAME##_hint, FORM, OP, "tile", 5)                \
    OX_S2G(NAME##_im2col, FORM, OP, "im2col_no_offs", 3)    \
    OX_S2G(NAME##_im2col, FORM, OP, "im2col_no_offs", 4)    \
    OX_S2G(NAME##_im2col, FORM, OP, "im2col_no_offs", 5)
OX_S2G_RANKS(s2g, "cp.async.bulk.tensor", "")
OX_S2G_RANKS(add, "cp.reduce.async.bulk.tensor", ".add")
OX_S2G_RANKS(min, "cp.reduce.async.bulk.tensor", ".min")
OX_S2G_RANKS(max, "cp.reduce.async.bulk.tensor", ".max")
OX_S2G_RANKS(inc, "cp.reduce.async.bulk.tensor", ".inc")
OX_S2G_RANKS(dec, "cp.reduce.async.bulk.tensor", ".dec")
OX_S2G_RANKS(and, "cp.reduce.async.bulk.tensor", ".and")
OX_S2G_RANKS(or, "cp.reduce.async.bulk.tensor", ".or")
OX_S2G_RANKS(xor, "cp.reduce.async.bulk.tensor", ".xor")
#undef OX_S2G_RANKS
#undef OX_S2G
#undef OX_OFFSETS

// ---- four rows at once
#if __CUDA_ARCH__ >= 1000
OX_DEVICE void gather4(u32 to, u64 map, u32 bar, const Coords& at, u64 policy) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes.L2::cache_hint "
                 "[%0], [%1, " OX_X5 "], [%2], %3;" ::"r"(to), "l"(map), "r"(bar), "l"(policy), OX_R5 : "memory");
}
#endif
#if __CUDA_ARCH__ >= 1000 && __CUDA_ARCH__ < 1200
OX_DEVICE void scatter4(u64 map, u32 from, const Coords& at, u64 policy) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group.L2::cache_hint "
                 "[%0, " OX_X5 "], [%1], %3;" ::"l"(map), "r"(from), "r"(0), "l"(policy), OX_R5 : "memory");
}
#endif

// ---- plain bulk copies
OX_DEVICE void cp_async_bulk_g2s(u32 to, u64 from, u32 bytes, u32 bar, u64 policy) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(bar), "l"(policy) : "memory");
}

OX_DEVICE void cp_async_bulk_g2s_multicast(u32 to, u64 from, u32 bytes, u32 bar, u16 mask, u64 policy) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint "
                 "[%0], [%1], %2, [%3], %4, %5;" ::"r"(to), "l"(from), "r"(bytes), "r"(bar), "h"(mask), "l"(policy) : "memory");
}

OX_DEVICE void cp_async_bulk_s2g(u64 to, u32 from, u32 bytes, u64 policy) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%0], [%1], %2, %3;" ::"l"(to), "r"(from), "r"(bytes),
                 "l"(policy) : "memory");
}

OX_DEVICE void cp_async_bulk_prefetch(u64 from, u32 bytes, u64 policy) {
    asm volatile("cp.async.bulk.prefetch.L2.global.L2::cache_hint [%0], %1, %2;" ::"l"(from), "r"(bytes), "l"(policy) : "memory");
}

// From this CTA to another of the cluster; `to` and `bar` are addresses there.
OX_DEVICE void cp_async_bulk_s2s(u32 to, u32 from, u32 bytes, u32 bar) {
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "r"(from),
                 "r"(bytes), "r"(bar) : "memory");
}

#define OX_BULK_REDUCE(OP, TYPE, FORM)                                                                                              \
    OX_DEVICE void cp_reduce_async_bulk_##OP##_##TYPE(u64 to, u32 from, u32 bytes, u64 policy) {                                    \
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.L2::cache_hint." #OP FORM "." #TYPE " [%0], [%1], %2, %3;" \
                     ::"l"(to), "r"(from), "r"(bytes), "l"(policy) : "memory");                                                     \
    }
#define OX_BULK_REDUCE_S2S(OP, TYPE)                                                                                                \
    OX_DEVICE void cp_reduce_async_bulk_s2s_##OP##_##TYPE(u32 to, u32 from, u32 bytes, u32 bar) {                                   \
        asm volatile("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes." #OP "." #TYPE                 \
                     " [%0], [%1], %2, [%3];" ::"r"(to), "r"(from), "r"(bytes), "r"(bar) : "memory");                               \
    }
OX_BULK_REDUCE(add, u32, "")
OX_BULK_REDUCE(add, s32, "")
OX_BULK_REDUCE(add, u64, "")
OX_BULK_REDUCE(add, f32, "")
OX_BULK_REDUCE(add, f64, "")
OX_BULK_REDUCE(add, f16, ".noftz")
OX_BULK_REDUCE(add, bf16, ".noftz")
#define OX_MIN_MAX(OP)           \
    OX_BULK_REDUCE(OP, u32, "")  \
    OX_BULK_REDUCE(OP, s32, "")  \
    OX_BULK_REDUCE(OP, u64, "")  \
    OX_BULK_REDUCE(OP, s64, "")  \
    OX_BULK_REDUCE(OP, f16, "")  \
    OX_BULK_REDUCE(OP, bf16, "") \
    OX_BULK_REDUCE_S2S(OP, u32)  \
    OX_BULK_REDUCE_S2S(OP, s32)
OX_MIN_MAX(min)
OX_MIN_MAX(max)
#undef OX_MIN_MAX
#define OX_BITS(OP)             \
    OX_BULK_REDUCE(OP, b32, "") \
    OX_BULK_REDUCE(OP, b64, "") \
    OX_BULK_REDUCE_S2S(OP, b32)
OX_BITS(and)
OX_BITS(or)
OX_BITS(xor)
#undef OX_BITS
OX_BULK_REDUCE(inc, u32, "")
OX_BULK_REDUCE(dec, u32, "")
OX_BULK_REDUCE_S2S(inc, u32)
OX_BULK_REDUCE_S2S(dec, u32)
OX_BULK_REDUCE_S2S(add, u32)
OX_BULK_REDUCE_S2S(add, s32)
OX_BULK_REDUCE_S2S(add, u64)
#undef OX_BULK_REDUCE
#undef OX_BULK_REDUCE_S2S

// ---- maps in shared memory, and in global memory where copies find them
// Replacing is for targets of one architecture or family: PTX for all has the fences, and says so to `tensormap_op`.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL) || defined(__CUDA_ARCH_SPECIFIC__) || defined(__CUDA_ARCH_FAMILY_SPECIFIC__)
#define OX_REPLACES
#endif
#ifdef OX_REPLACES
#define OX_REPLACE(FIELD, BITS, CONSTRAINT, TYPE)                                                                                   \
    OX_DEVICE void tensormap_replace_##FIELD(u32 map, TYPE value) {                                                                 \
        asm volatile("tensormap.replace.tile." #FIELD ".shared::cta.b1024." BITS " [%0], %1;" ::"r"(map), CONSTRAINT(value) : "memory"); \
    }
#define OX_REPLACE_ENTRY(FIELD, BITS, CONSTRAINT, TYPE)                                                                             \
    template <int ORD>                                                                                                              \
    OX_DEVICE void tensormap_replace_##FIELD(u32 map, TYPE value) {                                                                 \
        asm volatile("tensormap.replace.tile." #FIELD ".shared::cta.b1024." BITS " [%0], %1, %2;" ::"r"(map), "n"(ORD), CONSTRAINT(value) \
                     : "memory");                                                                                                   \
    }
#define OX_REPLACE_WORD(FIELD)                                                                                                      \
    template <int VALUE>                                                                                                            \
    OX_DEVICE void tensormap_replace_##FIELD(u32 map) {                                                                             \
        asm volatile("tensormap.replace.tile." #FIELD ".shared::cta.b1024.b32 [%0], %1;" ::"r"(map), "n"(VALUE) : "memory");        \
    }
OX_REPLACE(global_address, "b64", "l", u64)
OX_REPLACE(rank, "b32", "r", u32)
OX_REPLACE_ENTRY(box_dim, "b32", "r", u32)
OX_REPLACE_ENTRY(global_dim, "b32", "r", u32)
OX_REPLACE_ENTRY(global_stride, "b64", "l", u64)
OX_REPLACE_ENTRY(element_stride, "b32", "r", u32)
OX_REPLACE_WORD(elemtype)
OX_REPLACE_WORD(interleave_layout)
OX_REPLACE_WORD(swizzle_mode)
OX_REPLACE_WORD(fill_mode)
#undef OX_REPLACE
#undef OX_REPLACE_ENTRY
#undef OX_REPLACE_WORD
#endif

// By the whole warp.
OX_DEVICE void tensormap_cp_fenceproxy(u64 to, u32 map) {
    asm volatile(
        "{\n.reg .b64 there;\ncvta.to.global.u64 there, %0;\n"
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [there], [%1], 128;\n}" ::"l"(to),
        "r"(map)
        : "memory");
}

OX_DEVICE void fence_proxy_tensormap_acquire(u64 map) {
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
}

}  // namespace ptx
