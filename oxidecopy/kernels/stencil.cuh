// STENCIL: weighted sums of what lies around each element of a tile of f32. See isa.ops.StencilTile for the order of the sum.
//
// Where no tap reaches further than one row or column (STENCIL_NEAR), a lane has a block of four columns of four rows. It reads what it needs
// once: 16 bytes of each row, its neighbours' columns by shuffles, those beside the warp's from memory. Then every tap is code on registers; taps
// that come row by row, from left to right, are in no need of a jump for each.
//
// Else each tap is read for itself, for all of a lane's rows at once: 16 bytes of each where taps are whole chunks apart (STENCIL_CHUNKS), as those
// of pixels or of columns are, else 4, so that a warp's lanes read 32 words side by side. No swizzle makes either meet in a bank.
#pragma once
#include "reshape.cuh"

constexpr u32 STENCIL_ROWS = 4;

// `size`, `rest`: a `StencilRecord`. Lane t has the t-th of `taps` taps.
struct Stencil {
    uint4 size, rest;
    u32 from, to;  // where the output's first element lies, in both tiles
    uint2 tap;
    u32 taps;

    __device__ __forceinline__ u32 rows() const { return size.x; }
    __device__ __forceinline__ u32 columns() const { return size.y; }
    __device__ __forceinline__ u32 down(u32 unit) const { return rest.z == 0 ? unit : quotient(unit, rest.z, rest.y >> 24); }
    __device__ __forceinline__ f32 weight(u32 t) const { return __uint_as_float(__shfl_sync(FULL_WARP, tap.y, t)); }
};

OX_DEVICE void floats(f32 (&v)[4], const uint4& q) {
    v[0] = __uint_as_float(q.x), v[1] = __uint_as_float(q.y), v[2] = __uint_as_float(q.z), v[3] = __uint_as_float(q.w);
}

OX_DEVICE uint4 words(const f32 (&v)[4]) {
    return make_uint4(__float_as_uint(v[0]), __float_as_uint(v[1]), __float_as_uint(v[2]), __float_as_uint(v[3]));
}

// A sum that began with the first product instead would be the same: adding to -0 changes no number.
template <u32 COLUMNS>
OX_DEVICE void begin_sums(f32 (&sum)[STENCIL_ROWS][COLUMNS]) {
#pragma unroll
    for (u32 i = 0; i < STENCIL_ROWS; ++i) {
#pragma unroll
        for (u32 j = 0; j < COLUMNS; ++j) sum[i][j] = -0.0f;
    }
}

// What is around a lane's block: rows of it, and the four columns with one more on each side.
using Around = f32[STENCIL_ROWS + 2][6];

template <u32 PLACE>
OX_DEVICE void add_place(f32 (&sum)[STENCIL_ROWS][4], const Around& v, f32 weight) {
#pragma unroll
    for (u32 i = 0; i < STENCIL_ROWS; ++i) {
#pragma unroll
        for (u32 j = 0; j < 4; ++j) sum[i][j] = __fadd_rn(sum[i][j], __fmul_rn(v[i + PLACE / 3][j + PLACE % 3], weight));
    }
}

// Taps in any order: `place` of lane t is the t-th one's.
OX_DEVICE void add_in_turn(f32 (&sum)[STENCIL_ROWS][4], const Around& v, const Stencil& s, u32 place) {
#pragma unroll 1
    for (u32 t = 0; t < s.taps; ++t) {
        const f32 weight = s.weight(t);
        switch (__shfl_sync(FULL_WARP, place, t)) {
            case 0: add_place<0>(sum, v, weight); break;
            case 1: add_place<1>(sum, v, weight); break;
            case 2: add_place<2>(sum, v, weight); break;
            case 3: add_place<3>(sum, v, weight); break;
            case 4: add_place<4>(sum, v, weight); break;
            case 5: add_place<5>(sum, v, weight); break;
            case 6: add_place<6>(sum, v, weight); break;
            case 7: add_place<7>(sum, v, weight); break;
            default: add_place<8>(sum, v, weight); break;
        }
    }
}

// The taps of a row that are there (`places`), from left to right. Lane p has the weight at place p.
template <u32 ROW>
OX_DEVICE void add_row(f32 (&sum)[STENCIL_ROWS][4], const Around& v, u32 places, f32 weights) {
    f32 weight[3];
#pragma unroll
    for (u32 j = 0; j < 3; ++j) weight[j] = __shfl_sync(FULL_WARP, weights, 3 * ROW + j);
    if (places >> 3 * ROW & 1) add_place<3 * ROW>(sum, v, weight[0]);
    if (places >> 3 * ROW & 2) add_place<3 * ROW + 1>(sum, v, weight[1]);
    if (places >> 3 * ROW & 4) add_place<3 * ROW + 2>(sum, v, weight[2]);
}

