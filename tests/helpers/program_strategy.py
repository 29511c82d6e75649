"""Random programs for property tests, made from the op table: every op and every kind of operand, valid but senseless.

`programs()` gives programs that pass `check_operands`; what they do is of no interest (most would deadlock). A new op needs no change
here, a new kind of operand one method.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from hypothesis import strategies as st

from oxidecopy.errors import Site
from oxidecopy.isa import limits, mma, ops
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.elem import FLOATS, INTEGERS, Binary, Cast, Elem, ElemOp, Input, Neg, Number, Parameter, integer_range, pair_problem
from oxidecopy.isa.expr import (
    LAUNCH_KINDS,
    Add,
    And,
    Answer,
    Bool,
    Cmp,
    CmpOp,
    Cond,
    Const,
    Expr,
    FloorDiv,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    Sym,
)
from oxidecopy.isa.ops import (
    ArrayRef,
    BarrierRef,
    CacheHint,
    Choice,
    Imm,
    Instr,
    Kind,
    MapRef,
    OperandKind,
    Part,
    ScalarRef,
    SlotRef,
    ThreadSet,
    TileRef,
)
from oxidecopy.isa.swizzle import SWIZZLES
from oxidecopy.program.declared import BARRIER_KINDS, OOB_FILLS, known_symbols
from oxidecopy.program.program import (
    ArrayParam,
    BarrierDecl,
    IdxParam,
    MapParam,
    Param,
    Program,
    RegisterHint,
    Requirement,
    ScalarParam,
    Step,
    TileDecl,
)
from oxidecopy.program.replaced import SLOT_DTYPE, SLOT_RANK, SLOTS_MAX

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

Pair: TypeAlias = Callable[[Any, Any], Any]

plain_names = st.sampled_from(
    ["src", "dst", "out", "n", "i0", "full", "t0", "min", "max", "true", "nan", "inf", "program", "part", "dim", "map"]
)
odd_names = st.text(min_size=1, max_size=6)
names = plain_names | odd_names
sites = st.none() | st.builds(
    Site, st.sampled_from(["load.py", "C:\\a b\\x.py"]) | st.text(max_size=8), st.integers(0, 10**6), st.text(max_size=8)
)
dtypes = st.sampled_from([name for name, info in DTYPES.items() if info.bits % 8 == 0])
swizzles = st.sampled_from(list(SWIZZLES))


# Strategies are kept: to build one, and to have hypothesis look into it, costs more than to draw from it.
@cache
def expressions(symbols: tuple[Sym, ...], max_leaves: int = 8) -> SearchStrategy[Expr]:
    """Unfolded expressions over `symbols`; no divisor is the constant 0."""
    constants = st.builds(Const, st.integers(-8, 8) | st.integers(-(1 << 63), (1 << 63) - 1))
    leaves: SearchStrategy[Expr] = constants | st.sampled_from(symbols) if symbols else constants

    def pairs(inner: SearchStrategy[Expr]) -> SearchStrategy[Expr]:
        makers: SearchStrategy[Pair] = st.sampled_from([Add, Mul, FloorDiv, Mod, Min, Max])
        made: SearchStrategy[Expr] = st.builds(lambda make, a, b: make(a, b), makers, inner, inner)
        return made.filter(lambda e: not (isinstance(e, FloorDiv | Mod) and e.b == Const(0)))

    return st.recursive(leaves, pairs, max_leaves=max_leaves)


@cache
def indices(symbols: tuple[Sym, ...], stages: int) -> SearchStrategy[Expr]:
    """Of a stage: a number below `stages`, or an expression."""
    return st.integers(0, stages - 1).map(Const) | expressions(symbols).filter(lambda e: not isinstance(e, Const))


@cache
def conditions(symbols: tuple[Sym, ...], registers: tuple[int, ...]) -> SearchStrategy[Cond]:
    integers = expressions(symbols, 3)
    leaves: SearchStrategy[Cond] = st.builds(Bool, st.booleans()) | st.builds(Cmp, st.sampled_from(CmpOp), integers, integers)
    if registers:
        leaves |= st.builds(Answer, st.sampled_from(registers))

    def larger(inner: SearchStrategy[Cond]) -> SearchStrategy[Cond]:
        makers: SearchStrategy[Pair] = st.sampled_from([And, Or])
        return st.builds(Not, inner) | st.builds(lambda make, a, b: make(a, b), makers, inner, inner)

    return st.recursive(leaves, larger, max_leaves=5)


@st.composite
def params(draw: DrawFn) -> tuple[Param, ...]:
    """Parameters with names of their own."""
    made: list[Param] = []
    for name in draw(st.lists(names, unique=True, max_size=6)):
        boxes = st.lists(st.integers(1, limits.BOX_DIM_MAX), min_size=1, max_size=limits.MAX_RANK)
        match draw(st.integers(0, 3)):
            case 0:
                box = tuple(draw(boxes))
                strides = draw(st.just((1,) * len(box)) | st.tuples(*(st.integers(1, limits.ELEMENT_STRIDE_MAX) for _ in box)))
                fill = draw(st.sampled_from(OOB_FILLS))
                entries = draw(st.none() | st.integers(1, 3))
                param = MapParam(
                    name=name,
                    dtype=draw(dtypes),
                    box_dim=box,
                    element_strides=strides,
                    swizzle=draw(swizzles),
                    oob_fill=fill,
                    entries=entries,
                )
                if entries is None or not {p.name for p in made} & {*param.bound_names}:
                    made.append(param)
            case 1:
                made.append(ArrayParam(name=name, dtype=draw(dtypes), rank=draw(st.integers(1, limits.MAX_RANK))))
            case 2:
                made.append(ScalarParam(name=name, dtype=draw(dtypes)))
            case _:
                if name not in known_symbols(made):
                    made.append(IdxParam(name=name))
    return tuple(made)


tiles = st.builds(
    TileDecl,
    name=names,
    dtype=dtypes,
    shape=st.lists(st.integers(1, 64), min_size=1, max_size=limits.MAX_RANK).map(tuple),
    align=st.sampled_from([16, 128, 1024]),
    swizzle=swizzles,
    stages=st.integers(1, 4),
    offset=st.integers(0, 1 << 18),
    stage_bytes=st.integers(0, 1 << 18),
    site=sites,
)
barriers = st.builds(
    BarrierDecl, name=names, kind=st.sampled_from(BARRIER_KINDS), stages=st.integers(1, 4), offset=st.integers(0, 1 << 18), site=sites
)


class StepMaker:
    """Draws steps for a program whose declarations are fixed."""

    def __init__(
        self, draw: DrawFn, params: tuple[Param, ...], tiles: tuple[TileDecl, ...], barriers: tuple[BarrierDecl, ...], threads: int
    ) -> None:
        self.draw = draw
        self.params = params
        self.tiles = tiles
        self.barriers = barriers
        self.symbols = [Sym(name, kind) for name, kind in known_symbols(params).items()]
        self.taken = {s.name for s in self.symbols} | {p.name for p in params}
        self.scope = ThreadSet(((0, threads),))
        self.made: dict[str, list[int]] = {ops.TOKEN.sigil: [], ops.NEW_PRED.sigil: []}
        self.gathers = False  # the op being drawn needs a map of rank 2
        self.rank = 1  # of the map or array drawn last: its coordinates follow it
        self.inputs: list[TileRef] = []  # tiles drawn together last: the tile and the element expression beside them follow them
        self.out = ""  # the element type of that tile
        self.summed: list[str] | None = None  # element types of arrays drawn together last: the element expression beside them follows them
        self.number = 0  # the immediate drawn last: the axis of what is folded
        self.reach = (0, 0)  # how far the taps of a stencil may lie from its output
        self.written: int | None = None  # position of the tile that the tile drawn last must be beside

    def steps(self, count: int, depth: int) -> tuple[Step, ...]:
        return tuple(self.step(self.draw(st.sampled_from(self.usable(depth))), depth) for _ in range(self.draw(st.integers(0, count))))

    def usable(self, depth: int) -> list[type[Instr]]:
        missing = self.missing()
        return [
            op for op in ops.OPS if not any(self.lacks(kind, missing) for _, kind in ops.operands(op)) and (depth or op not in ops.BLOCKS)
        ]

    def of_rank_2(self) -> list[Param]:
        return [p for p in self.of(MapParam) if isinstance(p, MapParam) and p.rank == 2]

    def step(self, op: type[Instr], depth: int) -> Step:
        make: Callable[..., Instr] = op
        self.gathers = any(kind == ops.GATHER for _, kind in ops.operands(op))
        made = make(**{name: self.operand(kind) for name, kind in ops.operands(op)})
        outside, symbols = self.scope, list(self.symbols)
        # A loop's counter is known in its body; what another op names, to the end of the body it stands in.
        self.symbols += [Sym(getattr(made, name), ops.NAMING[kind]) for name, kind in ops.operands(op) if kind in ops.NAMING]
        if not isinstance(made, ops.BLOCKS):
            return Step(made, self.draw(sites))
        if isinstance(made, ops.Scope):
            self.scope = made.threads
        body = self.steps(3, depth - 1)
        self.scope, self.symbols = outside, symbols
        return Step(made, self.draw(sites), body)

    def missing(self) -> set[Kind]:
        """Kinds of operands for which there is nothing in this program that one could be."""
        found = {
            ops.BARRIER: self.barriers,
            ops.TILE: self.tiles,
            ops.TILES: self.tiles,
            ops.FLIPPED: self.flips(),
            ops.FOLDED: self.folds(0) and self.folds(1),
            ops.AROUND: self.arounds(),
            ops.MAP: self.of(MapParam),
            ops.GATHER: self.of_rank_2(),
            ops.ARRAY: self.of(ArrayParam),
            ops.SLOT: self.for_maps(),
            ops.TOKENS: self.made[ops.TOKEN.sigil],
        }
        return {kind for kind, places in found.items() if not places}

    def lacks(self, kind: OperandKind, missing: set[Kind]) -> bool:
        if isinstance(kind, Imm):
            return bool(kind.sigil) and not kind.makes and not self.made[kind.sigil]
        return isinstance(kind, Kind) and kind in missing

    def of(self, sort: type[Param]) -> list[Param]:
        return [p for p in self.params if isinstance(p, sort)]

    def for_maps(self) -> list[ArrayParam]:
        """Arrays that maps can lie in."""
        return [p for p in self.params if isinstance(p, ArrayParam) and (p.dtype, p.rank) == (SLOT_DTYPE, SLOT_RANK)]

    # ---- operands
    def operand(self, kind: OperandKind) -> object:
        match kind:
            case Imm():
                return self.immediate(kind)
            case Choice(words):
                return self.draw(st.sampled_from(words))
            case Kind():
                return KINDS[kind](self)

    def immediate(self, kind: Imm) -> int:
        if kind.makes:
            numbers = self.made[kind.sigil]
            numbers.append(len(numbers))
            return numbers[-1]
        if kind.sigil:
            return self.draw(st.sampled_from(self.made[kind.sigil]))
        self.number = self.draw(st.integers(kind.low, kind.high).filter(lambda n: n != 0 or not kind.nonzero))
        return self.number

    def expr(self) -> Expr:
        return self.draw(expressions(tuple(self.symbols)))

    def index(self, stages: int) -> Expr:
        return self.draw(indices(tuple(self.symbols), stages))

    def barrier(self) -> BarrierRef:
        position = self.draw(st.integers(0, len(self.barriers) - 1))
        return BarrierRef(position, self.index(self.barriers[position].stages))

    def tile(self) -> TileRef:
        if self.written is not None:
            position, self.written = self.written, None
            return TileRef(position, self.index(self.tiles[position].stages))
        if self.inputs:
            return self.beside()
        position = self.draw(st.integers(0, len(self.tiles) - 1))
        tile = self.tiles[position]
        part = None
        if self.draw(st.booleans()):
            of = self.draw(st.sampled_from([n for n in range(1, tile.shape[0] + 1) if tile.shape[0] % n == 0]))
            part = Part(self.index(of), of)
        self.out = tile.dtype
        return TileRef(position, self.index(tile.stages), part)

    def beside(self) -> TileRef:
        """Another place of one of the tiles drawn together."""
        ref = self.draw(st.sampled_from(self.inputs))
        self.out = self.tiles[ref.tile].dtype
        part = Part(self.index(ref.part.of), ref.part.of) if ref.part is not None else None
        return TileRef(ref.tile, self.index(self.tiles[ref.tile].stages), part)

    def together(self) -> tuple[TileRef, ...]:
        self.inputs = [self.tile()]
        for _ in range(self.draw(st.integers(0, ops.MAP_INPUTS_MAX - 1))):
            self.inputs.append(self.beside())
        return tuple(self.inputs)

    def arrays(self) -> tuple[ArrayRef, ...]:
        """Arrays of as many dimensions as the coordinates beside them."""
        fitting = [p for p in self.params if isinstance(p, ArrayParam) and p.rank == self.rank]
        drawn = self.draw(st.lists(st.sampled_from(fitting), max_size=ops.EPILOGUE_ARRAYS_MAX)) if fitting else []
        self.summed = [mma.SUM_DTYPE, *(p.dtype for p in drawn)]
        return tuple(ArrayRef(p.name) for p in drawn)

    def flips(self) -> list[tuple[int, int]]:
        """Positions of two tiles, one the other transposed."""
        all_of = list(enumerate(self.tiles))
        flipped = [(i, t.dtype, (*t.shape[:-2], *t.shape[:-3:-1])) for i, t in all_of if len(t.shape) > 1]
        return [(i, j) for i, dtype, shape in flipped for j, o in all_of if i != j and (o.dtype, o.shape) == (dtype, shape)]

    def folds(self, axis: int) -> list[tuple[int, int]]:
        """Positions of a tile and of a vector of what is folded along `axis`."""
        all_of = list(enumerate(self.tiles))
        sides = [(i, (t.shape[1 - axis],)) for i, t in all_of if len(t.shape) == 2 and t.dtype in ops.FOLDABLE]
        return [(i, j) for i, shape in sides for j, o in all_of if (o.dtype, o.shape) == ("f32", shape)]

    def pair(self, pairs: list[tuple[int, int]]) -> TileRef:
        position, self.written = self.draw(st.sampled_from(pairs))
        return TileRef(position, self.index(self.tiles[position].stages))

    def flipped(self) -> TileRef:
        return self.pair(self.flips())

    def folded(self) -> TileRef:
        return self.pair(self.folds(self.number))

    def arounds(self) -> list[tuple[int, int]]:
        """Positions of a tile and of one that lies in its middle."""
        f32s = [(i, t.shape) for i, t in enumerate(self.tiles) if t.dtype == "f32"]
        return [(i, j) for i, shape in f32s for j, other in f32s if i != j and ops.margin(shape, other) is not None]

    def around(self) -> TileRef:
        ref = self.pair(self.arounds())
        self.reach = ops.margin(self.tiles[ref.tile].shape, self.tiles[self.written or 0].shape) or (0, 0)
        return ref

    def taps(self) -> tuple[ops.Tap, ...]:
        places = st.tuples(*(st.integers(-n, n) for n in self.reach), st.floats(width=32, allow_nan=False, allow_infinity=False))
        return tuple([ops.Tap(*each) for each in self.draw(st.lists(places, min_size=1, max_size=ops.TAPS_MAX))])

    def elem(self) -> Elem:
        inputs = list(enumerate(self.summed if self.summed is not None else [self.tiles[ref.tile].dtype for ref in self.inputs]))
        self.inputs, self.summed = [], None
        return self.elements(self.out, inputs, self.draw(st.integers(0, 4)))

    def elements(self, dtype: str, inputs: list[tuple[int, str]], depth: int) -> Elem:
        """A tree of at most `depth` operations with a value of `dtype`."""
        choice = self.draw(st.integers(0, 3)) if depth else 0
        if choice == 1:
            return Cast(self.elements(self.draw(dtypes), inputs, depth - 1), dtype)
        if choice > 1 and dtype in FLOATS | INTEGERS:
            ops_of = [op for op in ElemOp if not pair_problem(op, dtype, dtype)]
            a = self.elements(dtype, inputs, depth - 1)
            if choice == 2:
                return Neg(a)
            return Binary(self.draw(st.sampled_from(ops_of)), a, self.elements(dtype, inputs, depth - 1))
        leaves: list[Elem] = [Input(i, of) for i, of in inputs if of == dtype]
        leaves += [Parameter(p.name, dtype) for p in self.params if isinstance(p, ScalarParam) and p.dtype == dtype]
        number = st.floats(allow_nan=False) if dtype not in INTEGERS else st.integers(*integer_range(dtype))
        leaves.append(Number(self.draw(number), dtype))
        return self.draw(st.sampled_from(leaves))

    def map(self) -> MapRef:
        param = self.draw(st.sampled_from([p for p in self.params if isinstance(p, MapParam) and (p.rank == 2 or not self.gathers)]))
        self.rank = param.rank
        placed = self.slot() if self.for_maps() else None
        return MapRef(param.name, None if param.entries is None else self.index(param.entries), self.draw(st.sampled_from([None, placed])))

    def slot(self) -> SlotRef:
        return SlotRef(self.draw(st.sampled_from(self.for_maps())).name, self.draw(st.integers(0, SLOTS_MAX - 1)))

    def array(self) -> ArrayRef:
        param = self.draw(st.sampled_from([p for p in self.params if isinstance(p, ArrayParam)]))
        self.rank = param.rank
        return ArrayRef(param.name)

    def coords(self) -> tuple[Expr, ...]:
        return tuple(self.expr() for _ in range(self.rank))

    def gather(self) -> tuple[Expr, ...]:
        return tuple(self.expr() for _ in range(5))

    def offsets(self) -> tuple[Expr, ...]:
        return ()  # the maps drawn here are of the tile kind

    def hint(self) -> CacheHint | None:
        fractions = st.floats(0, 1, exclude_min=True)
        made = st.builds(CacheHint, st.sampled_from(ops.PRIMARY_POLICIES), fractions, st.sampled_from(ops.SECONDARY_POLICIES))
        return self.draw(st.none() | made)

    def threads(self) -> ThreadSet:
        low, high = self.draw(st.sampled_from(self.scope.ranges))
        cuts = sorted(self.draw(st.sets(st.integers(low, high), min_size=2, max_size=4) if high > low + 1 else st.just({low, high})))
        return ThreadSet(tuple(zip(cuts[::2], cuts[1::2], strict=False)))

    def value(self) -> float | ScalarRef:
        infinite = not any(tile.dtype in INTEGERS for tile in self.tiles)
        floats = st.floats(allow_nan=False, allow_infinity=infinite)
        numbers: SearchStrategy[float | ScalarRef] = floats | st.integers(-(1 << 63), (1 << 64) - 1)
        scalars = self.of(ScalarParam)
        return self.draw(numbers | st.sampled_from(scalars).map(lambda p: ScalarRef(p.name)) if scalars else numbers)

    def name(self) -> str:
        name = self.draw(names.filter(lambda n: n not in self.taken))
        self.taken.add(name)
        return name

    def tokens(self) -> tuple[int, ...]:
        return tuple(self.draw(st.lists(st.sampled_from(self.made[ops.TOKEN.sigil]), min_size=1, max_size=3)))

    def cond(self) -> Cond:
        return self.draw(conditions(tuple(self.symbols), tuple(self.made[ops.NEW_PRED.sigil])))


KINDS: dict[Kind, Callable[[StepMaker], object]] = {
    ops.BARRIER: StepMaker.barrier,
    ops.TILE: StepMaker.tile,
    ops.MAP: StepMaker.map,
    ops.ARRAY: StepMaker.array,
    ops.EXPR: StepMaker.expr,
    ops.COND: StepMaker.cond,
    ops.COORDS: StepMaker.coords,
    ops.GATHER: StepMaker.gather,
    ops.OFFSETS: StepMaker.offsets,
    ops.HINT: StepMaker.hint,
    ops.SLOT: StepMaker.slot,
    ops.THREADS: StepMaker.threads,
    ops.VALUE: StepMaker.value,
    ops.NAME: StepMaker.name,
    ops.INDEX_NAME: StepMaker.name,
    ops.TRIPS_NAME: StepMaker.name,
    ops.TOKENS: StepMaker.tokens,
    ops.TILES: StepMaker.together,
    ops.ARRAYS: StepMaker.arrays,
    ops.FLIPPED: StepMaker.flipped,
    ops.FOLDED: StepMaker.folded,
    ops.AROUND: StepMaker.around,
    ops.TAPS: StepMaker.taps,
    ops.ELEM: StepMaker.elem,
}


RICH_PARAMS = (
    MapParam(name="tmap", dtype="f32", box_dim=(8, 32), element_strides=(1, 1)),
    ArrayParam(name="grid", dtype="f32", rank=2),
    ArrayParam(name="kept maps", dtype=SLOT_DTYPE, rank=SLOT_RANK),
)
RICH_TILE = TileDecl(name="stage", dtype="f32", shape=(8, 32), align=128, swizzle="none", stages=2, offset=0, stage_bytes=1024)
RICH_FLIP = TileDecl(name="flip", dtype="f32", shape=(32, 8), align=128, swizzle="none", stages=1, offset=2176, stage_bytes=1024)
RICH_ROWS = TileDecl(name="rows", dtype="f32", shape=(8,), align=128, swizzle="none", stages=2, offset=3200, stage_bytes=128)
RICH_COLUMNS = TileDecl(name="columns", dtype="f32", shape=(32,), align=128, swizzle="none", stages=1, offset=3456, stage_bytes=128)
RICH_MIDDLE = TileDecl(name="middle", dtype="f32", shape=(6, 24), align=128, swizzle="none", stages=1, offset=3584, stage_bytes=640)
RICH_TILES = (RICH_TILE, RICH_FLIP, RICH_ROWS, RICH_COLUMNS, RICH_MIDDLE)
RICH_BARRIER = BarrierDecl(name="ready", kind="TmaBarrier", stages=2, offset=2048)


@st.composite
def register_hints(draw: DrawFn, threads: int) -> tuple[RegisterHint, ...]:
    """Hints for disjoint threads of a CTA of `threads`, in their order, that a CTA can have together."""
    cuts = sorted(draw(st.sets(st.integers(0, threads), max_size=6)))
    counts = st.integers(limits.REGISTERS_MIN, 64).map(lambda n: n - n % limits.REGISTERS_STEP)
    ranges = [(low, high) for low, high in zip(cuts[::2], cuts[1::2], strict=False)]
    return tuple(RegisterHint(ThreadSet((span,)), draw(counts)) for span in ranges)


@st.composite
def requirements(draw: DrawFn, declared: tuple[Param, ...]) -> tuple[Requirement, ...]:
    """Conditions on the launch of a program with these parameters."""
    symbols = tuple(Sym(name, kind) for name, kind in known_symbols(declared).items() if kind in LAUNCH_KINDS)
    words = st.text(max_size=8)
    one = st.builds(Requirement, cond=conditions(symbols, ()), what=words, fix=words, site=sites)
    return tuple(draw(st.lists(one, max_size=2)))


@st.composite
def programs(draw: DrawFn, *, max_steps: int = 6, max_depth: int = 3, holding: type[Instr] | None = None) -> Program:
    """Programs of at most `max_steps` steps on the top level and blocks `max_depth` deep, plus one of `holding` when given."""
    rich = holding is not None or draw(st.booleans())
    declared = (*(p for p in draw(params()) if p.name not in ("tmap", "grid")), *(RICH_PARAMS if rich else ()))
    tile_decls = (*draw(st.lists(tiles, max_size=2)), *(RICH_TILES if rich else ()))
    barrier_decls = (*draw(st.lists(barriers, max_size=2)), *((RICH_BARRIER,) if rich else ()))
    threads = draw(st.integers(1, limits.THREADS_MAX))
    maker = StepMaker(draw, declared, tile_decls, barrier_decls, threads)
    first: tuple[Step, ...] = ()
    if holding is not None:
        first = (maker.step(ops.MbarrierArrive, 0), maker.step(ops.MbarrierTestToken, 0), maker.step(holding, max_depth))
    return Program(
        name=draw(names),
        threads=threads,
        cluster=draw(st.sampled_from([(1, 1, 1), (2, 1, 1), (1, 1, 2), (4, 2, 2)])),
        params=declared,
        tiles=tile_decls,
        barriers=barrier_decls,
        shared_bytes=draw(st.integers(0, 1 << 18)),
        registers=draw(register_hints(threads)),
        requires=draw(requirements(declared)),
        steps=(*first, *maker.steps(max_steps, max_depth)),
        site=draw(sites),
    )
