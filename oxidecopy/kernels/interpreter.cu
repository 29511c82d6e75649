// Entry points: by family (move: all ops but MAP_TILES), and by where the code lies.
#include "interpreter.cuh"

// As few registers as there are without spills, and never more than a CTA of 1,024 threads can have: on compute capability 12, which needs
// more, a few are spilled.
#if __CUDA_ARCH__ >= 1200
#define OX_MOVE_INLINE __maxnreg__(64)
#else
#define OX_MOVE_INLINE __maxnreg__(48)
#endif
#define OX_MOVE_GLOBAL __maxnreg__(64)
#define OX_MAP __maxnreg__(64)

#define OX_ENTRY(NAME, BOUNDS, MAP, PARAMETER, GLOBAL)                                                        \
    extern "C" __global__ void BOUNDS oxidecopy_##NAME(const __grid_constant__ PARAMETER parameter) {         \
        interpret<MAP>(Launch<PARAMETER, GLOBAL>(parameter));                                                 \
    }

OX_ENTRY(move_small, OX_MOVE_INLINE, false, Small, false)
OX_ENTRY(move_large, OX_MOVE_INLINE, false, Large, false)
OX_ENTRY(move_global, OX_MOVE_GLOBAL, false, Small, true)
OX_ENTRY(map_small, OX_MAP, true, Small, false)
OX_ENTRY(map_large, OX_MAP, true, Large, false)
OX_ENTRY(map_global, OX_MAP, true, Small, true)
