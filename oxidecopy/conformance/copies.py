"""Loads, stores and reductions: every element type, rank, swizzle and edge, each by one program in one block per box."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, Final

import oxidecopy as ox
from oxidecopy.conformance.case import Case, Made, random_bits, small_integers
from oxidecopy.isa.dtypes import REDUCE_OPS

if TYPE_CHECKING:
    from oxidecopy.host.device import Device
    from oxidecopy.typed.dtypes import DType

Map = ox.TmaDescriptor[Any, Any, Any, Any]
Array = ox.GlobalArray[Any, Any]
Pipe = ox.Pipeline[...]

DTYPES: Final[tuple[type[DType], ...]] = (
    ox.u8, ox.u16, ox.u32, ox.i32, ox.u64, ox.i64, ox.f16, ox.bf16, ox.f32, ox.f64, ox.f32_ftz, ox.tf32, ox.tf32_ftz, ox.e4m3, ox.e5m2,
)  # fmt: skip
SWIZZLES: Final = (ox.SwizzleNone, ox.Swizzle32B, ox.Swizzle64B, ox.Swizzle128B)
# Extents that no box divides, outermost first; the boxes hold `_INNER_BYTES` in their innermost dimension.
_SHAPES: Final = {1: (83,), 2: (21, 83), 3: (5, 9, 83), 4: (3, 4, 5, 83), 5: (2, 3, 3, 4, 83)}
_BOXES: Final = {1: (), 2: (8,), 3: (2, 8), 4: (2, 2, 4), 5: (1, 2, 2, 2)}
_STEPS: Final = {1: (), 2: (2,), 3: (3, 2), 4: (1, 2, 3), 5: (1, 2, 1, 3)}


def corner(cta: ox.Cta, desc: Map, box: tuple[int, ...], before: int) -> Any:
    """The coordinates of this block's box: blocks count boxes, innermost fastest, from `before` boxes ahead of the first."""
    at: list[ox.Idx] = []
    rest: Any = cta.block_idx.x
    for extent, n in zip(reversed(desc.shape), reversed(box), strict=True):
        count = (extent + n - 1) // n + before
        at.append((rest % count - before) * n)
        rest = rest // count
    return tuple(reversed(at))


def blocks(shape: tuple[int, ...], box: tuple[int, ...], before: int) -> int:
    """How many blocks `corner` needs."""
    return prod(-(-n // b) + before for n, b in zip(shape, box, strict=True))


def loader(reach: tuple[int, ...], edge: tuple[int, ...]) -> Pipe:
    """Each box, those outside included, to its own place of `out`, whose array holds them all one after the other."""

    @ox.pipeline(threads=64)
    def load(cta: ox.Cta, src: Map, out: Map) -> None:
        tile = cta.shared(src)
        full = cta.barrier().init(1)
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile.nbytes)
            src.g2s(leader, tile, corner(cta, src, reach, 1), token)
            full.wait_phase(0)
            out.s2g(leader, tile, (cta.block_idx.x * edge[0], *(0 for _ in edge[1:])))
            leader.commit_group()
            leader.wait_group(0)
        cta.sync()

    return load


def unloader(box: tuple[int, ...]) -> Pipe:
    """Loads with every edge, plain clipped stores of each tile to where it came from."""

    @ox.pipeline(threads=96)
    def unload(cta: ox.Cta, src: Map, out: Array) -> None:
        tile = cta.shared(src)
        full = cta.barrier().init(1)
        at = corner(cta, src, box, 0)
        with cta.thread(33) as leader:
            token = full.arrive_expect_tx(leader, tile.nbytes)
            src.g2s(leader, tile, at, token)
        full.wait(token)
        cta.store(out, tile, at)
        full.inval()

    return unload


def storer(box: tuple[int, ...], op: str = "") -> Pipe:
    """A copy by load and store, clipped at every edge; with `op` a reduction into what is there."""

    @ox.pipeline(threads=32)
    def store(cta: ox.Cta, src: Map, dst: Map) -> None:
        tile = cta.shared(src)
        full = cta.barrier().init(1)
        at = corner(cta, src, box, 0)
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile.nbytes)
            src.g2s(leader, tile, at, token)
        full.wait(token)
        with cta.elect() as leader:
            if op:
                dst.reduce(getattr(ox.reduce, op), leader, tile, at)
            else:
                dst.s2g(leader, tile, at)
            leader.commit_group()
            leader.wait_group(0)

    return store


