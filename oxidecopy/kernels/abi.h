// Generated from oxidecopy/engines/cuda/abi.py by `python -m oxidecopy._tools.kernel_header`. Do not edit.
#pragma once

#ifdef __CUDACC_RTC__
#define OFFSET_OF(TYPE, FIELD) __INTADDR__(&static_cast<TYPE*>(nullptr)->FIELD)
#else
#define OFFSET_OF(TYPE, FIELD) __builtin_offsetof(TYPE, FIELD)
#endif

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned;
using i32 = int;
using u64 = unsigned long long;

constexpr u32 NO_REG = 0xff;
constexpr u32 REGISTERS = 0x40;
constexpr u32 STACK_DEPTH = 0x4;
constexpr u32 REG_BLOCK_X = 0x0;
constexpr u32 REG_BLOCK_Y = 0x1;
constexpr u32 REG_BLOCK_Z = 0x2;
constexpr u32 REG_RANK = 0x3;
constexpr u32 RECORD_BYTES = 0x20;
constexpr u32 COORDINATE_BYTES = 0x30;
constexpr u32 MAP_BYTES = 0x80;
constexpr u32 INLINE_MAPS_SMALL = 0x2;
constexpr u32 INLINE_MAPS_MEDIUM = 0x5;
constexpr u32 INLINE_MAPS_LARGE = 0x8;
constexpr u32 PARAM_BYTES_SMALL = 0x400;
constexpr u32 PARAM_BYTES_MEDIUM = 0x800;
constexpr u32 PARAM_BYTES_LARGE = 0x1000;
constexpr u32 HEADER_BYTES = 0x40;
constexpr u32 ARRAY_WORDS = 0x9;
constexpr u32 STAGES_MAX = 0xfff;
constexpr u32 WIDE_ARRAY_WORDS = 0xb;
constexpr u32 HISTORY_WORDS = 0x2;
constexpr u32 TOKEN_KEPT = 0x1;
constexpr u32 TOKEN_SHARED = 0x2;
constexpr u32 NO_TOKEN = 0x2;
constexpr u32 RING_FLAG_READ = 0x1;
constexpr u32 RING_FLAG_COUNTER = 0x2;
constexpr u32 RING_FLAG_PLACED = 0x4;
constexpr u32 TILE_BITS = 0x1c;
constexpr u32 TILES_AT_ONCE = 0x8;
constexpr u32 ONCE_CODE = 0x20;
constexpr u32 APPLY_LOADS = 0x4;
constexpr u32 APPLY_STORES = 0x5;
constexpr u32 APPLY_COMPUTE = 0xc0;
constexpr u32 ONCE_FLAG_READ = 0x1;
constexpr u32 ONCE_FLAG_INVAL = 0x2;
constexpr u32 NO_TILE = 0xfffffff;
constexpr u32 FEW_BARRIERS = 0x2;
constexpr u32 COMPUTE_UNITS = 0x4;
constexpr u32 LOOP_TIGHT = 0x1;
constexpr u32 COMPUTE_VECTORS = 0x3;
constexpr u32 COMPUTE_ARGUMENT = 0x80;
constexpr u32 COMPUTE_AT_HAND = 0x1f;
constexpr u32 PRODUCT_LOADS = 0x8;
constexpr u32 PRODUCT_LOAD_AT = 0x40;
constexpr u32 PRODUCT_FINISH_AT = 0x140;
constexpr u32 PRODUCT_BYTES = 0x1c0;
constexpr u32 PRODUCT_CORNER = 0x1;
constexpr u32 PRODUCT_PLACES = 0x8;
constexpr u32 PRODUCT_PLACE_WORDS = 0x4;
constexpr u32 FINISH_STEPS = 0x6;
constexpr u32 FINISH_ARGUMENT = 0x1;
constexpr u32 FINISH_SCALE_ARGUMENT = 0x2;
constexpr u32 FINISH_SCALED = 0x4;
constexpr u32 REPORT_ENTRIES = 0x100;

