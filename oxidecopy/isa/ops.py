"""THE op table: every op a program can hold, declared once.

One frozen dataclass per op. Its fields are the operands, in the order of the text and the binary form; each field's metadata holds the
operand's kind with its bounds, which is all that the parser, the encoder and the generic checks know about it. Class variables give the
opcode (0 is never valid), the PTX mnemonic and the first compute capability. Adding an op means adding a class here; every consumer is
total over `Instr` and stops type-checking until it knows the new op.

Who executes an op is not an operand: it follows from the `Scope` blocks around it. All operands are uniform over the threads in scope.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Final, TypeAlias, final, get_args

from typing_extensions import override

from oxidecopy.isa import limits
from oxidecopy.isa.elem import Elem, told_apart
from oxidecopy.isa.expr import Cond, Expr, SymKind


# ---- operands
@final
@dataclass(frozen=True, slots=True)
class BarrierRef:
    """Element `index` of barrier array `barrier` (a position in `Program.barriers`)."""

    barrier: int
    index: Expr


@final
@dataclass(frozen=True, slots=True)
class Part:
    """One of `of` equal slices of a tile along its outermost dimension."""

    rank: Expr
    of: int


@final
@dataclass(frozen=True, slots=True)
class TileRef:
    """Stage `index` of shared tile `tile` (a position in `Program.tiles`), or one part of it."""

    tile: int
    index: Expr
    part: Part | None = None


@final
@dataclass(frozen=True, slots=True)
class SlotRef:
    """Place `number` of each CTA in an array of maps: row `number` + (CTA's linear index) * (places of a CTA), 128 bytes each."""

    array: str
    number: int


@final
@dataclass(frozen=True, slots=True)
class MapRef:
    """Tensor map parameter, by name; of a table of maps, entry `index`, which may be known only while the program runs.

    With a `slot` the copy goes through the map that lies there: one of this kind, whose array the device has replaced.
    """

    name: str
    index: Expr | None = None
    slot: SlotRef | None = None


@final
@dataclass(frozen=True, slots=True)
class ArrayRef:
    """Global array parameter, by name."""

    name: str


@final
@dataclass(frozen=True, slots=True)
class ScalarRef:
    """Scalar parameter, by name."""

    name: str


@final
@dataclass(frozen=True, slots=True)
class CacheHint:
    """How long L2 keeps what a copy touches: `primary` for this fraction of the addresses, `secondary` for the others.

    PTX 9.7.9.18, createpolicy.fractional. It changes speed only.
    """

    primary: str
    fraction: float = 1.0
    secondary: str = "evict_unchanged"

    @property
    def word(self) -> int:
        """Policy as one small number: position of the primary in the low bits, then that of the secondary."""
        return PRIMARY_POLICIES.index(self.primary) | SECONDARY_POLICIES.index(self.secondary) << 2


PRIMARY_POLICIES: Final = ("evict_normal", "evict_first", "evict_last", "evict_unchanged")
SECONDARY_POLICIES: Final = ("evict_unchanged", "evict_first")


@final
@dataclass(frozen=True, slots=True)
class ThreadSet:
    """Threads of a CTA as sorted, disjoint half-open ranges."""

    ranges: tuple[tuple[int, int], ...]

    def __len__(self) -> int:
        return sum(hi - lo for lo, hi in self.ranges)

    def __contains__(self, thread: int) -> bool:
        return any(lo <= thread < hi for lo, hi in self.ranges)

    @property
    def first(self) -> int:
        """The lowest thread."""
        return self.ranges[0][0]


# ---- operand kinds: what a field holds, with its bounds
@final
@dataclass(frozen=True, slots=True)
class Imm:
    """An immediate integer in [low, high], both inclusive.

    Numbers of tokens and predicates have a `sigil` that marks them in the text form; with `makes` the op gives that number its meaning
    (a result), else it uses it. `nonzero` takes 0 out of the range.
    """

    low: int
    high: int
    sigil: str = ""
    makes: bool = False
    nonzero: bool = False


@final
@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few words."""

    words: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True)
class Kind:
    """An operand whose class says all: a barrier, tile or tiles, map, array, coordinates, threads, value, name, tokens, any expression."""

    name: str


OperandKind: TypeAlias = Imm | Choice | Kind

BARRIER: Final = Kind("barrier")
TILE: Final = Kind("tile")
MAP: Final = Kind("map")
ARRAY: Final = Kind("array")
EXPR: Final = Kind("expr")
COND: Final = Kind("cond")
COORDS: Final = Kind("coords")  # 1 to 5 expressions, outermost dimension first, in elements
THREADS: Final = Kind("threads")
VALUE: Final = Kind("value")  # float, int or ScalarRef
NAME: Final = Kind("name")  # a loop counter's name
INDEX_NAME: Final = Kind("index_name")  # names what the op reads, for the steps that follow in the same body
TRIPS_NAME: Final = Kind("trips_name")  # names how many tiles this CTA is given, for the steps that follow in the same body
TOKENS: Final = Kind("tokens")  # one or more token numbers
TILES: Final = Kind("tiles")  # 1 to MAP_INPUTS_MAX tiles, of the shape of the tile beside them
ARRAYS: Final = Kind("arrays")  # 0 to EPILOGUE_ARRAYS_MAX global arrays, which the element expression beside them reads
FLIPPED: Final = Kind("flipped")  # a tile; the one beside it has its type and its shape, with the last two dimensions swapped
FOLDED: Final = Kind("folded")  # a tile of two dimensions; the one beside it is a vector of f32 as long as one of its sides
AROUND: Final = Kind("around")  # a tile of f32 in two dimensions, in whose middle the one beside it lies
TAPS: Final = Kind("taps")  # 1 to TAPS_MAX taps, which stay inside the tile beside them
ONE_TILE: Final = (TILE, FLIPPED, FOLDED, AROUND)  # kinds of operands that are a TileRef
TOLD: Final = Choice(("cluster", "x", "y", "xy"))  # which CTAs are told that a stage is free
ELEM: Final = Kind("elem")  # an element expression over the tiles beside it
GATHER: Final = Kind("gather")  # four rows, then the column that they start at: 5 expressions, in elements
OFFSETS: Final = Kind("offsets")  # im2col: an expression for each spatial dimension, outermost first; of other copies none
HINT: Final = Kind("hint")  # a CacheHint or None
SLOT: Final = Kind("slot")  # a SlotRef
MAP_INPUTS_MAX: Final = 4
EPILOGUE_ARRAYS_MAX: Final = 3

TX_BYTES: Final = Imm(0, limits.MBARRIER_TX_MAX)
BULK_BYTES: Final = Imm(0, limits.MBARRIER_TX_MAX)  # of a plain bulk copy; a multiple of 16, else the hardware copies less
TOKEN: Final = Imm(0, (1 << 16) - 1, "%")
NEW_TOKEN: Final = Imm(0, (1 << 16) - 1, "%", makes=True)
NEW_PRED: Final = Imm(0, (1 << 16) - 1, "?", makes=True)
# Fields of a map that one instruction writes (PTX tensormap.replace.tile); those in FIELDS_BY_ORD have one entry for each dimension.
MAP_FIELDS: Final = (
    "global_address", "rank", "box_dim", "global_dim", "global_stride", "element_stride", "elemtype", "interleave_layout", "swizzle_mode",
    "fill_mode",
)  # fmt: skip
FIELDS_BY_ORD: Final = ("box_dim", "global_dim", "global_stride", "element_stride")
MAJOR: Final = Choice(("k", "mn"))  # which side of an operand of a product lies dense in its rows
DEPTH: Final = Imm(1, 256)  # elements of K in one stage
FOLDS: Final = ("sum", "max")  # of the elements of a row or column
FOLD_BYTES: Final = 128  # of a row, whose elements begin a partial each
FOLD_ROWS: Final = 4  # of a column, whose elements do
FOLDABLE: Final = ("f32", "f16", "bf16")
TAPS_MAX: Final = 9
F32_MAX: Final = 2.0**128 - 2.0**104
REDUCE: Final = Choice(("add", "min", "max", "inc", "dec", "bit_and", "bit_or", "bit_xor"))

# Kinds that may be absent, with the value that stands for it.
ABSENT: Final[dict[OperandKind, object]] = {OFFSETS: (), HINT: None}
# Kinds of operands that name an integer, with what sort of integer it is.
NAMING: Final[dict[OperandKind, SymKind]] = {NAME: SymKind.LOOP, INDEX_NAME: SymKind.OPAQUE, TRIPS_NAME: SymKind.TRIPS}


def _op(kind: OperandKind) -> Any:
    """Declares a field as an operand. Any, because dataclasses.field pretends to be of the field's own type."""
    if kind in ABSENT:
        return field(default=ABSENT[kind], metadata={"kind": kind})
    return field(metadata={"kind": kind})


# ---- blocks: ops that hold other ops
@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Narrows who executes the body; `role` is the user's word for it (elect, thread, threads_except, warps)."""

    opcode: ClassVar[int] = 0x01
    mnemonic: ClassVar[str] = "scope"
    min_sm: ClassVar[int] = 90
    role: str = _op(Choice(("elect", "thread", "threads_except", "warps", "producer", "consumers", "storer")))
    threads: ThreadSet = _op(THREADS)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """Runs the body where a condition holds."""

    opcode: ClassVar[int] = 0x02
    mnemonic: ClassVar[str] = "when"
    min_sm: ClassVar[int] = 90
    cond: Cond = _op(COND)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """Runs the body with `counter` = start, start + step, ... while below `stop` (above it for a negative step)."""

    opcode: ClassVar[int] = 0x03
    mnemonic: ClassVar[str] = "loop"
    min_sm: ClassVar[int] = 90
    counter: str = _op(NAME)
    start: Expr = _op(EXPR)
    stop: Expr = _op(EXPR)
    step: int = _op(Imm(-(1 << 31), (1 << 31) - 1, nonzero=True))


# ---- stages of rings: what one iteration of a ring's loop does. Each stands for primitive ops, which `program.expansion` writes out;
# verifier and simulator see nothing but those, a GPU engine may run a loop over one stage as a single op.
@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceStage:
    """Waits for phase `free` of `empty`, announces `nbytes` on `full`, then runs the body: the loads."""

    opcode: ClassVar[int] = 0x04
    mnemonic: ClassVar[str] = "stage.produce"
    min_sm: ClassVar[int] = 90
    empty: BarrierRef = _op(BARRIER)
    free: Expr = _op(EXPR)
    full: BarrierRef = _op(BARRIER)
    nbytes: int = _op(TX_BYTES)
    token: int = _op(NEW_TOKEN)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumeStage:
    """Waits for phase `landed` of `full`, runs the body, syncs the group, then thread `lane` releases `empty` where `release` holds.

    The release is one arrival, or with `peers` one on each of so many CTAs: of the whole cluster, or of those along x, along y, or both.
    """

    opcode: ClassVar[int] = 0x05
    mnemonic: ClassVar[str] = "stage.consume"
    min_sm: ClassVar[int] = 90
    full: BarrierRef = _op(BARRIER)
    landed: Expr = _op(EXPR)
    empty: BarrierRef = _op(BARRIER)
    release: Cond = _op(COND)
    peers: int = _op(Imm(0, limits.CLUSTER_MAX))
    told: str = _op(TOLD)
    number: int = _op(Imm(0, limits.NAMED_BARRIERS - 1))
    threads: int = _op(Imm(1, limits.THREADS_MAX))
    lane: int = _op(Imm(0, limits.THREADS_MAX - 1))
    token: int = _op(NEW_TOKEN)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LoadStoreStage:
    """One thread stores what landed: waits for phase `landed` of `full`, stores `tile`, leaves `pending` stores unread, releases `empty`.

    `empty` is that of the stage `pending` back, the newest whose store is known to be read; hence `release`.
    """

    opcode: ClassVar[int] = 0x06
    mnemonic: ClassVar[str] = "stage.load_store"
    min_sm: ClassVar[int] = 90
    full: BarrierRef = _op(BARRIER)
    landed: Expr = _op(EXPR)
    map: MapRef = _op(MAP)
    tile: TileRef = _op(TILE)
    coords: tuple[Expr, ...] = _op(COORDS)
    pending: int = _op(Imm(0, limits.WAIT_GROUP_MAX))
    empty: BarrierRef = _op(BARRIER)
    release: Cond = _op(COND)
    token: int = _op(NEW_TOKEN)
    hint: CacheHint | None = _op(HINT)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """One warpgroup multiplies a row of stages of a ring, on tensor cores, and stores the result: the loop over K and the epilogue.

    Step k of `steps` uses stage number `first` + k, which is slot (`first` + k) % `stages` of `a`, `b`, `full` and `empty` (whose indices
    here are 0) for the ((`first` + k) // `stages`)-th time. It waits for the slot, adds a * b^T to the sums and releases it, as
    `ConsumeStage` does, at the latest when it has multiplied the next one. See `MmaStep` for what a and b are.

    Then `out` gets `fn` of the sums, as many columns at once as it has, and of those as many rows; each time the next of its stages, from
    use number `put` on. Each is stored to `map` (or, with `combine`, added to what is there), the first at `coords`, the others where
    they belong. The lane waits for no store's end; before a stage is written over it waits until that has been read. `ContractDrain`
    stands where the last ones end. See `MmaOut` for `arrays` and `fn`.
    """

    opcode: ClassVar[int] = 0x07
    mnemonic: ClassVar[str] = "contract"
    min_sm: ClassVar[int] = 90
    full: BarrierRef = _op(BARRIER)
    empty: BarrierRef = _op(BARRIER)
    stages: int = _op(Imm(2, 64))
    first: Expr = _op(EXPR)
    steps: Expr = _op(EXPR)
    peers: int = _op(Imm(0, limits.CLUSTER_MAX))
    told: str = _op(TOLD)
    number: int = _op(Imm(0, limits.NAMED_BARRIERS - 1))
    threads: int = _op(Imm(1, limits.THREADS_MAX))
    lane: int = _op(Imm(0, limits.THREADS_MAX - 1))
    token: int = _op(NEW_TOKEN)
    a: TileRef = _op(TILE)
    b: TileRef = _op(TILE)
    a_major: str = _op(MAJOR)
    b_major: str = _op(MAJOR)
    depth: int = _op(DEPTH)
    out: TileRef = _op(TILE)
    put: Expr = _op(EXPR)
    map: MapRef = _op(MAP)
    coords: tuple[Expr, ...] = _op(COORDS)
    combine: str = _op(Choice(("none", "add")))
    arrays: tuple[ArrayRef, ...] = _op(ARRAYS)
    fn: Elem = _op(ELEM)
    hint: CacheHint | None = _op(HINT)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ContractDrain:
    """The lane of a warpgroup waits until the stores of its contractions have been read, and the others for it."""

    opcode: ClassVar[int] = 0x08
    mnemonic: ClassVar[str] = "contract.drain"
    min_sm: ClassVar[int] = 90
    number: int = _op(Imm(0, limits.NAMED_BARRIERS - 1))
    threads: int = _op(Imm(1, limits.THREADS_MAX))
    lane: int = _op(Imm(0, limits.THREADS_MAX - 1))


# ---- mbarriers (PTX 9.7.13.15)
@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MbarrierInit:
    """Starts phase 0 with `count` arrivals per phase."""

    opcode: ClassVar[int] = 0x10
    mnemonic: ClassVar[str] = "mbarrier.init"
    min_sm: ClassVar[int] = 90
    bar: BarrierRef = _op(BARRIER)
    count: int = _op(Imm(1, limits.MBARRIER_COUNT_MAX))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MbarrierInval:
    """Ends the object; its memory may then be used for something else."""

    opcode: ClassVar[int] = 0x11
    mnemonic: ClassVar[str] = "mbarrier.inval"
    min_sm: ClassVar[int] = 90
    bar: BarrierRef = _op(BARRIER)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MbarrierArrive:
    """One arrival by every thread in scope (release, CTA scope); `token` names the phase it counts in."""

    opcode: ClassVar[int] = 0x12
    mnemonic: ClassVar[str] = "mbarrier.arrive"
    min_sm: ClassVar[int] = 90
    bar: BarrierRef = _op(BARRIER)
    token: int = _op(NEW_TOKEN)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MbarrierArriveExpectTx:
    """Announces `nbytes` and arrives, in one step."""

    opcode: ClassVar[int] = 0x13
    mnemonic: ClassVar[str] = "mbarrier.arrive.expect_tx"
    min_sm: ClassVar[int] = 90
    bar: BarrierRef = _op(BARRIER)
    nbytes: int = _op(TX_BYTES)
    token: int = _op(NEW_TOKEN)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MbarrierExpectTx:
    """Announces `nbytes` without arriving."""

    opcode: ClassVar[int] = 0x14
    mnemonic: ClassVar[str] = "mbarrier.expect_tx"
    min_sm: ClassVar[int] = 90
    bar: BarrierRef = _op(BARRIER)
    nbytes: int = _op(TX_BYTES)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MbarrierCompleteTx:
    """Takes `nbytes` off the announced bytes, as a landed copy would."""

    opcode: ClassVar[int] = 0x15
    mnemonic: ClassVar[str] = "mbarrier.complete_tx"
    min_sm: ClassVar[int] = 90
    bar: BarrierRef = _op(BARRIER)
    nbytes: int = _op(TX_BYTES)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MbarrierArriveDrop:
    """Arrives, and lowers the count of all later phases by one, per thread in scope."""

    opcode: ClassVar[int] = 0x16
    mnemonic: ClassVar[str] = "mbarrier.arrive_drop"
    min_sm: ClassVar[int] = 90
    bar: BarrierRef = _op(BARRIER)
    token: int = _op(NEW_TOKEN)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MbarrierArriveRemote:
    """One arrival per thread in scope on the same barrier of cluster CTA `rank` (release, cluster scope); gives no token."""

    opcode: ClassVar[int] = 0x17
    mnemonic: ClassVar[str] = "mbarrier.arrive.shared::cluster"
    min_sm: ClassVar[int] = 90
    bar: BarrierRef = _op(BARRIER)
    rank: Expr = _op(EXPR)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MbarrierArriveExpectTxRemote:
    """`arrive.expect_tx` on the same barrier of cluster CTA `rank`; gives no token."""

    opcode: ClassVar[int] = 0x18
    mnemonic: ClassVar[str] = "mbarrier.arrive.expect_tx.shared::cluster"
    min_sm: ClassVar[int] = 90
    bar: BarrierRef = _op(BARRIER)
    nbytes: int = _op(TX_BYTES)
    rank: Expr = _op(EXPR)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MbarrierWait:
    """Waits until the phases that the tokens name are over (try_wait.parity until true)."""

    opcode: ClassVar[int] = 0x19
    mnemonic: ClassVar[str] = "mbarrier.wait"
    min_sm: ClassVar[int] = 90
    bar: BarrierRef = _op(BARRIER)
    tokens: tuple[int, ...] = _op(TOKENS)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MbarrierWaitPhase:
    """Waits for the completion of phase `phase` (0 is the first); a negative one passes at once."""

    opcode: ClassVar[int] = 0x1A
    mnemonic: ClassVar[str] = "mbarrier.wait.phase"
    min_sm: ClassVar[int] = 90
    bar: BarrierRef = _op(BARRIER)
    phase: Expr = _op(EXPR)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MbarrierWaitParity:
    """try_wait.parity until true: passes when the current phase's parity differs from `parity`."""

    opcode: ClassVar[int] = 0x1B
    mnemonic: ClassVar[str] = "mbarrier.wait.parity"
    min_sm: ClassVar[int] = 90
    bar: BarrierRef = _op(BARRIER)
    parity: Expr = _op(EXPR)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MbarrierTestToken:
    """One try_wait or test_wait for a token's phase; the answer goes to predicate `pred`."""

    opcode: ClassVar[int] = 0x1C
    mnemonic: ClassVar[str] = "mbarrier.test"
    min_sm: ClassVar[int] = 90
    form: str = _op(Choice(("try_wait", "test_wait")))
    bar: BarrierRef = _op(BARRIER)
    token: int = _op(TOKEN)
    pred: int = _op(NEW_PRED)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MbarrierTestParity:
    """One try_wait.parity or test_wait.parity; the answer goes to predicate `pred`."""

    opcode: ClassVar[int] = 0x1D
    mnemonic: ClassVar[str] = "mbarrier.test.parity"
    min_sm: ClassVar[int] = 90
    form: str = _op(Choice(("try_wait", "test_wait")))
    bar: BarrierRef = _op(BARRIER)
    parity: Expr = _op(EXPR)
    pred: int = _op(NEW_PRED)


# ---- tensor copies (PTX 9.7.9.27)
@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TensorG2S:
    """Loads the map's box at `coords` into `tile`; its bytes are reported to `bar`."""

    opcode: ClassVar[int] = 0x20
    mnemonic: ClassVar[str] = "cp.async.bulk.tensor.g2s"
    min_sm: ClassVar[int] = 90
    map: MapRef = _op(MAP)
    tile: TileRef = _op(TILE)
    coords: tuple[Expr, ...] = _op(COORDS)
    bar: BarrierRef = _op(BARRIER)
    offsets: tuple[Expr, ...] = _op(OFFSETS)
    hint: CacheHint | None = _op(HINT)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TensorG2SMulticast:
    """As `TensorG2S`, into the same place of every CTA of the cluster whose bit of `cta_mask` is set, each with its own signal."""

    opcode: ClassVar[int] = 0x21
    mnemonic: ClassVar[str] = "cp.async.bulk.tensor.g2s.multicast"
    min_sm: ClassVar[int] = 90
    map: MapRef = _op(MAP)
    tile: TileRef = _op(TILE)
    coords: tuple[Expr, ...] = _op(COORDS)
    bar: BarrierRef = _op(BARRIER)
    cta_mask: Expr = _op(EXPR)
    offsets: tuple[Expr, ...] = _op(OFFSETS)
    hint: CacheHint | None = _op(HINT)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TensorS2G:
    """Stores `tile` to the map's box at `coords`, in the executing thread's open bulk group."""

    opcode: ClassVar[int] = 0x22
    mnemonic: ClassVar[str] = "cp.async.bulk.tensor.s2g"
    min_sm: ClassVar[int] = 90
    map: MapRef = _op(MAP)
    tile: TileRef = _op(TILE)
    coords: tuple[Expr, ...] = _op(COORDS)
    hint: CacheHint | None = _op(HINT)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TensorReduce:
    """Combines `tile` into global memory element by element, in the executing thread's open bulk group."""

    opcode: ClassVar[int] = 0x23
    mnemonic: ClassVar[str] = "cp.reduce.async.bulk.tensor.s2g"
    min_sm: ClassVar[int] = 90
    op: str = _op(REDUCE)
    map: MapRef = _op(MAP)
    tile: TileRef = _op(TILE)
    coords: tuple[Expr, ...] = _op(COORDS)
    hint: CacheHint | None = _op(HINT)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TensorPrefetch:
    """Brings the map's box at `coords` into L2; nothing tells when it is there."""

    opcode: ClassVar[int] = 0x24
    mnemonic: ClassVar[str] = "cp.async.bulk.prefetch.tensor"
    min_sm: ClassVar[int] = 90
    map: MapRef = _op(MAP)
    coords: tuple[Expr, ...] = _op(COORDS)
    offsets: tuple[Expr, ...] = _op(OFFSETS)
    hint: CacheHint | None = _op(HINT)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TensorGather4:
    """Loads four rows of a rank-2 map, each its box wide, one below the other into `tile`; their bytes are reported to `bar`."""

    opcode: ClassVar[int] = 0x25
    mnemonic: ClassVar[str] = "cp.async.bulk.tensor.g2s.gather4"
    min_sm: ClassVar[int] = 100
    map: MapRef = _op(MAP)
    tile: TileRef = _op(TILE)
    coords: tuple[Expr, ...] = _op(GATHER)
    bar: BarrierRef = _op(BARRIER)
    hint: CacheHint | None = _op(HINT)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TensorScatter4:
    """Stores the four rows of `tile` to four rows of a rank-2 map, in the executing thread's open bulk group."""

    opcode: ClassVar[int] = 0x26
    mnemonic: ClassVar[str] = "cp.async.bulk.tensor.s2g.scatter4"
    min_sm: ClassVar[int] = 100
    map: MapRef = _op(MAP)
    tile: TileRef = _op(TILE)
    coords: tuple[Expr, ...] = _op(GATHER)
    hint: CacheHint | None = _op(HINT)


# ---- plain bulk copies (PTX 9.7.9.25.4): `nbytes` bytes in one run, without a map; nothing is clipped
@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BulkG2S:
    """Copies from element `coords` of `array` on to the start of `tile`; the bytes are reported to `bar`."""

    opcode: ClassVar[int] = 0x2B
    mnemonic: ClassVar[str] = "cp.async.bulk.g2s"
    min_sm: ClassVar[int] = 90
    array: ArrayRef = _op(ARRAY)
    coords: tuple[Expr, ...] = _op(COORDS)
    tile: TileRef = _op(TILE)
    nbytes: int = _op(BULK_BYTES)
    bar: BarrierRef = _op(BARRIER)
    hint: CacheHint | None = _op(HINT)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BulkG2SMulticast:
    """As `BulkG2S`, into the same place of every CTA of the cluster whose bit of `cta_mask` is set, each with its own signal."""

    opcode: ClassVar[int] = 0x2C
    mnemonic: ClassVar[str] = "cp.async.bulk.g2s.multicast"
    min_sm: ClassVar[int] = 90
    array: ArrayRef = _op(ARRAY)
    coords: tuple[Expr, ...] = _op(COORDS)
    tile: TileRef = _op(TILE)
    nbytes: int = _op(BULK_BYTES)
    bar: BarrierRef = _op(BARRIER)
    cta_mask: Expr = _op(EXPR)
    hint: CacheHint | None = _op(HINT)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BulkS2G:
    """Copies from the start of `tile` to element `coords` of `array` on, in the executing thread's open bulk group."""

    opcode: ClassVar[int] = 0x2D
    mnemonic: ClassVar[str] = "cp.async.bulk.s2g"
    min_sm: ClassVar[int] = 90
    array: ArrayRef = _op(ARRAY)
    coords: tuple[Expr, ...] = _op(COORDS)
    tile: TileRef = _op(TILE)
    nbytes: int = _op(BULK_BYTES)
    hint: CacheHint | None = _op(HINT)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BulkReduce:
    """Combines `tile` into `array` from element `coords` on, element by element, in the executing thread's open bulk group."""

    opcode: ClassVar[int] = 0x2E
    mnemonic: ClassVar[str] = "cp.reduce.async.bulk.s2g"
    min_sm: ClassVar[int] = 90
    op: str = _op(REDUCE)
    array: ArrayRef = _op(ARRAY)
    coords: tuple[Expr, ...] = _op(COORDS)
    tile: TileRef = _op(TILE)
    nbytes: int = _op(BULK_BYTES)
    hint: CacheHint | None = _op(HINT)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BulkPrefetch:
    """Brings the bytes from element `coords` of `array` on into L2; nothing tells when they are there."""

    opcode: ClassVar[int] = 0x2F
    mnemonic: ClassVar[str] = "cp.async.bulk.prefetch"
    min_sm: ClassVar[int] = 90
    array: ArrayRef = _op(ARRAY)
    coords: tuple[Expr, ...] = _op(COORDS)
    nbytes: int = _op(BULK_BYTES)
    hint: CacheHint | None = _op(HINT)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BulkS2S:
    """Copies `tile` to tile `into` of cluster CTA `rank`; the bytes are reported to that CTA's `bar`, and to nobody here."""

    opcode: ClassVar[int] = 0x38
    mnemonic: ClassVar[str] = "cp.async.bulk.s2s"
    min_sm: ClassVar[int] = 90
    tile: TileRef = _op(TILE)
    into: TileRef = _op(TILE)
    rank: Expr = _op(EXPR)
    nbytes: int = _op(BULK_BYTES)
    bar: BarrierRef = _op(BARRIER)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BulkReduceS2S:
    """As `BulkS2S`, combining `tile` into what is in the other CTA's tile, element by element."""

    opcode: ClassVar[int] = 0x39
    mnemonic: ClassVar[str] = "cp.reduce.async.bulk.s2s"
    min_sm: ClassVar[int] = 90
    op: str = _op(REDUCE)
    tile: TileRef = _op(TILE)
    into: TileRef = _op(TILE)
    rank: Expr = _op(EXPR)
    nbytes: int = _op(BULK_BYTES)
    bar: BarrierRef = _op(BARRIER)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CommitGroup:
    """Closes the bulk group of each executing thread."""

    opcode: ClassVar[int] = 0x28
    mnemonic: ClassVar[str] = "cp.async.bulk.commit_group"
    min_sm: ClassVar[int] = 90


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WaitGroup:
    """Waits until at most `pending` of the thread's newest groups are unfinished."""

    opcode: ClassVar[int] = 0x29
    mnemonic: ClassVar[str] = "cp.async.bulk.wait_group"
    min_sm: ClassVar[int] = 90
    pending: int = _op(Imm(0, limits.WAIT_GROUP_MAX))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WaitGroupRead:
    """As `WaitGroup`, but only until the groups' shared memory has been read."""

    opcode: ClassVar[int] = 0x2A
    mnemonic: ClassVar[str] = "cp.async.bulk.wait_group.read"
    min_sm: ClassVar[int] = 90
    pending: int = _op(Imm(0, limits.WAIT_GROUP_MAX))


# ---- fences and barriers of threads
@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FenceProxyAsync:
    """Makes the executing threads' earlier shared-memory writes visible to later bulk copies."""

    opcode: ClassVar[int] = 0x30
    mnemonic: ClassVar[str] = "fence.proxy.async.shared::cta"
    min_sm: ClassVar[int] = 90


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FenceMbarrierInit:
    """Makes the executing thread's mbarrier inits visible to the cluster."""

    opcode: ClassVar[int] = 0x31
    mnemonic: ClassVar[str] = "fence.mbarrier_init.release.cluster"
    min_sm: ClassVar[int] = 90


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BarSync:
    """bar.sync of `threads` threads on CTA barrier `number` (0: all threads of the CTA)."""

    opcode: ClassVar[int] = 0x32
    mnemonic: ClassVar[str] = "bar.sync"
    min_sm: ClassVar[int] = 90
    number: int = _op(Imm(0, limits.NAMED_BARRIERS - 1))
    threads: int = _op(Imm(1, limits.THREADS_MAX))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSync:
    """barrier.cluster.arrive.release and wait.acquire by every thread of the cluster."""

    opcode: ClassVar[int] = 0x33
    mnemonic: ClassVar[str] = "barrier.cluster.sync"
    min_sm: ClassVar[int] = 90


# ---- generic accesses by all threads in scope together
@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StoreGlobal:
    """Plain stores of `tile` to `array` at `coords`, clipped at the array's edge, unswizzled."""

    opcode: ClassVar[int] = 0x40
    mnemonic: ClassVar[str] = "st.global.tile"
    min_sm: ClassVar[int] = 90
    array: ArrayRef = _op(ARRAY)
    tile: TileRef = _op(TILE)
    coords: tuple[Expr, ...] = _op(COORDS)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fill:
    """Sets every element of `tile` to `value`, rounded to its type."""

    opcode: ClassVar[int] = 0x41
    mnemonic: ClassVar[str] = "st.shared.fill"
    min_sm: ClassVar[int] = 90
    tile: TileRef = _op(TILE)
    value: float | int | ScalarRef = _op(VALUE)

    @override
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fill) and self.tile == other.tile and told_apart(self.value) == told_apart(other.value)

    @override
    def __hash__(self) -> int:
        return hash((self.tile, told_apart(self.value)))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Iota:
    """Sets every element of `tile` to its own index along `axis` (outermost is 0), modulo the type's range for integers."""

    opcode: ClassVar[int] = 0x42
    mnemonic: ClassVar[str] = "st.shared.iota"
    min_sm: ClassVar[int] = 90
    tile: TileRef = _op(TILE)
    axis: int = _op(Imm(0, limits.MAX_RANK - 1))