def cases() -> Iterator[Case]:
    """All of this module."""
    for dtype in DTYPES:
        for rank in _SHAPES:
            yield from _copy_cases(dtype, rank)
        if dtype.info.is_float:
            fill = partial(_load, dtype, 2, ox.Swizzle128B, strided=False, fill="nan")
            yield Case(name=f"load {dtype.info.name} NaN fill", group="loads", make=fill)
        for op, rank in product(REDUCE_OPS, (1, 2, 5)):
            if op in dtype.info.reduce:
                yield Case(name=f"reduce {op} {dtype.info.name} {rank}-D", group="reductions", make=partial(_reduce, op, dtype, rank))


def _copy_cases(dtype: type[DType], rank: int) -> Iterator[Case]:
    name = f"{dtype.info.name} {rank}-D"
    for swizzle in SWIZZLES:
        yield Case(name=f"load {name} {swizzle.__name__}", group="loads", make=partial(_load, dtype, rank, swizzle, strided=False))
        yield Case(name=f"store {name} {swizzle.__name__}", group="stores", make=partial(_copy, dtype, rank, swizzle))
    yield Case(name=f"unload {name}", group="plain stores", make=partial(_unload, dtype, rank))
    if rank > 1:
        yield Case(name=f"load {name} element strides", group="loads", make=partial(_load, dtype, rank, ox.SwizzleNone, strided=True))


def _inner(dtype: type[DType], swizzle: type[ox.AnySwizzle]) -> int:
    """Elements of the innermost box dimension: a swizzle's span, or 48 bytes without one."""
    nbytes = {ox.SwizzleNone: 48, ox.Swizzle32B: 32, ox.Swizzle64B: 64, ox.Swizzle128B: 128}[swizzle]
    return nbytes // dtype.info.nbytes


def _load(dtype: type[DType], rank: int, swizzle: type[Any], dev: Device, *, strided: bool, fill: Any = "zero") -> Made:
    shape, inner = _SHAPES[rank], _inner(dtype, swizzle)
    steps = (*_STEPS[rank], 1) if strided else (1,) * rank
    edge = (*_BOXES[rank], inner)
    reach = tuple(n * s for n, s in zip(edge, steps, strict=True))
    src = dev.array(random_bits(dtype, shape, rank), dtype, pad=True)
    n = blocks(shape, reach, 1)
    out = dev.zeros((edge[0] * n, *edge[1:]), dtype)
    maps: Any = ox.TmaDescriptor.tiled
    source = maps(src, box=reach, swizzle=swizzle, element_strides=steps, oob_fill=fill)
    target = maps(out, box=edge, swizzle=swizzle)
    return Made(launch=loader(reach, edge)[n].bind(source, target), outputs={"out": out})


def _unload(dtype: type[DType], rank: int, dev: Device) -> Made:
    shape, box = _SHAPES[rank], (*_BOXES[rank], _inner(dtype, ox.Swizzle32B))
    src = dev.array(random_bits(dtype, shape, rank), dtype, pad=True)
    out = dev.zeros(shape, dtype)
    maps: Any = ox.TmaDescriptor.tiled
    return Made(launch=unloader(box)[blocks(shape, box, 0)].bind(maps(src, box=box, swizzle=ox.Swizzle32B), out), outputs={"out": out})


def _copy(dtype: type[DType], rank: int, swizzle: type[Any], dev: Device) -> Made:
    shape, box = _SHAPES[rank], (*_BOXES[rank], _inner(dtype, swizzle))
    src = dev.array(random_bits(dtype, shape, rank), dtype, pad=True)
    out = dev.zeros(shape, dtype, pad=True)
    maps: Any = ox.TmaDescriptor.tiled
    made = storer(box)[blocks(shape, box, 0)].bind(maps(src, box=box, swizzle=swizzle), maps(out, box=box, swizzle=swizzle))
    return Made(launch=made, outputs={"out": out})


def _reduce(op: str, dtype: type[DType], rank: int, dev: Device) -> Made:
    """Each element has one contributor, so any float result is exact; integers are taken whole."""
    shape, box = _SHAPES[rank], (*_BOXES[rank], _inner(dtype, ox.SwizzleNone))
    make = small_integers if dtype.info.is_float else random_bits
    src = dev.array(make(dtype, shape, 1), dtype, pad=True)
    out = dev.array(make(dtype, shape, 2), dtype, pad=True)
    maps: Any = ox.TmaDescriptor.tiled
    made = storer(box, op)[blocks(shape, box, 0)].bind(maps(src, box=box), maps(out, box=box))
    return Made(launch=made, outputs={"out": out})
