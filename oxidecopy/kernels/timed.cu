// Entry point of the family timed: as wide, op by op, stamping with the global timer when each warp came to a record and left it.
#define OX_STAMPS
#include "crew.cuh"

extern "C" __global__ void __maxnreg__(64) oxidecopy_timed_global(const __grid_constant__ Small parameter) {
    interpret_crew<false>(Launch<Small, true>(parameter));
}
