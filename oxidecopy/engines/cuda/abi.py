"""What the host and the interpreter kernels share, declared once: records, opcodes, the launch parameter, the report.

`kernels/abi.h` is generated from this module (`python -m oxidecopy._tools.kernel_header`), and `abi_hash` over the header's text is in the
manifest of the cubins: a cubin built from another declaration is not loaded.

**The machine.** A launch runs the program's *agents*: classes of threads that are in the same scopes, so that each has one control flow
(`code.agents`). An agent gets whole warps of its own, whatever lanes its threads had: no warp ever holds two control flows, there is
nothing to diverge, and a wait of one agent never holds up another. A warp stands for `WarpEntry.threads` threads of its agent; arrivals
count those. Agents that only synchronise are left out, and thread counts of named barriers are those of the warps that are left.

A warp reads 32-byte records at `pc`, uniformly. Integers that are not known when the code is made live in its *scalar file*: 32-bit
register i in lane i (i < 32) and, for i >= 32, in a second word of lane i - 32; they are read by shuffles. Operand k of a record is
`imm[k] + (reg[k] == NO_REG ? 0 : R[reg[k]])`, for k < 5; registers 5 to 7 have no immediate. Coordinates are registers alone (NO_REG: 0),
outermost first. Tensor copies go through map slot `map + imm[4] + (imm[3] == 0 ? 0 : R[imm[3] - 1])`: of a table an entry.

Shared addresses in records and header are offsets from the start of dynamic shared memory.

**Scalars.** `EVAL` runs 8-byte instructions (`EvalFn`) on an accumulator with a stack of four. All is 32-bit signed; the encoder has
proven that nothing overflows for this launch. The same instructions compute the coordinates of fused loops, there with lane l working on
iteration i + l. Most coordinates are quotients and remainders of one number, and then `COORDINATE` records give them, which takes a tenth
of the time.

**Fused loops.** `PRODUCE` and `DRAIN` are whole loops over the stages of a ring. Stage and phase of iteration k are k % stages and
k // stages; barriers lie 8 bytes apart, tiles `stride` bytes.

**All programs.** Three things need more than that, and get it from families of kernels that are slower and do without fused loops: "wide",
where every scalar, register and stack place has 64 bits; and "many", for programs of more than 32 warps, where a hardware warp runs several
warps of the table in turn, each as far as it gets without waiting. There warp i of the table runs on hardware warp i % header.warps; its
copies are issued by a lane of its own, as bulk groups belong to threads, and barriers of threads are counted in shared memory. In both
families the table lies behind the records, in device memory, and the words of an array are `WIDE_ARRAY_WORDS`.

**Tokens.** Where it cannot be told which phase a token names, it is what the arrival returned: the barrier's state, which a wait can name
as well as a parity (wide and many). The threads that arrived keep it in registers (`TOKEN_KEPT`). For others it lies in shared memory
(`TOKEN_SHARED`), in a `HISTORY`, found by its *stamp*: the iteration of the loops around as one number.

**One-shot programs.** Where all that a CTA does is one thread's straight line, loads, a wait, stores, its whole code is a `ONCE` record,
which kernels of their own run (family "once"): such CTAs live for two microseconds, and reading code op by op takes longer than that.
Where CTAs stay, and a group makes a tile of what a ring brings, all of that is an `APPLY` (family "apply").
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

RECORD_BYTES: Final = 32
EVAL_BYTES: Final = 8
NO_REG: Final = 0xFF
REGISTERS: Final = 64
STACK_DEPTH: Final = 4
WIDE_STACK_DEPTH: Final = 5  # families wide and many: a constant that no immediate holds is pushed

RECORD: Final = (
    ("op", "u8", 0),  # DeviceOp
    ("aux", "u8", 1),
    ("map", "u8", 2),
    ("flags", "u8", 3),
    ("reg", "u8[8]", 4),
    ("imm", "i32[5]", 12),
)
EVAL_INSTR: Final = (("fn", "u8", 0), ("reg", "u8", 1), ("spare", "u16", 2), ("imm", "i32", 4))
ELEM_INSTR: Final = (("fn", "u8", 0), ("dtype", "u8", 1), ("source", "u8", 2), ("along", "u8", 3), ("word", "u32", 4))
COMPUTE_INSTR: Final = (("fn", "u8", 0), ("form", "u8", 1), ("index", "u8", 2), ("mask", "u8", 3), ("word", "u32", 4))

# Registers that are written before the code starts: block_idx.x, .y, .z and the rank in the cluster.
REG_BLOCK_X: Final = 0
REG_BLOCK_Y: Final = 1
REG_BLOCK_Z: Final = 2
REG_RANK: Final = 3
FIRST_FREE_REG: Final = 4

# ---- the launch parameter: maps, header, blob. Blob: warp table, then argument words, then (inline code only) the code.
MAP_BYTES: Final = 128
INLINE_MAPS_SMALL: Final = 2
INLINE_MAPS_MEDIUM: Final = 5  # of maps over tiles
INLINE_MAPS_LARGE: Final = 8  # more maps lie in a table in global memory
PARAM_BYTES_SMALL: Final = 1024
PARAM_BYTES_MEDIUM: Final = 2048
PARAM_BYTES_LARGE: Final = 4096  # a launch takes 1 us longer than with half of it (measured on an H200)
HEADER_BYTES: Final = 64
WARP_ENTRY_BYTES: Final = 8
ARRAY_WORDS: Final = 9  # u64 words of an array slot: address; 5 strides in bytes; extents 0|1<<32, 2|3<<32, 4. Outermost first.
WIDE_ARRAY_WORDS: Final = 11  # families wide and many: address; 5 strides; 5 extents

# Fields of the header: name, C type, offset.
HEADER: Final = (
    ("report", "u64", 0),  # Report, in host memory that the device can write
    ("code", "u64", 8),  # records in global memory; 0: they follow in the blob
    ("table", "u64", 16),  # maps in global memory; 0: inline
    ("counter", "u64", 24),  # two u32: next tile, CTAs that are done; both 0 between launches
    ("code_offset", "u32", 32),  # of the code in the blob, bytes
    ("args_offset", "u32", 36),  # of the argument words in the blob, bytes
    ("records", "u32", 40),  # code length; a pc beyond it ends the warp as a bad opcode
    ("limit_us", "u32", 44),  # how long a wait may take
    # families wide and many: entries of the warp table, which lies behind the records; family mma: how many warps contract, the first ones
    ("crew", "u32", 48),
    ("warps", "u32", 52),  # of the hardware
    # 0, or shared offset of 1 + stages u32: how many tiles the counter gave, then the tile of each stage. Families wide and many: of u64
    # words, which are 0 at the start: of each barrier of threads arrivals and phases (u32), then histories.
    ("stage_slots", "u32", 56),
    ("words", "u32", 60),  # families wide and many: how many of them
)

# A token's past: u64 words. First how many were put there; then `HISTORY_WORDS` for each, round and round.
HISTORY: Final = (
    ("stamp", "u64", 0),  # plus 1; 0: nobody was here
    ("state", "u64", 8),  # what the arrival returned
)
HISTORY_WORDS: Final = 2

# The warp table, one entry per warp of the CTA.
WARP_ENTRY: Final = (
    ("entry", "u16", 0),  # first record of its agent
    ("threads", "u16", 2),  # threads that this warp stands for: its arrivals
    ("first_lane", "u16", 4),  # lanes of the agent before this warp: 32 per warp
    ("lanes", "u16", 6),  # lanes of all the agent's warps together
)


class DeviceOp(IntEnum):
    """Opcodes. Those of the op table keep their number; others start at 0x80."""

    # from the op table
    MBARRIER_INIT = 0x10  # addr 0; imm1 count; imm2 how many barriers, 8 bytes apart: 1 to 32
    MBARRIER_INVAL = 0x11  # addr 0
    MBARRIER_ARRIVE = 0x12  # addr 0; the warp's threads arrive
    MBARRIER_ARRIVE_EXPECT_TX = 0x13  # addr 0; value1 bytes, for each of the warp's threads
    MBARRIER_EXPECT_TX = 0x14  # as above, without arriving
    MBARRIER_COMPLETE_TX = 0x15
    MBARRIER_ARRIVE_DROP = 0x16  # as ARRIVE
    MBARRIER_ARRIVE_REMOTE = 0x17  # addr 0; value1 rank
    MBARRIER_ARRIVE_EXPECT_TX_REMOTE = 0x18  # addr 0; value1 rank; value2 bytes
    MBARRIER_WAIT_TOKEN = 0x19  # addr 0; flags: where the token is; its stamp in reg 7; see below
    MBARRIER_WAIT_PHASE = 0x1A  # addr 0; value1 phase, negative passes at once
    MBARRIER_WAIT_PARITY = 0x1B  # addr 0; value1 parity, bit 0 counts
    MBARRIER_TEST_TOKEN = 0x1C  # as WAIT_TOKEN; reg2 and aux as TEST_PARITY
    MBARRIER_TEST_PARITY = 0x1D  # addr 0; value1 parity, bit 0 counts; reg2 = 1 or 0; aux 0 try_wait, 1 test_wait
    TENSOR_G2S = 0x20  # map, imm3, imm4: its slot; aux rank; value0 tile; value1 barrier; reg 3 to 7 coordinates
    TENSOR_G2S_MULTICAST = 0x21  # also value2 mask
    TENSOR_S2G = 0x22
    TENSOR_REDUCE = 0x23  # flags: position in isa.dtypes.REDUCE_OPS
    # The numbers of these are `kind`s of COPY_EXTRA; they are no records of their own.
    TENSOR_PREFETCH = 0x24
    TENSOR_GATHER4 = 0x25
    TENSOR_SCATTER4 = 0x26
    BULK_G2S = 0x2B
    BULK_G2S_MULTICAST = 0x2C
    BULK_S2G = 0x2D
    BULK_REDUCE = 0x2E
    BULK_PREFETCH = 0x2F
    BULK_S2S = 0x38
    BULK_REDUCE_S2S = 0x39
    # Maps that are replaced; these, too, are kinds of COPY_EXTRA, though no copies. value0 is the tile with the map.
    TENSORMAP_COPY = 0x60  # map as of a copy
    TENSORMAP_REPLACE = 0x61  # aux field, flags entry, value2 what is written; EXTRA.nbytes 1: less than 1 is reported as EMPTY
    TENSORMAP_REPLACE_ARRAY = 0x62  # address and strides alone: map as in STORE_GLOBAL, aux rank; reg 3 to 7 first element
    TENSORMAP_CP_FENCEPROXY = 0x63  # map as in STORE_GLOBAL; value2 its row
    FENCE_PROXY_TENSORMAP = 0x64  # as above, without a tile
    COMMIT_GROUP = 0x28
    WAIT_GROUP = 0x29  # imm0 pending, 0 to 15
    WAIT_GROUP_READ = 0x2A
    FENCE_PROXY_ASYNC = 0x30
    FENCE_MBARRIER_INIT = 0x31
    BAR_SYNC = 0x32  # imm0 number; imm1 threads, 32 for each warp that comes
    CLUSTER_SYNC = 0x33
    STORE_GLOBAL = 0x40  # map: first argument word of the array, / ARRAY_WORDS; value0 tile; reg 3 to 7 coordinates; share; + layout
    FILL = 0x41  # value0 tile; imm1 argument word that holds the element's bits; share; + layout
    IOTA = 0x42  # value0 tile; imm1 axis; share; + layout
    MAP_TILES = 0x43  # aux inputs; value0 out tile; share; + layouts of out and of each input; + imm1 elem instructions, four to a record
    TRANSPOSE_TILE = 0x44  # family reshape: value0 out, value1 source; share in lanes; imm4; + flip: see `FLIP` below
    REDUCE_TILE = 0x45  # family reshape: value0 out, value1 source; share in lanes; aux; + fold: see `FOLD` below
    STENCIL_TILE = 0x46  # family reshape: value0 out, value1 source; share in lanes; aux taps; + stencil; + taps, four to a record
    LOAD_INDEX = 0x48  # map: as STORE_GLOBAL; aux dtype code; value0 index; value1 below; reg2 = the value
    LOAD_ROWS = 0x49  # as TENSOR_G2S, with the index of row 0 in value2; + rows: as many loads, each at a place that an index says
    # the interpreter's own
    END = 0x80
    EVAL = 0x81  # imm0 instructions, four to a record, in the records that follow
    JUMP = 0x82  # imm0 record
    JUMP_UNLESS = 0x83  # value1 == 0: go to record imm0
    LOOP = 0x84  # R[reg0] = value1; unless below value2 (above it where imm3 < 0): go to imm4. imm3 step
    NEXT = 0x85  # R[reg0] += imm3; while below value2 (above it where imm3 < 0): go to imm4
    WARP_SYNC = 0x86  # a barrier of one warp
    PLACE = 0x87  # family compute: the lanes of mask imm1 set their register as a `COORDINATE` says, in order from lane imm0 on; see below
    PRODUCE = 0x90  # value0 start; value1 stop; + ring record; + load records; + evals
    DRAIN = 0x91  # value0 start; value1 stop; + ring record; + store records; + evals
    ONCE = 0x93  # the whole program of a CTA: see `ONCE` below
    APPLY = 0x98  # the whole program of a CTA that maps tiles: see `APPLY` below
    # A tensor copy as above in all but its op, with an EXTRA record behind it; value2 of an im2col load: its offsets, packed, behind the
    # mask of a multicast. Plain: map as in STORE_GLOBAL, aux the array's rank, value2 mask. Between CTAs: value2 rank, value3 tile there.
    # With EXTRA.place the copy's map lies in an array: map as in STORE_GLOBAL, imm4 + R[imm3 - 1] the row.
    COPY_EXTRA = 0x94
    COMPUTE = 0x95  # a MAP_TILES that the family "compute" can run: see `UNITS` below
    CONTRACT = (
        0x96  # aux rank; value0 first stage; value1 steps; value2 first use of the staging tile; map, reg 3 to 7 as a copy; see below
    )
    CONTRACT_DRAIN = 0x97  # imm0 number: waits until the stores of the group's CONTRACTs have been read
    NEXT_STAGE = (
        0x92  # head of a loop whose tiles a counter gives: value0 is k; imm1 full of stage 0; imm2 stages; tile to reg2; none left: imm4
    )


# Tokens as states: arrivals, WAIT_TOKEN and TEST_TOKEN name by flags where a token lies, and by reg 7 its stamp (NO_REG: 0). Kept ones lie
# in reg 5 (stamp + 1) and reg 6 (state), shared ones in the history at shared offset imm3, of imm4 entries. Waits have one of the flags.
TOKEN_KEPT: Final = 1
TOKEN_SHARED: Final = 2

# A LOOP with this flag is *tight*: there is nothing in it but PLACE, NEXT_STAGE, MBARRIER_WAIT_PHASE, MBARRIER_ARRIVE, WAIT_GROUP, _READ,
# COMMIT_GROUP, BAR_SYNC, WARP_SYNC, FENCE_PROXY_ASYNC, TENSOR_S2G, COMPUTE, TRANSPOSE_TILE, REDUCE_TILE and STENCIL_TILE, and
# the flags of those say how many records follow each.
# The family "compute" runs it by code that is so short that it stays in the instruction caches.
LOOP_TIGHT: Final = 1

# A share: which part of a cooperative access an agent does. Of `total` threads in scope it is those from `low` to `high` - 1:
# units u with low <= u % total < high. Packed as imm2 = low | high << 16, imm3 = total.

# ---- records that follow others. All fields are i32 unless said; offsets in bytes.
LAYOUT: Final = (  # how a tile lies in shared memory
    ("shape0", "i32", 0),  # extents, outermost first, of `rank` dimensions
    ("shape1", "i32", 4),
    ("shape2", "i32", 8),
    ("shape3", "i32", 12),
    ("shape4", "i32", 16),
    ("pitch", "i32", 20),  # bytes from one innermost row to the next
    ("rank", "u8", 24),
    ("element_bytes", "u8", 25),
    ("swizzle_mask", "u8", 26),  # isa.swizzle: address ^ ((address >> 7 & mask) << 4)
    ("dtype", "u8", 27),  # DTypeCode
    ("tile", "i32", 28),  # MAP_TILES inputs: imm of the tile's offset; its register is the record's index in reg of the head: 1 + input
)
ROWS: Final = (  # what a LOAD_ROWS record is followed by: row j is one load, by a lane of its own
    ("array", "u8", 0),  # of the indices: first argument word / ARRAY_WORDS
    ("dtype", "u8", 1),  # DTypeCode
    ("dim", "u8", 2),  # the coordinate, innermost first, that gets scale * index of row j
    ("scale", "i32", 4),
    ("count", "u32", 8),
    ("tile_step", "i32", 12),  # bytes from row to row
    ("index_step", "i32", 16),  # row j: min(value2 + index_step * j, index_most)
    ("index_most", "i32", 20),
    ("below", "u32", 24),
)
RING: Final = (
    ("full", "i32", 0),  # shared offsets of element 0
    ("empty", "i32", 4),
    ("nbytes", "i32", 8),  # PRODUCE: announced on full, 0: nothing is; DRAIN: pending groups
    ("offset", "i32", 12),  # k = counter + offset
    ("stages", "u16", 16),  # at most STAGES_MAX
    ("copies", "u8", 18),  # 1 to 4 records follow
    ("flags", "u8", 19),  # RingFlag
    ("evals", "u16", 20),  # 8-byte instructions (or parts of coordinates: six each) that follow the copies, four to a record
    (
        "empty_behind",
        "u16",
        22,
    ),  # DRAIN: released is the stage of iteration k - empty_behind, fewer than there are stages
    ("first", "i32", 24),  # DRAIN: no release while k < first
    ("peers", "i32", 28),  # DRAIN: 0: arrives on its own CTA's empty, else on ranks 0 to peers - 1
)
COPY: Final = (
    ("map", "u8", 0),
    ("rank", "u8", 1),
    ("kind", "u8", 2),  # low byte of the DeviceOp: 0x20 to 0x23
    ("reduce", "u8", 3),
    ("tile", "i32", 4),  # shared offset of stage 0
    ("stride", "i32", 8),
    ("mask", "i32", 12),
    ("eval_begin", "u16", 16),  # positions among the loop's instructions: its coordinates, by OUT
    ("eval_end", "u16", 18),
    ("tile_reg", "u8", 20),  # added to tile; NO_REG: nothing
    ("mask_reg", "u8", 21),
)
EXTRA: Final = (
    ("kind", "u8", 0),  # the DeviceOp that it is, with what follows
    ("im2col", "u8", 1),
    ("policy", "u8", 2),  # 0: none, else 1 + isa.ops.CacheHint.word
    ("dtype", "u8", 3),  # DTypeCode, of plain reductions
    ("fraction", "u32", 4),  # bits of an f32
    ("nbytes", "i32", 8),  # of plain copies
    ("place", "u8", 12),
)
ONCE: Final = (  # instead of a head: init of the barrier, announce, loads, wait for phase 0, stores, commit, wait for all groups
    ("op", "u8", 0),
    ("loads", "u8", 1),  # 1 to 4 COPY records follow; eval_begin: the first of the copy's coordinates, innermost first
    ("stores", "u8", 2),  # 0 to 4 more
    ("flags", "u8", 3),  # ONCE_FLAG_READ and _INVAL
    ("bar", "i32", 4),
    ("nbytes", "i32", 8),  # announced
)
COORDINATE: Final = (  # follow the copies: (x // divisor % modulus) * scale + base, x = offset + step . block_idx
    ("step_x", "i32", 0),  # fused loops have this step alone: by the tile that the counter gave, without one by the iteration
    ("step_y", "i32", 4),
    ("step_z", "i32", 8),
    ("offset", "i32", 12),
    ("magic", "u32", 16),  # x // divisor = x * magic >> 32 >> shift for 0 <= x < 2**31; magic 0: no divisor
    ("modulus_magic", "u32", 20),  # in the same way; 0: no modulus
    ("shift", "u8", 24),
    ("modulus_shift", "u8", 25),
    ("reg", "u8", 26),  # of fused loops: added to x; NO_REG: nothing
    ("base_reg", "u8", 27),  # added to base
    ("modulus", "u32", 28),
    ("scale", "i32", 32),
    ("base", "i32", 36),
    ("reg_z", "u8", 40),  # of PLACE: x = offset + step_x * R[reg] + step_y * R[base_reg] + step_z * R[reg_z]
)
COORDINATE_BYTES: Final = 48
ONCE_CODE: Final = 32  # where the code of such a program starts in the blob: behind a warp table of one entry, as it has no argument words
# ---- APPLY: the whole program of a CTA that maps the tiles that a counter deals: one thread loads them into a ring, a group makes a tile
# of each set by a COMPUTE, one more thread stores it. Its code starts the blob, argument words lie behind it. Copies follow the head, the
# store behind room for `APPLY_LOADS` loads; then the COMPUTE, with the inputs' strides from stage to stage behind their offsets (bytes 16
# to 31); then coordinates, by the tile.
APPLY: Final = (
    ("op", "u8", 0),
    ("loads", "u8", 1),
    ("read", "u8", 2),  # at the end it waits for stores by wait_group.read, else by wait_group
    ("pending", "u8", 3),  # stores that may be unread when a tile is made
    ("full", "i32", 4),  # shared offsets of stage 0
    ("empty", "i32", 8),
    ("nbytes", "i32", 12),  # announced
    ("coordinates", "i32", 16),  # where they begin, bytes
    ("stages", "u16", 20),
    ("staged", "u16", 22),  # tiles that are stored from
    ("tiles", "i32", 24),
)
APPLY_LOADS: Final = 4  # at most
APPLY_STORES: Final = 1 + APPLY_LOADS  # record of the store
APPLY_COMPUTE: Final = RECORD_BYTES * (2 + APPLY_LOADS)
ONCE_FLAG_READ: Final = 1  # waits by wait_group.read, else by wait_group
ONCE_FLAG_INVAL: Final = 2  # ends with an inval of the barrier
STAGES_MAX: Final = (1 << 12) - 1
RING_FLAG_READ: Final = 1  # DRAIN waits by wait_group.read, else by wait_group
RING_FLAG_COUNTER: Final = (
    2  # PRODUCE takes tiles (value1: how many there are) from the counter and hands them on by stage; DRAIN takes those
)
RING_FLAG_PLACED: Final = 4  # `COORDINATE` records follow the copies instead of instructions; eval_begin: the copy's first, innermost
TILE_BITS: Final = 28  # of a stage's slot: its tile; in the 3 bits above how many tiles behind it follow in the next stages
TILES_AT_ONCE: Final = 8  # so many at most are taken from the counter together
NO_TILE: Final = (1 << TILE_BITS) - 1  # handed on with an extra stage behind the last tile


class EvalFn(IntEnum):
    """Instructions of `EVAL`: u8 fn, u8 reg, u16 spare, i32 imm. acc is the accumulator, pop() the stack's newest."""

    IMM = 1  # push acc; acc = imm
    REG = 2  # push acc; acc = R[reg] + imm
    COUNTER = 3  # fused loops: push acc; acc = the iteration (the loop's counter), with reg = 1 the tile that the launch's counter gave
    ADD = 4  # acc = acc + imm
    MUL = 5
    FLOORDIV = 6  # imm > 0
    MOD = 7  # imm > 0; the remainder of floor division
    MIN = 8
    MAX = 9
    SHR = 10  # arithmetic: floor division by 1 << imm
    AND = 11
    LT = 12  # acc = acc < imm
    LE = 13
    EQ = 14
    NE = 15
    ADD_REG = 16  # acc = acc + R[reg]
    MUL_REG = 17
    ADD_POP = 20  # acc = pop() + acc
    MUL_POP = 21
    MIN_POP = 22
    MAX_POP = 23
    LT_POP = 24  # acc = pop() < acc
    LE_POP = 25
    EQ_POP = 26
    NE_POP = 27
    AND_POP = 28  # in families wide and many bit by bit, else of 0 and 1
    OR_POP = 29
    NOT = 30  # acc = !acc
    FLOORDIV_POP = 31  # acc = pop() // acc; acc > 0; these three in families wide and many
    MOD_POP = 32
    HIGH = 33  # the upper 32 bits of acc = imm
    STORE = 40  # R[reg] = acc; acc = pop(); not in fused loops
    OUT = 41  # coordinate reg (0 is the innermost dimension) of this copy = acc; acc = pop()


