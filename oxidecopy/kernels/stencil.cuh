// STENCIL: weighted sums of what lies around each element of a tile of f32.
//
// A warp takes 32 columns of four rows, a lane for each column: whatever a tap's place, its lanes read 32 words side by side, which no swizzle
// makes meet in a bank. Taps are held in registers. See isa.ops.StencilTile for the order of the sum.
#pragma once
#include "reshape.cuh"

constexpr u32 STENCIL_ROWS = 4;
constexpr u32 TAPS_MAX = 9;

struct Around {
    u32 rows, columns, pitch, out_pitch, mask, out_mask, taps;
    u32 from, to;
};

// `N`: room for taps. `FLAT`: neither tile is swizzled.
template <u32 N, bool FLAT>
OX_DEVICE void sum_around(const Around& f, const Part& part, const u32 (&offset)[N], const f32 (&weight)[N]) {
    const u32 wide = (f.columns + 31) / 32, tall = (f.rows + STENCIL_ROWS - 1) / STENCIL_ROWS;
#pragma unroll 1
    for (u32 unit = part.first; unit < wide * tall; unit += part.total) {
        const u32 down = unit / wide, column = 32 * (unit - down * wide) + lane_number(), first = STENCIL_ROWS * down;
        if (column >= f.columns) continue;
        const u32 at = f.from + first * f.pitch + 4 * column;
        f32 sum[STENCIL_ROWS];
#pragma unroll
        for (u32 t = 0; t < N; ++t) {
            if (t >= f.taps) continue;
#pragma unroll
            for (u32 i = 0; i < STENCIL_ROWS; ++i) {
                if (first + i >= f.rows) continue;
                const u32 place = at + offset[t] + i * f.pitch;
                const f32 product = __fmul_rn(__uint_as_float(ptx::ld_shared_u32(FLAT ? place : swizzled(place, f.mask))), weight[t]);
                sum[i] = t == 0 ? product : __fadd_rn(sum[i], product);
            }
        }
#pragma unroll
        for (u32 i = 0; i < STENCIL_ROWS; ++i) {
            const u32 place = f.to + (first + i) * f.out_pitch + 4 * column;
            if (first + i < f.rows) ptx::st_shared_u32(FLAT ? place : swizzled(place, f.out_mask), __float_as_uint(sum[i]));
        }
    }
}

// Five taps or nine: those that are not there cost a comparison. A function of its own, so that its registers are nobody else's.
template <u32 N>
static __device__ __noinline__ void stencil_of(
    u32 from, u32 to, Part part, uint4 size, uint4 rest, uint4 a, uint4 b, uint4 c, uint4 d, uint4 e, u32 taps
) {
    const Around f{size.x, size.y, size.z, size.w, rest.y & 0xff, rest.y >> 8 & 0xff, taps, from + rest.x, to};
    const u32 words[2 * 10] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w, c.x, c.y, c.z, c.w, d.x, d.y, d.z, d.w, e.x, e.y, e.z, e.w};
    u32 offset[N];
    f32 weight[N];
#pragma unroll
    for (u32 t = 0; t < N; ++t) offset[t] = words[2 * t], weight[t] = __uint_as_float(words[2 * t + 1]);
    if (f.mask == 0 && f.out_mask == 0) sum_around<N, true>(f, part, offset, weight);
    else sum_around<N, false>(f, part, offset, weight);
    __syncwarp();
}

template <class L, class W, class R>
OX_DEVICE void stencil(const L& launch, const W& w, const R& r, u32 pc, u32 from, u32 to) {
    const Part part = part_of(launch, w, r, 32);
    const uint4 size = launch.quad(pc + 1, 0), rest = launch.quad(pc + 1, 1), none = make_uint4(0, 0, 0, 0);
    const u32 taps = r.aux(), first = pc + 2;
    const uint4 a = launch.quad(first, 0), b = launch.quad(first, 1), c = taps > 4 ? launch.quad(first + 1, 0) : none;
    if (taps <= 5) return stencil_of<5>(from, to, part, size, rest, a, b, c, none, none, taps);
    const uint4 d = launch.quad(first + 1, 1), e = taps > 8 ? launch.quad(first + 2, 0) : none;
    stencil_of<TAPS_MAX>(from, to, part, size, rest, a, b, c, d, e, taps);
}

template <class R>
OX_DEVICE u32 behind_stencil(u32 pc, const R& r) {
    return pc + 2 + (r.aux() + 3) / 4;
}
