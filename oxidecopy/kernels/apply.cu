// The entry point of the family apply.
#include "apply.cuh"

extern "C" __global__ void __maxnreg__(96) oxidecopy_apply_medium(const __grid_constant__ Medium parameter) {
    apply(parameter);
}