class DTypeCode(IntEnum):
    """Element types of plain accesses and maps, as the kernels number them."""

    U8 = 0
    U16 = 1
    U32 = 2
    I32 = 3
    U64 = 4
    I64 = 5
    F16 = 6
    F32 = 7
    F64 = 8
    BF16 = 9
    F32_FTZ = 10
    TF32 = 11
    TF32_FTZ = 12
    E4M3 = 16
    E5M2 = 17


class ElemFn(IntEnum):
    """Instructions of `MAP_TILES`, 8 bytes each: u8 fn, u8 dtype, u8 from, u8 along, u32 word. A stack of 8 raw values of 64 bits."""

    INPUT = 1  # push the element of input `from`, as stored; along 1, 2: of a vector, that of the row, of the column
    WORD = 2  # push argument word `word`: a constant or a scalar parameter, as bits of `dtype`
    NEG = 3
    ADD = 4
    SUB = 5
    MUL = 6
    DIV = 7
    CAST = 8  # from type `from` to `dtype`
    MIN = 9
    MAX = 10
    AND = 11
    OR = 12
    XOR = 13
    SHL = 14
    SHR = 15
    LT = 16  # all ones or 0; dtype is that of the operands
    LE = 17
    GT = 18
    GE = 19
    EQ = 20
    NE = 21
    SELECT = 22  # of three: condition, then the values, the last one on top
    ABS = 24
    NOT = 25
    SQRT = 26
    RSQRT = 27
    EXP = 28
    LOG = 29
    TANH = 30
    SIGMOID = 31
    GELU = 32


