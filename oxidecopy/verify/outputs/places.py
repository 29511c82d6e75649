"""The accesses to global memory of a program: which boxes of which tensor, over which loops, under which conditions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import Enum
from typing import Final, NamedTuple, final

from oxidecopy.isa import ops
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.expr import ZERO, Cond, Const, Expr, Sym, SymKind, add, mod, mul
from oxidecopy.isa.ops import ThreadSet
from oxidecopy.isa.rewriter import Rewriter
from oxidecopy.program.destinations import REDUCES, STORES
from oxidecopy.program.program import BLOCK_SYMBOLS, RANK_SYMBOL, Launch, MapParam, Program, Step
from oxidecopy.program.replaced import pointed_at
from oxidecopy.program.tensor_map import TILE


class Way(Enum):
    """What an access does."""

    LOAD = "load"
    STORE = "store"  # through the async proxy, in a bulk group
    PLAIN = "plain store"


@final
class Place(NamedTuple):
    """One op that reads or writes boxes of a tensor.

    Attributes:
        tensor: what stands for the memory: of parameters bound to one view, the first.
        way: what it does there.
        op: of a reduction its operation, else "": reductions of one operation may meet.
        coords: first element of the box, outermost dimension first. A table's index is one more, outermost.
        extents: elements per dimension.
        steps: distance of neighbouring elements of a box.
        dims: extents of the tensor.
        loops: enclosing loops, outermost first.
        conds: conditions around it.
        threads: who runs it.
        table: through an entry of a table: entries may be smaller than `dims`.

    No expression holds the cluster rank: it is written in block indices.
    """

    step: Step
    tensor: str
    way: Way
    coords: tuple[Expr, ...]
    extents: tuple[int, ...]
    steps: tuple[int, ...]
    dims: tuple[int, ...]
    loops: tuple[ops.Loop, ...]
    conds: tuple[Cond, ...]
    threads: ThreadSet
    op: str = ""
    table: bool = False


Copy = ops.TensorG2S | ops.TensorG2SMulticast | ops.TensorS2G | ops.TensorReduce
Through = Copy | ops.TensorGather4 | ops.TensorScatter4
Run = ops.BulkG2S | ops.BulkG2SMulticast | ops.BulkS2G | ops.BulkReduce
Access = ops.StoreGlobal | Through | Run
_STORING: Final = (*STORES, *REDUCES)


def _way(op: Access) -> Way:
    if isinstance(op, ops.StoreGlobal):
        return Way.PLAIN
    return Way.STORE if isinstance(op, _STORING) else Way.LOAD


class _Box(NamedTuple):
    """As `Place` has them."""

    coords: tuple[Expr, ...]
    extents: tuple[int, ...]
    steps: tuple[int, ...]
    dims: tuple[int, ...]
    table: bool = False


class Found(NamedTuple):
    """The accesses of a program.

    Attributes:
        placed: copies in tile mode, runs of plain bulk copies that are boxes, and plain stores.
        stored: of tensors with any other access, which are left out of `placed` as they are known in part only, a step that stores to it.
    """

    placed: tuple[Place, ...]
    stored: Mapping[str, Step]


def places(program: Program, launch: Launch, folded: Mapping[int, ops.Instr]) -> Found:
    """Every access, as far as it can be placed."""
    finder = _Finder(program, launch, folded)
    found = list(finder.visit(program.steps, (), (), ThreadSet(((0, program.threads),))))
    left = {name: step for name, step in finder.unplaced if isinstance(folded[id(step)], _STORING)}
    names = {name for name, _ in finder.unplaced}
    left |= {place.tensor: place.step for place in found if place.way is not Way.LOAD and place.tensor in names}
    return Found(tuple(place for place in found if place.tensor not in names), left)


def tensors(program: Program, launch: Launch) -> dict[str, str]:
    """Of parameters with one view of memory the first, of tables with the same views at the same places too."""
    first = {name: group[0] for group in launch.same for name in group}
    tables: dict[tuple[str, ...], str] = {}
    for p in program.params:
        if isinstance(p, MapParam) and p.entries is not None:
            entries = tuple(first.get(name, name) for name in p.bound_names)
            first[p.name] = tables.setdefault(entries, p.name)
    return first


def rank_of(cluster: tuple[int, int, int]) -> Expr:
    """The cluster rank, x fastest, as the block indices give it."""
    rank: Expr = ZERO
    for name, size in reversed(list(zip(BLOCK_SYMBOLS, cluster, strict=True))):
        rank = add(mul(rank, Const(size)), mod(Sym(name, SymKind.BLOCK), Const(size)))
    return rank


@final
class _Finder:
    def __init__(self, program: Program, launch: Launch, folded: Mapping[int, ops.Instr]) -> None:
        self._program = program
        self._maps = dict(launch.maps)
        self._arrays = dict(launch.arrays)
        self._same = tensors(program, launch)
        self._folded = folded
        self._rank = Rewriter({RANK_SYMBOL: rank_of(program.cluster)})
        self._pointed = pointed_at(program)
        self.unplaced: list[tuple[str, Step]] = []

    def visit(self, steps: tuple[Step, ...], loops: tuple[ops.Loop, ...], conds: tuple[Cond, ...], threads: ThreadSet) -> Iterator[Place]:
        for step in steps:
            op = self._folded[id(step)]
            match op:
                case ops.Scope():
                    yield from self.visit(step.body, loops, conds, op.threads)
                case ops.When():
                    yield from self.visit(step.body, loops, (*conds, self._rank.cond(op.cond)), threads)
                case ops.Loop():
                    unranked = replace(op, start=self._rank.expr(op.start), stop=self._rank.expr(op.stop))
                    yield from self.visit(step.body, (*loops, unranked), conds, threads)
                case _ if isinstance(op, ops.TensorCopy) and op.map.slot is not None:
                    self.unplaced += [(self._same.get(name, name), step) for name in self._pointed.get(op.map.slot, ())]
                case _ if isinstance(op, Access):
                    box, name = self._box(op), op.map.name if isinstance(op, Through) else op.array.name
                    tensor = self._same.get(name, name)
                    if box is None:
                        self.unplaced.append((tensor, step))
                        continue
                    reduces = op.op if isinstance(op, ops.TensorReduce | ops.BulkReduce) else ""
                    yield Place(
                        step=step, tensor=tensor, way=_way(op), op=reduces, loops=loops, conds=conds, threads=threads,
                        coords=box.coords, extents=box.extents, steps=box.steps, dims=box.dims, table=box.table,
                    )  # fmt: skip
                case _:
                    pass

    def _box(self, op: Access) -> _Box | None:
        """Where an access goes; None where it is no box of the tensor."""
        match op:
            case ops.StoreGlobal():
                return self._of_tile(op)
            case ops.BulkG2S() | ops.BulkG2SMulticast() | ops.BulkS2G() | ops.BulkReduce():
                return self._of_run(op)
            case ops.TensorGather4() | ops.TensorScatter4():
                return None
            case _:
                return self._of_map(op)

    def _of_tile(self, op: ops.StoreGlobal) -> _Box:
        shape = self._program.tiles[op.tile.tile].shape
        if op.tile.part is not None:
            shape = (shape[0] // op.tile.part.of, *shape[1:])
        return _Box(self._unranked(op.coords), shape, (1,) * len(shape), self._arrays[op.array.name].shape)

    def _of_run(self, op: Run) -> _Box | None:
        info, coords = self._arrays[op.array.name], self._unranked(op.coords)
        extents = run_extents(info.shape, coords, op.nbytes // DTYPES[info.dtype].nbytes)
        return None if extents is None else _Box(coords, extents, (1,) * len(info.shape), info.shape)

    def _of_map(self, op: Copy) -> _Box | None:
        names = self._program.maps[op.map.name].bound_names
        bound = self._maps[names[0]]
        if bound.mode != TILE or bound.interleave != "none":
            return None
        coords, steps = self._unranked(op.coords), (*bound.element_strides[:-1], 1)
        if op.map.index is None:
            return _Box(coords, bound.tile_shape, steps, bound.global_dim)
        (entry,) = self._unranked((op.map.index,))
        # Entries may have extents of their own: the largest serve to clip.
        dims = (len(names), *(max(self._maps[n].global_dim[i] for n in names) for i in range(bound.rank)))
        return _Box((entry, *coords), (1, *bound.tile_shape), (1, *steps), dims, table=True)

    def _unranked(self, coords: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(self._rank.expr(e) for e in coords)


def run_extents(dims: tuple[int, ...], coords: tuple[Expr, ...], count: int) -> tuple[int, ...] | None:
    """The box that a run of `count` elements from `coords` on is, None when it is none: whole rows, or a part of one."""
    if not dims:
        return None
    inner = dims[-1]
    if count <= inner:  # the rule on bounds keeps it in the array; a run that goes on in the next row is told by its start
        start = coords[-1]
        fits = start.value + count <= inner if isinstance(start, Const) else len(dims) == 1 or inner % count == 0
        return (*(1 for _ in dims[:-1]), count) if fits else None
    if coords[-1] != ZERO or count % inner:
        return None
    outer = run_extents(dims[:-1], coords[:-1], count // inner)
    return (*outer, inner) if outer is not None else None
