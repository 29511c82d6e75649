"""Products on tensor cores: every tile, element type, major, epilogue and cluster.

Operands are small integers, whose sums are exact in f32 in any order: such results are compared bit for bit. One group has random numbers
and sums in f32, compared within the error that a tensor core may make. All but what no record computes is run as records, too: most of
it is recognised as whole programs, and would not come to family `mma` any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, inf, nan
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

import oxidecopy as ox
from oxidecopy.conformance.case import Case, Made, small_integers
from oxidecopy.conformance.copies import Pipe
from oxidecopy.isa import mma
from oxidecopy.typed.global_array import storage_dtype

if TYPE_CHECKING:
    import numpy.typing as npt

    from oxidecopy.host.device import Device
    from oxidecopy.typed.dtypes import DType

Map = ox.TmaDescriptor[Any, ox.D2, ox.Swizzle128B]
Vec = ox.GlobalArray[ox.f32, ox.D1]
Whole = ox.GlobalArray[Any, ox.D2]
Fn = Callable[..., Any]
SHAPE: Final = (200, 184, 176)  # M, N and K: remainders of every tile
GRID: Final = 3


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One program. `m` rows are one group's; `reads` are what the epilogue reads: a row, a column, a residual."""

    a: type[DType] = ox.bf16
    b: type[DType] = ox.bf16
    out: type[DType] = ox.f32
    m: int = 64
    n: int = 128
    groups: int = 2
    stages: int = 4
    staged: int = 2
    majors: tuple[Any, Any] = ("k", "k")
    cluster: int | tuple[int, int] = 1
    shared: str = "b"  # what a cluster loads together: for b its CTAs are below each other, for a side by side; for ab both
    splits: int = 1  # of K, each added to the result by a store of its own
    epilogue: Fn | None = None
    reads: tuple[str, ...] = ()
    special: bool = False  # infinities and NaN among what is multiplied and read
    shape: tuple[int, int, int] = SHAPE

    @property
    def depth(self) -> int:
        """K of a stage."""
        return mma.depth_of(self.a.info.name)

    @property
    def rows(self) -> int:
        """Rows of a block's result."""
        return self.m * self.groups

    @property
    def shape_of_cluster(self) -> tuple[int, int]:
        """CTAs below each other, and side by side."""
        if isinstance(self.cluster, tuple):
            return self.cluster
        return (self.cluster, 1) if self.shared == "b" else (1, self.cluster)


def program(plan: Plan) -> Pipe:
    """A producer, one or two warpgroups that share its stages, persistent over the tiles of the result.

    `a_tile` and `b_tile` are descriptors that say the shape of a stage's tiles; `a` and `b` are loaded through.
    """
    roles = ox.roles(producer=1, consumers=(4,) * plan.groups)
    if plan.cluster == 1:

        @ox.pipeline(warps=roles)
        def one(  # noqa: PLR0917 - parameters of a launch
            cta: ox.Cta, a: Map, b: Map, c: Map, a_tile: Map, b_tile: Map, row: Vec, column: Vec, residual: Whole
        ) -> None:
            ring = cta.ring(stages=plan.stages, tiles=(a_tile, b_tile))
            _body(plan, cta, ring, (a, b, c), {"row": ox.per_row(row), "column": ox.per_column(column), "residual": residual})

        return one

    @ox.pipeline(warps=roles, cluster=plan.cluster)
    def clustered(  # noqa: PLR0917 - parameters of a launch
        cta: ox.ClusterCta, a: Map, b: Map, c: Map, a_tile: Map, b_tile: Map, row: Vec, column: Vec, residual: Whole
    ) -> None:
        tiles = (b_tile, a_tile) if plan.shared == "b" else (a_tile, b_tile)
        ring: Any = (
            cta.multicast_ring(stages=plan.stages, tiles=tiles, along=("y", "x"))
            if plan.shared == "ab"
            else cta.multicast_ring(stages=plan.stages, tiles=tiles[:1], own=tiles[1:])
        )
        _body(plan, cta, ring, (a, b, c), {"row": ox.per_row(row), "column": ox.per_column(column), "residual": residual})
        cta.cluster_sync()

    return clustered


