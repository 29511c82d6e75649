// What a group does with tiles by one record: COMPUTE, and with OX_RESHAPE also transposes, reductions and stencils.
#pragma once
#include "compute.cuh"
// What of it a kernel has. Without COMPUTE its maps are MAP_TILES, and it needs fewer registers.
#ifdef OX_NO_COMPUTE
constexpr bool COMPUTES = false;

template <class L>
struct Tiler {
    const L& launch;
    Parked tiles;  // as Machine's
};
#else
constexpr bool COMPUTES = true;

template <class L>
using Tiler = Machine<L>;
#endif
#ifdef OX_RESHAPE
#include "reshape.cuh"
#include "stencil.cuh"
constexpr bool RESHAPES = true;
#else
constexpr bool RESHAPES = false;
#endif

OX_DEVICE bool is_group_part(u32 op) {
#ifdef OX_RESHAPE
    if (op == OP_TRANSPOSE_TILE || op == OP_REDUCE_TILE || op == OP_STENCIL_TILE) return true;
#endif
    return COMPUTES && op == OP_COMPUTE;
}

// One that is no COMPUTE: those are tight.cuh's. `r` is record `pc`; the tiles' addresses are known.
template <class L, class W, class R>
OX_DEVICE void other_part(const L& launch, const W& w, const R& r, u32 pc, u32 from, u32 to) {
#ifdef OX_RESHAPE
    if (r.op() == OP_TRANSPOSE_TILE) return transpose(launch, w, r, pc, from, to);
    if (r.op() == OP_STENCIL_TILE) return stencil(launch, w, r, pc, from, to);
    reduce_tile(launch, w, r, pc, from, to);
#endif
}

template <class R>
OX_DEVICE u32 behind_group_part(u32 pc, const R& r) {
    if (r.op() == OP_COMPUTE) return behind_compute(pc, r);
#ifdef OX_RESHAPE
    if (r.op() == OP_STENCIL_TILE) return behind_stencil(pc, r);
#endif
    return pc + 2;
}
