// STENCIL: weighted sums of what lies around each element of a tile of f32. See isa.ops.StencilTile for the order of the sum.
//
// Where no tap reaches further than one row or column (`near`), a lane has a block of four columns of a few rows. It reads what it needs once:
// 16 bytes of each row, its neighbours' columns by shuffles, those beside the warp's from memory. Then every tap is straight code on registers.
//
// Else a warp takes 32 columns, a lane for each: whatever a tap's place, its lanes read 32 words side by side, which no swizzle makes meet in a
// bank. Each tap is read once for all of a lane's rows.
#pragma once
#include "reshape.cuh"

#ifndef OX_STENCIL_ROWS
#define OX_STENCIL_ROWS 4
#endif
constexpr u32 STENCIL_ROWS = OX_STENCIL_ROWS;

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

OX_DEVICE void stencil_near(const Stencil& s, Part part) {
    const u32 across = s.columns() / 4, units = across * ((s.rows() + STENCIL_ROWS - 1) / STENCIL_ROWS), pitch = s.size.z;
    // This lane's tap is a place of nine, row by row.
    const u32 offset = s.tap.x + pitch + 4, high = offset >= 2 * pitch ? 2 : offset >= pitch ? 1 : 0, place = 3 * high + (offset - high * pitch) / 4;
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
        f32 next_weight = s.weight(0);
        u32 next_place = __shfl_sync(FULL_WARP, place, 0);
#pragma unroll 1
        for (u32 t = 0;;) {
            const f32 weight = next_weight;
            const u32 now = next_place;
            next_weight = s.weight(++t), next_place = __shfl_sync(FULL_WARP, place, t);  // on their way while this one is added
            switch (now) {
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
            if (t == s.taps) break;
        }
#pragma unroll
        for (u32 i = 0; i < STENCIL_ROWS; ++i) {
            if (first + lane_number() >= units || top + i >= s.rows()) continue;
            const f32(&a)[4] = sum[i];
            const uint4 q = make_uint4(__float_as_uint(a[0]), __float_as_uint(a[1]), __float_as_uint(a[2]), __float_as_uint(a[3]));
            ptx::st_shared_v4(s.to + 16 * right + (top + i) * s.size.w, q);
        }
    }
}

OX_DEVICE void stencil_far(const Stencil& s, Part part) {
    const u32 across = (s.columns() + 31) / 32, units = across * ((s.rows() + STENCIL_ROWS - 1) / STENCIL_ROWS);
#pragma unroll 1
    for (u32 unit = part.first; unit < units; unit += part.total) {
        const u32 down = s.down(unit), column = 32 * (unit - down * across) + lane_number(), top = STENCIL_ROWS * down;
        const u32 left = s.from + 4 * min(column, s.columns() - 1);
        f32 sum[STENCIL_ROWS][1];
        begin_sums(sum);
#pragma unroll 1
        for (u32 t = 0; t < s.taps; ++t) {
            const f32 weight = s.weight(t);
            const u32 offset = left + __shfl_sync(FULL_WARP, s.tap.x, t);
#pragma unroll
            for (u32 i = 0; i < STENCIL_ROWS; ++i) {
                const u32 at = swizzled(offset + min(top + i, s.rows() - 1) * s.size.z, s.rest.y & 0xff);
                sum[i][0] = __fadd_rn(sum[i][0], __fmul_rn(__uint_as_float(ptx::ld_shared_u32(at)), weight));
            }
        }
#pragma unroll
        for (u32 i = 0; i < STENCIL_ROWS; ++i) {
            const u32 at = swizzled(s.to + (top + i) * s.size.w + 4 * column, s.rest.y >> 8 & 0xff);
            if (top + i < s.rows() && column < s.columns()) ptx::st_shared_u32(at, __float_as_uint(sum[i][0]));
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
    if (s.rest.y >> 16 & 0xff) stencil_near(s, part);
    else stencil_far(s, part);
    __syncwarp();
}

template <class R>
OX_DEVICE u32 behind_stencil(u32 pc, const R& r) {
    return pc + 2 + (r.aux() + 3) / 4;
}