class ComputeFn(IntEnum):
    """Instructions of `COMPUTE`, 8 bytes each: u8 fn, u8 form, u8 index, u8 mask, u32 word. See `UNITS`.

    F: values are f32; I, U, S: 32-bit integers, unsigned or signed where it matters; R: operands the other way round; C: with the constant
    `word` for B. A store is the last one. Numbered without gaps, so that a jump table finds them.
    """

    LOAD_A_32 = 0  # EVEN (see `UNITS`): A = bits of input `index`; word: pitch | (distance of units / 16) << 16; mask: its swizzle's
    LOAD_B_32 = 1
    LOAD_A_BF16 = 2  # as above, numbers of that type
    LOAD_B_BF16 = 3
    LOAD_A_F16 = 4
    LOAD_B_F16 = 5
    STORE_32 = 6  # EVEN: the output's elements = A; as LOAD_A_32
    STORE_BF16 = 7  # rounded
    STORE_F16 = 8
    PUT = 9  # vector `index` = A
    GET = 10  # B = vector `index`
    TAKE = 11  # A = vector `index`
    F_ADD = 12  # A = A + B
    F_SUB = 13
    F_RSUB = 14  # A = B - A
    F_MUL = 15
    F_MIN = 16
    F_MAX = 17
    I_ADD = 18
    I_SUB = 19
    I_RSUB = 20
    I_MUL = 21
    I_AND = 22
    I_OR = 23
    I_XOR = 24
    F_ADD_C = 25
    F_SUB_C = 26
    F_RSUB_C = 27
    F_MUL_C = 28
    F_MIN_C = 29
    F_MAX_C = 30
    I_ADD_C = 31
    I_SUB_C = 32
    I_RSUB_C = 33
    I_MUL_C = 34
    I_AND_C = 35
    I_OR_C = 36
    I_XOR_C = 37
    F_ADD_CB = 38  # B = B + constant, and so on
    F_SUB_CB = 39
    F_RSUB_CB = 40
    F_MUL_CB = 41
    F_MIN_CB = 42
    F_MAX_CB = 43
    LOAD_A = 44  # A = elements of input `index`, which lie as form (`ElementForm`) says; mask: its swizzle's; word: its pitch
    LOAD_B = 45
    ROW_A = 46  # as above, of a vector: that of the row (word: nothing), that of the column
    ROW_B = 47
    COLUMN_A = 48
    COLUMN_B = 49
    CONST_A = 50  # A = `word`
    CONST_B = 51
    SCALAR_B = 52  # B = argument word `word`: bits of the form `form`, so a number in f32 where that is a float
    STORE = 53  # elements of the output = A, rounded as form says; mask, word: its swizzle's and pitch
    F_DIV = 54
    F_RDIV = 55
    F_LT = 56  # all ones or 0
    F_LE = 57
    F_GT = 58
    F_GE = 59
    F_EQ = 60
    F_NE = 61
    I_SHL = 62
    I_RSHL = 63  # A = B << A
    U_SHR = 64
    U_RSHR = 65
    S_SHR = 66
    S_RSHR = 67
    U_MIN = 68
    U_MAX = 69
    S_MIN = 70
    S_MAX = 71
    I_EQ = 72
    I_NE = 73
    U_LT = 74
    U_LE = 75
    U_GT = 76
    U_GE = 77
    S_LT = 78
    S_LE = 79
    S_GT = 80
    S_GE = 81
    SELECT = 82  # A = vector `index` ? A : B (bit by bit)
    RSELECT = 83  # A = vector `index` ? B : A
    F_ABS_C = 84  # |A| + constant, which is -0: the one NaN
    F_SQRT = 85
    F_RSQRT = 86
    F_EXP = 87
    F_LOG = 88
    F_TANH = 89
    F_SIGMOID = 90
    F_GELU = 91
    S_ABS = 92
    I_NOT = 93
    ROUND = 94  # A rounded to the type of form (`ElementForm`)
    F_TO_U = 95
    F_TO_S = 96
    U_TO_F = 97
    S_TO_F = 98
    U_TO_ODD = 99  # cut off toward zero, the last bit set if anything was: rounded again, it is rounded once
    S_TO_ODD = 100
    LOAD_A_32_MUL = 101  # LOAD_A_32, and the F_MUL_C that follows it at once
    LOAD_B_32_MUL = 102  # likewise, and F_MUL_CB
    MORE = 103  # goes on with instruction `word`; it, and those behind it, are taken over into lanes, `COMPUTE_AT_HAND` at most


