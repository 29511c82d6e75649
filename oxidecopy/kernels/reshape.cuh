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
    u32 rows, columns, pitch, mask, to_mask;
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

// 16 bytes of a row into as many partials as they hold elements.
template <bool MAX, u32 FORM, u32 N>
OX_DEVICE void fold_in(f32 (&p)[N], const uint4& q) {
    const u32 words[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
        if constexpr (FORM == FORM_BITS32) {
            p[i] = folded<MAX>(p[i], __uint_as_float(words[i]));
        } else {
            u32 a, b;
            unpack(words[i], FORM, a, b);
            p[2 * i] = folded<MAX>(p[2 * i], __uint_as_float(a));
            p[2 * i + 1] = folded<MAX>(p[2 * i + 1], __uint_as_float(b));
        }
    }
}

// 16 bytes each, `step` bytes apart, while they begin before `end`: several are read before the first of them is put in. Gives the first that
// was left.
template <bool MAX, u32 FORM, u32 N>
OX_DEVICE u32 fold_all(f32 (&p)[N], const Fold& f, u32 at, u32 end, u32 step) {
    constexpr u32 AHEAD = 4;
    uint4 q[AHEAD];
#pragma unroll 1
    for (; at + (AHEAD - 1) * step < end; at += AHEAD * step) {
#pragma unroll
        for (u32 i = 0; i < AHEAD; ++i) q[i] = ptx::ld_shared_v4(swizzled(at + i * step, f.mask));
#pragma unroll
        for (u32 i = 0; i < AHEAD; ++i) fold_in<MAX, FORM>(p, q[i]);
    }
#pragma unroll 1
    for (; at < end; at += step) fold_in<MAX, FORM>(p, ptx::ld_shared_v4(swizzled(at, f.mask)));
    return at;
}

// The first `count` elements from an address on, each by itself.
template <bool MAX, u32 FORM, u32 N>
OX_DEVICE void fold_some(f32 (&p)[N], const Fold& f, u32 at, u32 count) {
#pragma unroll
    for (u32 i = 0; i < N; ++i) {
        if (i >= count) continue;
        const u32 address = swizzled(at + i * (16 / N), f.mask);
        u32 bits, none;
        if constexpr (FORM == FORM_BITS32) bits = ptx::ld_shared_u32(address);
        else unpack(ptx::ld_shared_u16(address), FORM, bits, none);
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

template <bool MAX, u32 FORM>
OX_DEVICE void fold_rows(const Fold& f, const Part& part, bool onto) {
    constexpr u32 N = FORM == FORM_BITS32 ? 4 : 8, SIZE = 16 / N;
    const u32 lane = lane_number() % 8;
#pragma unroll 1
    for (u32 group = part.first; 4 * group < f.rows; group += part.total) {
        const u32 row = 4 * group + lane_number() / 8;
        f32 p[N];
#pragma unroll
        for (u32 i = 0; i < N; ++i) p[i] = neutral<MAX>();
        if (row < f.rows) {
            const u32 begin = f.from + row * f.pitch, bytes = f.columns * SIZE;
            u32 at = begin + 16 * lane;
            if (f.whole) at = fold_all<MAX, FORM>(p, f, at, begin + (bytes & ~15u), 128);
#pragma unroll 1
            for (; at < begin + bytes; at += 128) fold_some<MAX, FORM>(p, f, at, (begin + bytes - at) / SIZE);
        }
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

template <bool MAX, u32 FORM>
OX_DEVICE void fold_columns(const Fold& f, const Part& part, bool onto) {
    constexpr u32 N = FORM == FORM_BITS32 ? 4 : 8, SIZE = 16 / N;
#pragma unroll 1
    for (u32 group = part.first; 8 * N * group < f.columns; group += part.total) {
        const u32 column = 8 * N * group + lane_number() % 8 * N, count = max(f.columns, column) - column;
        f32 p[N];
#pragma unroll
        for (u32 i = 0; i < N; ++i) p[i] = neutral<MAX>();
        const u32 begin = f.from + column * SIZE, end = begin + f.rows * f.pitch;
        u32 at = begin + lane_number() / 8 * f.pitch;
        if (f.whole && count >= N) at = fold_all<MAX, FORM>(p, f, at, end, 4 * f.pitch);
#pragma unroll 1
        for (; at < end && count > 0; at += 4 * f.pitch) fold_some<MAX, FORM>(p, f, at, count);
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

template <u32 FORM>
OX_DEVICE void fold_as(const Fold& f, const Part& part, u32 how) {
    const bool onto = how & 4;
    if (how & 2) how & 1 ? fold_rows<true, FORM>(f, part, onto) : fold_rows<false, FORM>(f, part, onto);
    else how & 1 ? fold_columns<true, FORM>(f, part, onto) : fold_columns<false, FORM>(f, part, onto);
}

// `size`: a `FoldRecord`.
OX_DEVICE void fold(u32 from, u32 to, Part part, uint4 size, u32 how) {
    const Fold f{size.x, size.y, size.z, size.w & 0xff, size.w >> 8 & 0xff, size.w >> 24 != 0, from, to};
    switch (size.w >> 16 & 0xff) {
        case FORM_BITS32: fold_as<FORM_BITS32>(f, part, how); break;
        case FORM_F16: fold_as<FORM_F16>(f, part, how); break;
        default: fold_as<FORM_BF16>(f, part, how); break;
    }
    __syncwarp();
}

template <class L, class W, class R>
OX_DEVICE void reduce_tile(const L& launch, const W& w, const R& r, u32 pc, u32 from, u32 to) {
    fold(from, to, part_of(launch, w, r, 32), launch.quad(pc + 1, 0), r.aux());
}
