// What a thread has of a contraction's sums, eight at a time: how they are staged, and the machine that computes of them what is stored.
#pragma once
#include "functions.cuh"
#include "ptx_mma.cuh"
#include "ptx_tensor.cuh"
#include "warp.cuh"

constexpr u32 GROUP = 128;  // threads of a warpgroup
constexpr u32 SUMS = 128;   // of a thread at most
constexpr u32 EIGHT = 8;

// Bits of 16 columns: thread 32 * w + l has, of every 8 columns, 2 * (l % 4) and the next one, first in row 16 * w + l / 4, then 8 rows below.
using Eight = u32[EIGHT];

#define OX_EIGHT for (u32 i = 0; i < EIGHT; ++i)

// A copy that stays where it is written: else the compiler makes those of all cases of a switch before it jumps.
OX_DEVICE u32 moved(u32 from) {
    u32 to;
    asm volatile("mov.b32 %0, %1;" : "=r"(to) : "r"(from));
    return to;
}

template <u32 FORM>
OX_DEVICE u32 narrowed(u32 low, u32 high) {
    u32 pair;
    if constexpr (FORM == FORM_BF16) asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(__uint_as_float(high)), "f"(__uint_as_float(low)));
    else asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(__uint_as_float(high)), "f"(__uint_as_float(low)));
    return pair;
}

// Elements in memory as f32.
OX_DEVICE u32 widened(u32 bits, u32 form) {
    if (form == FORM_BF16) return bits << 16;
    f32 x = __uint_as_float(bits);
    if (form == FORM_F16) asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(static_cast<u16>(bits)));
    return __float_as_uint(x);
}

// Writes columns 16 * `part` on of a staging tile: rows of 128 bytes, swizzled.
template <u32 FORM>
OX_DEVICE void stage(const Eight& v, u32 tile, u32 part) {
    const u32 lane = threadIdx.x & 31, top = threadIdx.x >> 1 & 48;
    if constexpr (FORM == FORM_BITS32) {
        const u32 row = top + lane / 4, at = tile + row * 128 + (lane & 1) * 8;
#pragma unroll
        for (u32 g = 0; g < 2; ++g) {
            const u32 unit = (4 * part + 2 * g + (lane >> 1 & 1) ^ row & 7) << 4;
            ptx::st_shared_v2(at + unit, make_uint2(v[4 * g], v[4 * g + 1]));
            ptx::st_shared_v2(at + 8 * 128 + unit, make_uint2(v[4 * g + 2], v[4 * g + 3]));
        }
    } else {
        const u32 row = top + (lane & 15);
        ptx::stmatrix_x4(tile + row * 128 + ((2 * part + (lane >> 4) ^ row & 7) << 4), narrowed<FORM>(v[0], v[1]), narrowed<FORM>(v[2], v[3]),
                         narrowed<FORM>(v[4], v[5]), narrowed<FORM>(v[6], v[7]));
    }
}

// Sums 8 * i on, of COUNT times 8: a few jumps instead of moves under as many conditions.
template <u32 FIRST, u32 COUNT>
OX_DEVICE void eight_of(const f32 (&sums)[SUMS], u32 i, Eight& v) {
    if constexpr (COUNT == 1) {
#pragma unroll
        for (u32 k = 0; k < 8; ++k) v[k] = moved(__float_as_uint(sums[8 * FIRST + k]));
    } else if (i < FIRST + COUNT / 2) {
        eight_of<FIRST, COUNT / 2>(sums, i, v);
    } else {
        eight_of<FIRST + COUNT / 2, COUNT / 2>(sums, i, v);
    }
}

// Coordinate `d` of what is stored first, the innermost one 0; 0 behind the rank.
template <class R>
OX_DEVICE i32 coordinate(const Warp& w, const R& r, u32 d) {
    return d < r.aux() ? static_cast<i32>(w.or_zero(r.reg(2 + r.aux() - d))) : 0;
}

// Runs the instructions of COMPUTE that floats need on eight sums and elements of arrays beside them. What is put by is in registers once; what
// few expressions put by beside that is in local memory.
template <u32 USED, class L, class R, class C>
struct Fragment {
    const L& launch;
    const Warp& w;
    const R& r;
    const C& its;
    u32 row, column;  // where the eight's 64 rows of 16 columns lie, from the first sum
    volatile u32* more;
    Eight a, b, t0;