class ElementForm(IntEnum):
    """How an element lies in memory, and what it is in a register: bits of 1, 2 or 4 bytes, or a number in f32."""

    BITS8 = 0
    BITS16 = 1
    BITS32 = 2
    F16 = 3
    BF16 = 4
    E4M3 = 5
    E5M2 = 6


# A COMPUTE record: aux inputs; value0 out tile; regs 1 to 4 of the inputs; share as MAP_TILES; imm1 instructions. It is followed by this
# record, by one with the inputs' offsets, and by the instructions, four to a record. A lane works on `COMPUTE_UNITS` units of four elements
# at a time, so on vectors of 16 numbers: A, B and `COMPUTE_VECTORS` more, the first of them in registers. A tile's units are EVEN
# where each lane has all of them each time, and they are as far apart: a swizzle then tears all of them in the same way.
UNITS: Final = (
    ("units", "u32", 0),  # of the tile: rows * per_row
    ("per_row", "u32", 4),
    ("down", "u32", 8),  # from a lane's unit to its next one: share total = down * per_row + right
    ("right", "u32", 12),
    ("magic", "u32", 16),  # x // per_row as in COORDINATE
    ("shift", "u32", 20),
)
COMPUTE_UNITS: Final = 4
COMPUTE_VECTORS: Final = 3
COMPUTE_AT_HAND: Final = 31  # instructions that lie in a warp's lanes at once: the last is a MORE where others follow
COMPUTE_ARGUMENT: Final = 0x80  # as form of an instruction with a constant: the constant is argument word `word`, 32 bits as they are
COMPUTE_WARPS: Final = 21  # of a CTA at most: its kernels take 96 registers, and a multiprocessor has 65,536
RESHAPE_WARPS: Final = 21  # likewise

