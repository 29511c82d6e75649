// Entry points: by family (once: one-shot programs; move: all ops but MAP_TILES and COPY_EXTRA; map: all but COPY_EXTRA; full, wide, many:
// all; named: all 16 barriers), and by where the code lies.
#include "crew.cuh"
#include "interpreter.cuh"
#include "once.cuh"

// As few registers as there are without spills, and never more than a CTA of 1,024 threads can have: on compute capability 12, which needs
// more, a few are spilled.
#if __CUDA_ARCH__ >= 1200
#define OX_MOVE_INLINE __maxnreg__(64)
#else
#define OX_MOVE_INLINE __maxnreg__(56)
#endif
#define OX_MOVE_GLOBAL __maxnreg__(64)
#define OX_MAP __maxnreg__(64)

#define OX_FAMILY(NAME, INLINE, IN_MEMORY, MAP, NAMED, EXTRA)             \
    OX_KERNEL(NAME##_small, INLINE, MAP, NAMED, EXTRA, false, Small, false) \
    OX_KERNEL(NAME##_large, INLINE, MAP, NAMED, EXTRA, false, Large, false) \
    OX_KERNEL(NAME##_global, IN_MEMORY, MAP, NAMED, EXTRA, false, Small, true)

#define OX_ONCE(NAME, PARAMETER) \
    extern "C" __global__ void __launch_bounds__(32) oxidecopy_##NAME(const __grid_constant__ PARAMETER parameter) { once(parameter); }
OX_ONCE(once_small, Small)
OX_ONCE(once_large, Large)

// All that the others leave out: as many registers as a CTA of 1,024 threads has.
#define OX_CREW(NAME, MANY)                                                                                               \
    extern "C" __global__ void __maxnreg__(64) oxidecopy_##NAME##_global(const __grid_constant__ Small parameter) {       \
        interpret_crew<MANY>(Launch<Small, true>(parameter));                                                             \
    }
OX_CREW(wide, false)
OX_CREW(many, true)

OX_FAMILY(move, OX_MOVE_INLINE, OX_MOVE_GLOBAL, false, false, false)
OX_FAMILY(move_named, OX_MOVE_INLINE, OX_MOVE_GLOBAL, false, true, false)
OX_KERNEL(map_global, OX_MAP, true, false, false, false, Small, true)
OX_KERNEL(map_named_global, OX_MAP, true, true, false, false, Small, true)
OX_FAMILY(full, OX_MAP, OX_MAP, true, false, true)
OX_KERNEL(full_named_global, OX_MAP, true, true, true, false, Small, true)
