// Entry points of the family reshape: all ops but COMPUTE, with TRANSPOSE_TILE, REDUCE_TILE and STENCIL_TILE.
#define OX_NO_COMPUTE
#define OX_RESHAPE
#define OX_BARRIER_UNALIGNED
#include "interpreter.cuh"

#define OX_BOUNDS __maxnreg__(96)

OX_KERNEL(reshape_global, OX_BOUNDS, true, false, true, true, Small, true)
OX_KERNEL(reshape_named_global, OX_BOUNDS, true, true, true, true, Small, true)