# What a TRANSPOSE_TILE record is followed by. Blocks of `1 << side` rows and columns are moved as a whole, in rectangles of
# `1 << tall` by `1 << wide` of them along diagonals. imm4 = across_shift | down_shift << 8 | tall << 16 | wide << 24.
FLIP: Final = (
    ("blocks", "u32", 0),
    ("source_pitch", "u32", 4),
    ("out_pitch", "u32", 8),
    ("source_mask", "u8", 12),  # of the swizzle, as in LAYOUT
    ("out_mask", "u8", 13),
    ("element", "u8", 14),  # bytes, as a power of two
    ("side", "u8", 15),  # 0: element by element
    ("across", "u32", 16),  # rectangles side by side, and
    ("across_magic", "u32", 20),  # x // across as in COORDINATE
    ("down", "u32", 24),  # one below the other, in each of the outer dimensions' matrices
    ("down_magic", "u32", 28),
)
# What a REDUCE_TILE record is followed by. aux = position in isa.ops.FOLDS | axis << 1 | onto << 2.
FOLD: Final = (
    ("rows", "u32", 0),
    ("columns", "u32", 4),
    ("pitch", "u32", 8),
    ("source_mask", "u8", 12),
    ("out_mask", "u8", 13),
    ("form", "u8", 14),  # ElementForm: BITS32, F16 or BF16
    ("whole", "u8", 15),  # 1: each 16 bytes of a row lie at a multiple of 16
)


