// Entry points of the family mma: all ops but COMPUTE and PLACE, all barriers, and CONTRACT. Its code is always in memory.
#define OX_BARRIER_UNALIGNED
#include "interpreter.cuh"

// Three warps share a quarter of a multiprocessor's registers, 168 for each thread: those that contract, which are the first `crew` of the
// CTA, take over what the last four leave them.
extern "C" __global__ void __launch_bounds__(384, 1) oxidecopy_mma_global(const __grid_constant__ Small parameter) {
    const Launch<Small, true, true> launch(parameter);
    if (warp_number() < launch.header().crew) {
        ptx::setmaxnreg_inc<216>();
        interpret<true, true, false, false, true>(launch);
    } else {
        ptx::setmaxnreg_dec<72>();
        interpret<true, true, true, false>(launch);
    }
}