def _body(plan: Plan, cta: Any, ring: Any, maps: tuple[Map, Map, Map], values: dict[str, Any]) -> None:
    a, b, c = maps
    steps = (a.shape[1 if plan.majors[0] == "k" else 0] + plan.depth - 1) // plan.depth
    share = (steps + plan.splits - 1) // plan.splits
    outs = [cta.store_ring(c, stages=plan.staged) for _ in range(plan.groups)]
    down, across = plan.shape_of_cluster
    shared = down * across > 1
    swapped = shared and plan.shared == "b"
    shift = (cta.cta_rank % down * plan.rows if down > 1 else 0, cta.cta_rank // down * plan.n if across > 1 else 0)

    def places() -> Any:
        return cta.tiles(c, box=(plan.rows * down, plan.n * across), per="cluster" if shared else "cta")

    with cta.producer() as leader:
        for at in places():
            for k in cta.range(share * plan.splits):
                with ring.produce(leader) as slots:
                    first, second = slots[::-1] if swapped else slots
                    _load(plan.majors[0], first, a, at[0] + shift[0], k * plan.depth, plan.rows)
                    _load(plan.majors[1], second, b, at[1] + shift[1], k * plan.depth, plan.n)
    reads = tuple(values[name] for name in plan.reads)
    for me in range(plan.groups):
        with cta.consumers(me) as group:
            for at in places():
                corner = (at[0] + shift[0], at[1] + shift[1])
                for _ in range(plan.splits):
                    group.contract(ring, outs[me], corner, steps=share, part=(me, plan.groups), majors=plan.majors,
                        swapped=swapped, add=plan.splits > 1, epilogue=plan.epilogue, reads=reads,
                    )  # fmt: skip


@ox.pipeline(warps=ox.roles(producer=1, consumers=(4, 4)))
def split_k(cta: ox.Cta, a: Map, b: Map, c: Map, splits: ox.Idx) -> None:
    """Blocks along y share a K: each multiplies its part of the slabs, and adds to what the others have added."""
    ring: Any = cta.ring(stages=4, tiles=(a, b))
    share = ((a.shape[1] + 63) // 64 + splits - 1) // splits
    across = (c.shape[1] + 127) // 128
    turns = ((c.shape[0] + 127) // 128 * across - cta.block_idx.x + cta.grid_dim.x - 1) // cta.grid_dim.x

    def place(i: Any) -> tuple[Any, Any]:
        tile = cta.block_idx.x + i * cta.grid_dim.x
        return tile // across * 128, tile % across * 128

    with cta.producer() as leader:
        for i in cta.range(turns):
            row, column = place(i)
            for k in cta.range(share):
                with ring.produce(leader) as (left, right):
                    left.load(a, (row, (cta.block_idx.y * share + k) * 64))
                    right.load(b, (column, (cta.block_idx.y * share + k) * 64))
    for me in range(2):
        outs = cta.store_ring(c, stages=2)
        with cta.consumers(me) as group:
            for i in cta.range(turns):
                group.contract(ring, outs, place(i), steps=share, part=(me, 2), add=True)


def made_split(dev: Device) -> Made:
    """A launch of it: K of 5 slabs for 3 blocks, the last of which has one."""
    m, n, k = 130, 136, 5 * 64
    x, y = (small_integers(ox.bf16, (rows, k), seed) for rows, seed in ((m, 1), (n, 2)))
    a, b = (ox.TmaDescriptor.tiled(dev.array(v, ox.bf16, pad=True), box=(128, 64), swizzle=ox.Swizzle128B) for v in (x, y))
    out = dev.zeros((m, n), ox.f32, pad=True)
    c = ox.TmaDescriptor.tiled(out, box=(64, 32), swizzle=ox.Swizzle128B)
    return Made(launch=split_k[2, 3].bind(a, b, c, 3), outputs={"out": out})


def _load(major: str, slot: Any, src: Map, first: Any, k: Any, rows: int) -> None:
    """Rows `first` and on of an operand, in its own order."""
    if major == "k":
        slot.load(src, (first, k))
        return
    blocks = rows // 64
    for i in range(blocks):
        slot.load_part(src, (k, first + i * 64), i, of=blocks)


def made(plan: Plan, dev: Device, *, exact: bool = True) -> Made:
    """A launch; K-major operands are (rows, K), the others (K, rows)."""
    m, n, k = plan.shape
    x, y = _numbers(plan.a, (m, k), 1, exact=exact), _numbers(plan.b, (n, k), 2, exact=exact)
    column_numbers = _numbers(ox.f32, (n,), 3, exact=exact)
    if plan.special:
        for at, number in {(1, 3): inf, (2, 3): -inf, (3, 3): nan, (4, 3): inf, (4, 70): -inf}.items():  # times 0 is NaN, too
            x[at] = number
        column_numbers.view(np.uint32)[5:8] = (0xFFC01234, 0x7F800000, 0xFF800000)
    a, a_tile = _operand(dev, plan.a, x, plan.majors[0], plan.rows, plan.depth, plan.shape_of_cluster[1])
    b, b_tile = _operand(dev, plan.b, y, plan.majors[1], plan.n, plan.depth, plan.shape_of_cluster[0])
    out = dev.zeros((m, n), plan.out, pad=True)
    c = ox.TmaDescriptor.tiled(out, box=(64, 128 // plan.out.info.nbytes), swizzle=ox.Swizzle128B)
    row, column = dev.array(_numbers(ox.f32, (m,), 3, exact=exact), ox.f32), dev.array(column_numbers, ox.f32)
    residual = dev.array(_numbers(plan.out, (m, n), 4, exact=exact), plan.out)
    down, across = plan.shape_of_cluster
    grid = (down, across, GRID) if plan.shared == "ab" else GRID * down * across
    launch = program(plan)[grid].bind(a, b, c, a_tile, b_tile, row, column, residual)
    sizes = None if exact else (np.abs(x.astype(np.float64)) @ np.abs(y.astype(np.float64)).T).astype(np.float32)
    return Made(launch=launch, outputs={"out": out}, sizes=sizes)


def _numbers(dtype: type[DType], shape: tuple[int, ...], seed: int, *, exact: bool) -> npt.NDArray[Any]:
    if exact:
        return small_integers(dtype, shape, seed)
    return np.random.default_rng(seed).standard_normal(shape).astype(storage_dtype(dtype.info))


def _operand(
    dev: Device, dtype: type[DType], values: npt.NDArray[Any], major: str, rows: int, depth: int, slices: int
) -> tuple[Map, Map]:  # fmt: skip
    """What it is loaded through, and what has the shape of its tile (of one CTA's slice of it)."""
    turned = np.ascontiguousarray(values if major == "k" else values.T)
    array = dev.array(turned, dtype, pad=True)
    boxes = ((rows // slices, depth),) * 2 if major == "k" else ((depth, 64), (rows // 64 * depth, 64))
    load, tile = (ox.TmaDescriptor.tiled(array, box=box, swizzle=ox.Swizzle128B) for box in boxes)
    return load, tile


def _biased(s: Any, column: Any) -> Any:
    return (s + column).relu()


def _all(s: Any, row: Any, column: Any, residual: Any) -> Any:
    return (s * row + column).cast(ox.bf16) + residual


def _blended(s: Any, column: Any, residual: Any) -> Any:
    return residual * -0.5 + (column - s * 1.5)


def _clamped(s: Any, row: Any) -> Any:
    return (row + s).maximum(40.0).minimum(900.0) * 0.25


PLANS: Final[dict[str, Plan]] = {
    "bf16 128x128": Plan(),
    "bf16 128x256": Plan(n=256, stages=3),
    "bf16 128x64": Plan(n=64),
    "bf16 128x192": Plan(n=192),
    "bf16 128x192 to bf16": Plan(out=ox.bf16, n=192, cluster=2),
    "bf16 one group": Plan(groups=1),
    "bf16 one group 128x128": Plan(groups=1, m=128),
    "bf16 256x128": Plan(m=128, stages=3),
    "f16": Plan(a=ox.f16, b=ox.f16, out=ox.f16),
    "bf16 to bf16": Plan(out=ox.bf16),
    "bf16 two stages, one staging tile": Plan(stages=2, staged=1),
    "tf32": Plan(a=ox.tf32, b=ox.tf32),
    "e4m3": Plan(a=ox.e4m3, b=ox.e4m3, out=ox.bf16),
    "e5m2 and e4m3": Plan(a=ox.e5m2, b=ox.e4m3, n=64),
    "b MN-major": Plan(majors=("k", "mn")),
    "a MN-major": Plan(majors=("mn", "k")),
    "both MN-major": Plan(majors=("mn", "mn"), n=256, stages=3),
    "cluster of 2": Plan(cluster=2),
    "cluster of 2 that shares a": Plan(cluster=2, shared="a"),
    "cluster of 4": Plan(cluster=4, n=256, stages=3),
    "cluster of 2 x 2 that shares both": Plan(cluster=(2, 2), shared="ab"),
    "K in two halves, added": Plan(splits=2),
    "column bias, relu": Plan(epilogue=_biased, reads=("column",)),
    "column bias, relu, to bf16": Plan(out=ox.bf16, n=256, stages=3, epilogue=lambda s, c: (c + s).relu().cast(ox.bf16), reads=("column",)),
    "column bias of 128x128, to f16": Plan(out=ox.f16, groups=1, m=128, epilogue=lambda s, c: (c + s).cast(ox.f16), reads=("column",)),
    "scaled, from a column, less a half of the residual": Plan(epilogue=_blended, reads=("column", "residual")),
    "a row's sum, clamped": Plan(n=64, epilogue=_clamped, reads=("row",)),
    "row scale, column bias, residual": Plan(out=ox.bf16, epilogue=_all, reads=("row", "column", "residual")),
    "NaN and infinities": Plan(special=True),
    "NaN and infinities, to bf16": Plan(special=True, out=ox.bf16),
    "NaN and infinities, rounded to bf16": Plan(special=True, epilogue=lambda s: s.cast(ox.bf16).cast(ox.f32)),
    "NaN and infinities, column bias, rounded to f16": Plan(
        special=True, epilogue=lambda s, c: (c + s).cast(ox.f16).cast(ox.f32), reads=("column",)
    ),
    "NaN and infinities, relu in bf16": Plan(
        special=True, groups=1, m=128, epilogue=lambda s, c: (s - c).cast(ox.bf16).relu().cast(ox.f32), reads=("column",)
    ),
    "NaN and infinities, a half in bf16": Plan(special=True, n=64, epilogue=lambda s: (s.cast(ox.bf16) * 0.5).cast(ox.f32)),
    "one tile": Plan(shape=(128, 128, 64)),
    "smaller than a tile": Plan(shape=(5, 24, 8)),
    "long K": Plan(shape=(64, 64, 2048), n=64),
}
# The slope of each epilogue is at most 1.13, and its own error a few units of the last place: that much more than the sum's.
RANDOM: Final = {
    "bf16": Plan(),
    "f16": Plan(a=ox.f16, b=ox.f16),
    "tf32": Plan(a=ox.tf32, b=ox.tf32),
    "e4m3": Plan(a=ox.e4m3, b=ox.e4m3),
    "column bias, gelu": Plan(n=256, stages=3, epilogue=lambda s, c: (s + c).gelu(), reads=("column",)),
    "silu, residual": Plan(epilogue=lambda s, r: r + s * s.sigmoid(), reads=("residual",)),
    "column bias, tanh": Plan(m=128, stages=3, epilogue=lambda s, c: (c + s).tanh(), reads=("column",)),
}


def cases() -> Iterator[Case]:
    """All of this module, whole programs as such and as records."""
    for name, plan in PLANS.items():
        yield from _both(plan, Case(name=name, group="contractions", make=partial(made, plan), emitted=False))
    yield Case(name="K over blocks, added", group="contractions", make=made_split, emitted=False)
    for name, plan in RANDOM.items():
        # mma.error_bound, in units of the last place of the sum of the absolute values
        case = Case(
            name=f"{name}, random numbers",
            group="contractions",
            make=partial(made, plan, exact=False),
            whole=False,
            ulp=ceil((1.13 if plan.epilogue else 1.0) * mma.error_bound(plan.a.info.name, plan.shape[2], 2.0**24))
            + (4 if plan.epilogue else 0),
            emitted=False,
        )
        yield from _both(plan, case)


def _both(plan: Plan, case: Case) -> Iterator[Case]:
    yield case
    if (plan.m, plan.n) != (64, 192):  # no record computes it
        yield replace(case, group="contractions as records", records=True)