enum : u32 {
    OP_MBARRIER_INIT = 0x10,
    OP_MBARRIER_INVAL = 0x11,
    OP_MBARRIER_ARRIVE = 0x12,
    OP_MBARRIER_ARRIVE_EXPECT_TX = 0x13,
    OP_MBARRIER_EXPECT_TX = 0x14,
    OP_MBARRIER_COMPLETE_TX = 0x15,
    OP_MBARRIER_ARRIVE_DROP = 0x16,
    OP_MBARRIER_ARRIVE_REMOTE = 0x17,
    OP_MBARRIER_ARRIVE_EXPECT_TX_REMOTE = 0x18,
    OP_MBARRIER_WAIT_TOKEN = 0x19,
    OP_MBARRIER_WAIT_PHASE = 0x1a,
    OP_MBARRIER_WAIT_PARITY = 0x1b,
    OP_MBARRIER_TEST_TOKEN = 0x1c,
    OP_MBARRIER_TEST_PARITY = 0x1d,
    OP_TENSOR_G2S = 0x20,
    OP_TENSOR_G2S_MULTICAST = 0x21,
    OP_TENSOR_S2G = 0x22,
    OP_TENSOR_REDUCE = 0x23,
    OP_TENSOR_PREFETCH = 0x24,
    OP_TENSOR_GATHER4 = 0x25,
    OP_TENSOR_SCATTER4 = 0x26,
    OP_BULK_G2S = 0x2b,
    OP_BULK_G2S_MULTICAST = 0x2c,
    OP_BULK_S2G = 0x2d,
    OP_BULK_REDUCE = 0x2e,
    OP_BULK_PREFETCH = 0x2f,
    OP_BULK_S2S = 0x38,
    OP_BULK_REDUCE_S2S = 0x39,
    OP_TENSORMAP_COPY = 0x60,
    OP_TENSORMAP_REPLACE = 0x61,
    OP_TENSORMAP_REPLACE_ARRAY = 0x62,
    OP_TENSORMAP_CP_FENCEPROXY = 0x63,
    OP_FENCE_PROXY_TENSORMAP = 0x64,
    OP_COMMIT_GROUP = 0x28,
    OP_WAIT_GROUP = 0x29,
    OP_WAIT_GROUP_READ = 0x2a,
    OP_FENCE_PROXY_ASYNC = 0x30,
    OP_FENCE_MBARRIER_INIT = 0x31,
    OP_BAR_SYNC = 0x32,
    OP_CLUSTER_SYNC = 0x33,
    OP_STORE_GLOBAL = 0x40,
    OP_FILL = 0x41,
    OP_IOTA = 0x42,
    OP_MAP_TILES = 0x43,
    OP_TRANSPOSE_TILE = 0x44,
    OP_REDUCE_TILE = 0x45,
    OP_STENCIL_TILE = 0x46,
    OP_LOAD_INDEX = 0x48,
    OP_LOAD_ROWS = 0x49,
    OP_END = 0x80,
    OP_EVAL = 0x81,
    OP_JUMP = 0x82,
    OP_JUMP_UNLESS = 0x83,
    OP_LOOP = 0x84,
    OP_NEXT = 0x85,
    OP_WARP_SYNC = 0x86,
    OP_PLACE = 0x87,
    OP_PRODUCE = 0x90,
    OP_DRAIN = 0x91,
    OP_ONCE = 0x93,
    OP_APPLY = 0x98,
    OP_COPY_EXTRA = 0x94,
    OP_COMPUTE = 0x95,
    OP_CONTRACT = 0x96,
    OP_CONTRACT_DRAIN = 0x97,
    OP_NEXT_STAGE = 0x92,
};

enum : u32 {
    EVAL_IMM = 0x1,
    EVAL_REG = 0x2,
    EVAL_COUNTER = 0x3,
    EVAL_ADD = 0x4,
    EVAL_MUL = 0x5,
    EVAL_FLOORDIV = 0x6,
    EVAL_MOD = 0x7,
    EVAL_MIN = 0x8,
    EVAL_MAX = 0x9,
    EVAL_SHR = 0xa,
    EVAL_AND = 0xb,
    EVAL_LT = 0xc,
    EVAL_LE = 0xd,
    EVAL_EQ = 0xe,
    EVAL_NE = 0xf,
    EVAL_ADD_REG = 0x10,
    EVAL_MUL_REG = 0x11,
    EVAL_ADD_POP = 0x14,
    EVAL_MUL_POP = 0x15,
    EVAL_MIN_POP = 0x16,
    EVAL_MAX_POP = 0x17,
    EVAL_LT_POP = 0x18,
    EVAL_LE_POP = 0x19,
    EVAL_EQ_POP = 0x1a,
    EVAL_NE_POP = 0x1b,
    EVAL_AND_POP = 0x1c,
    EVAL_OR_POP = 0x1d,
    EVAL_NOT = 0x1e,
    EVAL_FLOORDIV_POP = 0x1f,
    EVAL_MOD_POP = 0x20,
    EVAL_HIGH = 0x21,
    EVAL_STORE = 0x28,
    EVAL_OUT = 0x29,
};

enum : u32 {
    ELEM_INPUT = 0x1,
    ELEM_WORD = 0x2,
    ELEM_NEG = 0x3,
    ELEM_ADD = 0x4,
    ELEM_SUB = 0x5,
    ELEM_MUL = 0x6,
    ELEM_DIV = 0x7,
    ELEM_CAST = 0x8,
    ELEM_MIN = 0x9,
    ELEM_MAX = 0xa,
    ELEM_AND = 0xb,
    ELEM_OR = 0xc,
    ELEM_XOR = 0xd,
    ELEM_SHL = 0xe,
    ELEM_SHR = 0xf,
    ELEM_LT = 0x10,
    ELEM_LE = 0x11,
    ELEM_GT = 0x12,
    ELEM_GE = 0x13,
    ELEM_EQ = 0x14,
    ELEM_NE = 0x15,
    ELEM_SELECT = 0x16,
    ELEM_ABS = 0x18,
    ELEM_NOT = 0x19,
    ELEM_SQRT = 0x1a,
    ELEM_RSQRT = 0x1b,
    ELEM_EXP = 0x1c,
    ELEM_LOG = 0x1d,
    ELEM_TANH = 0x1e,
    ELEM_SIGMOID = 0x1f,
    ELEM_GELU = 0x20,
};

