"""The pipelines that one-liners are made of. Each is made for what is fixed when a launch is planned, and takes maps, arrays and scalars.

Parameters of one kind come in any number, so the functions take them by name and the signatures are written out by hand.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import lru_cache
from math import prod
from typing import Any, Final, Literal, NamedTuple

from oxidecopy.host.pipeline import Pipeline, pipeline
from oxidecopy.isa.elem import Along
from oxidecopy.tiles import order
from oxidecopy.tiles.cta import Cta
from oxidecopy.tiles.elem import Elem, parameter, per_column, per_row
from oxidecopy.tiles.roles import Roles, roles
from oxidecopy.typed.descriptor import TmaDescriptor
from oxidecopy.typed.dtypes import DType, u8
from oxidecopy.typed.geometry import A128
from oxidecopy.typed.global_array import GlobalArray
from oxidecopy.typed.reduce import ReduceOp, add
from oxidecopy.typed.scalar import Scalar
from oxidecopy.typed.symbolic import Idx, SymIdx, minimum

Schedule = Literal["one-shot", "counter", "persistent"]
SHARED_SM: Final = 227 << 10  # bytes that the CTAs of a multiprocessor share (compute capability 9.0)
CTA_BYTES: Final = 2 << 10  # what a CTA takes beside its tiles: barriers, and what the system keeps
_PLAIN_WARPS: Final = 4
_KEPT_MAX: Final = 64  # pipelines of a kind: equal ones are recorded once
_GRID_RANK: Final = 3
_GRID_MAX: Final = 65_535  # CTAs in y and z
_RING_TILES: Final = 3  # of one ring, at most
_MAP: Final = TmaDescriptor
_ARRAY: Final = GlobalArray
_SPREAD: Final[dict[Along, Callable[[Any], Any]]] = {Along.ALL: lambda tile: tile, Along.ROW: per_row, Along.COLUMN: per_column}
Body = Callable[..., None]


def _made(body: Body, names: Mapping[str, Any], *, threads: int | None = None, warps: Roles | None = None) -> Pipeline[...]:
    """A pipeline of `body`, which takes its parameters by name."""
    known = {"cta": Cta, **names}
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature([inspect.Parameter(name, kind, annotation=a) for name, a in known.items()])
    body.__signature__ = signature  # type: ignore[attr-defined]  # what `inspect.signature` looks for
    body.__annotations__ = known
    decorate: Any = pipeline(warps=warps) if warps is not None else pipeline(threads=threads or 32)
    made: Pipeline[...] = decorate(body)
    return made


def padding_for(per_sm: int, tile_bytes: int) -> int:
    """Shared memory of a CTA beside its tile, so that no more than `per_sm` CTAs are on a multiprocessor (0: as many as fit)."""
    return max(0, SHARED_SM // per_sm - CTA_BYTES - tile_bytes) // 128 * 128 if per_sm else 0


# ---- copies
@lru_cache(maxsize=_KEPT_MAX)
def boxes_once(padding: int, op: ReduceOp[Any] | None = None) -> Pipeline[...]:
    """A CTA for each box of `src`: loaded, and stored to `dst` at the same place, or reduced into it."""

    def copy_boxes(cta: Cta, src: Any, dst: Any) -> None:
        tile = cta.shared(src)
        if padding:
            cta.shared(u8, (padding,), align=A128)  # memory is what bounds the CTAs of a multiprocessor
        full = cta.barrier().init(1)
        for at in cta.tiles(src, order=order.once):
            with cta.elect() as leader:
                token = full.arrive_expect_tx(leader, tile.nbytes)
                src.g2s(leader, tile, at, token)
                full.wait(token)
                if op is None:
                    dst.s2g(leader, tile, at)
                else:
                    dst.reduce(op, leader, tile, at)
                leader.commit_group()
                leader.wait_group_read(0)

    if op is not None:
        copy_boxes.__name__ = f"reduce_{op.name}"
    return _made(copy_boxes, {"src": _MAP, "dst": _MAP}, threads=32)


@lru_cache(maxsize=_KEPT_MAX)
def boxes_ring(stages: int, schedule: Schedule) -> Pipeline[...]:
    """CTAs that stay: boxes of `src` go through a ring of stages to `dst`, dealt by a counter or by a fixed order."""
    # With a counter as few stores under way as hide one; a fixed order is the faster, the more of each are (docs/performance.md).
    pending = min(1, stages - 1) if schedule == "counter" else stages // 2

    def copy_ring(cta: Cta, src: Any, dst: Any) -> None:
        ring = cta.ring(stages=stages, tiles=(src,))
        work = cta.schedule(src, order=order.counter() if schedule == "counter" else order.linear)
        with cta.producer() as leader:
            for at in work:
                with ring.produce(leader) as (slot,):
                    slot.load(src, at)
        with cta.storer() as leader:
            for at in ring.visits(leader, work):
                ring.forward(leader, dst, at, pending=pending)

    return _made(copy_ring, {"src": _MAP, "dst": _MAP}, warps=roles(producer=1, consumers=(), store=1))


@lru_cache(maxsize=_KEPT_MAX)
def plain_stores(warps: int, padding: int) -> Pipeline[...]:
    """A CTA for each box of `src`: loaded, and its elements stored by all threads wherever `out` has them."""

    def copy_elements(cta: Cta, src: Any, out: Any) -> None:
        tile = cta.shared(src)
        if padding:
            cta.shared(u8, (padding,), align=A128)
        full = cta.barrier().init(1)
        for at in cta.tiles(src, order=order.once):
            _load(cta, full, src, tile, at)
            cta.store(out, tile, at)

    return _made(copy_elements, {"src": _MAP, "out": _ARRAY}, threads=32 * warps)


def _load(cta: Any, full: Any, src: Any, tile: Any, at: Any) -> None:
    """A tile, landed for all threads."""
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile.nbytes)
        src.g2s(leader, tile, at, token)
    full.wait_phase(0)


@lru_cache(maxsize=_KEPT_MAX)
def turned_boxes(stages: int, warps: int) -> Pipeline[...]:
    """Boxes of `src` come through a ring, are transposed in shared memory, and go to `dst`, which has the last two dimensions swapped."""

    def copy_transposed(cta: Cta, src: Any, dst: Any) -> None:
        ring = cta.ring(stages=stages, tiles=(src,))
        outs = cta.store_ring(dst, stages=1)
        work = cta.schedule(src, order=order.counter())
        with cta.producer() as leader:
            for at in work:
                with ring.produce(leader) as (slot,):
                    slot.load(src, at)
        with cta.consumers() as group:
            for stage in ring.stages(group, work):
                (tile,) = stage.tiles
                *outer, i, j = stage.at
                with outs.put(group, (*outer, j, i)) as out:
                    group.transpose(tile, out=out)

    return _made(copy_transposed, {"src": _MAP, "dst": _MAP}, warps=roles(producer=1, consumers=warps))


class Shift(NamedTuple):
    """Where rows that begin between multiples of 16 bytes lie in memory that is seen from such a multiple on; counted in elements.

    Attributes:
        lead: the first row begins so far behind.
        axis: of the dimension along which rows begin further and further behind; -1 where all begin at the same place.
        step: so much for each index of it.
        unit: places where a load may begin are so far apart.
    """

    lead: int
    axis: int
    step: int
    unit: int


@lru_cache(maxsize=_KEPT_MAX)
def shifted_boxes(warps: int, padding: int, box: tuple[int, ...], counts: tuple[int, ...], shift: Shift) -> Pipeline[...]:
    """A CTA for each box of rows that begin between multiples of 16 bytes: loaded from the multiple before, and stored by all threads.

    `src` has the dimensions of `out`, and rows that are longer by what lies before them. `counts` are the boxes along each of the
    dimensions; the grid is `grid_for(counts)`. A box has one index of `shift.axis`.
    """
    whole = isinstance(grid_for(counts), tuple)

    def copy_shifted(cta: Cta, src: Any, out: Any) -> None:
        tile = cta.shared(src)
        if padding:
            cta.shared(u8, (padding,), align=A128)
        full = cta.barrier().init(1)
        number: list[Any] = [cta.block_idx.x, cta.block_idx.y, cta.block_idx.z][: len(counts)][::-1] if whole else []
        left: Any = cta.block_idx.x
        for n in () if whole else reversed(counts):
            number.insert(0, left % n)
            left = left // n
        index = [i * n for i, n in zip(number, box, strict=True)]
        start = shift.lead + (index[shift.axis] * shift.step if shift.axis >= 0 else 0)
        first = start // shift.unit * shift.unit + index[-1]
        _load(cta, full, src, tile, (*index[:-1], first))
        cta.store(out, tile, (*index[:-1], first - start))  # what is before the row is not stored

    return _made(copy_shifted, {"src": _MAP, "out": _ARRAY}, threads=32 * warps)


def grid_for(counts: tuple[int, ...]) -> int | tuple[int, int, int]:
    """A dimension of the grid for each, innermost first, as far as it has them; else one for all."""
    if len(counts) > _GRID_RANK or any(n > _GRID_MAX for n in counts[:-1]):
        return prod(counts)
    x, y, z = (*counts[::-1], 1, 1)[:_GRID_RANK]
    return x, y, z


@lru_cache(maxsize=_KEPT_MAX)
def shifted_rows(stages: int, *, extents: tuple[int, ...], strides: tuple[int, ...], lead: int, unit: int, run: int) -> Pipeline[...]:
    """Rows that begin anywhere: aligned runs of the memory that they lie in are loaded, and stored where their elements belong.

    Args:
        stages: of the ring.
        extents: of `out`; its innermost dimension runs along the rows.
        strides: from one index of `extents` to the next in the memory of `src`, elements; the last is 1.
        lead: elements of that memory before the first row.
        unit: elements between places where a load may begin.
        run: elements of one load.

    `src` is that memory as one row, `out.rank` dimensions of which all but the last have one element.
    """
    *outer, inner = extents
    runs = -(-(inner + unit - 1) // run)
    total = prod(outer) * runs

    def copy_shifted(cta: Cta, src: Any, out: Any) -> None:
        ring = cta.ring(stages=stages, tiles=(src,))
        worker, workers = cta.block_idx.x, cta.grid_dim.x
        trips = (total - worker + workers - 1) // workers

        def place(i: SymIdx) -> tuple[Idx, tuple[Idx, ...]]:
            """Where the run is loaded from, and the coordinates of its first element in `out`, which may be before a row."""
            t = worker + i * workers
            row, index = t // runs, []
            for extent in reversed(outer):
                index.append(row % extent)
                row = row // extent
            index.reverse()
            start: Idx = lead
            for i_k, stride in zip(index, strides, strict=False):
                start = start + i_k * stride
            first = start // unit * unit + t % runs * run
            return first, (*index, first - start)

        ones = (0,) * len(outer)
        with cta.producer() as leader:
            for i in cta.range(trips):
                first, _ = place(i)
                with ring.produce(leader) as (slot,):
                    slot.load(src, (*ones, first))
        with cta.consumers() as group:
            for i in cta.range(trips):
                _, at = place(i)
                with ring.consume(group) as (tile,):
                    cta.store(out, tile, at)

    return _made(copy_shifted, {"src": _MAP, "out": _ARRAY}, warps=roles(producer=1, consumers=_PLAIN_WARPS))


# ---- sums
@lru_cache(maxsize=_KEPT_MAX)
def sums_of_rows(columns: int, stages: int, warps: int) -> Pipeline[...]:
    """Rows of `src` are summed in shared memory, from boxes of so many columns, and added to the element of `dst` that each row has."""

    def add_rows(cta: Cta, src: Any, dst: Any) -> None:
        ring = cta.ring(stages=stages, tiles=(src,))
        sums = cta.shared(dst)
        trips = (src.shape[1] + columns - 1) // columns
        with cta.producer() as leader:
            for (i,) in cta.tiles(dst, order=order.once):
                for j in cta.range(trips):
                    with ring.produce(leader) as (slot,):
                        slot.load(src, (i, j * columns))
        with cta.consumers() as group:
            for at in cta.tiles(dst, order=order.once):
                _add_up(cta, group, ring, sums, trips, axis=1)
                with group.elect() as elected:
                    dst.reduce(add, elected, sums, at)
                    elected.commit_group()
                    elected.wait_group_read(0)

    return _made(add_rows, {"src": _MAP, "dst": _MAP}, warps=roles(producer=1, consumers=warps))


@lru_cache(maxsize=_KEPT_MAX)
def sums_of_columns(rows: int, columns: int, parts: int, stages: int, warps: int) -> Pipeline[...]:
    """Columns of `src` are summed in shared memory, from boxes of so many rows and columns, and added to the elements of `dst`.

    Each `parts` CTAs share some columns: part p takes boxes p, p + parts, ... of them.
    """

    def add_columns(cta: Cta, src: Any, dst: Any) -> None:
        ring = cta.ring(stages=stages, tiles=(src,))
        sums = cta.shared(dst)
        part, column = cta.block_idx.x % parts, cta.block_idx.x // parts * columns
        trips = ((src.shape[0] + rows - 1) // rows - part + parts - 1) // parts
        with cta.producer() as leader:
            for i in cta.range(trips):
                with ring.produce(leader) as (slot,):
                    slot.load(src, ((part + i * parts) * rows, column))
        with cta.consumers() as group:
            _add_up(cta, group, ring, sums, trips, axis=0)
            with group.elect() as elected:
                dst.reduce(add, elected, sums, (column,))
                elected.commit_group()
                elected.wait_group_read(0)

    return _made(add_columns, {"src": _MAP, "dst": _MAP}, warps=roles(producer=1, consumers=warps))


def _add_up(cta: Any, group: Any, ring: Any, sums: Any, trips: Any, *, axis: int) -> None:
    """Sums of so many stages, ready to be stored from shared memory."""
    group.fill(sums, 0)
    group.sync()
    for _ in cta.range(trips):
        with ring.consume(group) as (tile,):
            group.sum(tile, axis=axis, out=sums, accumulate=True)
    group.sync()
    cta.fence_proxy_async()
    group.sync()


# ---- elements
class Input(NamedTuple):
    """An input of `elements`.

    Attributes:
        name: of its parameter.
        along: ALL for a tile of the output's shape; ROW and COLUMN for a vector, which has one element for each row or column of a box.
        dtype: its element type.
        scalar: it is a number known at the launch, and has no tile.
    """

    name: str
    along: Along
    dtype: type[DType]
    scalar: bool = False


def elements(fn: Callable[..., Any], inputs: Sequence[Input], *, name: str, stages: int, out_stages: int, warps: int) -> Pipeline[...]:
    """`fn` of the elements of all inputs at a place, for every place of the output, whose boxes CTAs take in turns.

    Args:
        fn: as `map` takes it, with an argument for each of `inputs`.
        inputs: what it is given.
        name: of the pipeline.
        stages: of the rings.
        out_stages: of the store ring.
        warps: that compute.
    """
    loaded = [i for i in inputs if not i.scalar]

    def called(*given: Elem[Any]) -> Any:
        """`fn`, with the scalars where it has them."""
        return fn(*with_scalars(inputs, given))

    def compute(cta: Cta, *, out: Any, **given: Any) -> None:
        maps = [given[i.name] for i in loaded]
        parts = [(maps[k : k + _RING_TILES], loaded[k : k + _RING_TILES]) for k in range(0, len(maps), _RING_TILES)]
        rings: list[Any] = [cta.ring(stages=stages, tiles=(*some,)) for some, _ in parts]
        outs = cta.store_ring(out, stages=out_stages)
        work = cta.schedule(out, order=order.counter())
        with cta.producer() as leader:
            for at in work:
                for ring, (some, what) in zip(rings, parts, strict=True):
                    with ring.produce(leader) as slots:
                        for slot, desc, i in zip(slots, some, what, strict=True):
                            slot.load(desc, placed(at, i.along))
        with cta.consumers() as group:
            first, *others = rings
            for stage in first.stages(group, work):
                with ExitStack() as stack:
                    tiles = [*stage.tiles, *(tile for ring in others for tile in stack.enter_context(ring.consume(group)))]
                    spread: list[Any] = [_SPREAD[i.along](tile) for i, tile in zip(loaded, tiles, strict=True)]
                    into = stack.enter_context(outs.put(group, stage.at))
                    group.map(called, *spread, out=into)

    compute.__name__ = name
    scalar: Any = Scalar
    annotations: dict[str, Any] = {i.name: scalar[i.dtype] if i.scalar else _MAP for i in inputs}
    return _made(compute, {**annotations, "out": _MAP}, warps=roles(producer=1, consumers=warps))


def with_scalars(inputs: Sequence[Input], given: Sequence[Elem[Any]]) -> list[Elem[Any]]:
    """What a function is called with: elements of the tiles, and scalars as elements between them."""
    tiles = iter(given)
    return [parameter(i.name, i.dtype, given[0]) if i.scalar else next(tiles) for i in inputs]


def placed(at: tuple[Any, ...], along: Along) -> tuple[Any, ...]:
    """Coordinates of an input's box, where the output's is at `at`."""
    if along is Along.ALL:
        return at
    return at[:-1] if along is Along.ROW else at[-1:]


# ---- rows by number
@lru_cache(maxsize=_KEPT_MAX)
def rows_by_number(rows: int, warps: int, *, whole: bool) -> Pipeline[...]:
    """Rows of `table` by the numbers in `indices`: a CTA for each box of `out`, whose rows are loaded each by a copy of its own.

    Of each of several warps a lane reads a number and loads its row. `whole`: `out` has no part of a box.
    """
    each = rows // warps

    def gather_rows(cta: Cta, table: Any, indices: Any, out: Any) -> None:
        tile = cta.shared(out)
        full = cta.barrier().init(warps)
        last = indices.shape[0] - 1
        for at in cta.tiles(out, order=order.once):
            for warp in range(warps):
                with cta.warps(warp, warp + 1) as group, group.elect() as leader:
                    token = full.arrive_expect_tx(leader, tile.nbytes // warps)
                    for r in cta.range(warp * each, warp * each + each):
                        # Rows behind the last one are loaded once more, and not stored.
                        number = at[0] + r if whole else minimum(at[0] + r, last)
                        row = cta.load_index(indices, number, below=table.shape[0])
                        table.g2s(leader, tile.part(r, of=rows) if rows > 1 else tile, (row, *at[1:]), token)
                    if warp == 0:
                        full.wait_phase(0)
                        out.s2g(leader, tile, at)
                        leader.commit_group()
                        leader.wait_group_read(0)

    return _made(gather_rows, {"table": _MAP, "indices": _ARRAY, "out": _MAP}, threads=32 * warps)
