// Entry points of the family compute: all ops, with COMPUTE and PLACE instead of MAP_TILES. Its code is always in memory, and its vectors in
// 96 registers: CTAs of up to 672 threads.
#define OX_BARRIER_UNALIGNED
#include "interpreter.cuh"

#define OX_COMPUTE __maxnreg__(96)

OX_KERNEL(compute_global, OX_COMPUTE, false, false, true, true, Small, true)
OX_KERNEL(compute_named_global, OX_COMPUTE, false, true, true, true, Small, true)