enum : u32 {
    COMPUTE_LOAD_A_32 = 0x0,
    COMPUTE_LOAD_B_32 = 0x1,
    COMPUTE_LOAD_A_BF16 = 0x2,
    COMPUTE_LOAD_B_BF16 = 0x3,
    COMPUTE_LOAD_A_F16 = 0x4,
    COMPUTE_LOAD_B_F16 = 0x5,
    COMPUTE_STORE_32 = 0x6,
    COMPUTE_STORE_BF16 = 0x7,
    COMPUTE_STORE_F16 = 0x8,
    COMPUTE_PUT = 0x9,
    COMPUTE_GET = 0xa,
    COMPUTE_TAKE = 0xb,
    COMPUTE_F_ADD = 0xc,
    COMPUTE_F_SUB = 0xd,
    COMPUTE_F_RSUB = 0xe,
    COMPUTE_F_MUL = 0xf,
    COMPUTE_F_MIN = 0x10,
    COMPUTE_F_MAX = 0x11,
    COMPUTE_I_ADD = 0x12,
    COMPUTE_I_SUB = 0x13,
    COMPUTE_I_RSUB = 0x14,
    COMPUTE_I_MUL = 0x15,
    COMPUTE_I_AND = 0x16,
    COMPUTE_I_OR = 0x17,
    COMPUTE_I_XOR = 0x18,
    COMPUTE_F_ADD_C = 0x19,
    COMPUTE_F_SUB_C = 0x1a,
    COMPUTE_F_RSUB_C = 0x1b,
    COMPUTE_F_MUL_C = 0x1c,
    COMPUTE_F_MIN_C = 0x1d,
    COMPUTE_F_MAX_C = 0x1e,
    COMPUTE_I_ADD_C = 0x1f,
    COMPUTE_I_SUB_C = 0x20,
    COMPUTE_I_RSUB_C = 0x21,
    COMPUTE_I_MUL_C = 0x22,
    COMPUTE_I_AND_C = 0x23,
    COMPUTE_I_OR_C = 0x24,
    COMPUTE_I_XOR_C = 0x25,
    COMPUTE_F_ADD_CB = 0x26,
    COMPUTE_F_SUB_CB = 0x27,
    COMPUTE_F_RSUB_CB = 0x28,
    COMPUTE_F_MUL_CB = 0x29,
    COMPUTE_F_MIN_CB = 0x2a,
    COMPUTE_F_MAX_CB = 0x2b,
    COMPUTE_LOAD_A = 0x2c,
    COMPUTE_LOAD_B = 0x2d,
    COMPUTE_ROW_A = 0x2e,
    COMPUTE_ROW_B = 0x2f,
    COMPUTE_COLUMN_A = 0x30,
    COMPUTE_COLUMN_B = 0x31,
    COMPUTE_CONST_A = 0x32,
    COMPUTE_CONST_B = 0x33,
    COMPUTE_SCALAR_B = 0x34,
    COMPUTE_STORE = 0x35,
    COMPUTE_F_DIV = 0x36,
    COMPUTE_F_RDIV = 0x37,
    COMPUTE_F_LT = 0x38,
    COMPUTE_F_LE = 0x39,
    COMPUTE_F_GT = 0x3a,
    COMPUTE_F_GE = 0x3b,
    COMPUTE_F_EQ = 0x3c,
    COMPUTE_F_NE = 0x3d,
    COMPUTE_I_SHL = 0x3e,
    COMPUTE_I_RSHL = 0x3f,
    COMPUTE_U_SHR = 0x40,
    COMPUTE_U_RSHR = 0x41,
    COMPUTE_S_SHR = 0x42,
    COMPUTE_S_RSHR = 0x43,
    COMPUTE_U_MIN = 0x44,
    COMPUTE_U_MAX = 0x45,
    COMPUTE_S_MIN = 0x46,
    COMPUTE_S_MAX = 0x47,
    COMPUTE_I_EQ = 0x48,
    COMPUTE_I_NE = 0x49,
    COMPUTE_U_LT = 0x4a,
    COMPUTE_U_LE = 0x4b,
    COMPUTE_U_GT = 0x4c,
    COMPUTE_U_GE = 0x4d,
    COMPUTE_S_LT = 0x4e,
    COMPUTE_S_LE = 0x4f,
    COMPUTE_S_GT = 0x50,
    COMPUTE_S_GE = 0x51,
    COMPUTE_SELECT = 0x52,
    COMPUTE_RSELECT = 0x53,
    COMPUTE_F_ABS_C = 0x54,
    COMPUTE_F_SQRT = 0x55,
    COMPUTE_F_RSQRT = 0x56,
    COMPUTE_F_EXP = 0x57,
    COMPUTE_F_LOG = 0x58,
    COMPUTE_F_TANH = 0x59,
    COMPUTE_F_SIGMOID = 0x5a,
    COMPUTE_F_GELU = 0x5b,
    COMPUTE_S_ABS = 0x5c,
    COMPUTE_I_NOT = 0x5d,
    COMPUTE_ROUND = 0x5e,
    COMPUTE_F_TO_U = 0x5f,
    COMPUTE_F_TO_S = 0x60,
    COMPUTE_U_TO_F = 0x61,
    COMPUTE_S_TO_F = 0x62,
    COMPUTE_U_TO_ODD = 0x63,
    COMPUTE_S_TO_ODD = 0x64,
    COMPUTE_LOAD_A_32_MUL = 0x65,
    COMPUTE_LOAD_B_32_MUL = 0x66,
    COMPUTE_MORE = 0x67,
};

enum : u32 {
    FORM_BITS8 = 0x0,
    FORM_BITS16 = 0x1,
    FORM_BITS32 = 0x2,
    FORM_F16 = 0x3,
    FORM_BF16 = 0x4,
    FORM_E4M3 = 0x5,
    FORM_E5M2 = 0x6,
};

enum : u32 {
    STENCIL_WORDS = 0x0,
    STENCIL_NEAR = 0x1,
    STENCIL_CHUNKS = 0x2,
};

enum : u32 {
    CONTRACT_BF16 = 0x0,
    CONTRACT_BF16_A = 0x1,
    CONTRACT_BF16_B = 0x2,
    CONTRACT_BF16_AB = 0x3,
    CONTRACT_F16 = 0x4,
    CONTRACT_F16_A = 0x5,
    CONTRACT_F16_B = 0x6,
    CONTRACT_F16_AB = 0x7,
    CONTRACT_TF32 = 0x8,
    CONTRACT_E4M3 = 0x9,
    CONTRACT_E4M3_E5M2 = 0xa,
    CONTRACT_E5M2_E4M3 = 0xb,
    CONTRACT_E5M2 = 0xc,
};