class StencilWay(IntEnum):
    """How the elements that a tap takes are read; but for WORDS, each 16 bytes of a row lie at a multiple of 16."""

    WORDS = 0  # one by one
    NEAR = 1  # taps reach one row and one column at most, and there is no swizzle: what is around a lane's block is read once
    CHUNKS = 2  # taps are a multiple of four columns apart: four at once


# What a STENCIL_TILE record is followed by, before its taps.
STENCIL: Final = (
    ("rows", "u32", 0),  # of the output
    ("columns", "u32", 4),
    ("source_pitch", "u32", 8),
    ("out_pitch", "u32", 12),
    ("start", "u32", 16),  # bytes from the source's first element to the one in the place of the output's first
    ("source_mask", "u8", 20),
    ("out_mask", "u8", 21),
    ("way", "u8", 22),  # StencilWay
    ("across_shift", "u8", 23),
    ("across_magic", "u32", 24),  # blocks of a lane side by side, of 1 column WORDS, else of 4: x // across as in COORDINATE
    ("places", "u32", 28),  # NEAR, and taps come row by row, from left to right: bit 3 * (row + 1) + column + 1 of each; else 0
)
TAP: Final = (
    ("offset", "i32", 0),  # bytes from the element in an output's place, before the swizzle
    ("weight", "u32", 4),  # the bits of an f32
)


# ---- CONTRACT, of family "mma": run by the four warps of a warpgroup together; two records follow, then the instructions of its epilogue
class ContractType(IntEnum):
    """Types of the operands; _A, _B: which of them have M or N innermost, not K."""

    BF16 = 0
    BF16_A = 1
    BF16_B = 2
    BF16_AB = 3
    F16 = 4
    F16_A = 5
    F16_B = 6
    F16_AB = 7
    TF32 = 8
    E4M3 = 9  # these four: for at most 64 x 128, as each stage is summed by itself
    E4M3_E5M2 = 10
    E5M2_E4M3 = 11
    E5M2 = 12


class ContractShape(IntEnum):
    """What one warpgroup computes: M x N."""

    M64N64 = 0
    M64N128 = 1
    M64N256 = 2
    M128N128 = 3
    M64N192 = 4  # family "product" alone


CONTRACT_SHAPES: Final = {(64, 64): 0, (64, 128): 1, (64, 256): 2, (128, 128): 3, (64, 192): 4}
CONTRACT: Final = (  # tiles have rows of 128 bytes, swizzled by 128
    ("full", "i32", 0),  # shared offsets of stage 0
    ("empty", "i32", 4),
    ("a", "i32", 8),
    ("a_stride", "i32", 12),
    ("b", "i32", 16),
    ("b_stride", "i32", 20),
    ("stages", "u8", 24),
    ("peers", "u8", 25),  # 0: arrives on its own CTA's empty, else on as many: ranks 0 to peers - 1 where `axes` is 0
    ("shape", "u8", 26),  # ContractShape
    ("type", "u8", 27),  # ContractType
    ("number", "u8", 28),  # the group's barrier of threads
    ("pitch", "u8", 29),  # CTAs of a row of the cluster
    ("axes", "u8", 30),  # bit 0: arrives on the CTAs of its row, bit 1: on those of its column
    ("size", "u8", 31),  # CTAs of the cluster
)
EPILOGUE: Final = (
    ("out", "i32", 0),  # shared offset of the first staging tile; they are 8 KiB apart
    ("out_stages", "u8", 4),
    ("form", "u8", 5),  # ElementForm of the output: F16, BF16 or BITS32
    ("adds", "u8", 6),  # 1: adds to what is there
    (
        "instructions",
        "u16",
        8,
    ),  # of COMPUTE, of those for floats: input 0 is the sum, input 1 + i an element of array `sources[i]`; 0: a cast
    ("sources", "u8[4]", 12),  # first argument words, / ARRAY_WORDS
)


