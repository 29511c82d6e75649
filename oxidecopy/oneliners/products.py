"""Plans of products on tensor cores: a tile of the result for each turn of a CTA, fed by a ring, computed by two warpgroups."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any, Final, NamedTuple

from oxidecopy.host.pipeline import Pipeline, pipeline
from oxidecopy.isa import mma
from oxidecopy.isa.elem import Along
from oxidecopy.oneliners.machine import Machine, machine_of
from oxidecopy.oneliners.moving import move
from oxidecopy.oneliners.product_tiles import BLOCK, TILES, Sizes, Tile, chosen, fits, microseconds
from oxidecopy.oneliners.spaces import boxes
from oxidecopy.oneliners.steps import Argument, MapOf, Part, Plan, Step, why_no_map, why_no_store
from oxidecopy.tiles import order
from oxidecopy.tiles.cta import ClusterCta, Cta
from oxidecopy.tiles.elem import per_column, per_row
from oxidecopy.tiles.roles import roles
from oxidecopy.typed.descriptor import TmaDescriptor
from oxidecopy.typed.geometry import Swizzle128B
from oxidecopy.typed.global_array import GlobalArray

_MATRIX: Final = ("rows", "columns")  # dimensions of a matrix; more are a batch
_LINE: Final = 128  # bytes
_RASTER: Final = 8  # rows of tiles that CTAs nearby share the columns of
_SPREAD: Final[dict[Along, Callable[[Any], Any]]] = {Along.ALL: lambda a: a, Along.ROW: per_row, Along.COLUMN: per_column}


class Product(NamedTuple):
    """What is computed. Operands are (rows, K), or (K, rows) where they are MN-major, with a batch before that where there is one.

    Attributes:
        out: where to.
        a: rows of the result.
        b: columns of the result.
        majors: of a and b.
        reads: what the epilogue reads beside the sum, and how it is spread.
        epilogue: from the sum on; None for a cast.
    """

    out: Part
    a: Part
    b: Part
    majors: tuple[str, str]
    reads: tuple[tuple[Part, Along], ...]
    epilogue: Callable[..., Any] | None


def multiply(plan: Plan, work: Product, choice: Tile | None) -> None:
    """Adds the launches that set operand 0 to the product."""
    machine = machine_of(plan.operands[0].device)
    a = _readable(plan, machine, work.a, "a", work.majors[0])
    b = _readable(plan, machine, work.b, "b", work.majors[1])
    work = work._replace(a=a[0], b=b[0], majors=(a[1], b[1]))
    target = work.out
    reason = why_no_store(target, plan.operands)
    if reason:
        plan.why.append(f"the result goes through an array of its own, and is copied to the output by elements: {reason}")
        target = plan.temporary(work.out.dtype, work.out.shape)
    sizes = _sizes(work)
    usable = choice is not None and fits(choice, sizes)
    tile = choice if usable and choice is not None else chosen(sizes, machine.sms)
    guess = microseconds(tile, sizes, machine.sms)
    plan.why.append(f"a is {_dense(work.majors[0])}, b is {_dense(work.majors[1])}")
    plan.why.append(f"{tile.words}; {tile.shared_bytes:,} bytes of shared memory")
    plan.why.append(
        "these tiles were the fastest here"
        if choice is tile
        else f"of {len(TILES)} kinds of tiles the fastest by a model: {guess:,.1f} us on an H200"
    )
    plan.steps.append(_step(machine, work._replace(out=target), tile))
    if reason:
        move(plan, machine, work.out, target)


def _sizes(work: Product) -> Sizes:
    pair = ((work.a, work.majors[0]), (work.b, work.majors[1]))
    odd = [major == "k" and part.shape[-2] > 1 and part.strides_bytes[-2] % _LINE != 0 for part, major in pair]
    k = work.a.shape[-1 if work.majors[0] == "k" else -2]
    return Sizes(work.out.shape, k, work.a.dtype.info.name, work.majors, (odd[0], odd[1]), work.epilogue is not None)


def _dense(major: str) -> str:
    return "dense along K" if major == "k" else "dense along its rows' number: blocks of 64 are read transposed"


def _readable(plan: Plan, machine: Machine, part: Part, name: str, major: str) -> tuple[Part, str]:
    """The operand as the tensor cores can read it, copied first where they cannot."""
    reason = why_no_map(part, plan.operands)
    if major == "mn" and part.dtype.info.name not in mma.TRANSPOSABLE:
        reason = f"{part.dtype.__name__} is multiplied only where K is dense"
    if not reason:
        return part, major
    plan.why.append(f"{name} is copied to an array of its own first: {reason}")
    # Whatever the order of its elements, the copy is (batch, rows, K).
    source = part if major == "k" else part.seen(part.dtype, _swapped(part.shape), _swapped(part.strides_bytes), 0)
    made = plan.temporary(part.dtype, source.shape)
    move(plan, machine, made, source)
    return made, "k"


def _swapped(pair: tuple[int, ...]) -> tuple[int, ...]:
    return (*pair[:-2], pair[-1], pair[-2])


def _step(machine: Machine, work: Product, tile: Tile) -> Step:
    form, workers = _form(work, tile, machine.sms)
    rows = tile.rows // tile.across if tile.across > 1 or form.rank == len(_MATRIX) else tile.m  # of one load
    columns = tile.n // tile.down

    def over(part: Part, box: tuple[int, ...]) -> MapOf:
        return MapOf(part, box, swizzle=Swizzle128B)

    arguments: dict[str, Argument] = {
        "a": over(work.a, _box(work.a, work.majors[0], rows, form.depth)),
        "b": over(work.b, _box(work.b, work.majors[1], columns, form.depth)),
        "c": over(work.out, (*form.ones, BLOCK, mma.DEPTH_BYTES // work.out.size)),
        "a_tile": over(work.a, _tile_box(work.a, work.majors[0], tile.m if form.rank > len(_MATRIX) else rows, tile.groups, form.depth)),
        "b_tile": over(work.b, _tile_box(work.b, work.majors[1], columns, 1, form.depth)),
        **{f"read{i}": part for i, (part, _) in enumerate(work.reads)},
    }
    m, n, k = *work.out.shape[-2:], work.a.shape[-1 if work.majors[0] == "k" else -2]
    return Step(
        pipeline=_pipeline(form) if form.epilogue is None else _recorded(form),
        grid=_grid(tile, workers),
        arguments=arguments,
        what=f"{prod(work.out.shape[:-2])} x {m} x {n} x {k} on tensor cores",
    )


def _box(part: Part, major: str, rows: int, depth: int) -> tuple[int, ...]:
    """Of one load."""
    return (*(1,) * (len(part.shape) - len(_MATRIX)), *((rows, depth) if major == "k" else (depth, BLOCK)))


def _tile_box(part: Part, major: str, rows: int, groups: int, depth: int) -> tuple[int, ...]:
    """Whose shape a stage's tile has. With a batch a tile is several boxes along it: of each group's rows, or of each block of columns."""
    if len(part.shape) > 2:
        return (
            (groups, rows, depth)
            if major == "k" and groups > 1
            else (groups * rows // BLOCK, depth, BLOCK)
            if major == "mn"
            else (1, rows, depth)
        )
    return (rows, depth) if major == "k" else (rows // BLOCK * depth, BLOCK)


# ---- the pipeline
class Form(NamedTuple):
    """What is fixed when a pipeline is recorded; as in `Product`.

    Attributes:
        spread: how each array that the epilogue reads belongs to the result.
        depth: elements of K in a stage.
        rank: of the result.
        batched: b has a batch, too.
        turns: a CTA may have several tiles, whose order then matters to L2.
    """

    epilogue: Callable[..., Any] | None
    spread: tuple[Along, ...]
    majors: tuple[str, str]
    tile: Tile
    depth: int
    rank: int
    batched: bool
    turns: bool

    @property
    def ones(self) -> tuple[int, ...]:
        """Of a box, along the batch."""
        return (1,) * (self.rank - len(_MATRIX))

    @property
    def box(self) -> tuple[int, ...]:
        """What a CTA, or a cluster, computes in one turn."""
        return (*self.ones, *self.tile.box)


def _form(work: Product, tile: Tile, sms: int) -> tuple[Form, int]:
    """And how many CTAs, or clusters, work on it."""
    depth = mma.depth_of(work.a.dtype.info.name)
    spread = tuple(along for _, along in work.reads)
    rank, most = len(work.out.shape), max(1, sms // tile.cluster)
    form = Form(work.epilogue, spread, work.majors, tile, depth, rank, batched=len(work.b.shape) > len(_MATRIX), turns=True)
    count = boxes(work.out.shape, form.box)
    return form._replace(turns=count > most), min(count, most)


@lru_cache(maxsize=64)
def _pipeline(form: Form) -> Pipeline[...]:
    """As `_recorded`: one for all shapes, so that it is recorded once. What an epilogue does may be another thing with each call."""
    return _recorded(form)


def _recorded(form: Form) -> Pipeline[...]:
    """Persistent CTAs (or clusters) over the tiles of `c`."""
    tile = form.tile

    def matmul(cta: Any, a: Any, b: Any, c: Any, a_tile: Any, b_tile: Any, **reads: Any) -> None:
        given = tuple(_SPREAD[along](reads[f"read{i}"]) for i, along in enumerate(form.spread))
        if tile.cluster == 1:
            _body(form, cta, cta.ring(stages=tile.stages, tiles=(a_tile, b_tile)), (a, b, c), given)
            return
        pairs = ((a, a_tile, tile.across, "y"), (b, b_tile, tile.down, "x"))
        both = tile.across > 1 and tile.down > 1
        ring = cta.multicast_ring(
            stages=tile.stages,
            tiles=tuple(one for one, _, shared, _ in pairs if shared > 1),
            own=tuple(whole for _, whole, shared, _ in pairs if shared == 1),
            along=tuple(axis for _, _, _, axis in pairs) if both else None,
            axis=-2,
        )
        _body(form, cta, ring, (a, b, c), given)

    return _made(matmul, len(form.spread), tile)


def _body(form: Form, cta: Any, ring: Any, maps: tuple[Any, Any, Any], reads: tuple[Any, ...]) -> None:
    (a, b, c), tile, depth, shared = maps, form.tile, form.depth, form.tile.cluster > 1
    steps = (a.shape[-1 if form.majors[0] == "k" else -2] + depth - 1) // depth
    # Where a CTA is in its cluster; what a tuple of one ring's tiles begins with is shared.
    below = (cta.cta_rank if tile.across == 1 else cta.cta_rank % tile.down) if tile.down > 1 else 0
    beside = (cta.cta_rank if tile.down == 1 else cta.cta_rank // tile.down) if tile.across > 1 else 0
    shift, swapped = (below * tile.rows, beside * tile.n), tile.down > 1 and tile.across == 1
    outs = [cta.store_ring(c, stages=tile.staged) for _ in range(tile.groups)]
    visits = order.grouped(_RASTER) if form.turns and form.rank == len(_MATRIX) else order.linear

    def places() -> Any:
        return cta.tiles(c, box=form.box, per="cluster" if shared else "cta", order=visits)

    with cta.producer() as leader:
        for *batch, row, column in places():
            for k in cta.range(steps):
                with ring.produce(leader) as slots:
                    left, right = slots[::-1] if swapped else slots
                    at = (batch if form.batched else [], column + shift[1], k * depth)
                    _load(left, a, (batch, row + shift[0], k * depth), form.majors[0], (tile.m, tile.groups if tile.across == 1 else 1))
                    _load(right, b, at, form.majors[1], (tile.n, 1))
    for me in range(tile.groups):
        with cta.consumers(me) as group:
            for *batch, row, column in places():
                corner = (*batch, row + shift[0], column + shift[1])
                group.contract(ring, outs[me], corner, steps=steps, part=(me, tile.groups), majors=form.majors,
                    swapped=swapped, epilogue=form.epilogue, reads=reads,
                )  # fmt: skip


def _load(slot: Any, src: Any, at: tuple[Any, Any, Any], major: str, size: tuple[int, int]) -> None:
    """One operand of a stage: as many boxes as its tile has; its size is rows of a group, and groups."""
    (batch, first, k), (rows, groups) = at, size
    if major == "mn":
        blocks = rows * groups // BLOCK
        for i in range(blocks):
            slot.load_part(src, (*batch, k, first + i * BLOCK), i, of=blocks)
    elif batch and groups > 1:
        for i in range(groups):
            slot.load_part(src, (*batch, first + i * rows, k), i, of=groups)
    else:
        slot.load(src, (*batch, first, k))


def _cluster(tile: Tile) -> int | tuple[int, int]:
    """Its shape: one axis, or two where both operands are shared."""
    return (tile.down, tile.across) if tile.down > 1 and tile.across > 1 else tile.cluster


def _grid(tile: Tile, workers: int) -> int | tuple[int, int] | tuple[int, int, int]:
    """So that a cluster's number is a block index."""
    shape = _cluster(tile)
    return workers if shape == 1 else (*shape, workers) if isinstance(shape, tuple) else (shape, workers)


def _made(body: Callable[..., None], reads: int, tile: Tile) -> Pipeline[...]:
    """A pipeline of `body`, whose arrays are as many as the epilogue reads."""
    kinds: dict[str, Any] = {
        "cta": ClusterCta if tile.cluster > 1 else Cta,
        **dict.fromkeys(("a", "b", "c", "a_tile", "b_tile"), TmaDescriptor),
    }
    kinds |= {f"read{i}": GlobalArray for i in range(reads)}
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    body.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # what `inspect.signature` looks for
        [inspect.Parameter(name, kind, annotation=a) for name, a in kinds.items()]
    )
    body.__annotations__ = kinds
    warps = roles(producer=1, consumers=(4,) * tile.groups)
    decorate: Any = pipeline(warps=warps, cluster=_cluster(tile)) if tile.cluster > 1 else pipeline(warps=warps)
    made: Pipeline[...] = decorate(body)
    return made