    // The elements that belong to the sums, of a vector along its rows or columns, or of an array like the result.
    __device__ __forceinline__ void load(Eight& v, u32 index, u32 form, u32 along, const f32 (&sums)[SUMS], u32 eight) const {
        if (index == 0) {
            eight_of<0, USED / EIGHT>(sums, eight, v);
            return;
        }
        const u32 words = its.source(index - 1), rank = r.aux(), lane = threadIdx.x & 31;
        const u32 top = coordinate(w, r, 1) + row + (threadIdx.x >> 1 & 48) + lane / 4, left = coordinate(w, r, 0) + column + 2 * (lane & 3);
        u64 base = launch.argument(words), down = 0, right = 0;
        u32 rows = 1, columns = 1;
        if (along == COMPUTE_LOAD_A) {
#pragma unroll 1
            for (u32 d = 2; d < rank; ++d) {
                const u32 x = coordinate(w, r, d);
                if (x >= extent(words, rank - 1 - d)) base = 0;
                else if (base) base += static_cast<u64>(x) * launch.argument(words + rank - d);
            }
            down = launch.argument(words + rank - 1), right = launch.argument(words + rank);
            rows = extent(words, rank - 2), columns = extent(words, rank - 1);
        } else if (along == COMPUTE_ROW_A) {
            down = launch.argument(words + 1), rows = extent(words, 0);
        } else {
            right = launch.argument(words + 1), columns = extent(words, 0);
        }
        if (base == 0) rows = 0;
        base += static_cast<u64>(static_cast<i64>(static_cast<i32>(top))) * down + static_cast<u64>(static_cast<i64>(static_cast<i32>(left))) * right;
#pragma unroll
        OX_EIGHT {
            const u32 y = down == 0 ? 0 : top + (i & 2 ? 8 : 0), x = right == 0 ? 0 : left + (i & 4 ? 8 : 0) + (i & 1);
            const u64 at = base + (i & 2 ? 8 * down : 0) + (i & 4 ? 8 * right : 0) + (i & 1 ? right : 0);
            v[i] = ptx::ld_global_if(at, form == FORM_BITS32 ? 4 : 2, y < rows && x < columns);
        }
#pragma unroll
        OX_EIGHT v[i] = widened(v[i], form);
    }

    __device__ __forceinline__ u32 extent(u32 words, u32 outer) const {
        const u64 pair = launch.argument(words + 6 + outer / 2);
        return static_cast<u32>(outer & 1 ? pair >> 32 : pair);
    }

    __device__ __forceinline__ void round(u32 form) {
#pragma unroll
        for (u32 i = 0; i < EIGHT; i += 2) {
            if (form == FORM_BF16) {
                const u32 pair = narrowed<FORM_BF16>(a[i], a[i + 1]);
                a[i] = pair << 16, a[i + 1] = pair & 0xffff0000;
            } else {
                const u32 pair = narrowed<FORM_F16>(a[i], a[i + 1]);
                a[i] = widened(pair, FORM_F16), a[i + 1] = widened(pair >> 16, FORM_F16);
            }
        }
    }

    __device__ __forceinline__ void put(u32 index) {
        if (index == 0) {
#pragma unroll
            OX_EIGHT t0[i] = moved(a[i]);
        } else {
#pragma unroll
            OX_EIGHT more[EIGHT * (index - 1) + i] = a[i];
        }
    }

    __device__ __forceinline__ u32 kept(u32 index, u32 i) const { return index == 0 ? t0[i] : more[EIGHT * (index - 1) + i]; }

#define OX_F(X) __uint_as_float(X)
#define OX_B(X) __float_as_uint(X)
#define OX_TWO(FN, EXPRESSION)               \
    case COMPUTE_##FN:                       \
        _Pragma("unroll") OX_EIGHT {          \
            const u32 x = a[i], y = b[i];    \
            a[i] = moved(EXPRESSION);       \
        }                                    \
        break;
#define OX_CONSTANT(FN, EXPRESSION)          \
    case COMPUTE_##FN##_C:                   \
        _Pragma("unroll") OX_EIGHT {          \
            const u32 x = a[i], y = word;    \
            a[i] = moved(EXPRESSION);       \
        }                                    \
        break;
#define OX_SECOND(FN, EXPRESSION)            \
    case COMPUTE_##FN##_CB:                  \
        _Pragma("unroll") OX_EIGHT {         \
            const u32 x = b[i], y = word;    \
            b[i] = moved(EXPRESSION);        \
        }                                    \
        break;
#define OX_BOTH(FN, EXPRESSION) OX_TWO(FN, EXPRESSION) OX_CONSTANT(FN, EXPRESSION) OX_SECOND(FN, EXPRESSION)
#define OX_ONE(FN, EXPRESSION)               \
    case COMPUTE_##FN:                       \
        _Pragma("unroll") OX_EIGHT {          \
            const u32 x = a[i];              \
            a[i] = moved(EXPRESSION);       \
        }                                    \
        break;
#define OX_TRUTH(X) ((X) ? 0xffffffffu : 0)