# ---- epilogues of products that are compiled (kernels/finish.cuh): some steps, a function, some steps; each rounded as the language says
class FinishFn(IntEnum):
    """The function between the steps."""

    NONE = 0
    GELU = 1
    SIGMOID = 2
    SILU = 3  # x * sigmoid(x)
    TANH = 4
    EXP = 5
    RELU = 6


class FinishOp(IntEnum):
    """What a step does with the value and its operand."""

    ADD = 0
    MUL = 1
    SUB = 2
    RSUB = 3  # operand - value
    MIN = 4
    MAX = 5


class FinishOf(IntEnum):
    """What a step's operand is."""

    NUMBER = 0  # one for all
    ROW = 1  # an element of a vector, for each row
    COLUMN = 2
    ALL = 3  # an element of an array like the result


FINISH_STEPS: Final = 6
FINISH_ARGUMENT: Final = 1  # flags of a step: `source` of a NUMBER is an argument word, which has its bits as f32
FINISH_SCALE_ARGUMENT: Final = 2  # `scale` is an argument word
FINISH_SCALED: Final = 4  # the operand is multiplied by `scale` first
FINISH_BYTES: Final = 16
FINISH_STEP_BYTES: Final = 16
FINISH: Final = (  # FINISH_STEPS steps follow it
    ("before", "u8", 0),  # steps before the function
    ("count", "u8", 1),  # all steps
    ("fn", "u8", 2),  # FinishFn
    ("fn_round", "u8", 3),  # ElementForm that the function's result is rounded to; 0: f32
    ("round", "u8", 4),  # likewise, the sum
    ("biased", "u8", 5),  # 1: step 0 adds an element for each column
    ("straight", "u8", 6),  # 1: fn is NONE, RELU or GELU, comes behind all steps, and nothing is rounded before the store
)
FINISH_STEP: Final = (
    ("op", "u8", 0),  # FinishOp
    ("of", "u8", 1),  # FinishOf
    ("form", "u8", 2),  # ElementForm of the array's elements: BITS32, F16 or BF16
    ("round", "u8", 3),  # ElementForm that the step's result is rounded to; 0: f32
    ("source", "u32", 4),  # the bits of a number, or the array's first argument word
    ("scale", "u32", 8),  # bits of an f32
    ("flags", "u32", 12),
)

# ---- PRODUCT: the whole program of a CTA whose groups contract what one thread loads, tile by tile. It lies where inline code does, and
# is no record; `code` of the header points to the table of tiles in device memory. First the groups' warps, then a warpgroup whose first
# warp loads.
PRODUCT_LOADS: Final = 8  # of a stage, at most
PRODUCT_LOAD_BYTES: Final = 32
PRODUCT_LOAD_AT: Final = 64
PRODUCT_FINISH_AT: Final = 320
PRODUCT_BYTES: Final = 448
PRODUCT: Final = (  # PRODUCT_LOADS loads follow at PRODUCT_LOAD_AT, FINISH with its steps at PRODUCT_FINISH_AT
    ("full", "u32", 0),  # shared offsets of stage 0
    ("empty", "u32", 4),
    ("a", "u32", 8),
    ("a_stride", "u32", 12),  # of the parts of all groups together; where group 1 begins in it follows from the shape
    ("b", "u32", 16),
    ("b_stride", "u32", 20),
    ("out0", "u32", 24),  # of each group's first staging tile
    ("out1", "u32", 28),
    ("nbytes", "u32", 32),  # announced for a stage
    ("steps", "u32", 36),  # stages of a tile, 1 or more
    ("entry_words", "u32", 40),  # of the table
    ("turns", "u32", 44),  # tiles of the CTA that has most
    ("stages", "u8", 48),
    ("out_stages", "u8", 49),
    ("peers", "u8", 50),  # this and the next few as in CONTRACT
    ("shape", "u8", 51),
    ("type", "u8", 52),
    ("form", "u8", 53),
    ("adds", "u8", 54),
    ("rank", "u8", 55),  # of the result
    ("groups", "u8", 56),
    ("loads", "u8", 57),
    ("map", "u8", 58),  # slot of the result's
    ("full_count", "u8", 59),
    ("empty_count", "u8", 60),
    ("pitch", "u8", 61),
    ("axes", "u8", 62),
    ("size", "u8", 63),
)
PRODUCT_LOAD: Final = (
    ("stride", "u32", 4),  # of its tile, to the next stage
    ("mask", "u32", 8),  # of a multicast load: CTAs that it is for
    ("map", "u8", 12),
    ("rank", "u8", 13),
    ("multicast", "u8", 14),
    ("growth", "i32[3]", 16),  # of each coordinate, innermost first, from a stage to the next one
)
# The table: of CTA c (linear block index) turn t has `entry_words` words at (c * turns + t) * entry_words. Word 0: 1, or 0 behind the
# CTA's last tile; 1: corner of what group 0 stores, innermost first; 4: that of group 1; 8 + 4 * j: three coordinates of load j in the
# first stage, and the shared offset of its tile in stage 0, as a cluster's slices lie elsewhere in each CTA.
PRODUCT_CORNER: Final = 1
PRODUCT_PLACES: Final = 8
PRODUCT_PLACE_WORDS: Final = 4
PRODUCT_RANK_MAX: Final = 3

# ---- the report, written by the device, read by the host after the launch. u32 words; entries follow a header of 16 bytes.
REPORT_ENTRIES: Final = 256
REPORT_ENTRY_WORDS: Final = 12
REPORT_HEADER: Final = (("skip", "u32", 0), ("count", "u32", 4), ("reserved0", "u32", 8), ("reserved1", "u32", 12))
REPORT_ENTRY: Final = (
    ("kind", "u32", 0),  # ReportKind
    ("cta", "u32", 4),  # linear block index, x fastest
    ("warp", "u32", 8),
    ("pc", "u32", 12),  # record
    ("iteration", "u32", 16),  # of a fused loop, else 0
    ("barrier", "u32", 20),  # shared address
    # waited for, `NO_TOKEN` for a token that nobody has made; INDEX: 1 when the value is a position outside the array, not what it holds
    ("parity", "u32", 24),
    ("state_low", "u32", 28),  # the barrier's 64 bits as they were
    ("state_high", "u32", 32),
    ("value_low", "u32", 36),  # INDEX: what was read
    ("value_high", "u32", 40),
    ("bound", "u32", 44),  # INDEX: the bound it broke
)
REPORT_BYTES: Final = 16 + REPORT_ENTRIES * REPORT_ENTRY_WORDS * 4


