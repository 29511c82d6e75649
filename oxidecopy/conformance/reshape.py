"""Tiles from tiles of another shape: transposes of every type and swizzle, sums and maxima of rows and columns, stencils."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import oxidecopy as ox
from oxidecopy.conformance.case import Case, Made, random_bits
from oxidecopy.conformance.copies import DTYPES, Map, Pipe

if TYPE_CHECKING:
    from oxidecopy.host.device import Device
    from oxidecopy.typed.dtypes import DType

Box = tuple[int, ...]
Taps = Mapping[tuple[int, int], float]
_FLOATS: Final[tuple[type[DType], ...]] = (ox.f32, ox.f16, ox.bf16)
_BY_SIZE: Final[tuple[type[DType], ...]] = (ox.u8, ox.f16, ox.f32, ox.f64)
_SWIZZLES: Final = {16: ox.SwizzleNone, 32: ox.Swizzle32B, 64: ox.Swizzle64B, 128: ox.Swizzle128B}  # by the bytes of a row
_SHAPE: Final = (150, 208)
_TAPS: Final[Mapping[str, Taps]] = {
    "one": {(0, 1): 1.5},
    "five": {(0, 0): 0.5, (-1, 0): 0.125, (1, 0): 0.125, (0, -1): 0.1, (0, 1): -0.3},
    "six": {(0, -1): 0.7, (0, 0): 0.5, (-1, 0): 0.125, (1, 0): 0.125, (0, -4): 0.1, (0, 4): -0.3},
    "chunks": {(row, column): 1 / (3 + row * row + column) for row in (-1, 0, 1) for column in (0, 4)},
    "cross": {(-1, 0): 0.125, (0, -1): 0.1, (0, 0): 0.5, (0, 1): -0.3, (1, 0): 0.125},
    "nine": {(row, column): 1 / (3 + row * row + column) for row in (-1, 0, 1) for column in (-1, 0, 1)},
}
_KEPT_BOX: Final = (32, 64)


@ox.pipeline(warps=ox.roles(producer=1, consumers=3))
def flip(cta: ox.Cta, src: Map, dst: Map) -> None:
    """Transposes box by box."""
    ring: ox.Ring[Any, Any] = cta.ring(stages=2, tiles=(src,))
    outs = cta.store_ring(dst, stages=2)
    with cta.producer() as leader:
        for at in cta.tiles(src):
            with ring.produce(leader) as (slot,):
                slot.load(src, at)
    with cta.consumers() as group:
        for at in cta.tiles(src):
            there: Any = (*at[:-2], at[-1], at[-2])
            with ring.consume(group) as (tile,), outs.put(group, there) as made:
                group.transpose(tile, out=made)


def by_hand(threads: int, who: str) -> Pipe:
    """A tile of odd extents, transposed element by element, by all threads or by one."""

    @ox.pipeline(threads=threads)
    def odd(cta: ox.Cta, out: ox.GlobalArray[Any, ox.D2], like: ox.Scalar[ox.f32]) -> None:
        tile, made = cta.shared(ox.f32, (5, 7), align=ox.A128), cta.shared(ox.f32, (7, 5), align=ox.A128)
        cta.iota(tile, axis=1)
        cta.sync()
        cta.map(lambda v: v * like + 1, tile, out=tile)
        cta.sync()
        if who == "one":
            with cta.thread(3):
                cta.transpose(tile, out=made)
        else:
            cta.transpose(tile, out=made)
        cta.sync()
        cta.store(out, made, (0, 0))

    return odd


def folded(how: str, axis: int, box: Box) -> Pipe:
    """A vector for each box, one behind the other."""

    @ox.pipeline(warps=ox.roles(producer=1, consumers=3))
    def fold(cta: ox.Cta, src: Map, dst: Map) -> None:
        ring: ox.Ring[Any, Any] = cta.ring(stages=2, tiles=(src,))
        outs = cta.store_ring(dst, stages=2)
        with cta.producer() as leader:
            for at in cta.tiles(src):
                with ring.produce(leader) as (slot,):
                    slot.load(src, at)
        with cta.consumers() as group:
            for y, x in cta.tiles(src):
                number = y // box[0] * (_SHAPE[1] // box[1] + 1) + x // box[1]
                with ring.consume(group) as (tile,), outs.put(group, (number * box[1 - axis],)) as made:
                    reduce: Callable[..., None] = group.sum if how == "sum" else group.max
                    reduce(tile, axis=axis, out=made)

    return fold


def kept(how: str) -> Pipe:
    """Whole rows: a vector that stays in shared memory over all boxes side by side."""

    @ox.pipeline(warps=ox.roles(producer=1, consumers=2))
    def fold(cta: ox.Cta, src: Map, dst: Map) -> None:
        ring: ox.Ring[Any, Any] = cta.ring(stages=3, tiles=(src,))
        rows, columns = _KEPT_BOX
        kept: Any = cta.shared(dst)
        steps = (src.shape[1] + columns - 1) // columns
        with cta.producer() as leader:
            for k in cta.range(steps):
                with ring.produce(leader) as (slot,):
                    slot.load(src, (cta.block_idx.x * rows, k * columns))
        with cta.consumers() as group:
            group.fill(kept, -1.5)
            group.sync()
            for _ in cta.range(steps):
                with ring.consume(group) as (tile,):
                    reduce: Callable[..., None] = group.sum if how == "sum" else group.max
                    reduce(tile, axis=1, out=kept, accumulate=True)
            group.store(dst, kept, (cta.block_idx.x * rows,))

    return fold


def odd_fold(how: str, axis: int, dtype: type[DType]) -> Pipe:
    """A tile of odd extents: no 16 bytes of it lie together."""

    @ox.pipeline(threads=70)
    def odd(cta: ox.Cta, out: ox.GlobalArray[Any, ox.D1]) -> None:
        tile: Any = cta.shared(dtype, (11, 75), align=ox.A128)
        made: Any = cta.shared(ox.f32, (11 if axis else 75,), align=ox.A128)
        cta.iota(tile, axis=1)
        cta.sync()
        reduce: Callable[..., None] = cta.sum if how == "sum" else cta.max
        reduce(tile, axis=axis, out=made)
        cta.sync()
        cta.store(out, made, (0,))

    return odd


def stencil(taps: Taps, box: Box, halo: Box) -> Pipe:
    """Sums around each element, the tile loaded with its halo; outside of the array there are zeros."""

    @ox.pipeline(warps=ox.roles(producer=1, consumers=3))
    def around(cta: ox.Cta, src: Map, dst: Map) -> None:
        ring: ox.Ring[Any, Any] = cta.ring(stages=2, tiles=(src,))
        outs = cta.store_ring(dst, stages=2)
        with cta.producer() as leader:
            for y, x in cta.tiles(dst):
                with ring.produce(leader) as (slot,):
                    slot.load(src, (y - halo[0], x - halo[1]))
        with cta.consumers() as group:
            for at in cta.tiles(dst):
                with ring.consume(group) as (tile,), outs.put(group, at) as made:
                    group.stencil(tile, taps=taps, out=made)

    return around


def cases() -> Iterator[Case]:
    """All of this module."""
    yield from _stencils()
    for dtype in DTYPES:
        yield Case(name=f"transpose {dtype.info.name}", group="transposes", make=partial(_flipped, dtype, (32, 48)))
    for dtype in _BY_SIZE:
        name, across = dtype.info.name, 128 // dtype.info.nbytes
        for rows, columns in ((across, across), (across // 2, across // 4), (across // 8, across)):
            make = partial(_flipped, dtype, (rows, columns), modes=_SWIZZLES)
            yield Case(name=f"transpose {name} {rows} by {columns} swizzled", group="transposes", make=make)
        yield Case(name=f"transpose {name} 3-D", group="transposes", make=partial(_flipped, dtype, (3, 16, 32)))
    for threads, who in ((77, "all"), (40, "one")):
        yield Case(name=f"transpose odd by {who}", group="transposes", make=partial(_by_hand, threads, who))
    for dtype, how, axis in product(_FLOATS, ("sum", "max"), (1, 0)):
        words = f"{how} of {dtype.info.name} axis {axis}"
        for kind in ("bits", "numbers"):
            yield Case(name=f"{words} {kind}", group="sums and maxima", make=partial(_folded, dtype, how, axis, (20, 72), kind))
        swizzled = (40, 128 // dtype.info.nbytes)
        yield Case(name=f"{words} swizzled", group="sums and maxima", make=partial(_folded, dtype, how, axis, swizzled, "numbers"))
        yield Case(name=f"{words} odd", group="sums and maxima", make=partial(_odd_fold, dtype, how, axis))
        if axis:
            yield Case(name=f"{words} kept", group="sums and maxima", make=partial(_kept, dtype, how))


def _stencils() -> Iterator[Case]:
    for words, taps in _TAPS.items():
        for box, halo in (((20, 40), (1, 4)), ((5, 68), (2, 8))):
            make = partial(_around, taps, box, halo, "numbers", 0)
            yield Case(name=f"stencil {words} {box[0]} by {box[1]}", group="stencils", make=make)
        yield Case(name=f"stencil {words} swizzled", group="stencils", make=partial(_around, taps, (14, 24), (1, 4), "numbers", 128))
    yield Case(name="stencil of all bits", group="stencils", make=partial(_around, _TAPS["five"], (20, 40), (1, 4), "bits", 0))


def _flipped(dtype: type[DType], box: Box, dev: Device, modes: Mapping[int, Any] = MappingProxyType({})) -> Made:
    """`modes`: swizzles by the bytes of a row."""
    maps: Any = ox.TmaDescriptor.tiled
    shape = (*box[:-2], 3 * box[-2] + 16, 2 * box[-1] + 16)
    other, there = (*shape[:-2], shape[-1], shape[-2]), (*box[:-2], box[-1], box[-2])
    swizzles = [modes.get(b[-1] * dtype.info.nbytes, ox.SwizzleNone) for b in (box, there)]
    made = dev.zeros(other, dtype)
    src = maps(dev.array(random_bits(dtype, shape, 5), dtype), box=box, swizzle=swizzles[0])
    return Made(launch=flip[3].bind(src, maps(made, box=there, swizzle=swizzles[1])), outputs={"out": made})


def _by_hand(threads: int, who: str, dev: Device) -> Made:
    made = dev.zeros((7, 5), ox.f32)
    return Made(launch=by_hand(threads, who)[1].bind(made, 1.7), outputs={"out": made})


def _numbers(dtype: type[DType], kind: str) -> Any:
    """Every bit pattern, or numbers of very different sizes: each order of additions gives other bits."""
    bits = random_bits(dtype, _SHAPE, 6)
    if kind == "bits":
        return bits
    random = np.random.default_rng(7)
    return (random.standard_normal(_SHAPE) * 2.0 ** random.integers(-6, 6, _SHAPE)).astype(bits.dtype)


def _folded(dtype: type[DType], how: str, axis: int, box: Box, kind: str, dev: Device) -> Made:
    maps: Any = ox.TmaDescriptor.tiled
    swizzle = ox.Swizzle128B if box[1] * dtype.info.nbytes == 128 else ox.SwizzleNone
    length, boxes = box[1 - axis], -(-_SHAPE[0] // box[0]) * (_SHAPE[1] // box[1] + 1)
    made = dev.zeros((boxes * length,), ox.f32)
    src = maps(dev.array(_numbers(dtype, kind), dtype), box=box, swizzle=swizzle)
    return Made(launch=folded(how, axis, box)[3].bind(src, maps(made, box=(length,))), outputs={"out": made})


def _around(taps: Taps, box: Box, halo: Box, kind: str, swizzle: int, dev: Device) -> Made:
    maps: Any = ox.TmaDescriptor.tiled
    made = dev.zeros(_SHAPE, ox.f32)
    around = tuple(n + 2 * more for n, more in zip(box, halo, strict=True))
    src = maps(dev.array(_numbers(ox.f32, kind), ox.f32), box=around, swizzle=_SWIZZLES[swizzle or 16])
    return Made(launch=stencil(taps, box, halo)[3].bind(src, maps(made, box=box)), outputs={"out": made})


def _odd_fold(dtype: type[DType], how: str, axis: int, dev: Device) -> Made:
    made = dev.zeros((11 if axis else 75,), ox.f32)
    return Made(launch=odd_fold(how, axis, dtype)[1].bind(made), outputs={"out": made})


def _kept(dtype: type[DType], how: str, dev: Device) -> Made:
    maps: Any = ox.TmaDescriptor.tiled
    made = dev.zeros((_SHAPE[0] + 2,), ox.f32)
    src = maps(dev.array(_numbers(dtype, "numbers"), dtype), box=_KEPT_BOX)
    return Made(launch=kept(how)[5].bind(src, maps(made, box=_KEPT_BOX[:1])), outputs={"out": made})
