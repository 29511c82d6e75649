// Entry points of the family reshape: all ops, with TRANSPOSE_TILE and REDUCE_TILE, and with COMPUTE beside MAP_TILES.
#define OX_RESHAPE
#define OX_BARRIER_APART
#include "interpreter.cuh"

#define OX_BOUNDS __maxnreg__(96)

OX_KERNEL(reshape_global, OX_BOUNDS, true, false, true, true, Small, true)
OX_KERNEL(reshape_named_global, OX_BOUNDS, true, true, true, true, Small, true)
