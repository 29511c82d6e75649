// Copies that few programs need, in the family "full": with a cache policy, im2col, four rows at once, plain bulk, between CTAs, prefetches.
// A policy of its own always stands there: that without any is `evict_normal` for all addresses.
#pragma once
#include "copies.cuh"
#include "ptx_extra.cuh"

// `word`: 0 for none, else 1 + isa.ops.CacheHint.word.
OX_DEVICE u64 cache_policy(u32 word, f32 fraction) {
    switch (word) {
        case 2: return ptx::createpolicy_evict_first_evict_unchanged(fraction);
        case 3: return ptx::createpolicy_evict_last_evict_unchanged(fraction);
        case 4: return ptx::createpolicy_evict_unchanged_evict_unchanged(fraction);
        case 5: return ptx::createpolicy_evict_normal_evict_first(fraction);
        case 6: return ptx::createpolicy_evict_first_evict_first(fraction);
        case 7: return ptx::createpolicy_evict_last_evict_first(fraction);
        case 8: return ptx::createpolicy_evict_unchanged_evict_first(fraction);
        default: return ptx::createpolicy_evict_normal_evict_unchanged(word == 0 ? 1.0f : fraction);
    }
}

// One record with its tail, as lane 0 works on it.
struct Extra {
    u32 kind, rank, reduce, dtype, bytes;
    bool im2col;
    u32 tile, bar, value, into;  // value: mask, packed offsets (behind the mask of a multicast) or rank
    u64 map, global, policy;
    ptx::Coords at;

    // Offsets are packed into 16 bits, that of w lowest: all 16 in rank 3, 8 each in rank 4, 5 each in rank 5.
    __device__ __forceinline__ ptx::Offsets offsets() const {
        const u32 packed = kind == OP_TENSOR_G2S_MULTICAST ? value >> 16 : value;
        const u32 bits = rank == 3 ? 16 : rank == 4 ? 8 : 5, all = (1u << bits) - 1;
        return {static_cast<u16>(packed & all), static_cast<u16>(packed >> bits & all), static_cast<u16>(packed >> 2 * bits & all)};
    }
};

#define OX_TILE_RANKS(CALL)    \
    switch (x.rank) {          \
        case 1: CALL(1) break; \
        case 2: CALL(2) break; \
        case 3: CALL(3) break; \
        case 4: CALL(4) break; \
        default: CALL(5) break; \
    }
#define OX_IM2COL_RANKS(CALL)  \
    switch (x.rank) {          \
        case 3: CALL(3) break; \
        case 4: CALL(4) break; \
        default: CALL(5) break; \
    }

OX_DEVICE void load_extra(const Extra& x) {
    if (x.im2col) {
        const ptx::Offsets o = x.offsets();
#define OX_CALL(N) ptx::g2s_im2col_##N##d(x.tile, x.map, x.bar, x.at, x.policy, o);
        OX_IM2COL_RANKS(OX_CALL)
#undef OX_CALL
    } else {
#define OX_CALL(N) ptx::g2s_hint_##N##d(x.tile, x.map, x.bar, x.at, x.policy);
        OX_TILE_RANKS(OX_CALL)
#undef OX_CALL
    }
}

OX_DEVICE void load_extra_multicast(const Extra& x) {
    const u16 mask = static_cast<u16>(x.value);
    if (x.im2col) {
        const ptx::Offsets o = x.offsets();
#define OX_CALL(N) ptx::g2s_im2col_##N##d_multicast(x.tile, x.map, x.bar, x.at, x.policy, mask, o);
        OX_IM2COL_RANKS(OX_CALL)
#undef OX_CALL
    } else {
#define OX_CALL(N) ptx::g2s_hint_##N##d_multicast(x.tile, x.map, x.bar, x.at, x.policy, mask);
        OX_TILE_RANKS(OX_CALL)
#undef OX_CALL
    }
}

OX_DEVICE void prefetch_extra(const Extra& x) {
    if (x.im2col) {
        const ptx::Offsets o = x.offsets();
#define OX_CALL(N) ptx::prefetch_im2col_##N##d(x.map, x.at, x.policy, o);
        OX_IM2COL_RANKS(OX_CALL)
#undef OX_CALL
    } else {
#define OX_CALL(N) ptx::prefetch_hint_##N##d(x.map, x.at, x.policy);
        OX_TILE_RANKS(OX_CALL)
#undef OX_CALL
    }
}