    __device__ __forceinline__ void step(u32 fn, u32 form, u32 index, u32 word, const f32 (&sums)[SUMS], u32 eight) {
        switch (fn) {
            case COMPUTE_LOAD_A: load(a, index, form, COMPUTE_LOAD_A, sums, eight); break;
            case COMPUTE_LOAD_B: load(b, index, form, COMPUTE_LOAD_A, sums, eight); break;
            case COMPUTE_ROW_A: load(a, index, form, COMPUTE_ROW_A, sums, eight); break;
            case COMPUTE_ROW_B: load(b, index, form, COMPUTE_ROW_A, sums, eight); break;
            case COMPUTE_COLUMN_A: load(a, index, form, COMPUTE_COLUMN_A, sums, eight); break;
            case COMPUTE_COLUMN_B: load(b, index, form, COMPUTE_COLUMN_A, sums, eight); break;
            case COMPUTE_CONST_A:
#pragma unroll
                OX_EIGHT a[i] = moved(word);
                break;
            case COMPUTE_CONST_B:
#pragma unroll
                OX_EIGHT b[i] = moved(word);
                break;
            case COMPUTE_SCALAR_B: {
                const u32 number = widened(static_cast<u32>(launch.argument(word)), form);
#pragma unroll
                OX_EIGHT b[i] = moved(number);
                break;
            }
            case COMPUTE_PUT: put(index); break;
            case COMPUTE_GET:
#pragma unroll
                OX_EIGHT b[i] = moved(kept(index, i));
                break;
            case COMPUTE_TAKE:
#pragma unroll
                OX_EIGHT a[i] = moved(kept(index, i));
                break;
            case COMPUTE_SELECT:
#pragma unroll
                OX_EIGHT a[i] = moved(b[i] ^ ((a[i] ^ b[i]) & kept(index, i)));
                break;
            case COMPUTE_RSELECT:
#pragma unroll
                OX_EIGHT a[i] = moved(a[i] ^ ((a[i] ^ b[i]) & kept(index, i)));
                break;
            OX_BOTH(F_ADD, OX_B(__fadd_rn(OX_F(x), OX_F(y))))
            OX_BOTH(F_SUB, OX_B(__fsub_rn(OX_F(x), OX_F(y))))
            OX_BOTH(F_RSUB, OX_B(__fsub_rn(OX_F(y), OX_F(x))))
            OX_BOTH(F_MUL, OX_B(__fmul_rn(OX_F(x), OX_F(y))))
            OX_BOTH(F_MIN, OX_B(fn::minimum(OX_F(x), OX_F(y))))
            OX_BOTH(F_MAX, OX_B(fn::maximum(OX_F(x), OX_F(y))))
            OX_TWO(F_DIV, OX_B(__fdiv_rn(OX_F(x), OX_F(y))))
            OX_TWO(F_RDIV, OX_B(__fdiv_rn(OX_F(y), OX_F(x))))
            OX_TWO(F_LT, OX_TRUTH(OX_F(x) < OX_F(y)))
            OX_TWO(F_LE, OX_TRUTH(OX_F(x) <= OX_F(y)))
            OX_TWO(F_GT, OX_TRUTH(OX_F(x) > OX_F(y)))
            OX_TWO(F_GE, OX_TRUTH(OX_F(x) >= OX_F(y)))
            OX_TWO(F_EQ, OX_TRUTH(OX_F(x) == OX_F(y)))
            OX_TWO(F_NE, OX_TRUTH(OX_F(x) != OX_F(y)))
            OX_TWO(I_AND, x & y)
            OX_TWO(I_OR, x | y)
            OX_TWO(I_XOR, x ^ y)
            OX_ONE(I_NOT, ~x)
            OX_CONSTANT(F_ABS, OX_B(__fadd_rn(fabsf(OX_F(x)), OX_F(y))))
            OX_ONE(F_SQRT, OX_B(__fsqrt_rn(OX_F(x))))
            OX_ONE(F_RSQRT, OX_B(rsqrtf(OX_F(x))))
            OX_ONE(F_EXP, OX_B(expf(OX_F(x))))
            OX_ONE(F_LOG, OX_B(logf(OX_F(x))))
            OX_ONE(F_TANH, OX_B(tanhf(OX_F(x))))
            OX_ONE(F_SIGMOID, OX_B(fn::sigmoid(OX_F(x))))
            OX_ONE(F_GELU, OX_B(fn::gelu(OX_F(x))))
            case COMPUTE_ROUND: round(form); break;
            default: asm volatile("// no other"); break;
        }
    }
#undef OX_F
#undef OX_B
#undef OX_TWO
#undef OX_CONSTANT
#undef OX_SECOND
#undef OX_BOTH
#undef OX_ONE
#undef OX_TRUTH

    // Leaves in A what is stored, of the sums 8 * `eight` on. The code of this family lies in memory.
    __device__ __forceinline__ void run(u32 at_record, const f32 (&sums)[SUMS], u32 eight) {
        u64 at = launch.header().code + RECORD_BYTES * at_record;
        uint2 now = __ldg(reinterpret_cast<const uint2*>(at));
#pragma unroll 1
        while ((now.x & 0xff) != COMPUTE_STORE) {
            at += sizeof(uint2);
            const uint2 following = __ldg(reinterpret_cast<const uint2*>(at));  // on its way while this one runs
            const u32 form = now.x >> 8 & 0xff, word = form & COMPUTE_ARGUMENT ? static_cast<u32>(launch.argument(now.y)) : now.y;
            step(now.x & 0xff, form, now.x >> 16 & 0xff, word, sums, eight);
            now = make_uint2(moved(following.x), moved(following.y));
        }
    }
};
#undef OX_EIGHT