# ---- maps that the device changes (PTX 9.7.9.28, 9.7.13.16): in a tile of 128 bytes, then in global memory, where copies find them
@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TensormapCopy:
    """Copies a map to `tile`, a plain access by one thread."""

    opcode: ClassVar[int] = 0x60
    mnemonic: ClassVar[str] = "tensormap.copy"
    min_sm: ClassVar[int] = 90
    map: MapRef = _op(MAP)
    tile: TileRef = _op(TILE)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TensormapReplace:
    """Writes one field of the map in `tile`: PTX's own instruction, which checks nothing. `ord` counts from the innermost dimension."""

    opcode: ClassVar[int] = 0x61
    mnemonic: ClassVar[str] = "tensormap.replace"
    min_sm: ClassVar[int] = 90
    field: str = _op(Choice(MAP_FIELDS))
    ord: int = _op(Imm(0, limits.MAX_RANK - 1))
    value: Expr = _op(EXPR)
    tile: TileRef = _op(TILE)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TensormapReplaceArray:
    """Points the map in `tile` at elements `first` to `stop` - 1 of `array`: its address, extents and strides.

    A map has one element at least: where `stop` is not above `first`, the launch ends with an error.
    """

    opcode: ClassVar[int] = 0x62
    mnemonic: ClassVar[str] = "tensormap.replace.array"
    min_sm: ClassVar[int] = 90
    array: ArrayRef = _op(ARRAY)
    first: tuple[Expr, ...] = _op(COORDS)
    stop: tuple[Expr, ...] = _op(COORDS)
    tile: TileRef = _op(TILE)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TensormapCpFenceproxy:
    """Copies the map in `tile` to `slot` and releases it to those that acquire it there (scope gpu); by one whole warp."""

    opcode: ClassVar[int] = 0x63
    mnemonic: ClassVar[str] = "tensormap.cp_fenceproxy"
    min_sm: ClassVar[int] = 90
    slot: SlotRef = _op(SLOT)
    tile: TileRef = _op(TILE)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FenceProxyTensormap:
    """Acquires the map at `slot` for this CTA's copies (scope gpu); until then they may go through what was there before."""

    opcode: ClassVar[int] = 0x64
    mnemonic: ClassVar[str] = "fence.proxy.tensormap.acquire"
    min_sm: ClassVar[int] = 90
    slot: SlotRef = _op(SLOT)