#define OX_STORE_AS(NAME)                                                          \
    if (x.im2col) {                                                                \
        switch (x.rank) {                                                          \
            case 3: ptx::NAME##_im2col_3d(x.map, x.tile, x.at, x.policy); break;   \
            case 4: ptx::NAME##_im2col_4d(x.map, x.tile, x.at, x.policy); break;   \
            default: ptx::NAME##_im2col_5d(x.map, x.tile, x.at, x.policy); break;  \
        }                                                                          \
    } else {                                                                       \
        switch (x.rank) {                                                          \
            case 1: ptx::NAME##_hint_1d(x.map, x.tile, x.at, x.policy); break;     \
            case 2: ptx::NAME##_hint_2d(x.map, x.tile, x.at, x.policy); break;     \
            case 3: ptx::NAME##_hint_3d(x.map, x.tile, x.at, x.policy); break;     \
            case 4: ptx::NAME##_hint_4d(x.map, x.tile, x.at, x.policy); break;     \
            default: ptx::NAME##_hint_5d(x.map, x.tile, x.at, x.policy); break;    \
        }                                                                          \
    }                                                                              \
    break;

OX_DEVICE void reduce_extra(const Extra& x) {
    switch (x.reduce) {
        case 0: OX_STORE_AS(add)
        case 1: OX_STORE_AS(min)
        case 2: OX_STORE_AS(max)
        case 3: OX_STORE_AS(inc)
        case 4: OX_STORE_AS(dec)
        case 5: OX_STORE_AS(and)
        case 6: OX_STORE_AS(or)
        default: OX_STORE_AS(xor)
    }
}

OX_DEVICE void store_extra(const Extra& x) {
    do {
        OX_STORE_AS(s2g)
    } while (false);
}
#undef OX_STORE_AS
#undef OX_TILE_RANKS
#undef OX_IM2COL_RANKS

// Plain reductions: a pair that PTX has no instruction for is not encoded.
OX_DEVICE void bulk_reduce(const Extra& x) {
#define OX_CASE(OP, DTYPE, TYPE) \
    case DTYPE: ptx::cp_reduce_async_bulk_##OP##_##TYPE(x.global, x.tile, x.bytes, x.policy); break;
#define OX_ORDER(OP)                                                                                                               \
    switch (x.dtype) {                                                                                                             \
        OX_CASE(OP, DT_U32, u32) OX_CASE(OP, DT_I32, s32) OX_CASE(OP, DT_U64, u64) OX_CASE(OP, DT_I64, s64)                        \
        OX_CASE(OP, DT_F16, f16) OX_CASE(OP, DT_BF16, bf16) default: break;                                                        \
    }                                                                                                                              \
    break;
#define OX_BITS(OP)                                                                                                                \
    switch (x.dtype) {                                                                                                             \
        OX_CASE(OP, DT_U32, b32) OX_CASE(OP, DT_I32, b32) OX_CASE(OP, DT_U64, b64) OX_CASE(OP, DT_I64, b64) default: break;        \
    }                                                                                                                              \
    break;
    switch (x.reduce) {
        case 0:
            switch (x.dtype) {
                OX_CASE(add, DT_U32, u32) OX_CASE(add, DT_I32, s32) OX_CASE(add, DT_U64, u64) OX_CASE(add, DT_F16, f16)
                OX_CASE(add, DT_BF16, bf16) OX_CASE(add, DT_F32, f32) OX_CASE(add, DT_TF32, f32) OX_CASE(add, DT_F64, f64)
                default: break;
            }
            break;
        case 1: OX_ORDER(min)
        case 2: OX_ORDER(max)
        case 3: ptx::cp_reduce_async_bulk_inc_u32(x.global, x.tile, x.bytes, x.policy); break;
        case 4: ptx::cp_reduce_async_bulk_dec_u32(x.global, x.tile, x.bytes, x.policy); break;
        case 5: OX_BITS(and)
        case 6: OX_BITS(or)
        default: OX_BITS(xor)
    }
#undef OX_CASE
#undef OX_ORDER
#undef OX_BITS
}

