// What is stored of a product's sums where its epilogue is one of those that are compiled: some steps, each with a number, a vector along rows or
// columns or an array like the result; a function; some steps more. Branches are the same for all threads, and depend on the constant bank alone.
#pragma once
#include "fragment.cuh"

// Two elements that lie side by side, as they are in memory: of 32 bits each, or of 16 in one word. What is behind the end is 0.
OX_DEVICE uint2 pair_at(u64 address, bool words) {
    return words ? ptx::ld_global_v2(address) : make_uint2(ptx::ld_global_u32(address), 0);
}

OX_DEVICE uint2 pair_at(u64 address, u64 stride, bool words, u32 x, u32 count) {
    const u32 low = ptx::ld_global_if(address, words ? 4 : 2, x < count), high = ptx::ld_global_if(address + stride, words ? 4 : 2, x + 1 < count);
    return words ? make_uint2(low, high) : make_uint2(low | high << 16, 0);
}

OX_DEVICE void numbers_of(const uint2 (&pairs)[2], u32 form, f32& a, f32& b, f32& c, f32& d) {
    const u32 x = pairs[0].x, y = pairs[1].x;
    if (form == FORM_BITS32) {
        a = __uint_as_float(x), b = __uint_as_float(pairs[0].y), c = __uint_as_float(y), d = __uint_as_float(pairs[1].y);
    } else if (form == FORM_BF16) {
        a = __uint_as_float(x << 16), b = __uint_as_float(x & 0xffff0000), c = __uint_as_float(y << 16), d = __uint_as_float(y & 0xffff0000);
    } else {
        a = __uint_as_float(widened(x, FORM_F16)), b = __uint_as_float(widened(x >> 16, FORM_F16));
        c = __uint_as_float(widened(y, FORM_F16)), d = __uint_as_float(widened(y >> 16, FORM_F16));
    }
}

// Eights of a piece: its 64 or 32 columns of 64 rows.
template <bool WIDE>
constexpr u32 EIGHTS_OF = WIDE ? 2 : 4;

// Piece `u` of the sums, columns outermost, each with its column's element; that may be -0, which changes nothing. `c` has, of every 16 columns,
// those of 0, 1, 8 and 9 and the lane's distance from there.
template <u32 M, u32 N, bool WIDE, u32 FIRST, u32 COUNT>
OX_DEVICE void sums_of(const f32 (&c)[4 * EIGHTS_OF<WIDE>], const f32 (&sums)[SUMS], u32 u, f32 (&v)[EIGHT * EIGHTS_OF<WIDE>]) {
    if constexpr (COUNT == 1) {
        constexpr u32 HALVES = M / 64, AT = FIRST % HALVES * N / 2 + FIRST / HALVES * EIGHT * EIGHTS_OF<WIDE>;
#pragma unroll
        for (u32 k = 0; k < EIGHT * EIGHTS_OF<WIDE>; ++k) v[k] = __fadd_rn(sums[AT + k], c[k / EIGHT * 4 + (k & 1) + (k >> 1 & 2)]);
    } else if (u < FIRST + COUNT / 2) {
        sums_of<M, N, WIDE, FIRST, COUNT / 2>(c, sums, u, v);
    } else {
        sums_of<M, N, WIDE, FIRST + COUNT / 2, COUNT - COUNT / 2>(c, sums, u, v);
    }
}

#define OX_EIGHT for (u32 k = 0; k < EIGHT; ++k)

// To the nearest number of a type of 16 bits.
OX_DEVICE void round_to(f32 (&v)[EIGHT], u32 form) {
    if (form == FORM_BF16) {
#pragma unroll
        for (u32 k = 0; k < EIGHT; k += 2) {
            const u32 pair = narrowed<FORM_BF16>(__float_as_uint(v[k]), __float_as_uint(v[k + 1]));
            v[k] = __uint_as_float(pair << 16), v[k + 1] = __uint_as_float(pair & 0xffff0000);
        }
    } else {
#pragma unroll
        for (u32 k = 0; k < EIGHT; k += 2) {
            const u32 pair = narrowed<FORM_F16>(__float_as_uint(v[k]), __float_as_uint(v[k + 1]));
            v[k] = __uint_as_float(widened(pair, FORM_F16)), v[k + 1] = __uint_as_float(widened(pair >> 16, FORM_F16));
        }
    }
}

