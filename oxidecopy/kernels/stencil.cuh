// STENCIL: weighted sums of what lies around each element of a tile of f32.
//
// A warp takes 32 columns of four rows, a lane for each column: whatever a tap's place, its lanes read 32 words side by side, which no swizzle
// makes meet in a bank. Each tap is read once for four rows, on its way while the one before it is added. See isa.ops.StencilTile for the
// order of the sum.
#pragma once
#include "reshape.cuh"

constexpr u32 STENCIL_ROWS = 4;

template <class L, class W, class R>
OX_DEVICE void stencil(const L& launch, const W& w, const R& r, u32 pc, u32 from, u32 to) {
    const Part part = part_of(launch, w, r, 32);
    const uint4 size = launch.quad(pc + 1, 0);  // of a StencilRecord: rows, columns and both pitches
    const u32 start = from + launch.word(pc + 1, 4), masks = launch.word(pc + 1, 5);
    const u32 wide = (size.y + 31) / 32, units = wide * ((size.x + STENCIL_ROWS - 1) / STENCIL_ROWS);
#pragma unroll 1
    for (u32 unit = part.first; unit < units; unit += part.total) {
        const u32 down = unit / wide, column = 32 * (unit - down * wide) + lane_number(), first = STENCIL_ROWS * down;
        if (column >= size.y) continue;
        f32 sum[STENCIL_ROWS];
        uint2 tap = launch.instr(pc + 2, 0);  // its offset, its weight
#pragma unroll 1
        for (u32 t = 0; t < r.aux(); ++t) {
            const uint2 now = tap;
            tap = launch.instr(pc + 2, min(t + 1, r.aux() - 1));
#pragma unroll
            for (u32 i = 0; i < STENCIL_ROWS; ++i) {
                if (first + i >= size.x) continue;
                const u32 at = swizzled(start + (first + i) * size.z + 4 * column + now.x, masks & 0xff);
                const f32 product = __fmul_rn(__uint_as_float(ptx::ld_shared_u32(at)), __uint_as_float(now.y));
                sum[i] = t == 0 ? product : __fadd_rn(sum[i], product);
            }
        }
#pragma unroll
        for (u32 i = 0; i < STENCIL_ROWS; ++i) {
            const u32 at = swizzled(to + (first + i) * size.w + 4 * column, masks >> 8 & 0xff);
            if (first + i < size.x) ptx::st_shared_u32(at, __float_as_uint(sum[i]));
        }
    }
    __syncwarp();
}

template <class R>
OX_DEVICE u32 behind_stencil(u32 pc, const R& r) {
    return pc + 2 + (r.aux() + 3) / 4;
}