# ---- integers that are known only while the program runs
@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LoadIndex:
    """Reads element `index` of a 1-D integer array; `name` stands for it. A value outside [0, below) ends the launch with an error."""

    opcode: ClassVar[int] = 0x48
    mnemonic: ClassVar[str] = "ld.global.index"
    min_sm: ClassVar[int] = 90
    name: str = _op(INDEX_NAME)
    array: ArrayRef = _op(ARRAY)
    index: Expr = _op(EXPR)
    below: Expr = _op(EXPR)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ShareTiles:
    """Shares tiles 0 .. tiles - 1 out to the CTAs of the launch, each to one of them, in any way; `name` is how many this CTA is given.

    All threads of the CTA see the same share. The tiles of a CTA come in ascending order, as from one counter of the launch.
    """

    opcode: ClassVar[int] = 0x50
    mnemonic: ClassVar[str] = "share.tiles"
    min_sm: ClassVar[int] = 90
    name: str = _op(TRIPS_NAME)
    tiles: Expr = _op(EXPR)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NextTile:
    """`name` is the `index`-th tile of the share whose size is `trips`; it stands in a loop over that share, and `index` is its counter."""

    opcode: ClassVar[int] = 0x51
    mnemonic: ClassVar[str] = "share.next"
    min_sm: ClassVar[int] = 90
    name: str = _op(INDEX_NAME)
    trips: Expr = _op(EXPR)
    index: Expr = _op(EXPR)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MapTiles:
    """Sets every element of `out` to `fn` of the inputs' elements at the same place; all tiles have one shape, each its own layout.

    A thread reads what it needs for an element before it writes it, so `out` may be an input.
    """

    opcode: ClassVar[int] = 0x43
    mnemonic: ClassVar[str] = "map.tiles"
    min_sm: ClassVar[int] = 90
    inputs: tuple[TileRef, ...] = _op(TILES)
    out: TileRef = _op(TILE)
    fn: Elem = _op(ELEM)


