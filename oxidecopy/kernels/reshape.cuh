// TRANSPOSE and REDUCE: tiles from tiles of another shape, at the speed of shared memory.
//
// A transpose moves blocks of 16 bytes a side (8 for elements of one byte) through the registers of a lane. The lanes that access memory
// together, eight or sixteen, have blocks of as many columns and of as many rows, along a diagonal: whatever the swizzle, they meet different
// banks on both sides, where rows are multiples of 128 bytes.
//
// A reduction reads 128 bytes of a row by eight lanes, so each lane has the partials of its own columns. See isa.ops.ReduceTile for the order.
#pragma once
#include "compute.cuh"

OX_DEVICE u32 swizzled(u32 address, u32 mask) {
    return address ^ (address >> 7 & mask) << 4;
}

// The part of an agent in an access that whole warps share: `first` of `total` lanes or warps is this one; none: another agent does all.
struct Part {
    u32 first, total;
};

template <class L, class W, class R>
OX_DEVICE Part part_of(const L& launch, const W& w, const R& r, u32 unit) {
    const Share share(launch, w, r);
    return Part{(share.first - lane_number() % unit) / unit, share.total / unit};
}

// ---- transposes
// Rows of a block at the two tiles.
struct Sides {
    u32 from, to, from_pitch, to_pitch, from_mask, to_mask;

    __device__ __forceinline__ u32 source(u32 row) const { return swizzled(from + row * from_pitch, from_mask); }
    __device__ __forceinline__ u32 target(u32 row) const { return swizzled(to + row * to_pitch, to_mask); }
};

// Byte i of four words each, for i from 0 to 3.
OX_DEVICE uint4 bytes_across(u32 a, u32 b, u32 c, u32 d) {
    const u32 ab = __byte_perm(a, b, 0x5140), ab2 = __byte_perm(a, b, 0x7362), cd = __byte_perm(c, d, 0x5140), cd2 = __byte_perm(c, d, 0x7362);
    return make_uint4(__byte_perm(ab, cd, 0x5410), __byte_perm(ab, cd, 0x7632), __byte_perm(ab2, cd2, 0x5410), __byte_perm(ab2, cd2, 0x7632));
}

OX_DEVICE void flip_bytes(const Sides& at) {
    uint2 v[8];
#pragma unroll
    for (u32 i = 0; i < 8; ++i) v[i] = ptx::ld_shared_v2(at.source(i));
    const uint4 a = bytes_across(v[0].x, v[1].x, v[2].x, v[3].x), b = bytes_across(v[4].x, v[5].x, v[6].x, v[7].x);
    const uint4 c = bytes_across(v[0].y, v[1].y, v[2].y, v[3].y), d = bytes_across(v[4].y, v[5].y, v[6].y, v[7].y);
    ptx::st_shared_v2(at.target(0), make_uint2(a.x, b.x));
    ptx::st_shared_v2(at.target(1), make_uint2(a.y, b.y));
    ptx::st_shared_v2(at.target(2), make_uint2(a.z, b.z));
    ptx::st_shared_v2(at.target(3), make_uint2(a.w, b.w));
    ptx::st_shared_v2(at.target(4), make_uint2(c.x, d.x));
    ptx::st_shared_v2(at.target(5), make_uint2(c.y, d.y));
    ptx::st_shared_v2(at.target(6), make_uint2(c.z, d.z));
    ptx::st_shared_v2(at.target(7), make_uint2(c.w, d.w));
}

OX_DEVICE void flip_halves(const Sides& at) {
    u32 v[8][4];
#pragma unroll
    for (u32 i = 0; i < 8; ++i) {
        const uint4 q = ptx::ld_shared_v4(at.source(i));
        v[i][0] = q.x, v[i][1] = q.y, v[i][2] = q.z, v[i][3] = q.w;
    }
#pragma unroll
    for (u32 i = 0; i < 8; ++i) {
        const u32 pick = i & 1 ? 0x7632 : 0x5410, word = i / 2;
        ptx::st_shared_v4(
            at.target(i), make_uint4(
                              __byte_perm(v[0][word], v[1][word], pick), __byte_perm(v[2][word], v[3][word], pick),
                              __byte_perm(v[4][word], v[5][word], pick), __byte_perm(v[6][word], v[7][word], pick)
                          )
        );
    }
}

OX_DEVICE void flip_words(const Sides& at) {
    const uint4 a = ptx::ld_shared_v4(at.source(0)), b = ptx::ld_shared_v4(at.source(1));
    const uint4 c = ptx::ld_shared_v4(at.source(2)), d = ptx::ld_shared_v4(at.source(3));
    ptx::st_shared_v4(at.target(0), make_uint4(a.x, b.x, c.x, d.x));
    ptx::st_shared_v4(at.target(1), make_uint4(a.y, b.y, c.y, d.y));
    ptx::st_shared_v4(at.target(2), make_uint4(a.z, b.z, c.z, d.z));
    ptx::st_shared_v4(at.target(3), make_uint4(a.w, b.w, c.w, d.w));
}