// Eight of them into a staging tile; `form` decides between those of 16 bits.
template <bool WIDE>
OX_DEVICE void staged(const f32* v, u32 form, u32 tile, u32 part) {
    Eight bits;
#pragma unroll
    OX_EIGHT bits[k] = __float_as_uint(v[k]);
    if constexpr (WIDE) stage<FORM_BITS32>(bits, tile, part);
    else if (form == FORM_BF16) stage<FORM_BF16>(bits, tile, part);
    else stage<FORM_F16>(bits, tile, part);
}

// L has the launch's argument words. `its` lies in the constant bank, its steps behind it. `corner`: where the sums' tile lies in the result,
// innermost first.
template <class L>
struct Finish {
    const L& launch;
    const FinishHead& its;
    const u32 rank;
    const u32 (&corner)[3];
    // Where a sum gets an element of its column first, and all that a tile takes of them lie side by side: where this lane's first one lies,
    // and those of the next piece. Else 0, and it is a step as all others are.
    u64 base;
    uint2 ahead[2 * EIGHTS_OF<false>];

    __device__ __forceinline__ Finish(const L& launch_, const FinishHead& its_, u32 rank_, const u32 (&corner_)[3])
        : launch(launch_), its(its_), rank(rank_), corner(corner_) {}

    __device__ __forceinline__ const FinishStep& step(u32 i) const { return reinterpret_cast<const FinishStep*>(&its + 1)[i]; }

    __device__ __forceinline__ u32 extent(u32 words, u32 outer) const {
        const u64 pair = launch.argument(words + 6 + outer / 2);
        return static_cast<u32>(outer & 1 ? pair >> 32 : pair);
    }

    __device__ __forceinline__ u32 left(u32 column) const { return corner[0] + column + 2 * (threadIdx.x & 3); }
    __device__ __forceinline__ u32 top(u32 row) const { return corner[1] + row + (threadIdx.x >> 1 & 48) + (threadIdx.x >> 2 & 7); }
    static __device__ __forceinline__ u64 times(u32 x, u64 stride) { return static_cast<u64>(static_cast<i64>(static_cast<i32>(x))) * stride; }

    // True where two elements can be read at once: `extent` of them from `first` on, and from `at` on as many side by side.
    static __device__ __forceinline__ bool even(u64 at, u64 stride, u32 bytes, u32 first, u32 extent, u32 count) {
        return stride == bytes && (at & 2 * bytes - 1) == 0 && first < count && extent <= count - first;
    }

    // Elements of a vector for columns `column` on: two, and two 8 columns further.
    __device__ __forceinline__ void columns(const FinishStep& s, u32 column, uint2 (&of)[2]) const {
        const bool words = s.form == FORM_BITS32;
        const u32 x = left(column), count = extent(s.source, 0), bytes = words ? 4 : 2;
        const u64 stride = launch.argument(s.source + 1), at = launch.argument(s.source) + times(x, stride);
        if (even(at, stride, bytes, corner[0] + column, 16, count)) {
            of[0] = pair_at(at, words), of[1] = pair_at(at + 8 * bytes, words);
        } else {
            of[0] = pair_at(at, stride, words, x, count), of[1] = pair_at(at + 8 * stride, stride, words, x + 8, count);
        }
    }

    // Asks for the elements of a piece's columns, long before they are needed.
    template <bool WIDE>
    __device__ __forceinline__ void ask(u32 column) {
        if (base == 0) return;
        if (step(0).form == FORM_BITS32) {
            const u64 at = base + 4 * column;
#pragma unroll
            for (u32 i = 0; i < 2 * EIGHTS_OF<WIDE>; ++i) ahead[i] = ptx::ld_global_v2(at + 32 * i);
        } else {
            const u64 at = base + 2 * column;
#pragma unroll
            for (u32 i = 0; i < 2 * EIGHTS_OF<WIDE>; ++i) ahead[i].x = ptx::ld_global_u32(at + 16 * i);
        }
    }

    // Before the first piece of sums that are `width` wide.
    template <bool WIDE>
    __device__ __forceinline__ void begin(u32 width) {
        base = 0;
        if (!its.biased) return;
        const FinishStep& s = step(0);
        const u32 bytes = s.form == FORM_BITS32 ? 4 : 2;
        const u64 at = launch.argument(s.source) + times(left(0), bytes);
        if (even(at, launch.argument(s.source + 1), bytes, corner[0], width, extent(s.source, 0))) base = at;
        ask<WIDE>(0);
    }