enum : u32 {
    SHAPE_M64N64 = 0x0,
    SHAPE_M64N128 = 0x1,
    SHAPE_M64N256 = 0x2,
    SHAPE_M128N128 = 0x3,
    SHAPE_M64N192 = 0x4,
};

enum : u32 {
    FINISH_NONE = 0x0,
    FINISH_GELU = 0x1,
    FINISH_SIGMOID = 0x2,
    FINISH_SILU = 0x3,
    FINISH_TANH = 0x4,
    FINISH_EXP = 0x5,
    FINISH_RELU = 0x6,
};

enum : u32 {
    FINISH_OP_ADD = 0x0,
    FINISH_OP_MUL = 0x1,
    FINISH_OP_SUB = 0x2,
    FINISH_OP_RSUB = 0x3,
    FINISH_OP_MIN = 0x4,
    FINISH_OP_MAX = 0x5,
};

enum : u32 {
    FINISH_OF_NUMBER = 0x0,
    FINISH_OF_ROW = 0x1,
    FINISH_OF_COLUMN = 0x2,
    FINISH_OF_ALL = 0x3,
};

enum : u32 {
    DT_U8 = 0x0,
    DT_U16 = 0x1,
    DT_U32 = 0x2,
    DT_I32 = 0x3,
    DT_U64 = 0x4,
    DT_I64 = 0x5,
    DT_F16 = 0x6,
    DT_F32 = 0x7,
    DT_F64 = 0x8,
    DT_BF16 = 0x9,
    DT_F32_FTZ = 0xa,
    DT_TF32 = 0xb,
    DT_TF32_FTZ = 0xc,
    DT_E4M3 = 0x10,
    DT_E5M2 = 0x11,
};

enum : u32 {
    REPORT_TIMEOUT = 0x1,
    REPORT_OPCODE = 0x2,
    REPORT_INDEX = 0x3,
    REPORT_PLACE = 0x4,
    REPORT_TOLD = 0x5,
    REPORT_EMPTY = 0x6,
};

struct alignas(16) Header {
    u64 report;
    u64 code;
    u64 table;
    u64 counter;
    u32 code_offset;
    u32 args_offset;
    u32 records;
    u32 limit_us;
    u32 crew;
    u32 warps;
    u32 stage_slots;
    u32 words;
};
static_assert(sizeof(Header) == 64);
static_assert(OFFSET_OF(Header, report) == 0);
static_assert(OFFSET_OF(Header, code) == 8);
static_assert(OFFSET_OF(Header, table) == 16);
static_assert(OFFSET_OF(Header, counter) == 24);
static_assert(OFFSET_OF(Header, code_offset) == 32);
static_assert(OFFSET_OF(Header, args_offset) == 36);
static_assert(OFFSET_OF(Header, records) == 40);
static_assert(OFFSET_OF(Header, limit_us) == 44);
static_assert(OFFSET_OF(Header, crew) == 48);
static_assert(OFFSET_OF(Header, warps) == 52);
static_assert(OFFSET_OF(Header, stage_slots) == 56);
static_assert(OFFSET_OF(Header, words) == 60);

struct alignas(16) History {
    u64 stamp;
    u64 state;
};
static_assert(sizeof(History) == 16);
static_assert(OFFSET_OF(History, stamp) == 0);
static_assert(OFFSET_OF(History, state) == 8);

struct alignas(8) WarpEntry {
    u16 entry;
    u16 threads;
    u16 first_lane;
    u16 lanes;
};
static_assert(sizeof(WarpEntry) == 8);
static_assert(OFFSET_OF(WarpEntry, entry) == 0);
static_assert(OFFSET_OF(WarpEntry, threads) == 2);
static_assert(OFFSET_OF(WarpEntry, first_lane) == 4);
static_assert(OFFSET_OF(WarpEntry, lanes) == 6);

struct alignas(16) Record {
    u8 op;
    u8 aux;
    u8 map;
    u8 flags;
    u8 reg[8];
    i32 imm[5];
};
static_assert(sizeof(Record) == 32);
static_assert(OFFSET_OF(Record, op) == 0);
static_assert(OFFSET_OF(Record, aux) == 1);
static_assert(OFFSET_OF(Record, map) == 2);
static_assert(OFFSET_OF(Record, flags) == 3);
static_assert(OFFSET_OF(Record, reg) == 4);
static_assert(OFFSET_OF(Record, imm) == 12);

struct alignas(16) Layout {
    i32 shape0;
    i32 shape1;
    i32 shape2;
    i32 shape3;
    i32 shape4;
    i32 pitch;
    u8 rank;
    u8 element_bytes;
    u8 swizzle_mask;
    u8 dtype;
    i32 tile;
};
static_assert(sizeof(Layout) == 32);
static_assert(OFFSET_OF(Layout, shape0) == 0);
static_assert(OFFSET_OF(Layout, shape1) == 4);
static_assert(OFFSET_OF(Layout, shape2) == 8);
static_assert(OFFSET_OF(Layout, shape3) == 12);
static_assert(OFFSET_OF(Layout, shape4) == 16);
static_assert(OFFSET_OF(Layout, pitch) == 20);
static_assert(OFFSET_OF(Layout, rank) == 24);
static_assert(OFFSET_OF(Layout, element_bytes) == 25);
static_assert(OFFSET_OF(Layout, swizzle_mask) == 26);
static_assert(OFFSET_OF(Layout, dtype) == 27);
static_assert(OFFSET_OF(Layout, tile) == 28);

