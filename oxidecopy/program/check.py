"""The one generic check of a program: every operand and declaration against the bounds that its kind has in the op table.

It asks whether a program means anything, not whether it is safe: that is the verifier's work. What passes can be printed, encoded and
looked up by any consumer without an index, key or recursion error. Adding an op needs no change here, adding a kind a row in `_CHECKS`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final, final

from oxidecopy.errors import Diagnostic, Site
from oxidecopy.isa import elem, limits, mma, ops
from oxidecopy.isa.elem import Elem, Input, Parameter
from oxidecopy.isa.expr import Answer, Cond, Const, Expr, FloorDiv, Mod, Sym
from oxidecopy.isa.im2col import HALO_MAX
from oxidecopy.isa.ops import ArrayRef, BarrierRef, CacheHint, Choice, Imm, Instr, Kind, MapRef, ScalarRef, SlotRef, ThreadSet, TileRef
from oxidecopy.program.declared import Places, check_declarations, known_symbols, well_formed
from oxidecopy.program.nesting import check_nesting, nodes
from oxidecopy.program.program import ArrayParam, BarrierDecl, MapParam, Param, Program, ScalarParam, Step, TileDecl
from oxidecopy.program.replaced import SLOT_DTYPE, SLOT_RANK, SLOTS_MAX
from oxidecopy.program.required import INTEGER_MAX, INTEGER_MIN, check_requirements
from oxidecopy.program.tensor_map import IM2COL, IM2COL_WIDE

ANSWER: Final = Imm(ops.NEW_PRED.low, ops.NEW_PRED.high, ops.NEW_PRED.sigil)  # a use of a predicate
VALUE_MAX: Final = (1 << 64) - 1  # a fill may be any u64
GATHER_COORDS: Final = 5  # of gather4 and scatter4
GATHER_RANK: Final = 2
_OPERANDS: Final = frozenset({"a", "b"})  # of a product: tiles that its element expression does not write


def check_operands(program: Program, places: Places | None = None) -> list[Diagnostic]:
    """Every field of `program` that is out of its kind's bounds; empty for a program that means something.

    Args:
        program: any program, recorded or parsed.
        places: where its parts come from; by default the call sites it holds.
    """
    places = places or Places.recorded(program)
    found = [*check_declarations(program, places), *check_requirements(program, places)]
    nested = check_nesting(program, places.steps)
    return found + (nested or list(_Steps(program, places.steps).check()))


@final
@dataclass(frozen=True, slots=True)
class _Operand:
    """The operand under check, by the name it has in errors."""

    op: Instr
    name: str
    place: Site | None

    def broken(self, rule: str, what: str, *, got: object = "", required: str = "", fix: str = "") -> Diagnostic:
        text = str(got)[:80]
        return Diagnostic(rule=rule, what=f"{self.op.mnemonic}: {self.name} {what}", got=text, required=required, fix=fix, site=self.place)


@final
@dataclass(slots=True)
class _Block:
    """An open block: the steps that are left, who executes them, and the integers named in it."""

    steps: Iterator[Step]
    threads: ThreadSet
    counters: tuple[str, ...] = ()


@final
class _Steps:
    """One walk over all steps, in program order; `symbols` are the integers known at the step."""

    __slots__ = ("_counters", "_made", "_params", "_places", "_program", "_symbols", "_threads", "_used")

    def __init__(self, program: Program, places: list[Site | None]) -> None:
        self._program = program
        self._places = iter(places)
        self._params: dict[str, Param] = {p.name: p for p in program.params}
        self._symbols = known_symbols(program.params)
        self._counters: set[str] = set()
        self._threads = ThreadSet(((0, program.threads),))
        self._made: set[tuple[str, int]] = set()
        self._used: list[tuple[str, int, _Operand]] = []

    def check(self) -> Iterator[Diagnostic]:
        blocks = [_Block(iter(self._program.steps), self._threads)]
        while blocks:
            step = next(blocks[-1].steps, None)
            if step is None:
                for counter in blocks.pop().counters:
                    self._symbols.pop(counter, None)
                continue
            self._threads = blocks[-1].threads
            yield from self.step(step, next(self._places))
            block = self.enter(step)
            if not isinstance(step.op, ops.BLOCKS):  # what it names is known to the end of the body it stands in
                blocks[-1].counters += block.counters
                block.counters = ()
            blocks.append(block)
        for sigil, number, operand in self._used:
            if (sigil, number) not in self._made:
                yield operand.broken(
                    "OX1918", "is used but never made", got=f"{sigil}{number}", required="a number that an op of the program makes"
                )

    def step(self, step: Step, place: Site | None) -> Iterator[Diagnostic]:
        if step.body and not isinstance(step.op, ops.BLOCKS):
            yield Diagnostic(rule="OX1902", what=f"{step.op.mnemonic} has a body, but only blocks can", site=place)
        for name, kind in ops.operands(type(step.op)):
            operand = _Operand(step.op, name, place)
            value = getattr(step.op, name)
            match kind:
                case Imm():
                    yield from self.immediate(operand, kind, value)
                case Choice(words):
                    if value not in words:
                        yield operand.broken("OX1911", "is no word of its list", got=value, required=", ".join(words))
                case Kind():
                    yield from _CHECKS[kind](self, operand, value)

    def enter(self, step: Step) -> _Block:
        """The block of `step`'s body. Broken thread sets do not narrow, so that one mistake is reported once."""
        threads, counters = self._threads, []
        for name, kind in ops.operands(type(step.op)):
            value = getattr(step.op, name)
            if kind == ops.THREADS and well_formed(value, self._program.threads):
                threads = value
            elif kind in ops.NAMING and value not in self._symbols:
                self._symbols[value] = ops.NAMING[kind]
                counters.append(value)
        return _Block(iter(step.body), threads, tuple(counters))

    # ---- one kind each
    def immediate(self, operand: _Operand, kind: Imm, value: object) -> Iterator[Diagnostic]:
        if not isinstance(value, int) or isinstance(value, bool) or not kind.low <= value <= kind.high:
            yield operand.broken("OX1910", "is out of its bounds", got=value, required=f"an integer from {kind.low} to {kind.high}")
        elif kind.makes:
            if (kind.sigil, value) in self._made:
                yield operand.broken("OX1918", "is made a second time", got=f"{kind.sigil}{value}", fix="give each result its own number")
            self._made.add((kind.sigil, value))
        elif kind.sigil:
            self._used.append((kind.sigil, value, operand))
        elif kind.nonzero and value == 0:
            yield operand.broken("OX1915", "is zero", got=0, required="any other integer in its bounds")

    def stage(self, operand: _Operand, position: int, decls: Sequence[TileDecl | BarrierDecl], index: Expr) -> Iterator[Diagnostic]:
        """A position among `decls` and the stage of what is there."""
        if not 0 <= position < len(decls):
            yield operand.broken("OX1912", "refers to nothing", got=position, required=f"a position below {len(decls)}")
        elif isinstance(index, Const) and not 0 <= index.value < decls[position].stages:
            stages = decls[position].stages
            yield operand.broken(
                "OX1912", f"refers to a stage that {decls[position].name!r} does not have", got=index.value, required=f"0 to {stages - 1}"
            )
        yield from self.node(operand, index)

    def barrier(self, operand: _Operand, ref: BarrierRef) -> Iterator[Diagnostic]:
        return self.stage(operand, ref.barrier, self._program.barriers, ref.index)

    def tile(self, operand: _Operand, ref: TileRef) -> Iterator[Diagnostic]:
        tiles = self._program.tiles
        yield from self.stage(operand, ref.tile, tiles, ref.index)
        if ref.part is None:
            return
        yield from self.node(operand, ref.part.rank)
        of, rank = ref.part.of, ref.part.rank
        rows = tiles[ref.tile].shape[:1] if 0 <= ref.tile < len(tiles) else ()
        if of < 1 or any(n % of for n in rows):
            yield operand.broken(
                "OX1912", "is cut into unequal parts", got=f"{of} parts", required=f"a divisor of {rows[0] if rows else 'its rows'}"
            )
        elif isinstance(rank, Const) and not 0 <= rank.value < of:
            yield operand.broken("OX1912", "is a part that is not there", got=rank.value, required=f"0 to {of - 1}")

    def tiles(self, operand: _Operand, refs: tuple[TileRef, ...]) -> Iterator[Diagnostic]:
        """A few tiles, all of the shape of those beside them."""
        if not 1 <= len(refs) <= ops.MAP_INPUTS_MAX:
            yield operand.broken("OX1910", "are too few or too many", got=len(refs), required=f"1 to {ops.MAP_INPUTS_MAX}")
        for ref in refs:
            yield from self.tile(operand, ref)
        beside = [getattr(operand.op, name) for name, kind in ops.operands(type(operand.op)) if kind == ops.TILE]
        fns = [getattr(operand.op, name) for name, kind in ops.operands(type(operand.op)) if kind == ops.ELEM]
        ways = {i: w for fn in fns for i, w in elem.ways(fn).items()}
        for i, ref in enumerate(refs):
            for out in beside:
                yield from self.input(operand, ref, out, ways.get(i, {elem.Along.ALL}))

    def input(self, operand: _Operand, ref: TileRef, out: TileRef, ways: set[elem.Along]) -> Iterator[Diagnostic]:
        """One of the tiles, which is used in these `ways`, beside the one that is written."""
        mine, whole, way = self.shape(ref), self.shape(out), min(ways, key=lambda a: a.value)
        if len(ways) > 1:
            yield operand.broken("OX1920", "hold one that is used in two ways", required="a whole tile, or a vector along one of its sides")
        elif mine and whole and not elem.fits_shape(mine, whole, way):
            needed = elem.input_shapes(whole, way)
            yield operand.broken("OX1920", "and the tile beside them differ in shape", got=[mine, whole], required=str(needed))
        elif way is not elem.Along.ALL and ref.tile == out.tile:
            yield operand.broken("OX1920", "hold a vector of the tile that is written", required="another tile")

    def beside(self, operand: _Operand, ref: TileRef) -> Iterator[tuple[TileRef, Diagnostic | None]]:
        """The tiles that an op writes, with what is wrong where `ref` is one of them: its threads read what others write."""
        for name, kind in ops.operands(type(operand.op)):
            out = getattr(operand.op, name)
            if kind == ops.TILE:
                same = out.tile == ref.tile
                yield out, operand.broken("OX1920", "is the tile that is written", required="another tile") if same else None

    def flipped(self, operand: _Operand, ref: TileRef) -> Iterator[Diagnostic]:
        """A tile whose last two dimensions are swapped in the one beside it."""
        yield from self.tile(operand, ref)
        mine = self.shape(ref)
        for out, same in self.beside(operand, ref):
            other, dtypes = self.shape(out), (self.dtype(ref), self.dtype(out))
            needed = (*mine[:-2], *mine[:-3:-1])
            if same is not None:
                yield same
            elif mine and other and (len(mine) < 2 or other != needed):
                required = f"{needed} in the one beside it" if len(mine) > 1 else "two dimensions or more"
                yield operand.broken("OX1920", "is no transpose of the tile beside it", got=[mine, other], required=required)
            elif all(dtypes) and dtypes[0] != dtypes[1]:
                yield operand.broken("OX1920", "and the tile beside it differ in type", got=dtypes[0], required=dtypes[1])

    def folded(self, operand: _Operand, ref: TileRef) -> Iterator[Diagnostic]:
        """A tile of which each row or column is put together to an element of the vector beside it."""
        yield from self.tile(operand, ref)
        mine, axis = self.shape(ref), getattr(operand.op, "axis", 0)
        for out, same in self.beside(operand, ref):
            other, dtypes = self.shape(out), (self.dtype(ref), self.dtype(out))
            if same is not None:
                yield same
            elif axis not in (0, 1):  # its own mistake
                continue
            elif mine and other and (len(mine) != 2 or other != (mine[1 - axis],)):
                required = f"({mine[1 - axis]},) in the one beside it" if len(mine) == 2 else "two dimensions"
                yield operand.broken("OX1920", "and the vector beside it do not fit each other", got=[mine, other], required=required)
            elif all(dtypes) and (dtypes[0] not in ops.FOLDABLE or dtypes[1] != "f32"):
                required = f"{', '.join(ops.FOLDABLE)} into f32"
                yield operand.broken(
                    "OX1920", "cannot be put together into the tile beside it", got=" into ".join(dtypes), required=required
                )

    def around(self, operand: _Operand, ref: TileRef) -> Iterator[Diagnostic]:
        """A tile in whose middle the one beside it lies."""
        yield from self.tile(operand, ref)
        mine = self.shape(ref)
        for out, same in self.beside(operand, ref):
            other, dtypes = self.shape(out), (self.dtype(ref), self.dtype(out))
            if same is not None:
                yield same
            elif mine and other and ops.margin(mine, other) is None:
                required = "two dimensions, with as many more rows above as below, and columns left as right"
                yield operand.broken("OX1920", "does not lie around the tile beside it", got=[mine, other], required=required)
            elif all(dtypes) and dtypes != ("f32", "f32"):
                yield operand.broken("OX1920", "and the tile beside it are not of f32", got=" into ".join(dtypes), required="f32 into f32")

    def taps(self, operand: _Operand, taps: tuple[ops.Tap, ...]) -> Iterator[Diagnostic]:
        """Of a stencil; their reach is judged where the tiles fit each other."""
        tiles = [getattr(operand.op, name) for name, kind in ops.operands(type(operand.op)) if kind in (ops.AROUND, ops.TILE)]
        shapes = [self.shape(ref) for ref in tiles]
        margin = ops.margin(shapes[0], shapes[1]) if all(shapes) else None
        problem = ops.taps_problem(taps, margin) if margin is not None else ""
        if problem:
            got = ", ".join(f"({tap.row}, {tap.column}): {tap.weight!r}" for tap in taps)
            yield operand.broken("OX1910", "are no taps of a stencil", got=got, required=problem)

    def shape(self, ref: TileRef) -> tuple[int, ...]:
        """Of a tile or part, in elements; empty where there is none."""
        decls, of = self._program.tiles, ref.part.of if ref.part is not None else 1
        outer, *inner = decls[ref.tile].shape if 0 <= ref.tile < len(decls) else (0,)
        return (outer // of, *inner) if outer and of > 0 else ()

    def elem(self, operand: _Operand, fn: Elem) -> Iterator[Diagnostic]:
        """An element expression over the tiles beside it."""
        inputs: list[str] = []
        for name, kind in ops.operands(type(operand.op)):
            value = getattr(operand.op, name)
            if kind == ops.TILES:
                inputs += [self.dtype(ref) for ref in value]
            elif kind == ops.ARRAYS:
                inputs += [mma.SUM_DTYPE, *(self.array(ref)[0] for ref in value)]
            elif kind == ops.TILE and name not in _OPERANDS and self.dtype(value) not in (fn.dtype, ""):
                yield operand.broken("OX1920", f"does not give what {name!r} holds", got=fn.dtype, required=self.dtype(value))
        for node in {id(e): e for e in elem.elements(fn)}.values():  # by id: a hash would walk the tree below each
            wrong = elem.problem(node) or self.leaf_problem(node, inputs)
            if wrong:
                yield operand.broken("OX1920", "does not fit its tiles and parameters", got=wrong)

    def leaf_problem(self, node: Elem, inputs: Sequence[str]) -> str:
        """Why a leaf refers to nothing of its type; "" when it does, and for other nodes. `inputs` are types."""
        match node:
            case Input(index, dtype) if not 0 <= index < len(inputs) or inputs[index] not in (dtype, ""):
                return f"x{index} is no input of {dtype}"
            case Parameter(name, dtype):
                param = self._params.get(name)
                found = isinstance(param, ScalarParam) and param.dtype == dtype
                return "" if found else f"{name!r} is no scalar parameter of {dtype}"
            case _:
                return ""

    def arrays(self, operand: _Operand, refs: tuple[ArrayRef, ...]) -> Iterator[Diagnostic]:
        """What an epilogue reads: vectors along the rows or columns, and arrays as its result."""
        if len(refs) > ops.EPILOGUE_ARRAYS_MAX:
            yield operand.broken("OX1910", "are too many", got=len(refs), required=f"at most {ops.EPILOGUE_ARRAYS_MAX}")
        fns = [getattr(operand.op, name) for name, kind in ops.operands(type(operand.op)) if kind == ops.ELEM]
        places = [getattr(operand.op, name) for name, kind in ops.operands(type(operand.op)) if kind == ops.COORDS]
        ways = {i: w for fn in fns for i, w in elem.ways(fn).items()}
        whole = {elem.Along.ALL}
        if ways.get(0, whole) != whole:
            yield operand.broken("OX1920", "come with a sum that is spread", required="x0 as it is")
        for i, ref in enumerate(refs, 1):
            yield from self.param(operand, ref)
            rank, used = self.array(ref)[1], ways.get(i, whole)
            wanted = len(places[0]) if used == whole and places else 1
            if len(used) > 1 or rank not in (wanted, 0):
                required = "a vector along the rows or the columns, or an array with as many dimensions as there are coordinates"
                yield operand.broken(
                    "OX1920", "hold one that does not fit how it is used", got=f"{ref.name}, rank {rank}", required=required
                )

    def array(self, ref: ArrayRef) -> tuple[str, int]:
        """Element type and rank of an array parameter; empty and 0 where there is none."""
        param = self._params.get(ref.name)
        return (param.dtype, param.rank) if isinstance(param, ArrayParam) else ("", 0)

    def dtype(self, ref: TileRef) -> str:
        """Of a tile; empty where there is none."""
        decls = self._program.tiles
        return decls[ref.tile].dtype if 0 <= ref.tile < len(decls) else ""

    def param(self, operand: _Operand, ref: MapRef | ArrayRef | ScalarRef) -> Iterator[Diagnostic]:
        wanted = {MapRef: MapParam, ArrayRef: ArrayParam, ScalarRef: ScalarParam}[type(ref)]
        if not isinstance(self._params.get(ref.name), wanted):
            known = ", ".join(p.name for p in self._params.values() if isinstance(p, wanted))[:200]
            yield operand.broken("OX1912", "names no parameter of its sort", got=ref.name, required=known or "one that is declared")

    def map(self, operand: _Operand, ref: MapRef) -> Iterator[Diagnostic]:
        """A map, or an entry of a table of maps; or one of that kind in a place of the CTA's own."""
        yield from self.param(operand, ref)
        if ref.slot is not None:
            yield from self.slot(operand, ref.slot)
        param, index = self._params.get(ref.name), ref.index
        entries = param.entries if isinstance(param, MapParam) else None
        if index is not None:
            yield from self.node(operand, index)
        if not isinstance(param, MapParam) or (entries is None and index is None):
            return
        if entries is None or index is None:
            required = (
                f"`{ref.name}`, one map" if entries is None else f"an entry of the table: `{ref.name}[0]` to `{ref.name}[{entries - 1}]`"
            )
            yield operand.broken("OX1912", "takes a map for a table of maps, or the other way round", got=ref.name, required=required)
        elif isinstance(index, Const) and not 0 <= index.value < entries:
            required = f"0 to {entries - 1}"
            yield operand.broken("OX1912", f"refers to an entry that {ref.name!r} does not have", got=index.value, required=required)

    def slot(self, operand: _Operand, ref: SlotRef) -> Iterator[Diagnostic]:
        """A place for a map: a row of an array of bytes."""
        param = self._params.get(ref.array)
        if not isinstance(param, ArrayParam) or (param.dtype, param.rank) != (SLOT_DTYPE, SLOT_RANK):
            required = f"an array of {SLOT_DTYPE}, rank {SLOT_RANK}"
            yield operand.broken("OX1912", "names no array that maps can lie in", got=ref.array, required=required)
        if not 0 <= ref.number < SLOTS_MAX:
            yield operand.broken("OX1910", "is out of its bounds", got=ref.number, required=f"a place from 0 to {SLOTS_MAX - 1}")

    def coords(self, operand: _Operand, coords: tuple[Expr, ...]) -> Iterator[Diagnostic]:
        """As many as the map or array beside them has dimensions."""
        values = (getattr(operand.op, name) for name, kind in ops.operands(type(operand.op)) if kind in (ops.MAP, ops.ARRAY))
        beside = (self._params.get(ref.name) for ref in values)
        ranks = [p.rank for p in beside if isinstance(p, MapParam | ArrayParam)]
        if not 1 <= len(coords) <= limits.MAX_RANK or any(len(coords) != rank for rank in ranks):
            required = f"{ranks[0]}, the rank of what they point into" if ranks else f"1 to {limits.MAX_RANK}"
            yield operand.broken("OX1913", "are too few or too many", got=len(coords), required=required)
        yield from self.each(operand, coords)

    def each(self, operand: _Operand, found: tuple[Expr, ...]) -> Iterator[Diagnostic]:
        for e in found:
            yield from self.node(operand, e)

    def gather(self, operand: _Operand, coords: tuple[Expr, ...]) -> Iterator[Diagnostic]:
        """Four rows and a column, through a map of rank 2."""
        beside = [self._params.get(getattr(operand.op, name).name) for name, kind in ops.operands(type(operand.op)) if kind == ops.MAP]
        ranks = [p.rank for p in beside if isinstance(p, MapParam)]
        if len(coords) != GATHER_COORDS or any(rank != GATHER_RANK for rank in ranks):
            got = f"{len(coords)} coordinates, a map of rank {ranks[0] if ranks else '?'}"
            yield operand.broken("OX1913", "are too few or too many", got=got, required="four rows and a column, a map of rank 2")
        yield from self.each(operand, coords)

    def offsets(self, operand: _Operand, offsets: tuple[Expr, ...]) -> Iterator[Diagnostic]:
        """Of a copy through an im2col map, one for each of its spatial dimensions; none of others."""
        beside = [self._params.get(getattr(operand.op, name).name) for name, kind in ops.operands(type(operand.op)) if kind == ops.MAP]
        maps = [p for p in beside if isinstance(p, MapParam)]
        wanted = [p.rank - 2 if p.mode == IM2COL else 2 if p.mode in IM2COL_WIDE else 0 for p in maps]
        if any(len(offsets) != n for n in wanted):
            required = f"{wanted[0]}: one for each spatial dimension of an im2col map, offset and halo of a wide one, none through others"
            yield operand.broken("OX1913", "are too few or too many", got=len(offsets), required=required)
        elif any(p.mode in IM2COL_WIDE and not _is_halo(offsets[-1], p.mode) for p in maps):
            required = "a constant: 0 to 511, in mode im2col_w128 0 to 31"
            yield operand.broken("OX1910", "has a halo that is no number of pixels", got=str(offsets[-1]), required=required)
        yield from self.each(operand, offsets)

    def hint(self, operand: _Operand, hint: CacheHint | None) -> Iterator[Diagnostic]:
        """Words of PTX createpolicy.fractional, and a fraction that it takes."""
        if hint is None:
            return
        if hint.primary not in ops.PRIMARY_POLICIES or hint.secondary not in ops.SECONDARY_POLICIES:
            required = f"{' or '.join(ops.PRIMARY_POLICIES)}, then {' or '.join(ops.SECONDARY_POLICIES)}"
            yield operand.broken("OX1911", "is no cache policy", got=f"{hint.primary}, {hint.secondary}", required=required)
        if not 0 < hint.fraction <= 1:
            yield operand.broken("OX1910", "has a fraction out of its bounds", got=hint.fraction, required="more than 0, at most 1")

    def node(self, operand: _Operand, root: Expr | Cond) -> Iterator[Diagnostic]:
        """The symbols, constants, divisors and answers of an expression or condition."""
        for node, _ in nodes(root):
            match node:
                case Sym(name, kind):
                    if self._symbols.get(name) != kind:
                        yield operand.broken("OX1917", "uses an integer that is not known here", got=name)
                case Const(value):
                    if not INTEGER_MIN <= value <= INTEGER_MAX:
                        yield operand.broken("OX1910", "holds a constant of more than 64 bits", got=value)
                case FloorDiv(_, Const(0)) | Mod(_, Const(0)):
                    yield operand.broken("OX1910", "divides by zero", required="any other divisor")
                case Answer(register):
                    yield from self.immediate(operand, ANSWER, register)
                case _:
                    pass

    def thread_set(self, operand: _Operand, threads: ThreadSet) -> Iterator[Diagnostic]:
        if not well_formed(threads, self._program.threads):
            required = f"sorted, disjoint, non-empty ranges below {self._program.threads}"
            yield operand.broken("OX1914", "are no set of threads", got=threads.ranges, required=required)
        elif not _within(threads, self._threads):
            required = f"threads of the block around it: {self._threads.ranges}"[:200]
            yield operand.broken("OX1914", "are not in the block around", got=threads.ranges, required=required)

    def value(self, operand: _Operand, value: float | ScalarRef) -> Iterator[Diagnostic]:
        if isinstance(value, ScalarRef):
            yield from self.param(operand, value)
        elif isinstance(value, int) and not INTEGER_MIN <= value <= VALUE_MAX:
            yield operand.broken("OX1910", "has more than 64 bits", got=value)
        elif not isfinite(value) and isinstance(operand.op, ops.Fill) and self.dtype(operand.op.tile) in elem.INTEGERS:
            yield operand.broken("OX1910", "is no integer", got=value, required="a finite number, as its tile holds integers")

    def name(self, operand: _Operand, name: str) -> Iterator[Diagnostic]:
        if not name or name in self._counters or name in self._symbols:
            yield operand.broken("OX1916", "is empty, or another integer of the program has it", got=name, fix="rename it")
        self._counters.add(name)

    def tokens(self, operand: _Operand, tokens: tuple[int, ...]) -> Iterator[Diagnostic]:
        if not tokens:
            yield operand.broken("OX1910", "names no token", required="one or more")
        for token in tokens:
            yield from self.immediate(operand, ops.TOKEN, token)


_CHECKS: Final[dict[Kind, Callable[[_Steps, _Operand, Any], Iterator[Diagnostic]]]] = {
    ops.BARRIER: _Steps.barrier,
    ops.TILE: _Steps.tile,
    ops.MAP: _Steps.map,
    ops.ARRAY: _Steps.param,
    ops.EXPR: _Steps.node,
    ops.COND: _Steps.node,
    ops.COORDS: _Steps.coords,
    ops.GATHER: _Steps.gather,
    ops.OFFSETS: _Steps.offsets,
    ops.HINT: _Steps.hint,
    ops.SLOT: _Steps.slot,
    ops.THREADS: _Steps.thread_set,
    ops.VALUE: _Steps.value,
    ops.NAME: _Steps.name,
    ops.INDEX_NAME: _Steps.name,
    ops.TRIPS_NAME: _Steps.name,
    ops.TOKENS: _Steps.tokens,
    ops.TILES: _Steps.tiles,
    ops.ARRAYS: _Steps.arrays,
    ops.FLIPPED: _Steps.flipped,
    ops.FOLDED: _Steps.folded,
    ops.AROUND: _Steps.around,
    ops.TAPS: _Steps.taps,
    ops.ELEM: _Steps.elem,
}


def _within(inner: ThreadSet, outer: ThreadSet) -> bool:
    """True when `outer` holds all threads of `inner`; both are sorted."""
    merged: list[tuple[int, int]] = []
    for low, high in outer.ranges:
        if merged and merged[-1][1] == low:
            merged[-1] = (merged[-1][0], high)
        else:
            merged.append((low, high))
    starts = [low for low, _ in merged]
    return all((at := bisect_right(starts, low)) > 0 and high <= merged[at - 1][1] for low, high in inner.ranges)


def _is_halo(e: Expr, mode: str) -> bool:
    """A halo is a number that is known while the program is recorded: the size of a tile depends on it."""
    return isinstance(e, Const) and 0 <= e.value <= HALO_MAX[mode]
