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

// ---- maps that are replaced
#ifdef OX_REPLACES
// `field` is a position in isa.ops.MAP_FIELDS. What an instruction takes as an immediate is one of few.
#define OX_BY_ORD(NAME)                                        \
    switch (ord) {                                             \
        case 0: ptx::tensormap_replace_##NAME<0>(to, v); break; \
        case 1: ptx::tensormap_replace_##NAME<1>(to, v); break; \
        case 2: ptx::tensormap_replace_##NAME<2>(to, v); break; \
        case 3: ptx::tensormap_replace_##NAME<3>(to, v); break; \
        default: ptx::tensormap_replace_##NAME<4>(to, v); break; \
    }                                                          \
    break;
#define OX_IMM(NAME, N) case N: ptx::tensormap_replace_##NAME<N>(to); break;

OX_DEVICE void tensormap_elemtype(u32 to, u32 v) {
    switch (v) {
        OX_IMM(elemtype, 0) OX_IMM(elemtype, 1) OX_IMM(elemtype, 2) OX_IMM(elemtype, 3) OX_IMM(elemtype, 4) OX_IMM(elemtype, 5)
        OX_IMM(elemtype, 6) OX_IMM(elemtype, 7) OX_IMM(elemtype, 8) OX_IMM(elemtype, 9) OX_IMM(elemtype, 10) OX_IMM(elemtype, 11)
        OX_IMM(elemtype, 12) default: break;
    }
}

OX_DEVICE void tensormap_replace(u32 field, u32 ord, u32 to, u64 wide) {
    const u32 v = static_cast<u32>(wide);
    switch (field) {
        case 0: ptx::tensormap_replace_global_address(to, wide); break;
        case 1: ptx::tensormap_replace_rank(to, v); break;
        case 2: OX_BY_ORD(box_dim)
        case 3: OX_BY_ORD(global_dim)
        case 4: {
            const u64 v = wide;
            OX_BY_ORD(global_stride)
        }
        case 5: OX_BY_ORD(element_stride)
        case 6: tensormap_elemtype(to, v); break;
        case 7: switch (v) { OX_IMM(interleave_layout, 0) OX_IMM(interleave_layout, 1) OX_IMM(interleave_layout, 2) default: break; } break;
        case 8: switch (v) { OX_IMM(swizzle_mode, 0) OX_IMM(swizzle_mode, 1) OX_IMM(swizzle_mode, 2) OX_IMM(swizzle_mode, 3) default: break; } break;
        default: switch (v) { OX_IMM(fill_mode, 0) OX_IMM(fill_mode, 1) default: break; } break;
    }
}
#undef OX_BY_ORD
#undef OX_IMM

// Address of element `first` (`x.global`) and strides of an array, whose words start at `words`.
template <class L>
OX_DEVICE void tensormap_point(const L& launch, const Extra& x, u32 words) {
    ptx::tensormap_replace_global_address(x.tile, x.global);
    if (x.rank > 1) ptx::tensormap_replace_global_stride<0>(x.tile, launch.argument(words + x.rank - 1));
    if (x.rank > 2) ptx::tensormap_replace_global_stride<1>(x.tile, launch.argument(words + x.rank - 2));
    if (x.rank > 3) ptx::tensormap_replace_global_stride<2>(x.tile, launch.argument(words + x.rank - 3));
    if (x.rank > 4) ptx::tensormap_replace_global_stride<3>(x.tile, launch.argument(words + x.rank - 4));
}

#endif

// Kinds from TENSORMAP_COPY on, by the whole warp. `slot` is that of a map, `row` what value2 says.
template <class L, class W>
OX_DEVICE Failure tensormap_op(const L& launch, const W& w, const RecordAt<L>& r, const Extra& x, u32 words, u32 slot, i64 row) {
    __syncwarp();
    switch (x.kind) {
        case OP_TENSORMAP_COPY:
            ptx::st_shared_u32(x.tile + 4 * lane_number(), reinterpret_cast<const u32*>(launch.map(slot))[lane_number()]);
            break;
        case OP_TENSORMAP_REPLACE:
            if (x.bytes != 0 && row < 1) return Failure{REPORT_EMPTY, 0, 0, 0, static_cast<u64>(row), 1};
#ifdef OX_REPLACES
            if (w.issues()) tensormap_replace(r.aux(), r.flags(), x.tile, static_cast<u64>(row));
            break;
        case OP_TENSORMAP_REPLACE_ARRAY:
            if (w.issues()) tensormap_point(launch, x, words);
            break;
#else
        case OP_TENSORMAP_REPLACE_ARRAY: return failure(REPORT_OPCODE);
#endif
        case OP_TENSORMAP_CP_FENCEPROXY:
            ptx::tensormap_cp_fenceproxy(launch.argument(words) + MAP_BYTES * static_cast<u64>(row), x.tile);
            break;
        default: ptx::fence_proxy_tensormap_acquire(launch.argument(words) + MAP_BYTES * static_cast<u64>(row)); break;
    }
    __syncwarp();
    return no_failure();
}

// COPY_EXTRA: copies by the lane that issues.
template <class L, class W>
OX_DEVICE Failure copy_extra(const L& launch, const W& w, const RecordAt<L>& r) {
    Extra x;
    const u32 tail = r.at + 1, first = launch.word(tail, 0);
    x.kind = first & 0xff;
    x.im2col = (first >> 8 & 0xff) != 0;
    x.dtype = first >> 24;
    x.bytes = launch.word(tail, 2);
    x.rank = r.aux();
    x.reduce = r.flags();
    const bool placed = (launch.word(tail, 3) & 0xff) != 0;                                            // its map lies in an array
    const bool edit = x.kind >= OP_TENSORMAP_COPY, points = x.kind == OP_TENSORMAP_REPLACE_ARRAY;
    const bool run = x.kind >= OP_BULK_G2S && (!edit || points);  // of an array, not of a map: between CTAs neither
    x.global = 0;
    const u32 words = r.map() * W::WORDS;
    if (run && x.rank != 0) x.global = launch.argument(words);
    for (u32 i = 0; i < 5; ++i) {
        const i64 at = i < x.rank && (!edit || points) ? static_cast<i64>(w.or_zero(r.reg(2 + x.rank - i))) : 0;
        x.at.c[i] = static_cast<i32>(at);
        if (run && i < x.rank) x.global += static_cast<u64>(at) * launch.argument(words + x.rank - i);
    }
    x.tile = w.address(r, 0);
    x.bar = w.address(r, 1);
    const i64 value = w.value(r, 2);
    x.value = static_cast<u32>(value);
    x.into = w.address(r, 3);
    const u32 entry = static_cast<u32>(r.imm(4) + w.or_zero(static_cast<u32>(r.imm(3) - 1) & 0xff));  // of a table, or a row
    const u32 slot = run ? 0 : r.map() + entry;
    if (edit) return tensormap_op(launch, w, r, x, words, slot, value);
    __syncwarp();
    bool known = true;
    if (w.issues()) {
        x.map = placed ? launch.argument(words) + static_cast<u64>(MAP_BYTES) * entry : launch.map(slot);
        x.policy = cache_policy(first >> 16 & 0xff, __uint_as_float(launch.word(tail, 1)));
        known = issue_extra(x);
    }
    return failure(__all_sync(FULL_WARP, known) ? 0 : REPORT_OPCODE);
}