struct alignas(16) Rows {
    u8 array;
    u8 dtype;
    u8 dim;
    u8 gap3[1];
    i32 scale;
    u32 count;
    i32 tile_step;
    i32 index_step;
    i32 index_most;
    u32 below;
    u8 gap[4];
};
static_assert(sizeof(Rows) == 32);
static_assert(OFFSET_OF(Rows, array) == 0);
static_assert(OFFSET_OF(Rows, dtype) == 1);
static_assert(OFFSET_OF(Rows, dim) == 2);
static_assert(OFFSET_OF(Rows, scale) == 4);
static_assert(OFFSET_OF(Rows, count) == 8);
static_assert(OFFSET_OF(Rows, tile_step) == 12);
static_assert(OFFSET_OF(Rows, index_step) == 16);
static_assert(OFFSET_OF(Rows, index_most) == 20);
static_assert(OFFSET_OF(Rows, below) == 24);

struct alignas(16) Ring {
    i32 full;
    i32 empty;
    i32 nbytes;
    i32 offset;
    u16 stages;
    u8 copies;
    u8 flags;
    u16 evals;
    u16 empty_behind;
    i32 first;
    i32 peers;
};
static_assert(sizeof(Ring) == 32);
static_assert(OFFSET_OF(Ring, full) == 0);
static_assert(OFFSET_OF(Ring, empty) == 4);
static_assert(OFFSET_OF(Ring, nbytes) == 8);
static_assert(OFFSET_OF(Ring, offset) == 12);
static_assert(OFFSET_OF(Ring, stages) == 16);
static_assert(OFFSET_OF(Ring, copies) == 18);
static_assert(OFFSET_OF(Ring, flags) == 19);
static_assert(OFFSET_OF(Ring, evals) == 20);
static_assert(OFFSET_OF(Ring, empty_behind) == 22);
static_assert(OFFSET_OF(Ring, first) == 24);
static_assert(OFFSET_OF(Ring, peers) == 28);

struct alignas(16) Copy {
    u8 map;
    u8 rank;
    u8 kind;
    u8 reduce;
    i32 tile;
    i32 stride;
    i32 mask;
    u16 eval_begin;
    u16 eval_end;
    u8 tile_reg;
    u8 mask_reg;
    u8 gap[10];
};
static_assert(sizeof(Copy) == 32);
static_assert(OFFSET_OF(Copy, map) == 0);
static_assert(OFFSET_OF(Copy, rank) == 1);
static_assert(OFFSET_OF(Copy, kind) == 2);
static_assert(OFFSET_OF(Copy, reduce) == 3);
static_assert(OFFSET_OF(Copy, tile) == 4);
static_assert(OFFSET_OF(Copy, stride) == 8);
static_assert(OFFSET_OF(Copy, mask) == 12);
static_assert(OFFSET_OF(Copy, eval_begin) == 16);
static_assert(OFFSET_OF(Copy, eval_end) == 18);
static_assert(OFFSET_OF(Copy, tile_reg) == 20);
static_assert(OFFSET_OF(Copy, mask_reg) == 21);

struct alignas(16) Once {
    u8 op;
    u8 loads;
    u8 stores;
    u8 flags;
    i32 bar;
    i32 nbytes;
    u8 gap[20];
};
static_assert(sizeof(Once) == 32);
static_assert(OFFSET_OF(Once, op) == 0);
static_assert(OFFSET_OF(Once, loads) == 1);
static_assert(OFFSET_OF(Once, stores) == 2);
static_assert(OFFSET_OF(Once, flags) == 3);
static_assert(OFFSET_OF(Once, bar) == 4);
static_assert(OFFSET_OF(Once, nbytes) == 8);

struct alignas(16) ApplyHead {
    u8 op;
    u8 loads;
    u8 read;
    u8 pending;
    i32 full;
    i32 empty;
    i32 nbytes;
    i32 coordinates;
    u16 stages;
    u16 staged;
    i32 tiles;
    u8 gap[4];
};
static_assert(sizeof(ApplyHead) == 32);
static_assert(OFFSET_OF(ApplyHead, op) == 0);
static_assert(OFFSET_OF(ApplyHead, loads) == 1);
static_assert(OFFSET_OF(ApplyHead, read) == 2);
static_assert(OFFSET_OF(ApplyHead, pending) == 3);
static_assert(OFFSET_OF(ApplyHead, full) == 4);
static_assert(OFFSET_OF(ApplyHead, empty) == 8);
static_assert(OFFSET_OF(ApplyHead, nbytes) == 12);
static_assert(OFFSET_OF(ApplyHead, coordinates) == 16);
static_assert(OFFSET_OF(ApplyHead, stages) == 20);
static_assert(OFFSET_OF(ApplyHead, staged) == 22);
static_assert(OFFSET_OF(ApplyHead, tiles) == 24);

struct alignas(16) ExtraRecord {
    u8 kind;
    u8 im2col;
    u8 policy;
    u8 dtype;
    u32 fraction;
    i32 nbytes;
    u8 place;
    u8 gap[19];
};
static_assert(sizeof(ExtraRecord) == 32);
static_assert(OFFSET_OF(ExtraRecord, kind) == 0);
static_assert(OFFSET_OF(ExtraRecord, im2col) == 1);
static_assert(OFFSET_OF(ExtraRecord, policy) == 2);
static_assert(OFFSET_OF(ExtraRecord, dtype) == 3);
static_assert(OFFSET_OF(ExtraRecord, fraction) == 4);
static_assert(OFFSET_OF(ExtraRecord, nbytes) == 8);
static_assert(OFFSET_OF(ExtraRecord, place) == 12);