    // What was asked for.
    template <bool WIDE>
    __device__ __forceinline__ void asked(f32 (&c)[4 * EIGHTS_OF<WIDE>]) const {
        if (base == 0) {
#pragma unroll
            for (u32 i = 0; i < 4 * EIGHTS_OF<WIDE>; ++i) c[i] = -0.0f;
            return;
        }
        const u32 form = step(0).form;
        if (form == FORM_BITS32) {
#pragma unroll
            for (u32 i = 0; i < 2 * EIGHTS_OF<WIDE>; ++i) c[2 * i] = __uint_as_float(ahead[i].x), c[2 * i + 1] = __uint_as_float(ahead[i].y);
        } else if (form == FORM_BF16) {
#pragma unroll
            for (u32 i = 0; i < 2 * EIGHTS_OF<WIDE>; ++i) {
                c[2 * i] = __uint_as_float(ahead[i].x << 16), c[2 * i + 1] = __uint_as_float(ahead[i].x & 0xffff0000);
            }
        } else {
#pragma unroll
            for (u32 i = 0; i < 2 * EIGHTS_OF<WIDE>; ++i) {
                c[2 * i] = __uint_as_float(widened(ahead[i].x, FORM_F16)), c[2 * i + 1] = __uint_as_float(widened(ahead[i].x >> 16, FORM_F16));
            }
        }
    }

    // A step's operand for each of the eight.
    __device__ __forceinline__ void operand(const FinishStep& s, u32 row, u32 column, f32 (&x)[EIGHT]) const {
        if (s.of == FINISH_OF_NUMBER) {
            const u32 bits = s.flags & FINISH_ARGUMENT ? static_cast<u32>(launch.argument(s.source)) : s.source;
#pragma unroll
            OX_EIGHT x[k] = __uint_as_float(bits);
            return;
        }
        if (s.of == FINISH_OF_COLUMN) {
            uint2 of[2];
            columns(s, column, of);
            numbers_of(of, s.form, x[0], x[1], x[4], x[5]);
            x[2] = x[0], x[3] = x[1], x[6] = x[4], x[7] = x[5];
        } else if (s.of == FINISH_OF_ROW) {
            const u32 y = top(row), count = extent(s.source, 0), bytes = s.form == FORM_BITS32 ? 4 : 2;
            const u64 stride = launch.argument(s.source + 1), at = launch.argument(s.source) + times(y, stride);
            const u32 upper = ptx::ld_global_if(at, bytes, y < count), lower = ptx::ld_global_if(at + 8 * stride, bytes, y + 8 < count);
            x[0] = __uint_as_float(widened(upper, s.form)), x[2] = __uint_as_float(widened(lower, s.form));
            x[1] = x[4] = x[5] = x[0], x[3] = x[6] = x[7] = x[2];
        } else {
            whole(s, row, column, x);
        }
        if (s.flags & FINISH_SCALED) {
            const u32 bits = s.flags & FINISH_SCALE_ARGUMENT ? static_cast<u32>(launch.argument(s.scale)) : s.scale;
#pragma unroll
            OX_EIGHT x[k] = __fmul_rn(x[k], __uint_as_float(bits));
        }
    }

    // Of an array like the result.
    __device__ __forceinline__ void whole(const FinishStep& s, u32 row, u32 column, f32 (&x)[EIGHT]) const {
        const bool words = s.form == FORM_BITS32;
        const u32 y = top(row), z = left(column), at_word = s.source, bytes = words ? 4 : 2, count = extent(at_word, rank - 1);
        u32 rows = extent(at_word, rank - 2);
        const u64 down = launch.argument(at_word + rank - 1), right = launch.argument(at_word + rank);
        u64 at = launch.argument(at_word) + times(y, down) + times(z, right);
        if (rank == 3) {
            if (corner[2] >= extent(at_word, 0)) rows = 0;
            at += times(corner[2], launch.argument(at_word + 1));
        }
        const u64 below = at + 8 * down, beside = 8 * right;
        uint2 upper[2], lower[2];
        if (even(at | down, right, bytes, corner[0] + column, 16, count) && y < rows && y + 8 < rows) {
            upper[0] = pair_at(at, words), upper[1] = pair_at(at + beside, words);
            lower[0] = pair_at(below, words), lower[1] = pair_at(below + beside, words);
        } else {
            const u32 first = y < rows ? count : 0, second = y + 8 < rows ? count : 0;
            upper[0] = pair_at(at, right, words, z, first), upper[1] = pair_at(at + beside, right, words, z + 8, first);
            lower[0] = pair_at(below, right, words, z, second), lower[1] = pair_at(below + beside, right, words, z + 8, second);
        }
        numbers_of(upper, s.form, x[0], x[1], x[4], x[5]);
        numbers_of(lower, s.form, x[2], x[3], x[6], x[7]);
    }