OX_DEVICE void flip_pairs(const Sides& at) {
    const uint4 a = ptx::ld_shared_v4(at.source(0)), b = ptx::ld_shared_v4(at.source(1));
    ptx::st_shared_v4(at.target(0), make_uint4(a.x, a.y, b.x, b.y));
    ptx::st_shared_v4(at.target(1), make_uint4(a.z, a.w, b.z, b.w));
}

// `size`, `cut`: a `FlipRecord`.
OX_DEVICE void flip(u32 from, u32 to, Part part, uint4 size, uint4 cut, u32 shifts) {
    const u32 tall = shifts >> 16 & 0xff, wide = shifts >> 24;
    const u32 element = size.w >> 16 & 0xff, side = size.w >> 24;  // as powers of two
    Sides at;
    at.from_pitch = size.y, at.to_pitch = size.z, at.from_mask = size.w & 0xff, at.to_mask = size.w >> 8 & 0xff;
#pragma unroll 1
    for (u32 unit = part.first; unit < size.x; unit += part.total) {
        const u32 inside = unit & ((1u << tall + wide) - 1), square = unit >> tall + wide;
        const u32 down = cut.y == 0 ? square : quotient(square, cut.y, shifts & 0xff), right = square - down * cut.x;
        const u32 outer = cut.w == 0 ? down : quotient(down, cut.w, shifts >> 8 & 0xff);
        const bool flat = wide >= tall;
        const u32 low = flat ? wide : tall, high = flat ? tall : wide;
        const u32 a = inside & ((1u << low) - 1), b = (a ^ inside >> low) & ((1u << high) - 1);
        const u32 row = flat ? b : a, column = (right << wide) + (flat ? a : b);
        at.from = from + ((down << tall) + row << side) * at.from_pitch + (column << side + element);
        at.to = to + ((outer * cut.x << wide) + column << side) * at.to_pitch + ((down - outer * cut.z << tall) + row << side + element);
        if (side == 0) put(at.target(0), 1u << element, get(at.source(0), 1u << element));
        else if (element == 0) flip_bytes(at);
        else if (element == 1) flip_halves(at);
        else if (element == 2) flip_words(at);
        else flip_pairs(at);
    }
    __syncwarp();
}

template <class L, class W, class R>
OX_DEVICE void transpose(const L& launch, const W& w, const R& r, u32 pc, u32 from, u32 to) {
    const Part part = part_of(launch, w, r, 1);
    flip(from, to, part, launch.quad(pc + 1, 0), launch.quad(pc + 1, 1), static_cast<u32>(r.imm(4)));
}

// ---- reductions
struct Fold {
    u32 rows, columns, pitch, mask, to_mask, form;
    bool whole;  // each 16 bytes of a row lie at a multiple of 16
    u32 from, to;
};

template <bool MAX>
OX_DEVICE f32 folded(f32 a, f32 b) {
    return MAX ? fn::maximum(a, b) : __fadd_rn(a, b);
}

// Changes no number, not even the sign of a zero.
template <bool MAX>
OX_DEVICE f32 neutral() {
    return MAX ? __uint_as_float(0xff800000) : -0.0f;
}

// The 16 bytes from an element of a row on, into as many partials as they hold elements.
template <bool MAX, u32 N>
OX_DEVICE void fold_in(f32 (&p)[N], const Fold& f, u32 row, u32 column) {
    const uint4 q = ptx::ld_shared_v4(swizzled(f.from + row * f.pitch + column * (16 / N), f.mask));
    const u32 words[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
        if constexpr (N == 4) {
            p[i] = folded<MAX>(p[i], __uint_as_float(words[i]));
        } else {
            u32 a, b;
            unpack(words[i], f.form, a, b);
            p[2 * i] = folded<MAX>(p[2 * i], __uint_as_float(a));
            p[2 * i + 1] = folded<MAX>(p[2 * i + 1], __uint_as_float(b));
        }
    }
}

// As above, of the first `count` elements, each by itself.
template <bool MAX, u32 N>
OX_DEVICE void fold_some(f32 (&p)[N], const Fold& f, u32 row, u32 column, u32 count) {
    const u32 at = f.from + row * f.pitch + column * (16 / N);
#pragma unroll
    for (u32 i = 0; i < N; ++i) {
        if (i >= count) continue;
        const u32 address = swizzled(at + i * (16 / N), f.mask);
        u32 bits, none;
        if constexpr (N == 4) bits = ptx::ld_shared_u32(address);
        else unpack(ptx::ld_shared_u16(address), f.form, bits, none);
        p[i] = folded<MAX>(p[i], __uint_as_float(bits));
    }
}