struct alignas(16) Coordinate {
    i32 step_x;
    i32 step_y;
    i32 step_z;
    i32 offset;
    u32 magic;
    u32 modulus_magic;
    u8 shift;
    u8 modulus_shift;
    u8 reg;
    u8 base_reg;
    u32 modulus;
    i32 scale;
    i32 base;
    u8 reg_z;
    u8 gap[7];
};
static_assert(sizeof(Coordinate) == 48);
static_assert(OFFSET_OF(Coordinate, step_x) == 0);
static_assert(OFFSET_OF(Coordinate, step_y) == 4);
static_assert(OFFSET_OF(Coordinate, step_z) == 8);
static_assert(OFFSET_OF(Coordinate, offset) == 12);
static_assert(OFFSET_OF(Coordinate, magic) == 16);
static_assert(OFFSET_OF(Coordinate, modulus_magic) == 20);
static_assert(OFFSET_OF(Coordinate, shift) == 24);
static_assert(OFFSET_OF(Coordinate, modulus_shift) == 25);
static_assert(OFFSET_OF(Coordinate, reg) == 26);
static_assert(OFFSET_OF(Coordinate, base_reg) == 27);
static_assert(OFFSET_OF(Coordinate, modulus) == 28);
static_assert(OFFSET_OF(Coordinate, scale) == 32);
static_assert(OFFSET_OF(Coordinate, base) == 36);
static_assert(OFFSET_OF(Coordinate, reg_z) == 40);

struct alignas(8) EvalInstr {
    u8 fn;
    u8 reg;
    u16 spare;
    i32 imm;
};
static_assert(sizeof(EvalInstr) == 8);
static_assert(OFFSET_OF(EvalInstr, fn) == 0);
static_assert(OFFSET_OF(EvalInstr, reg) == 1);
static_assert(OFFSET_OF(EvalInstr, spare) == 2);
static_assert(OFFSET_OF(EvalInstr, imm) == 4);

struct alignas(8) ElemInstr {
    u8 fn;
    u8 dtype;
    u8 source;
    u8 along;
    u32 word;
};
static_assert(sizeof(ElemInstr) == 8);
static_assert(OFFSET_OF(ElemInstr, fn) == 0);
static_assert(OFFSET_OF(ElemInstr, dtype) == 1);
static_assert(OFFSET_OF(ElemInstr, source) == 2);
static_assert(OFFSET_OF(ElemInstr, along) == 3);
static_assert(OFFSET_OF(ElemInstr, word) == 4);

struct alignas(8) ComputeInstr {
    u8 fn;
    u8 form;
    u8 index;
    u8 mask;
    u32 word;
};
static_assert(sizeof(ComputeInstr) == 8);
static_assert(OFFSET_OF(ComputeInstr, fn) == 0);
static_assert(OFFSET_OF(ComputeInstr, form) == 1);
static_assert(OFFSET_OF(ComputeInstr, index) == 2);
static_assert(OFFSET_OF(ComputeInstr, mask) == 3);
static_assert(OFFSET_OF(ComputeInstr, word) == 4);

struct alignas(16) Units {
    u32 units;
    u32 per_row;
    u32 down;
    u32 right;
    u32 magic;
    u32 shift;
    u8 gap[8];
};
static_assert(sizeof(Units) == 32);
static_assert(OFFSET_OF(Units, units) == 0);
static_assert(OFFSET_OF(Units, per_row) == 4);
static_assert(OFFSET_OF(Units, down) == 8);
static_assert(OFFSET_OF(Units, right) == 12);
static_assert(OFFSET_OF(Units, magic) == 16);
static_assert(OFFSET_OF(Units, shift) == 20);

struct alignas(16) FlipRecord {
    u32 blocks;
    u32 source_pitch;
    u32 out_pitch;
    u8 source_mask;
    u8 out_mask;
    u8 element;
    u8 side;
    u32 across;
    u32 across_magic;
    u32 down;
    u32 down_magic;
};
static_assert(sizeof(FlipRecord) == 32);
static_assert(OFFSET_OF(FlipRecord, blocks) == 0);
static_assert(OFFSET_OF(FlipRecord, source_pitch) == 4);
static_assert(OFFSET_OF(FlipRecord, out_pitch) == 8);
static_assert(OFFSET_OF(FlipRecord, source_mask) == 12);
static_assert(OFFSET_OF(FlipRecord, out_mask) == 13);
static_assert(OFFSET_OF(FlipRecord, element) == 14);
static_assert(OFFSET_OF(FlipRecord, side) == 15);
static_assert(OFFSET_OF(FlipRecord, across) == 16);
static_assert(OFFSET_OF(FlipRecord, across_magic) == 20);
static_assert(OFFSET_OF(FlipRecord, down) == 24);
static_assert(OFFSET_OF(FlipRecord, down_magic) == 28);

struct alignas(16) FoldRecord {
    u32 rows;
    u32 columns;
    u32 pitch;
    u8 source_mask;
    u8 out_mask;
    u8 form;
    u8 whole;
    u8 gap[16];
};
static_assert(sizeof(FoldRecord) == 32);
static_assert(OFFSET_OF(FoldRecord, rows) == 0);
static_assert(OFFSET_OF(FoldRecord, columns) == 4);
static_assert(OFFSET_OF(FoldRecord, pitch) == 8);
static_assert(OFFSET_OF(FoldRecord, source_mask) == 12);
static_assert(OFFSET_OF(FoldRecord, out_mask) == 13);
static_assert(OFFSET_OF(FoldRecord, form) == 14);
static_assert(OFFSET_OF(FoldRecord, whole) == 15);