NO_TOKEN: Final = 2

# ---- stamps, which family timed writes; `counter` of the header points there. Of each CTA below `ctas` (linear block index), and of each
# of its warps, `capacity` stamps, in the order in which their records were done; those behind the last are 0.
STAMP_HEADER: Final = (("ctas", "u32", 0), ("capacity", "u32", 4), ("reserved0", "u32", 8), ("reserved1", "u32", 12))
STAMP: Final = (
    ("pc", "u32", 0),
    ("value", "u32", 4),  # of LOOP and NEXT what the counter is now; of others the nanoseconds until the record was done
    ("begun", "u64", 8),  # the global timer when the warp came to it
)
STAMP_BYTES: Final = 16


class ReportKind(IntEnum):
    """Why a warp went into skip mode."""

    TIMEOUT = 1  # a wait took longer than the limit
    OPCODE = 2  # a record it does not know
    INDEX = 3  # LOAD_INDEX out of range
    PLACE = 4  # dynamic shared memory does not start where the code was made for
    TOLD = 5  # another warp had gone first: it was waiting here
    EMPTY = 6  # TENSORMAP_REPLACE of a window without elements: value is how many


# ---- entry points of a cubin: f"{FAMILY}_{PARAMETER}"; the code lies in the parameter or in global memory ("global" has the small one)
# move: all but MAP_TILES and COPY_EXTRA. A kernel that may name any of the 16 barriers takes all of them, and a multiprocessor has 64:
# it holds no more than 4 of its CTAs, but 32 of a kernel with barriers 0 and 1 only (measured). So each family is there twice.
# once: a `ONCE` record and nothing else, which is always in the parameter.
# apply: an `APPLY` and nothing else, which is always in the parameter; 96 registers.
# full: COPY_EXTRA too; with named barriers it is there once, for code in global memory.
# compute: all of full, with COMPUTE for MAP_TILES, and PLACE. It takes 88 registers, and its code is always in global memory.
# reshape: all of full, with TRANSPOSE_TILE, REDUCE_TILE and STENCIL_TILE, and PLACE; 96 registers, and its code is always in global memory.
# timed: as wide, stamping what it does; for `oxidecopy trace`.
# mma: all ops but COMPUTE, all barriers, and CONTRACT; 168 registers, so CTAs of up to 384 threads; sm_90a alone has it.
# product_mMnN: a PRODUCT and nothing else, by the shape of a group; its table is in global memory, the rest in the parameter; sm_90a alone.
# wide, many: all ops and all barriers, scalars of 64 bits, tokens as states; the code is always in global memory.
ONCE_FAMILY: Final = "once"
APPLY_FAMILY: Final = "apply"
APPLY_FORM: Final = "medium"
FULL_FAMILY: Final = "full"
COMPUTE_FAMILY: Final = "compute"
RESHAPE_FAMILY: Final = "reshape"
WIDE_FAMILY: Final = "wide"
MANY_FAMILY: Final = "many"
TIMED_FAMILY: Final = "timed"
MMA_FAMILY: Final = "mma"
PRODUCT_FAMILY: Final = "product"
PRODUCT_FAMILIES: Final = tuple([f"{PRODUCT_FAMILY}_{shape.name.lower()}" for shape in ContractShape])
FAMILIES: Final = (
    ONCE_FAMILY,
    APPLY_FAMILY,
    "move",
    "move_named",
    "map",
    "map_named",
    FULL_FAMILY,
    f"{FULL_FAMILY}_named",
    COMPUTE_FAMILY,
    f"{COMPUTE_FAMILY}_named",
    RESHAPE_FAMILY,
    f"{RESHAPE_FAMILY}_named",
    WIDE_FAMILY,
    MANY_FAMILY,
    TIMED_FAMILY,
    MMA_FAMILY,
    *PRODUCT_FAMILIES,
)
_IN_MEMORY: Final = ("global",)
_USUAL: Final = ("small", "large", "global")
_PARAMETERS: Final = {
    ONCE_FAMILY: ("small", "large"),
    APPLY_FAMILY: (APPLY_FORM,),
    "map": _IN_MEMORY,  # what no other family can map is slow anyway
    "map_named": _IN_MEMORY,
    f"{FULL_FAMILY}_named": _IN_MEMORY,
    COMPUTE_FAMILY: _IN_MEMORY,
    f"{COMPUTE_FAMILY}_named": _IN_MEMORY,
    RESHAPE_FAMILY: _IN_MEMORY,
    f"{RESHAPE_FAMILY}_named": _IN_MEMORY,
    WIDE_FAMILY: _IN_MEMORY,
    MANY_FAMILY: _IN_MEMORY,
    TIMED_FAMILY: _IN_MEMORY,
    MMA_FAMILY: _IN_MEMORY,
    **dict.fromkeys(PRODUCT_FAMILIES, ("large",)),
}
CREW_FAMILIES: Final = (WIDE_FAMILY, MANY_FAMILY, TIMED_FAMILY)  # with scalars of 64 bits, and the warp table behind the records
FEW_BARRIERS: Final = 2  # what families without "_named" have
PARAMETERS: Final = ("small", "medium", "large", "global")
KERNEL_PREFIX: Final = "oxidecopy_"
ENTRY_POINTS: Final = tuple(
    f"{KERNEL_PREFIX}{family}_{parameter}"
    for family in FAMILIES
    for parameter in PARAMETERS
    if parameter in _PARAMETERS.get(family, _USUAL)
)
# Kernels come in files of their own: those of the families "compute", "apply" and "reshape", as they are built with other options than all
# others; those of "mma" and "product" too, as only one architecture has their instructions.
PARTS: Final = ("", COMPUTE_FAMILY, APPLY_FAMILY, RESHAPE_FAMILY, TIMED_FAMILY, MMA_FAMILY, PRODUCT_FAMILY)


def part_of(entry_point: str) -> str:
    """Which part of the kernels an entry point is in."""
    return next((part for part in PARTS if part and entry_point.startswith(f"{KERNEL_PREFIX}{part}_")), "")
