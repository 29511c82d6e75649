"""The accesses to global memory of a program: which boxes of which tensor, over which loops, under which conditions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, NamedTuple, final

from oxidecopy.isa import ops
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.isa.expr import ZERO, Cond, Const, Expr, Sym, SymKind, add, mod, mul, substitute, substitute_cond
from oxidecopy.isa.ops import ThreadSet
from oxidecopy.program.destinations import REDUCES, STORES
from oxidecopy.program.program import BLOCK_SYMBOLS, RANK_SYMBOL, Launch, MapParam, Program, Step
from oxidecopy.program.tensor_map import TILE


class Way(Enum):
    """What an access does."""

    LOAD = "load"
    STORE = "store"  # through the async proxy, in a bulk group
    PLAIN = "plain store"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
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
    op: str = ""
    coords: tuple[Expr, ...]
    extents: tuple[int, ...]
    steps: tuple[int, ...]
    dims: tuple[int, ...]
    loops: tuple[ops.Loop, ...]
    conds: tuple[Cond, ...]
    threads: ThreadSet
    table: bool = False


Copy = ops.TensorG2S | ops.TensorG2SMulticast | ops.TensorS2G | ops.TensorReduce
_STORING: Final = (*STORES, *REDUCES)
Run = ops.BulkG2S | ops.BulkG2SMulticast | ops.BulkS2G | ops.BulkReduce


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
        self._rank = {RANK_SYMBOL: rank_of(program.cluster)}
        self.unplaced: list[tuple[str, Step]] = []

    def visit(  # noqa: C901  a case per op
        self, steps: tuple[Step, ...], loops: tuple[ops.Loop, ...], conds: tuple[Cond, ...], threads: ThreadSet
    ) -> Iterator[Place]:
        for step in steps:
            op = self._folded[id(step)]
            match op:
                case ops.Scope():
                    yield from self.visit(step.body, loops, conds, op.threads)
                case ops.When():
                    yield from self.visit(step.body, loops, (*conds, substitute_cond(op.cond, self._rank)), threads)
                case ops.Loop():
                    unranked = replace(op, start=substitute(op.start, self._rank), stop=substitute(op.stop, self._rank))
                    yield from self.visit(step.body, (*loops, unranked), conds, threads)
                case ops.StoreGlobal():
                    yield self._plain(step, op, loops, conds, threads)
                case ops.TensorG2S() | ops.TensorG2SMulticast() | ops.TensorS2G() | ops.TensorReduce():
                    place = self._copy(step, op, loops, conds, threads)
                    if place is not None:
                        yield place
                case ops.BulkG2S() | ops.BulkG2SMulticast() | ops.BulkS2G() | ops.BulkReduce():
                    place = self._run(step, op, loops, conds, threads)
                    if place is not None:
                        yield place
                case ops.TensorGather4() | ops.TensorScatter4():
                    self.unplaced.append((self._same.get(op.map.name, op.map.name), step))
                case _:
                    pass

    def _plain(self, step: Step, op: ops.StoreGlobal, loops: tuple[ops.Loop, ...], conds: tuple[Cond, ...], threads: ThreadSet) -> Place:
        shape = self._program.tiles[op.tile.tile].shape
        if op.tile.part is not None:
            shape = (shape[0] // op.tile.part.of, *shape[1:])
        return Place(
            step=step,
            tensor=self._same.get(op.array.name, op.array.name),
            way=Way.PLAIN,
            coords=self._unranked(op.coords),
            extents=shape,
            steps=(1,) * len(shape),
            dims=self._arrays[op.array.name].shape,
            loops=loops,
            conds=conds,
            threads=threads,
        )

    def _copy(self, step: Step, op: Copy, loops: tuple[ops.Loop, ...], conds: tuple[Cond, ...], threads: ThreadSet) -> Place | None:
        param = self._program.maps[op.map.name]
        bound = self._maps[param.bound_names[0]]
        if bound.mode != TILE or bound.interleave != "none":
            self.unplaced.append((self._same.get(op.map.name, op.map.name), step))
            return None
        coords, extents, dims = self._unranked(op.coords), bound.tile_shape, bound.global_dim
        steps = (*bound.element_strides[:-1], 1)
        if op.map.index is not None:  # entries may have extents of their own: the largest serve to clip
            (entry,) = self._unranked((op.map.index,))
            entries = param.bound_names
            dims = (len(entries), *(max(self._maps[n].global_dim[i] for n in entries) for i in range(bound.rank)))
            coords, extents, steps = (entry, *coords), (1, *extents), (1, *steps)
        return Place(
            step=step,
            tensor=self._same.get(op.map.name, op.map.name),
            way=Way.LOAD if isinstance(op, ops.TensorG2S | ops.TensorG2SMulticast) else Way.STORE,
            op=op.op if isinstance(op, ops.TensorReduce) else "",
            coords=coords,
            extents=extents,
            steps=steps,
            dims=dims,
            loops=loops,
            conds=conds,
            threads=threads,
            table=op.map.index is not None,
        )

    def _run(self, step: Step, op: Run, loops: tuple[ops.Loop, ...], conds: tuple[Cond, ...], threads: ThreadSet) -> Place | None:
        name = self._same.get(op.array.name, op.array.name)
        dims, coords = self._arrays[op.array.name].shape, self._unranked(op.coords)
        extents = run_extents(dims, coords, op.nbytes // DTYPES[self._arrays[op.array.name].dtype].nbytes)
        if extents is None:
            self.unplaced.append((name, step))
            return None
        return Place(
            step=step,
            tensor=name,
            way=Way.LOAD if isinstance(op, ops.BulkG2S | ops.BulkG2SMulticast) else Way.STORE,
            op=op.op if isinstance(op, ops.BulkReduce) else "",
            coords=coords,
            extents=extents,
            steps=(1,) * len(dims),
            dims=dims,
            loops=loops,
            conds=conds,
            threads=threads,
        )

    def _unranked(self, coords: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(substitute(e, self._rank) for e in coords)


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