struct alignas(16) StencilRecord {
    u32 rows;
    u32 columns;
    u32 source_pitch;
    u32 out_pitch;
    u32 start;
    u8 source_mask;
    u8 out_mask;
    u8 way;
    u8 across_shift;
    u32 across_magic;
    u32 places;
};
static_assert(sizeof(StencilRecord) == 32);
static_assert(OFFSET_OF(StencilRecord, rows) == 0);
static_assert(OFFSET_OF(StencilRecord, columns) == 4);
static_assert(OFFSET_OF(StencilRecord, source_pitch) == 8);
static_assert(OFFSET_OF(StencilRecord, out_pitch) == 12);
static_assert(OFFSET_OF(StencilRecord, start) == 16);
static_assert(OFFSET_OF(StencilRecord, source_mask) == 20);
static_assert(OFFSET_OF(StencilRecord, out_mask) == 21);
static_assert(OFFSET_OF(StencilRecord, way) == 22);
static_assert(OFFSET_OF(StencilRecord, across_shift) == 23);
static_assert(OFFSET_OF(StencilRecord, across_magic) == 24);
static_assert(OFFSET_OF(StencilRecord, places) == 28);

struct alignas(8) TapEntry {
    i32 offset;
    u32 weight;
};
static_assert(sizeof(TapEntry) == 8);
static_assert(OFFSET_OF(TapEntry, offset) == 0);
static_assert(OFFSET_OF(TapEntry, weight) == 4);

struct alignas(16) Contract {
    i32 full;
    i32 empty;
    i32 a;
    i32 a_stride;
    i32 b;
    i32 b_stride;
    u8 stages;
    u8 peers;
    u8 shape;
    u8 type;
    u8 number;
    u8 pitch;
    u8 axes;
    u8 size;
};
static_assert(sizeof(Contract) == 32);
static_assert(OFFSET_OF(Contract, full) == 0);
static_assert(OFFSET_OF(Contract, empty) == 4);
static_assert(OFFSET_OF(Contract, a) == 8);
static_assert(OFFSET_OF(Contract, a_stride) == 12);
static_assert(OFFSET_OF(Contract, b) == 16);
static_assert(OFFSET_OF(Contract, b_stride) == 20);
static_assert(OFFSET_OF(Contract, stages) == 24);
static_assert(OFFSET_OF(Contract, peers) == 25);
static_assert(OFFSET_OF(Contract, shape) == 26);
static_assert(OFFSET_OF(Contract, type) == 27);
static_assert(OFFSET_OF(Contract, number) == 28);
static_assert(OFFSET_OF(Contract, pitch) == 29);
static_assert(OFFSET_OF(Contract, axes) == 30);
static_assert(OFFSET_OF(Contract, size) == 31);

struct alignas(16) Epilogue {
    i32 out;
    u8 out_stages;
    u8 form;
    u8 adds;
    u8 gap4[1];
    u16 instructions;
    u8 gap5[2];
    u8 sources[4];
    u8 gap[16];
};
static_assert(sizeof(Epilogue) == 32);
static_assert(OFFSET_OF(Epilogue, out) == 0);
static_assert(OFFSET_OF(Epilogue, out_stages) == 4);
static_assert(OFFSET_OF(Epilogue, form) == 5);
static_assert(OFFSET_OF(Epilogue, adds) == 6);
static_assert(OFFSET_OF(Epilogue, instructions) == 8);
static_assert(OFFSET_OF(Epilogue, sources) == 12);

struct alignas(16) ProductHead {
    u32 full;
    u32 empty;
    u32 a;
    u32 a_stride;
    u32 b;
    u32 b_stride;
    u32 out0;
    u32 out1;
    u32 nbytes;
    u32 steps;
    u32 entry_words;
    u32 turns;
    u8 stages;
    u8 out_stages;
    u8 peers;
    u8 shape;
    u8 type;
    u8 form;
    u8 adds;
    u8 rank;
    u8 groups;
    u8 loads;
    u8 map;
    u8 full_count;
    u8 empty_count;
    u8 pitch;
    u8 axes;
    u8 size;
};
static_assert(sizeof(ProductHead) == 64);
static_assert(OFFSET_OF(ProductHead, full) == 0);
static_assert(OFFSET_OF(ProductHead, empty) == 4);
static_assert(OFFSET_OF(ProductHead, a) == 8);
static_assert(OFFSET_OF(ProductHead, a_stride) == 12);
static_assert(OFFSET_OF(ProductHead, b) == 16);
static_assert(OFFSET_OF(ProductHead, b_stride) == 20);
static_assert(OFFSET_OF(ProductHead, out0) == 24);
static_assert(OFFSET_OF(ProductHead, out1) == 28);
static_assert(OFFSET_OF(ProductHead, nbytes) == 32);
static_assert(OFFSET_OF(ProductHead, steps) == 36);
static_assert(OFFSET_OF(ProductHead, entry_words) == 40);
static_assert(OFFSET_OF(ProductHead, turns) == 44);
static_assert(OFFSET_OF(ProductHead, stages) == 48);
static_assert(OFFSET_OF(ProductHead, out_stages) == 49);
static_assert(OFFSET_OF(ProductHead, peers) == 50);
static_assert(OFFSET_OF(ProductHead, shape) == 51);
static_assert(OFFSET_OF(ProductHead, type) == 52);
static_assert(OFFSET_OF(ProductHead, form) == 53);
static_assert(OFFSET_OF(ProductHead, adds) == 54);
static_assert(OFFSET_OF(ProductHead, rank) == 55);
static_assert(OFFSET_OF(ProductHead, groups) == 56);
static_assert(OFFSET_OF(ProductHead, loads) == 57);
static_assert(OFFSET_OF(ProductHead, map) == 58);
static_assert(OFFSET_OF(ProductHead, full_count) == 59);
static_assert(OFFSET_OF(ProductHead, empty_count) == 60);
static_assert(OFFSET_OF(ProductHead, pitch) == 61);
static_assert(OFFSET_OF(ProductHead, axes) == 62);
static_assert(OFFSET_OF(ProductHead, size) == 63);

