// Entry points of the family product: one for each shape of a group's sums.
#define OX_BARRIER_UNALIGNED
#include "product.cuh"

// Three warps share a quarter of a multiprocessor's registers, 168 for each thread.
#define OX_PRODUCT_KERNEL(M, N)                                                                                                              \
    extern "C" __global__ void __launch_bounds__(384, 1) oxidecopy_product_m##M##n##N##_large(const __grid_constant__ Large parameter) {     \
        product<M, N>(parameter);                                                                                                            \
    }
OX_PRODUCT_KERNEL(64, 256)
OX_PRODUCT_KERNEL(64, 192)
OX_PRODUCT_KERNEL(128, 128)
OX_PRODUCT_KERNEL(64, 128)
OX_PRODUCT_KERNEL(64, 64)