    __device__ __forceinline__ void apply(const FinishStep& s, u32 row, u32 column, f32 (&v)[EIGHT]) const {
        f32 x[EIGHT];
        operand(s, row, column, x);
        if (s.op == FINISH_OP_ADD) {
#pragma unroll
            OX_EIGHT v[k] = __fadd_rn(v[k], x[k]);
        } else if (s.op == FINISH_OP_MUL) {
#pragma unroll
            OX_EIGHT v[k] = __fmul_rn(v[k], x[k]);
        } else if (s.op == FINISH_OP_MAX) {
#pragma unroll
            OX_EIGHT v[k] = fn::maximum(v[k], x[k]);
        } else if (s.op == FINISH_OP_MIN) {
#pragma unroll
            OX_EIGHT v[k] = fn::minimum(v[k], x[k]);
        } else if (s.op == FINISH_OP_SUB) {
#pragma unroll
            OX_EIGHT v[k] = __fsub_rn(v[k], x[k]);
        } else {
#pragma unroll
            OX_EIGHT v[k] = __fsub_rn(x[k], v[k]);
        }
        if (s.round) round_to(v, s.round);
    }

    __device__ __forceinline__ void function(f32 (&v)[EIGHT]) const {
        if (its.fn == FINISH_GELU) {
#pragma unroll
            OX_EIGHT v[k] = fn::gelu(v[k]);
        } else if (its.fn == FINISH_RELU) {
#pragma unroll
            OX_EIGHT v[k] = fn::maximum(v[k], 0.0f);
        } else if (its.fn == FINISH_SILU) {
#pragma unroll
            OX_EIGHT v[k] = __fmul_rn(v[k], fn::sigmoid(v[k]));
        } else if (its.fn == FINISH_SIGMOID) {
#pragma unroll
            OX_EIGHT v[k] = fn::sigmoid(v[k]);
        } else if (its.fn == FINISH_TANH) {
#pragma unroll
            OX_EIGHT v[k] = tanhf(v[k]);
        } else if (its.fn == FINISH_EXP) {
#pragma unroll
            OX_EIGHT v[k] = expf(v[k]);
        }
        if (its.fn_round) round_to(v, its.fn_round);
    }

    // Steps and the function on what the first eight of `v` are.
    __device__ __forceinline__ void run(u32 s, u32 row, u32 column, f32 (&v)[EIGHT]) const {
        if (its.round) round_to(v, its.round);
#pragma unroll 1
        for (;; ++s) {
            if (s == its.before) function(v);
            if (s == its.count) break;
            apply(step(s), row, column, v);
        }
    }

    // Computes piece `u`, and stages it. The one after it is asked for while this one is computed.
    template <u32 M, u32 N, bool WIDE>
    __device__ __forceinline__ void piece(const f32 (&sums)[SUMS], u32 u, u32 form, u32 tile) {
        constexpr u32 EIGHTS = EIGHTS_OF<WIDE>, HALVES = M / 64, COLUMNS = 16 * EIGHTS, PIECES = HALVES * N / COLUMNS;
        f32 v[EIGHT * EIGHTS];
        {
            f32 c[4 * EIGHTS];
            asked<WIDE>(c);
            sums_of<M, N, WIDE, 0, PIECES>(c, sums, u, v);
        }
        if (u + 1 < PIECES) ask<WIDE>((u + 1) / HALVES * COLUMNS);
        const u32 first = base != 0;
        if (its.straight && first == its.count) {  // no step is left: what is most common has no loop
            if (its.fn == FINISH_GELU) {
#pragma unroll
                for (u32 k = 0; k < EIGHT * EIGHTS; ++k) v[k] = fn::gelu(v[k]);
            } else if (its.fn == FINISH_RELU) {
#pragma unroll
                for (u32 k = 0; k < EIGHT * EIGHTS; ++k) v[k] = fn::maximum(v[k], 0.0f);
            }
#pragma unroll
            for (u32 i = 0; i < EIGHTS; ++i) staged<WIDE>(&v[EIGHT * i], form, tile, i);
            return;
        }
#pragma unroll 1
        for (u32 i = 0; i < EIGHTS; ++i) {
            f32 now[EIGHT];
#pragma unroll
            OX_EIGHT now[k] = v[k];
            run(first, u % HALVES * 64, u / HALVES * COLUMNS + 16 * i, now);
            staged<WIDE>(now, form, tile, i);
#pragma unroll
            for (u32 k = 0; k < EIGHT * (EIGHTS - 1); ++k) v[k] = v[k + EIGHT];
        }
    }
};
#undef OX_EIGHT