struct alignas(16) ProductLoad {
    u8 gap0[4];
    u32 stride;
    u32 mask;
    u8 map;
    u8 rank;
    u8 multicast;
    u8 gap5[1];
    i32 growth[3];
    u8 gap[4];
};
static_assert(sizeof(ProductLoad) == 32);
static_assert(OFFSET_OF(ProductLoad, stride) == 4);
static_assert(OFFSET_OF(ProductLoad, mask) == 8);
static_assert(OFFSET_OF(ProductLoad, map) == 12);
static_assert(OFFSET_OF(ProductLoad, rank) == 13);
static_assert(OFFSET_OF(ProductLoad, multicast) == 14);
static_assert(OFFSET_OF(ProductLoad, growth) == 16);

struct alignas(16) FinishHead {
    u8 before;
    u8 count;
    u8 fn;
    u8 fn_round;
    u8 round;
    u8 biased;
    u8 straight;
    u8 gap[9];
};
static_assert(sizeof(FinishHead) == 16);
static_assert(OFFSET_OF(FinishHead, before) == 0);
static_assert(OFFSET_OF(FinishHead, count) == 1);
static_assert(OFFSET_OF(FinishHead, fn) == 2);
static_assert(OFFSET_OF(FinishHead, fn_round) == 3);
static_assert(OFFSET_OF(FinishHead, round) == 4);
static_assert(OFFSET_OF(FinishHead, biased) == 5);
static_assert(OFFSET_OF(FinishHead, straight) == 6);

struct alignas(16) FinishStep {
    u8 op;
    u8 of;
    u8 form;
    u8 round;
    u32 source;
    u32 scale;
    u32 flags;
};
static_assert(sizeof(FinishStep) == 16);
static_assert(OFFSET_OF(FinishStep, op) == 0);
static_assert(OFFSET_OF(FinishStep, of) == 1);
static_assert(OFFSET_OF(FinishStep, form) == 2);
static_assert(OFFSET_OF(FinishStep, round) == 3);
static_assert(OFFSET_OF(FinishStep, source) == 4);
static_assert(OFFSET_OF(FinishStep, scale) == 8);
static_assert(OFFSET_OF(FinishStep, flags) == 12);

struct alignas(16) ReportHeader {
    u32 skip;
    u32 count;
    u32 reserved0;
    u32 reserved1;
};
static_assert(sizeof(ReportHeader) == 16);
static_assert(OFFSET_OF(ReportHeader, skip) == 0);
static_assert(OFFSET_OF(ReportHeader, count) == 4);
static_assert(OFFSET_OF(ReportHeader, reserved0) == 8);
static_assert(OFFSET_OF(ReportHeader, reserved1) == 12);

struct alignas(16) ReportEntry {
    u32 kind;
    u32 cta;
    u32 warp;
    u32 pc;
    u32 iteration;
    u32 barrier;
    u32 parity;
    u32 state_low;
    u32 state_high;
    u32 value_low;
    u32 value_high;
    u32 bound;
};
static_assert(sizeof(ReportEntry) == 48);
static_assert(OFFSET_OF(ReportEntry, kind) == 0);
static_assert(OFFSET_OF(ReportEntry, cta) == 4);
static_assert(OFFSET_OF(ReportEntry, warp) == 8);
static_assert(OFFSET_OF(ReportEntry, pc) == 12);
static_assert(OFFSET_OF(ReportEntry, iteration) == 16);
static_assert(OFFSET_OF(ReportEntry, barrier) == 20);
static_assert(OFFSET_OF(ReportEntry, parity) == 24);
static_assert(OFFSET_OF(ReportEntry, state_low) == 28);
static_assert(OFFSET_OF(ReportEntry, state_high) == 32);
static_assert(OFFSET_OF(ReportEntry, value_low) == 36);
static_assert(OFFSET_OF(ReportEntry, value_high) == 40);
static_assert(OFFSET_OF(ReportEntry, bound) == 44);

struct alignas(16) StampHeader {
    u32 ctas;
    u32 capacity;
    u32 reserved0;
    u32 reserved1;
};
static_assert(sizeof(StampHeader) == 16);
static_assert(OFFSET_OF(StampHeader, ctas) == 0);
static_assert(OFFSET_OF(StampHeader, capacity) == 4);
static_assert(OFFSET_OF(StampHeader, reserved0) == 8);
static_assert(OFFSET_OF(StampHeader, reserved1) == 12);

struct alignas(16) Stamp {
    u32 pc;
    u32 value;
    u64 begun;
};
static_assert(sizeof(Stamp) == 16);
static_assert(OFFSET_OF(Stamp, pc) == 0);
static_assert(OFFSET_OF(Stamp, value) == 4);
static_assert(OFFSET_OF(Stamp, begun) == 8);