template <bool MAX>
OX_DEVICE f32 folded_with_lane(f32 a, u32 apart) {
    return folded<MAX>(a, __shfl_xor_sync(FULL_WARP, a, apart));
}

template <bool MAX>
OX_DEVICE void fold_out(const Fold& f, u32 place, f32 value, bool onto) {
    const u32 address = swizzled(f.to + 4 * place, f.to_mask);
    if (onto) value = folded<MAX>(__uint_as_float(ptx::ld_shared_u32(address)), value);
    ptx::st_shared_u32(address, __float_as_uint(value));
}

template <bool MAX, u32 N>
OX_DEVICE void fold_rows(const Fold& f, const Part& part, bool onto) {
    const u32 lane = lane_number() % 8 * N;
#pragma unroll 1
    for (u32 group = part.first; 4 * group < f.rows; group += part.total) {
        const u32 row = 4 * group + lane_number() / 8;
        f32 p[N];
#pragma unroll
        for (u32 i = 0; i < N; ++i) p[i] = neutral<MAX>();
        u32 column = row < f.rows ? lane : f.columns;
        if (f.whole) {
#pragma unroll 4
            for (; column + N <= f.columns; column += 8 * N) fold_in<MAX>(p, f, row, column);
        }
#pragma unroll 1
        for (; column < f.columns; column += 8 * N) fold_some<MAX>(p, f, row, column, f.columns - column);
#pragma unroll
        for (u32 width = N / 2; width > 0; width /= 2) {
#pragma unroll
            for (u32 i = 0; i < width; ++i) p[i] = folded<MAX>(p[2 * i], p[2 * i + 1]);
        }
        f32 all = folded_with_lane<MAX>(p[0], 1);
        all = folded_with_lane<MAX>(all, 2);
        all = folded_with_lane<MAX>(all, 4);
        if (lane == 0 && row < f.rows) fold_out<MAX>(f, row, all, onto);
    }
}

template <bool MAX, u32 N>
OX_DEVICE void fold_columns(const Fold& f, const Part& part, bool onto) {
#pragma unroll 1
    for (u32 group = part.first; 8 * N * group < f.columns; group += part.total) {
        const u32 column = 8 * N * group + lane_number() % 8 * N, count = max(f.columns, column) - column;
        f32 p[N];
#pragma unroll
        for (u32 i = 0; i < N; ++i) p[i] = neutral<MAX>();
        u32 row = lane_number() / 8;
        if (f.whole && count >= N) {
#pragma unroll 4
            for (; row < f.rows; row += 4) fold_in<MAX>(p, f, row, column);
        }
#pragma unroll 1
        for (; row < f.rows && count > 0; row += 4) fold_some<MAX>(p, f, row, column, count);
#pragma unroll
        for (u32 i = 0; i < N; ++i) p[i] = folded_with_lane<MAX>(folded_with_lane<MAX>(p[i], 8), 16);
        const u32 mine = lane_number() / 8;  // each of the four lanes with these columns writes one of four
#pragma unroll
        for (u32 i = 0; i < N; i += 4) {
            const f32 value = mine < 2 ? mine == 0 ? p[i] : p[i + 1] : mine == 2 ? p[i + 2] : p[i + 3];
            if (i + mine < count) fold_out<MAX>(f, column + i + mine, value, onto);
        }
    }
}

// `size`: a `FoldRecord`.
OX_DEVICE void fold(u32 from, u32 to, Part part, uint4 size, u32 how) {
    const Fold f{size.x, size.y, size.z, size.w & 0xff, size.w >> 8 & 0xff, size.w >> 16 & 0xff, size.w >> 24 != 0, from, to};
    const bool onto = how & 4;
    if (f.form == FORM_BITS32) {
        if (how & 2) how & 1 ? fold_rows<true, 4>(f, part, onto) : fold_rows<false, 4>(f, part, onto);
        else how & 1 ? fold_columns<true, 4>(f, part, onto) : fold_columns<false, 4>(f, part, onto);
    } else {
        if (how & 2) how & 1 ? fold_rows<true, 8>(f, part, onto) : fold_rows<false, 8>(f, part, onto);
        else how & 1 ? fold_columns<true, 8>(f, part, onto) : fold_columns<false, 8>(f, part, onto);
    }
    __syncwarp();
}

template <class L, class W, class R>
OX_DEVICE void reduce_tile(const L& launch, const W& w, const R& r, u32 pc, u32 from, u32 to) {
    fold(from, to, part_of(launch, w, r, 32), launch.quad(pc + 1, 0), r.aux());
}