// To CTA `value` of the cluster, where tile and barrier lie at the same places.
OX_DEVICE void send(const Extra& x) {
    const u32 to = ptx::mapa(x.into, x.value), bar = ptx::mapa(x.bar, x.value);
    if (x.kind == OP_BULK_S2S) {
        ptx::cp_async_bulk_s2s(to, x.tile, x.bytes, bar);
        return;
    }
#define OX_SEND(OP, TYPE) ptx::cp_reduce_async_bulk_s2s_##OP##_##TYPE(to, x.tile, x.bytes, bar)
#define OX_SIGNED(OP)                                 \
    if (x.dtype == DT_I32) OX_SEND(OP, s32);          \
    else OX_SEND(OP, u32);                            \
    break;
    switch (x.reduce) {
        case 0:
            if (x.dtype == DT_U64) OX_SEND(add, u64);
            else if (x.dtype == DT_I32) OX_SEND(add, s32);
            else OX_SEND(add, u32);
            break;
        case 1: OX_SIGNED(min)
        case 2: OX_SIGNED(max)
        case 3: OX_SEND(inc, u32); break;
        case 4: OX_SEND(dec, u32); break;
        case 5: OX_SEND(and, b32); break;
        case 6: OX_SEND(or, b32); break;
        default: OX_SEND(xor, b32); break;
    }
#undef OX_SIGNED
#undef OX_SEND
}

// False: this GPU has no such copy.
OX_DEVICE bool issue_extra(const Extra& x) {
    switch (x.kind) {
        case OP_TENSOR_G2S: load_extra(x); break;
        case OP_TENSOR_G2S_MULTICAST: load_extra_multicast(x); break;
        case OP_TENSOR_S2G: store_extra(x); break;
        case OP_TENSOR_REDUCE: reduce_extra(x); break;
        case OP_TENSOR_PREFETCH: prefetch_extra(x); break;
#if __CUDA_ARCH__ >= 1000
        case OP_TENSOR_GATHER4: ptx::gather4(x.tile, x.map, x.bar, x.at, x.policy); break;
#endif
#if __CUDA_ARCH__ >= 1000 && __CUDA_ARCH__ < 1200
        case OP_TENSOR_SCATTER4: ptx::scatter4(x.map, x.tile, x.at, x.policy); break;
#endif
        case OP_BULK_G2S: ptx::cp_async_bulk_g2s(x.tile, x.global, x.bytes, x.bar, x.policy); break;
        case OP_BULK_G2S_MULTICAST:
            ptx::cp_async_bulk_g2s_multicast(x.tile, x.global, x.bytes, x.bar, static_cast<u16>(x.value), x.policy);
            break;
        case OP_BULK_S2G: ptx::cp_async_bulk_s2g(x.global, x.tile, x.bytes, x.policy); break;
        case OP_BULK_REDUCE: bulk_reduce(x); break;
        case OP_BULK_PREFETCH: ptx::cp_async_bulk_prefetch(x.global, x.bytes, x.policy); break;
        case OP_BULK_S2S:
        case OP_BULK_REDUCE_S2S: send(x); break;
        default: return false;
    }
    return true;
}

// COPY_EXTRA, by the first lane.
template <class L>
OX_DEVICE bool copy_extra(const L& launch, const Warp& w, const RecordAt<L>& r) {
    Extra x;
    const u32 tail = r.at + 1, first = launch.word(tail, 0);
    x.kind = first & 0xff;
    x.im2col = (first >> 8 & 0xff) != 0;
    x.dtype = first >> 24;
    x.bytes = launch.word(tail, 2);
    x.rank = r.aux();
    x.reduce = r.flags();
    const bool run = x.kind >= OP_BULK_G2S;  // of an array, not of a map: between CTAs neither
    x.global = 0;
    const u32 words = r.map() * ARRAY_WORDS;
    if (run && x.rank != 0) x.global = launch.argument(words);
    for (u32 i = 0; i < 5; ++i) {
        x.at.c[i] = i < x.rank ? w.or_zero(r.reg(2 + x.rank - i)) : 0;
        if (run && i < x.rank) x.global += static_cast<u64>(static_cast<i64>(x.at.c[i])) * launch.argument(words + x.rank - i);
    }
    x.tile = w.address(r, 0);
    x.bar = w.address(r, 1);
    x.value = static_cast<u32>(w.value(r, 2));
    x.into = w.address(r, 3);
    const u32 slot = run ? 0 : map_slot(w, r);
    __syncwarp();
    bool known = true;
    if (lane_number() == 0) {
        x.map = launch.map(slot);
        x.policy = cache_policy(first >> 16 & 0xff, __uint_as_float(launch.word(tail, 1)));
        known = issue_extra(x);
    }
    return __all_sync(FULL_WARP, known);
}
