"""Names of this package <-> enumerators of the driver API (cuda.h, CUtensorMapDataType and the like)."""

from __future__ import annotations

from typing import Final

from oxidecopy.isa.dtypes import DTYPES, DTypeInfo
from oxidecopy.isa.swizzle import EVERY_SWIZZLE, SwizzleInfo

INTERLEAVES: Final = {"none": 0, "16B": 1, "32B": 2}
PROMOTIONS: Final = {0: 0, 64: 1, 128: 2, 256: 3}  # bytes -> enumerator
FILLS: Final = {"zero": 0, "nan": 1}
WIDE_MODES: Final = {"im2col_w": 0, "im2col_w128": 1}

# fp8 has no enumerator of its own: the bytes' one names u8.
DTYPE_OF: Final[dict[int, DTypeInfo]] = {row.driver_enum: row for row in reversed(DTYPES.values())}
SWIZZLE_OF: Final[dict[int, SwizzleInfo]] = {row.driver_enum: row for row in EVERY_SWIZZLE.values()}
PROMOTION_OF: Final = {number: size for size, number in PROMOTIONS.items()}
FILL_OF: Final = {number: name for name, number in FILLS.items()}
INTERLEAVE_OF: Final = {number: name for name, number in INTERLEAVES.items()}

U8: Final = 0
U4_ALIGN8B: Final = 13
U4_ALIGN16B: Final = 14
U6_ALIGN16B: Final = 15
PADDED: Final = frozenset({U4_ALIGN16B, U6_ALIGN16B})  # packed, with gaps in shared memory
SWIZZLE_NONE: Final = 0
SWIZZLE_64B: Final = 2
SWIZZLE_128B: Final = 3
SWIZZLE_ATOM_32B: Final = 4
SWIZZLE_ATOM_64B: Final = 6