OX_DEVICE void stencil_near(const Stencil& s, Part part) {
    const u32 across = s.columns() / 4, units = across * ((s.rows() + STENCIL_ROWS - 1) / STENCIL_ROWS), pitch = s.size.z;
    // This lane's tap is a place of nine, row by row.
    const u32 offset = s.tap.x + pitch + 4, high = offset >= 2 * pitch ? 2 : offset >= pitch ? 1 : 0, place = 3 * high + (offset - high * pitch) / 4;
    const u32 places = s.rest.w;  // not 0: the taps come in their order
    const f32 weights = s.weight(__popc(places & (1u << lane_number()) - 1));
#pragma unroll 1
    for (u32 first = 32 * part.first; first < units; first += 32 * part.total) {
        const u32 unit = min(first + lane_number(), units - 1), down = s.down(unit), right = unit - down * across, top = STENCIL_ROWS * down;
        const bool begins = right == 0 || lane_number() == 0, ends = right + 1 == across || lane_number() == 31;
        Around v;
#pragma unroll
        for (u32 i = 0; i < STENCIL_ROWS + 2; ++i) {
            const u32 at = s.from + 16 * right + (min(top + i, s.rows() + 1) - 1) * pitch;
            const uint4 q = ptx::ld_shared_v4(at);
            u32 before = __shfl_up_sync(FULL_WARP, q.w, 1), behind = __shfl_down_sync(FULL_WARP, q.x, 1);
            if (begins) before = ptx::ld_shared_u32(at - 4);
            if (ends) behind = ptx::ld_shared_u32(at + 16);
            const u32 words[6] = {before, q.x, q.y, q.z, q.w, behind};
#pragma unroll
            for (u32 j = 0; j < 6; ++j) v[i][j] = __uint_as_float(words[j]);
        }
        f32 sum[STENCIL_ROWS][4];
        begin_sums(sum);
        if (places != 0) {
            add_row<0>(sum, v, places, weights);
            add_row<1>(sum, v, places, weights);
            add_row<2>(sum, v, places, weights);
        } else {
            add_in_turn(sum, v, s, place);
        }
#pragma unroll
        for (u32 i = 0; i < STENCIL_ROWS; ++i) {
            if (first + lane_number() >= units || top + i >= s.rows()) continue;
            ptx::st_shared_v4(s.to + 16 * right + (top + i) * s.size.w, words(sum[i]));
        }
    }
}

// WIDE columns for each lane: 4 or 1.
template <u32 WIDE>
OX_DEVICE void stencil_far(const Stencil& s, Part part) {
    const u32 across = (s.columns() + WIDE - 1) / WIDE, units = across * ((s.rows() + STENCIL_ROWS - 1) / STENCIL_ROWS);
#pragma unroll 1
    for (u32 first = 32 * part.first; first < units; first += 32 * part.total) {
        const u32 unit = min(first + lane_number(), units - 1), down = s.down(unit), column = WIDE * (unit - down * across), top = STENCIL_ROWS * down;
        f32 sum[STENCIL_ROWS][WIDE];
        begin_sums(sum);
#pragma unroll 1
        for (u32 t = 0; t < s.taps; ++t) {
            const f32 weight = s.weight(t);
            const u32 offset = s.from + 4 * column + __shfl_sync(FULL_WARP, s.tap.x, t);
#pragma unroll
            for (u32 i = 0; i < STENCIL_ROWS; ++i) {
                const u32 at = swizzled(offset + min(top + i, s.rows() - 1) * s.size.z, s.rest.y & 0xff);
                f32 v[WIDE];
                if constexpr (WIDE == 4) floats(v, ptx::ld_shared_v4(at));
                else v[0] = __uint_as_float(ptx::ld_shared_u32(at));
#pragma unroll
                for (u32 j = 0; j < WIDE; ++j) sum[i][j] = __fadd_rn(sum[i][j], __fmul_rn(v[j], weight));
            }
        }
#pragma unroll
        for (u32 i = 0; i < STENCIL_ROWS; ++i) {
            const u32 at = swizzled(s.to + (top + i) * s.size.w + 4 * column, s.rest.y >> 8 & 0xff);
            if (first + lane_number() >= units || top + i >= s.rows()) continue;
            if constexpr (WIDE == 4) ptx::st_shared_v4(at, words(sum[i]));
            else ptx::st_shared_u32(at, __float_as_uint(sum[i][0]));
        }
    }
}

template <class L, class W, class R>
OX_DEVICE void stencil(const L& launch, const W& w, const R& r, u32 pc, u32 from, u32 to) {
    const Part part = part_of(launch, w, r, 32);
    Stencil s;
    s.size = launch.quad(pc + 1, 0), s.rest = launch.quad(pc + 1, 1);
    s.tap = launch.instr(pc + 2, min(lane_number(), r.aux() - 1));
    s.from = from + s.rest.x, s.to = to, s.taps = r.aux();
    switch (s.rest.y >> 16 & 0xff) {
        case STENCIL_NEAR: stencil_near(s, part); break;
        case STENCIL_CHUNKS: stencil_far<4>(s, part); break;
        default: stencil_far<1>(s, part); break;
    }
    __syncwarp();
}

template <class R>
OX_DEVICE u32 behind_stencil(u32 pc, const R& r) {
    return pc + 2 + (r.aux() + 3) / 4;
}
