// What a group does with tiles by one record: COMPUTE, and with OX_RESHAPE also transposes, reductions and stencils.
#pragma once
#include "compute.cuh"
#ifdef OX_RESHAPE
#include "reshape.cuh"
#include "stencil.cuh"
#endif

OX_DEVICE bool is_group_part(u32 op) {
#ifdef OX_RESHAPE
    if (op == OP_TRANSPOSE_TILE || op == OP_REDUCE_TILE || op == OP_STENCIL_TILE) return true;
#endif
    return op == OP_COMPUTE;
}

// One that is no COMPUTE: those are tight.cuh's.
template <class L, class W, class R>
OX_DEVICE void other_part(const L& launch, const W& w, const R& r) {
#ifdef OX_RESHAPE
    if (r.op() == OP_TRANSPOSE_TILE) return transpose(launch, w, r);
    if (r.op() == OP_STENCIL_TILE) return stencil(launch, w, r);
    reduce_tile(launch, w, r);
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