# ---- products on tensor cores (PTX 9.7.16, wgmma): what `Contract` stands for. The sums belong to the threads that run these ops together.
@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MmaZero:
    """Sets the sums of the threads in scope to zero."""

    opcode: ClassVar[int] = 0x58
    mnemonic: ClassVar[str] = "mma.zero"
    min_sm: ClassVar[int] = 90


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MmaStep:
    """Adds a * b^T to the sums, both read through the async proxy, which is over when the op is.

    The rows of a K-major tile are those of the operand (M or N of them), K along the innermost dimension. An MN-major tile holds blocks
    of as many columns of the operand's transpose as it has, one block below the other, each with `depth` rows.
    """

    opcode: ClassVar[int] = 0x59
    mnemonic: ClassVar[str] = "mma.step"
    min_sm: ClassVar[int] = 90
    a: TileRef = _op(TILE)
    b: TileRef = _op(TILE)
    a_major: str = _op(MAJOR)
    b_major: str = _op(MAJOR)
    depth: int = _op(DEPTH)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MmaOut:
    """Sets every element of `tile` to `fn` of the sum in its row and column, counted from `row` and `column`.

    The first element of `fn` is the sum, rounded once to f32; the others are elements of `arrays`, read by plain loads: of those with as
    many dimensions as `coords`, that at the element's own place in global memory, where `coords` is the first one's; of those with one
    dimension, that at its row or column there. Outside of an array is zero.
    """

    opcode: ClassVar[int] = 0x5A
    mnemonic: ClassVar[str] = "mma.out"
    min_sm: ClassVar[int] = 90
    tile: TileRef = _op(TILE)
    row: int = _op(Imm(0, 255))
    column: int = _op(Imm(0, 255))
    coords: tuple[Expr, ...] = _op(COORDS)
    arrays: tuple[ArrayRef, ...] = _op(ARRAYS)
    fn: Elem = _op(ELEM)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TransposeTile:
    """Sets element (.., j, i) of `out` to element (.., i, j) of `source`, bit for bit.

    Each thread reads what others write to, so `out` is another tile.
    """

    opcode: ClassVar[int] = 0x44
    mnemonic: ClassVar[str] = "transpose.tile"
    min_sm: ClassVar[int] = 90
    source: TileRef = _op(FLIPPED)
    out: TileRef = _op(TILE)

    @property
    def inputs(self) -> tuple[TileRef, ...]:
        """The tiles that are read."""
        return (self.source,)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReduceTile:
    """Sets each element of `out` to the sum or maximum of a row (axis 1) or column (axis 0) of `source`, in f32 and in a fixed order.

    A row has one partial for each element that fits into `FOLD_BYTES`: partial p takes elements p, p + P, p + 2P, ... in that order. Then
    neighbours are put together, partial 2i with partial 2i + 1, until one is left. A column has `FOLD_ROWS` partials, each of every fourth
    row, put together likewise. With `onto`, the element of `out` comes before that. A maximum is NaN where one of its elements is.
    """

    opcode: ClassVar[int] = 0x45
    mnemonic: ClassVar[str] = "reduce.tile"
    min_sm: ClassVar[int] = 90
    op: str = _op(Choice(FOLDS))
    onto: int = _op(Imm(0, 1))
    axis: int = _op(Imm(0, 1))
    source: TileRef = _op(FOLDED)
    out: TileRef = _op(TILE)

    @property
    def inputs(self) -> tuple[TileRef, ...]:
        """The tiles that are read."""
        return (self.source, self.out) if self.onto else (self.source,)


