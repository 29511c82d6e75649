// Entry points: by family (move: all ops but MAP_TILES), and by where the code lies.
#include "interpreter.cuh"

#define OX_ENTRY(FAMILY, MAP, NAME, PARAMETER, GLOBAL)                                                                         \
    extern "C" __global__ void OX_BOUNDS_##FAMILY oxidecopy_##FAMILY##_##NAME(const __grid_constant__ PARAMETER parameter) {   \
        interpret<MAP>(Launch<PARAMETER, GLOBAL>(parameter));                                                                  \
    }
#define OX_BOUNDS_move __maxnreg__(56)
#define OX_BOUNDS_map __maxnreg__(96)

OX_ENTRY(move, false, small, Small, false)
OX_ENTRY(move, false, large, Large, false)
OX_ENTRY(move, false, global, Small, true)
OX_ENTRY(map, true, small, Small, false)
OX_ENTRY(map, true, large, Large, false)
OX_ENTRY(map, true, global, Small, true)
