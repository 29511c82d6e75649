"""Rule ids of the verifier, by meaning; their pages are in `oxidecopy.rules.verifier`. those that begin with OX310 are warnings."""

from __future__ import annotations

from typing import Final

# ---- the life of a barrier
BEFORE_INIT: Final = "OX3001"
AFTER_INVAL: Final = "OX3002"
DOUBLE_INIT: Final = "OX3003"
INIT_UNSYNCED: Final = "OX3004"
INVAL_IN_USE: Final = "OX3005"
REMOTE_EARLY: Final = "OX3006"
BARRIER_INDEX: Final = "OX3007"

# ---- phases and arrivals
TOO_MANY: Final = "OX3010"
AMBIGUOUS: Final = "OX3011"
TOO_FEW: Final = "OX3012"
WAIT_AHEAD: Final = "OX3013"
WAIT_BEHIND: Final = "OX3014"
DROP_TO_ZERO: Final = "OX3015"
GUARDED: Final = "OX3016"
TOKEN: Final = "OX3017"
ANSWER: Final = "OX3018"

# ---- bytes
OVER_EXPECTED: Final = "OX3020"
UNDER_EXPECTED: Final = "OX3021"
EXPECT_LATE: Final = "OX3022"
TX_RANGE: Final = "OX3023"

# ---- deadlock and syncs
DEADLOCK: Final = "OX3030"
SYNC_NOT_REACHED: Final = "OX3031"
SYNC_COUNT: Final = "OX3032"

# ---- shared tiles
READ_EARLY: Final = "OX3040"
READ_UNWRITTEN: Final = "OX3041"
OVERWRITE_LOAD: Final = "OX3042"
OVERWRITE_STORE: Final = "OX3043"
OVERWRITE_READ: Final = "OX3044"
RACE: Final = "OX3045"
NO_FENCE: Final = "OX3046"
TILE_INDEX: Final = "OX3047"

# ---- copies and the end
UNDRAINED: Final = "OX3050"
LOAD_UNWAITED: Final = "OX3051"
EXIT_REMOTE: Final = "OX3052"
COPY_THREADS: Final = "OX3053"
REDUCE_TYPE: Final = "OX3054"
BULK_SIZE: Final = "OX3055"
BULK_DENSE: Final = "OX3056"
BULK_BOUNDS: Final = "OX3057"
SEND_UNWAITED: Final = "OX3058"
GATHER_BOX: Final = "OX3059"

# ---- shared memory layout
TILE_ALIGN: Final = "OX3060"
SWIZZLE_ALIGN: Final = "OX3061"
BARRIER_ALIGN: Final = "OX3062"
SHARED_TOTAL: Final = "OX3063"
TILE_SMALL: Final = "OX3064"
OVERLAP: Final = "OX3065"
SWIZZLE_DIFFERS: Final = "OX3066"

# ---- the launch
GRID: Final = "OX3070"
CLUSTER_GRID: Final = "OX3071"
CLUSTER_SIZE: Final = "OX3072"
THREADS: Final = "OX3073"
ARCH: Final = "OX3074"
EXTENT: Final = "OX3075"
BINDING: Final = "OX3076"
REQUIREMENT: Final = "OX3077"

# ---- coordinates
COORD_INNER: Final = "OX3080"
COORD_NEGATIVE: Final = "OX3081"
COORD_RANGE: Final = "OX3082"
MASK: Final = "OX3083"
RANK: Final = "OX3084"
COORD_RANK: Final = "OX3085"
OPAQUE_USE: Final = "OX3086"
INDEX_SOURCE: Final = "OX3087"
INDEX_RANGE: Final = "OX3088"
ENTRY_RANGE: Final = "OX3089"

# ---- global memory
STORES_MEET: Final = "OX3201"
STORES_UNORDERED: Final = "OX3202"
LOAD_OF_STORED: Final = "OX3203"
OVERLAPPING_VIEWS: Final = "OX3204"
STORE_OVER: Final = "OX3205"
STORE_OF_LOADED: Final = "OX3206"

# ---- maps that the device replaces
MAP_THREADS: Final = "OX3210"
MAP_PLACE: Final = "OX3211"
MAP_WINDOW: Final = "OX3212"
MAP_STALE: Final = "OX3213"
MAP_IN_USE: Final = "OX3214"
MAP_DIFFERS: Final = "OX3215"
MAP_SHARED: Final = "OX3216"

# ---- bounds of the proof
PIECES: Final = "OX3090"
STEPS: Final = "OX3091"
DIVISOR: Final = "OX3092"
COUNTER: Final = "OX3093"
COUNTS: Final = "OX3094"

# ---- im2col
IM2COL_START: Final = "OX3095"
IM2COL_STORE: Final = "OX3096"
IM2COL_OFFSET: Final = "OX3097"

# ---- one way only
LOADS_ONLY: Final = "OX3098"
STORED_AS_LOADED: Final = "OX3099"

# ---- contractions
CONTRACT_OPERANDS: Final = "OX3130"
CONTRACT_ARRAYS: Final = "OX3131"
CONTRACT_GROUP: Final = "OX3132"
CONTRACT_ARCH: Final = "OX3133"

# ---- warnings
UNSCALED: Final = "OX3101"
IDLE_ROLE: Final = "OX3102"
STORE_EDGE: Final = "OX3103"
NEVER_COMMITTED: Final = "OX3104"
NON_PORTABLE: Final = "OX3105"
NOT_COVERED: Final = "OX3106"
MEETING_UNDECIDED: Final = "OX3107"
MAP_MAY_BE_EMPTY: Final = "OX3108"
EPILOGUE_BEYOND: Final = "OX3109"