@final
@dataclass(frozen=True, slots=True)
class Tap:
    """One term of a stencil: `weight`, a number of f32, times the element so many rows further down and columns further right."""

    row: int
    column: int
    weight: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StencilTile:
    """Sets each element of `out` to a weighted sum of those of `source` around it, in f32.

    `out` lies in the middle of `source`: what `source` has more of rows and columns is the same above and below, left and right. The sum
    begins with the first tap's product and adds the others in order; each product and each sum is rounded.
    """

    opcode: ClassVar[int] = 0x46
    mnemonic: ClassVar[str] = "stencil.tile"
    min_sm: ClassVar[int] = 90
    source: TileRef = _op(AROUND)
    out: TileRef = _op(TILE)
    taps: tuple[Tap, ...] = _op(TAPS)

    @property
    def inputs(self) -> tuple[TileRef, ...]:
        """The tiles that are read."""
        return (self.source,)


def margin(source: tuple[int, ...], out: tuple[int, ...]) -> tuple[int, int] | None:
    """How many rows and columns a stencil's source has around its output on each side; None where that does not lie in its middle."""
    more = [a - b for a, b in zip(source, out, strict=False)]
    if len(source) != 2 or len(out) != 2 or any(n < 0 or n % 2 for n in more):
        return None
    return more[0] // 2, more[1] // 2


