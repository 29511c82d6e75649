"""Each bound of the hardware and the driver, once, with where it comes from.

Sources: "API" is the CUDA driver API's text on cuTensorMapEncodeTiled; "PTX" the PTX ISA, section named; "measured" a run on an H200
(compute capability 9.0, driver 580).
"""

from __future__ import annotations

from typing import Final

# ---- tensor maps
MAX_RANK: Final = 5  # API; PTX 5.5
BOX_DIM_MAX: Final = 256  # API; measured, also where the element stride would shrink the box
PIXELS_MAX: Final = 1024  # API; measured: pixels of one im2col copy
ELEMENT_STRIDE_MAX: Final = 8  # API; measured
GLOBAL_ADDRESS_ALIGN: Final = 16  # API, bytes
GLOBAL_ADDRESS_LIMIT: Final = 1 << 57  # measured: 2^57 - 16 encodes, 2^57 does not
GLOBAL_DIM_MAX: Final = 1 << 32  # API: what the driver encodes
GLOBAL_DIM_USABLE_SM90: Final = 1 << 31  # measured: beyond it every copy faults, even at coordinate 0
GLOBAL_STRIDE_ALIGN: Final = 16  # API, bytes
GLOBAL_STRIDE_LIMIT: Final = 1 << 40  # API; measured, bytes, exclusive
BOX_INNER_ALIGN: Final = 16  # API, bytes: inner box times element size
BOX_BYTES_MAX: Final = 233_472  # measured (228 KiB): dense bytes of a box that the driver still encodes
COORD_MIN: Final = -(1 << 31)  # PTX tensor: coordinates are s32
COORD_MAX: Final = (1 << 31) - 1
COORD_INNER_ALIGN: Final = 16  # measured, bytes: innermost coordinate times element size, else fault 715
TENSOR_SMEM_ALIGN: Final = 128  # measured: shared address of a tensor copy, else fault 716
STORE_EDGE_BYTES: Final = 16  # measured: stores are clipped at the inner edge in steps of this

TABLE_ENTRIES_MAX: Final = 1024  # ours: entries of a table of maps, 128 KiB in global memory; a proof looks at every entry it may be

# ---- mbarriers (PTX 9.7.13.15)
MBARRIER_BYTES: Final = 8
MBARRIER_COUNT_MAX: Final = (1 << 20) - 1
MBARRIER_TX_MAX: Final = (1 << 20) - 1

# ---- launch
THREADS_MAX: Final = 1024
BLOCK_Z_MAX: Final = 64  # threads of a CTA in z (CUDA Programming Guide, technical specifications)
WARP: Final = 32
REGISTERS_MIN: Final = 24  # PTX setmaxnreg: 24 to 256 registers per thread, a multiple of 8
REGISTERS_MAX: Final = 256
REGISTERS_STEP: Final = 8
REGISTERS_PER_CTA: Final = 65_536  # CUDA Programming Guide, technical specifications: 32-bit registers of a block, 9.0 to 12.1
NAMED_BARRIERS: Final = 16  # PTX bar: 16 per CTA, number 0 is `cta.sync`
CLUSTER_PORTABLE_MAX: Final = 8
CLUSTER_MAX: Final = 16  # non-portable, by attribute
GRID_X_MAX: Final = (1 << 31) - 1
GRID_YZ_MAX: Final = 65_535
WAIT_GROUP_MAX: Final = 15
SHARED_BASE: Final = 0x400  # measured: first byte of dynamic shared memory without static arrays
CTA_WINDOW_BYTES: Final = 1 << 24  # measured: the window of cluster rank r starts at r << 24

# Dynamic shared memory one block may ask for, by compute capability (CUDA Programming Guide, technical specifications).
SHARED_BYTES_MAX: Final = {90: 232_448, 100: 232_448, 103: 232_448, 110: 232_448, 120: 101_376, 121: 101_376}
CONSUMER_SM: Final = 120  # from here on devices have no im2col::w::128 and load no packed types (PTX, notes on targets and restrictions)
