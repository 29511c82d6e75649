"""`group.contract`: what a warpgroup multiplies from a ring's stages on tensor cores, and stores through a store ring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, final

from oxidecopy.errors import DTypeError, RecordError, ScopeError, ShapeError
from oxidecopy.isa import elem, expr, mma, ops
from oxidecopy.isa.elem import Along
from oxidecopy.isa.expr import ZERO, Const, Expr
from oxidecopy.isa.ops import ArrayRef, BarrierRef, Part, TileRef
from oxidecopy.tiles.elem import ArrayVector
from oxidecopy.tiles.group import Group, Majors, whole_group
from oxidecopy.tiles.mapping import trace
from oxidecopy.tiles.ring import Ring
from oxidecopy.tiles.store_ring import StoreRing
from oxidecopy.typed.cache import hint_of
from oxidecopy.typed.descriptor_checks import array_of
from oxidecopy.typed.refusal import described, flag, refuse, require, whole

if TYPE_CHECKING:
    from oxidecopy.tiles.stage import Stages
    from oxidecopy.typed.layout import TileRequest
    from oxidecopy.typed.recorder import Recorder

_PAIRS: Final[tuple[Majors, ...]] = (("k", "k"), ("k", "mn"), ("mn", "k"), ("mn", "mn"))


@final
class Product(NamedTuple):
    """The operands of a contraction, as a group has them: its rows of a, and b."""

    a: TileRef
    b: TileRef
    majors: Majors
    depth: int
    rows: int
    columns: int
    skipped: Expr  # rows of the other groups before them


@final
class Epilogue(NamedTuple):
    """What happens to a sum, and how the result is stored."""

    fn: elem.Elem
    arrays: tuple[ArrayRef, ...]
    add: bool
    hint: ops.CacheHint | None


def contract(group: Group, ring: object, outs: object, at: Any, **options: Any) -> None:
    """Records a contraction; the options are those of `Group.contract`."""
    feed: Ring[Any, Any] = require(ring, Ring, "a contraction", "group.contract(ring, outs, at, steps=...)")
    into: StoreRing[Any, Any, Any] = require(outs, StoreRing, "a contraction", "outs = cta.store_ring(dst, stages=2)")
    stages, recorder = feed._stages, contracting(group, feed._stages.name)
    made = product(recorder, stages, options["majors"], options["part"], swapped=options["swapped"])
    uses = staging(into, made)
    corner = recorder.coordinates(at, into._param.rank, f"a result in {into._param.name!r}")
    traced_ = traced(recorder, options["epilogue"], options["reads"], into._request.dtype, into._param.rank)
    end = Epilogue(*traced_, flag(options["add"], "add"), hint_of(options["cache_hint"]))
    count = recorder.index(options["steps"], "the steps of a contraction")
    numbers = feed._counted(group._frame.threads, 0).take(count), count, into._take(group, uses)
    recorder.emit(op_of(stages, group, into, made, placed(numbers, corner, made), end))


def contracting(group: Group, name: str) -> Recorder:
    """The recorder, where `group` is one whole warpgroup."""
    recorder = whole_group(group, f"a contraction from {name}")
    threads = group._frame.threads
    if threads.ranges != ((threads.first, threads.first + mma.WARPGROUP),) or threads.first % mma.WARPGROUP:
        refuse(
            ScopeError,
            "OX1230",
            "a contraction is computed by one warpgroup",
            got=f"threads {', '.join(f'{lo} to {hi - 1}' for lo, hi in threads.ranges)}",
            required="4 warps, the first of which is a multiple of 4 (PTX wgmma)",
            fix="ox.roles(producer=1, consumers=(4, 4)): two warpgroups, each with its part of the rows",
        )
    return recorder


def product(recorder: Recorder, ring: Stages, majors: object, part: object, *, swapped: object) -> Product:
    """The operands in the ring's stages."""
    chosen = next((pair for pair in _PAIRS if pair == majors), None)
    if chosen is None:
        _misfit(ring, f"majors={described(majors)}", 'a pair of "k" and "mn": ("k", "k") when K is dense in both')
    if len(ring.tiles) != 2 or ring.stages < 2:
        _misfit(ring, f"{len(ring.tiles)} tiles, {ring.stages} stages", "two tiles, of both operands, and two stages or more")
    first, second = ring.tiles
    (a_tile, a), (b_tile, b) = (second, first) if flag(swapped, "swapped") else (first, second)
    wrong = mma.pair_problem(a.dtype, b.dtype)
    if wrong:
        refuse(
            DTypeError,
            "OX1232",
            f"the tiles of {ring.name} hold no operands of a product",
            got=wrong,
            required="bf16 with bf16, f16 with f16, tf32 with tf32, or two of e4m3 and e5m2",
            fix="convert one array; f32 arrays may be loaded as tf32",
        )
    depth, (rank, of) = mma.depth_of(a.dtype), _part(recorder, part)
    if a.shape[0] % of:
        _misfit(ring, f"{a.shape[0]} rows of a tile in {of} parts", "equal parts")
    mine = (a.shape[0] // of, *a.shape[1:])
    shapes = [mma.operand_shape(s, m, depth) or (0, 0) for s, m in zip((mine, b.shape), chosen, strict=True)]
    problems = [
        *mma.tile_problems(a.name, a.dtype, mine, a.swizzle or "none", chosen[0], shapes[0][0]),
        *mma.tile_problems(b.name, b.dtype, b.shape, b.swizzle or "none", chosen[1], shapes[1][0]),
    ]
    (rows, _), (columns, _) = shapes
    if not problems:
        problems = [wrong] if (wrong := mma.shape_problem(rows, columns)) else []
    if problems:
        _misfit(
            ring,
            "; ".join(problems),
            f"rows of {mma.DEPTH_BYTES} bytes, Swizzle128B; of a group {mma.ROWS} or {mma.ROWS_MAX} rows of a and up to "
            f"{mma.COLUMNS_MAX} of b, {mma.SUMS_MAX} sums",
        )
    skipped = expr.mul(rank, Const(rows))
    refs = TileRef(a_tile, ZERO, Part(rank, of) if of > 1 else None), TileRef(b_tile, ZERO)
    return Product(*refs, chosen, depth, rows, columns, skipped)


def _misfit(ring: Stages, got: str, required: str) -> NoReturn:
    refuse(
        ShapeError,
        "OX1231",
        f"the tiles of {ring.name} do not fit the tensor cores",
        got=got,
        required=required,
        fix="cta.ring(stages=4, tiles=(a, b)) of descriptors with box (rows, 128 bytes of K) and swizzle=ox.Swizzle128B",
    )


def _part(recorder: Recorder, part: object) -> tuple[Expr, int]:
    """Which part of the rows, and of how many."""
    pair: tuple[Any, ...] = part if isinstance(part, tuple) and len(part) == 2 else (0, 0)
    of = whole(pair[1])
    if of is None or of < 1:
        refuse(
            ShapeError,
            "OX1235",
            "`part` names this group's share of the rows",
            got=described(part),
            required="(number, of)",
            fix="part=(0, 2) for the first of two groups",
        )
    return recorder.below(pair[0], of, "the part of a contraction", ShapeError, "OX1235", f"parts are numbered from 0 to {of - 1}"), of


def staging(outs: StoreRing[Any, Any, Any], made: Product) -> int:
    """How many staging tiles one contraction fills."""
    request: TileRequest = outs._request
    rows, columns = mma.extents(request.shape)
    info_bytes = request.nbytes // max(1, rows)
    wrong = (
        f"{request.dtype}"
        if request.dtype not in mma.RESULTS
        else f"a box of {rows} rows of {info_bytes} bytes, swizzle {request.swizzle}"
        if (rows, info_bytes, request.swizzle) != (mma.ROWS, mma.DEPTH_BYTES, mma.SWIZZLE)
        else f"{made.columns} columns in parts of {columns}"
        if made.columns % columns
        else f"rank {outs._param.rank}"
        if outs._param.rank < 2
        else ""
    )
    if wrong:
        refuse(
            ShapeError,
            "OX1233",
            f"the results of a contraction cannot be staged in {request.name}",
            got=wrong,
            required=f"f32, bf16 or f16; a box of {mma.ROWS} rows of {mma.DEPTH_BYTES} bytes (64 columns of bf16, 32 of f32), Swizzle128B",
            fix="ox.TmaDescriptor.tiled(out, box=(64, 64), swizzle=ox.Swizzle128B)",
        )
    return made.rows // rows * (made.columns // columns)


def traced(
    recorder: Recorder, fn: Callable[..., object] | None, reads: Sequence[object], dtype: str, rank: int
) -> tuple[elem.Elem, tuple[ArrayRef, ...]]:
    """What the epilogue does with a sum, and the arrays that it reads."""
    if not isinstance(reads, tuple) or len(reads) > ops.EPILOGUE_ARRAYS_MAX:
        _unreadable(described(reads), f"a tuple of at most {ops.EPILOGUE_ARRAYS_MAX} arrays")
    nodes: list[elem.Elem] = [elem.Input(0, mma.SUM_DTYPE)]
    refs = []
    for i, read in enumerate(reads, 1):
        along, array = (read.along, read.array) if isinstance(read, ArrayVector) else (Along.ALL, read)
        param = array_of(recorder, array, "an epilogue")
        wanted = rank if along is Along.ALL else 1
        if param.rank != wanted:
            _unreadable(
                f"{param.name!r} of rank {param.rank}",
                f"rank {rank}, as the result; a vector by `ox.per_row(array)` or `ox.per_column(array)`"
                if along is Along.ALL
                else "a vector",
            )
        nodes.append(elem.Input(i, param.dtype, along))
        refs.append(ArrayRef(param.name))
    made = (
        trace(recorder, fn, nodes, "an epilogue") if fn is not None else nodes[0] if dtype == mma.SUM_DTYPE else elem.Cast(nodes[0], dtype)
    )
    if made.dtype != dtype:
        refuse(
            DTypeError,
            "OX1126",
            "an epilogue does not give what the store ring holds",
            got=made.dtype,
            required=dtype,
            fix=f"cast its result: `.cast(ox.{dtype})`",
        )
    unused = [refs[i - 1].name for i in range(1, len(nodes)) if i not in elem.ways(made)]
    if unused:
        _unreadable(f"{', '.join(unused)}, which the epilogue does not use", "arrays that it uses")
    return made, tuple(refs)


def _unreadable(got: str, required: str) -> NoReturn:
    refuse(
        RecordError,
        "OX1234",
        "an epilogue reads arrays that lie beside its result",
        got=got,
        required=required,
        fix="reads=(ox.per_column(bias), residual)",
    )


@final
class Where(NamedTuple):
    """Numbers of the first stage, of the stages, and of the first staging tile's use; the corner of the group's result."""

    first: Expr
    steps: Expr
    put: Expr
    corner: tuple[Expr, ...]


def placed(numbers: tuple[Expr, Expr, Expr], at: tuple[Expr, ...], made: Product) -> Where:
    """`at` is the corner of the tile of all groups."""
    *outer, row, column = at
    return Where(*numbers, (*outer, expr.add(row, made.skipped), column))


def op_of(ring: Stages, group: Group, outs: StoreRing[Any, Any, Any], made: Product, where: Where, epilogue: Epilogue) -> ops.Contract:
    """The op, in the order of the table."""
    threads, recorder = group._frame.threads, group._recorder
    told, peers = ring.told(recorder.cluster)
    return ops.Contract(
        full=BarrierRef(ring.full, ZERO),
        empty=BarrierRef(ring.empty, ZERO),
        stages=ring.stages,
        first=where.first,
        steps=where.steps,
        peers=peers,
        told=told,
        number=recorder.barrier_number(threads),
        threads=len(threads),
        lane=threads.first,
        token=recorder.next_token(),
        a=made.a,
        b=made.b,
        a_major=made.majors[0],
        b_major=made.majors[1],
        depth=made.depth,
        out=TileRef(outs._tile, ZERO),
        put=where.put,
        map=outs._ref,
        coords=where.corner,
        combine="add" if epilogue.add else "none",
        arrays=epilogue.arrays,
        fn=epilogue.fn,
        hint=epilogue.hint,
    )