def taps_problem(taps: tuple[Tap, ...], around: tuple[int, int]) -> str:
    """What is wrong with a stencil's taps, given the margin of its source; empty when nothing is."""
    if not 1 <= len(taps) <= TAPS_MAX:
        return f"1 to {TAPS_MAX} taps"
    if any(abs(tap.row) > around[0] or abs(tap.column) > around[1] for tap in taps):
        return f"taps at most {around[0]} rows and {around[1]} columns away"
    if not all(abs(tap.weight) <= F32_MAX and struct.unpack("<f", struct.pack("<f", tap.weight))[0] == tap.weight for tap in taps):
        return "weights that are numbers of f32"
    return ""


# ---- sorts of ops
Made: TypeAlias = MapTiles | TransposeTile | ReduceTile | StencilTile  # set all of a tile, `out`, from others, `inputs`
TensorLoad: TypeAlias = TensorG2S | TensorG2SMulticast | TensorGather4
TensorStore: TypeAlias = TensorS2G | TensorReduce | TensorScatter4
BulkLoad: TypeAlias = BulkG2S | BulkG2SMulticast
BulkStore: TypeAlias = BulkS2G | BulkReduce
Send: TypeAlias = BulkS2S | BulkReduceS2S
Prefetch: TypeAlias = TensorPrefetch | BulkPrefetch
TensorCopy: TypeAlias = TensorLoad | TensorStore  # through a map, from or to a tile
BulkCopy: TypeAlias = BulkLoad | BulkStore  # between an array and a tile
Multicast: TypeAlias = TensorG2SMulticast | BulkG2SMulticast
Landing: TypeAlias = TensorLoad | BulkLoad | Send  # their bytes are reported to a barrier
Grouped: TypeAlias = TensorStore | BulkStore  # over when their bulk group is
Copy: TypeAlias = TensorCopy | BulkCopy | Send | Prefetch  # all that one thread issues
Through: TypeAlias = TensorCopy | TensorPrefetch  # copies that go through a map
Edit: TypeAlias = TensormapCopy | TensormapReplace | TensormapReplaceArray  # write a map in shared memory
Stage: TypeAlias = ProduceStage | ConsumeStage | LoadStoreStage | Contract | ContractDrain  # stand for primitive ops
Mma: TypeAlias = MmaZero | MmaStep | MmaOut
Block: TypeAlias = Scope | When | Loop | ProduceStage | ConsumeStage
Instr: TypeAlias = (
    Scope
    | When
    | Loop
    | ProduceStage
    | ConsumeStage
    | LoadStoreStage
    | Contract
    | ContractDrain
    | MbarrierInit
    | MbarrierInval
    | MbarrierArrive
    | MbarrierArriveExpectTx
    | MbarrierExpectTx
    | MbarrierCompleteTx
    | MbarrierArriveDrop
    | MbarrierArriveRemote
    | MbarrierArriveExpectTxRemote
    | MbarrierWait
    | MbarrierWaitPhase
    | MbarrierWaitParity
    | MbarrierTestToken
    | MbarrierTestParity
    | TensorG2S
    | TensorG2SMulticast
    | TensorS2G
    | TensorReduce
    | TensorPrefetch
    | TensorGather4
    | TensorScatter4
    | BulkG2S
    | BulkG2SMulticast
    | BulkS2G
    | BulkReduce
    | BulkPrefetch
    | BulkS2S
    | BulkReduceS2S
    | TensormapCopy
    | TensormapReplace
    | TensormapReplaceArray
    | TensormapCpFenceproxy
    | FenceProxyTensormap
    | CommitGroup
    | WaitGroup
    | WaitGroupRead
    | FenceProxyAsync
    | FenceMbarrierInit
    | BarSync
    | ClusterSync
    | StoreGlobal
    | Fill
    | Iota
    | LoadIndex
    | ShareTiles
    | NextTile
    | MapTiles
    | MmaZero
    | MmaStep
    | MmaOut
    | TransposeTile
    | ReduceTile
    | StencilTile
)
OPS: Final[tuple[type[Instr], ...]] = get_args(Instr)
EDITS: Final[tuple[type[Edit], ...]] = get_args(Edit)
BLOCKS: Final[tuple[type[Block], ...]] = get_args(Block)
STAGES: Final[tuple[type[Stage], ...]] = get_args(Stage)
BY_OPCODE: Final[dict[int, type[Instr]]] = {op.opcode: op for op in OPS}
BY_MNEMONIC: Final[dict[str, type[Instr]]] = {op.mnemonic: op for op in OPS}


_operands: dict[type[Instr], tuple[tuple[str, OperandKind], ...]] = {}  # kept, as they are asked for often


def operands(op: type[Instr]) -> tuple[tuple[str, OperandKind], ...]:
    """The operands of `op` in order: field name and kind."""
    found = _operands.get(op)
    if found is None:
        found = _operands[op] = tuple((f.name, f.metadata["kind"]) for f in fields(op))
    return found
