"""im2col copies: loads at every tap of a filter, with padding, strides and dilation, over image borders; stores, reductions, multicasts.

And interleaved maps, which move slice pixels, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import oxidecopy as ox
from oxidecopy.conformance.case import Case, Made, random_bits, small_integers
from oxidecopy.conformance.copies import DTYPES, SWIZZLES, Pipe

if TYPE_CHECKING:
    from oxidecopy.host.device import Device
    from oxidecopy.typed.dtypes import DType

Map = ox.Im2colDescriptor[Any, Any, Any, Any]
Target = ox.TmaDescriptor[Any, Any, Any, Any]


class Geometry(NamedTuple):
    """A convolution, per spatial dimension, outermost first."""

    extents: tuple[int, ...]
    taps: tuple[int, ...]
    padding: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    pixels: int
    images: int = 3

    @property
    def lower(self) -> tuple[int, ...]:
        """Of the box of filter bases."""
        return tuple(-p for p in self.padding)

    @property
    def upper(self) -> tuple[int, ...]:
        """Counted from the last element."""
        return tuple(p - (r - 1) * d for p, r, d in zip(self.padding, self.taps, self.dilation, strict=True))

    @property
    def bases(self) -> tuple[int, ...]:
        """How many there are along each dimension."""
        around = zip(self.extents, self.lower, self.upper, self.stride, strict=True)
        return tuple((n + up - low - 1) // s + 1 for n, low, up, s in around)


_GEOMETRIES: Final = (
    Geometry((11,), (3,), (1,), (1,), (1,), 16),
    Geometry((13,), (2,), (3,), (2,), (3,), 24),
    Geometry((9, 7), (3, 3), (1, 1), (1, 1), (1, 1), 32),
    Geometry((8, 10), (3, 2), (0, 1), (2, 1), (1, 2), 17),
    Geometry((5, 6, 7), (2, 3, 2), (1, 1, 0), (1, 2, 1), (1, 1, 2), 40),
    Geometry((4, 3, 5), (1, 1, 1), (0, 0, 0), (3, 1, 2), (1, 1, 1), 7),
)
_CHANNELS: Final = 40  # of the tensor; a copy moves fewer, and the last one leaves it


def base(cta: ox.Cta, g: Geometry, channels: int) -> tuple[ox.Idx, ...]:
    """Where this block starts: copies follow each other along the walk, so that they cross rows and images."""
    number: Any = cta.block_idx.x * g.pixels
    at: list[ox.Idx] = [cta.block_idx.y * channels]
    for n, s, low in reversed(list(zip(g.bases, g.stride, g.lower, strict=True))):
        at.append(number % n * s + low)
        number = number // n
    return (number, *reversed(at))


def blocks(g: Geometry) -> int:
    """As many as have a first pixel in the tensor, and one more."""
    return g.images * prod(g.bases) // g.pixels + 1


def offsets_of(cta: ox.Cta, g: Geometry) -> tuple[ox.Idx, ...]:
    """The tap of block z."""
    tap: Any = cta.block_idx.z
    found: list[ox.Idx] = []
    for r, d in reversed(list(zip(g.taps, g.dilation, strict=True))):
        found.append(tap % r * d)
        tap = tap // r
    return tuple(reversed(found))


def loader(g: Geometry, channels: int) -> Pipe:
    """Every copy of every tap, each to a place of its own."""

    @ox.pipeline(threads=32)
    def load(cta: ox.Cta, src: Map, out: Target) -> None:
        tile = cta.shared(src)
        full = cta.barrier().init(1)
        at: Any = base(cta, g, channels)
        taps: Any = offsets_of(cta, g)
        with cta.elect() as leader:
            src.prefetch(leader, at, offsets=taps)
            token = full.arrive_expect_tx(leader, tile)
            src.g2s(leader, tile, at, token, offsets=taps)
            full.wait(token)
            place = cta.block_idx.x + cta.grid_dim.x * (cta.block_idx.y + cta.grid_dim.y * cta.block_idx.z)
            out.s2g(leader, tile, (place * g.pixels, 0))
            leader.commit_group()
            leader.wait_group(0)

    return load


def spreader(g: Geometry, channels: int) -> Pipe:
    """As `loader`, by multicast to both CTAs of a cluster: one loads for both, taps behind the mask."""

    @ox.pipeline(threads=32, cluster=(2, 1, 1))
    def load(cta: ox.ClusterCta, src: Map, out: Target) -> None:
        tile = cta.shared(src)
        full = cta.barrier().init(1)
        cta.cluster_sync()
        taps: Any = offsets_of(cta, g)
        at: Any = (cta.block_idx.x // 2 % g.images, *g.lower, 0)
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile)
            with cta.when(cta.cta_rank == 1):
                src.g2s_multicast(leader, tile, at, token, offsets=taps, cta_mask=3, cache_hint=ox.cache.evict_last)
            full.wait(token)
            place = cta.block_idx.x + cta.grid_dim.x * cta.block_idx.z
            out.s2g(leader, tile, (place * g.pixels, 0))
            leader.commit_group()
            leader.wait_group(0)
        cta.cluster_sync()

    return load


def storer(g: Geometry, channels: int, op: str = "") -> Pipe:
    """Pixels back to another tensor; with `op` combined with what is there."""

    @ox.pipeline(threads=32)
    def store(cta: ox.Cta, src: Target, dst: Map) -> None:
        tile = cta.shared(src)
        full = cta.barrier().init(1)
        at: Any = base(cta, g, channels)
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile)
            place = cta.block_idx.x + cta.grid_dim.x * cta.block_idx.y
            src.g2s(leader, tile, (place * g.pixels, 0), token)
            full.wait(token)
            if op:
                dst.reduce(getattr(ox.reduce, op), leader, tile, at)
            else:
                dst.s2g(leader, tile, at, cache_hint=ox.cache.evict_first)
            leader.commit_group()
            leader.wait_group(0)

    return store


@ox.pipeline(threads=32)
def sliced(cta: ox.Cta, src: Target, out: Target, start: ox.Idx) -> None:
    """Slices of channels from `start` pixels on, which may lie before the first, to the start of another array's."""
    tile = cta.shared(src)
    full = cta.barrier().init(1)
    rest: Any = (0,) * (len(src.shape) - 3)
    with cta.elect() as leader:
        token = full.arrive_expect_tx(leader, tile)
        src.g2s(leader, tile, (cta.block_idx.y, cta.block_idx.x, *rest, start), token)
        full.wait(token)
        out.s2g(leader, tile, (cta.block_idx.y, cta.block_idx.x, *rest, 3))
        leader.commit_group()
        leader.wait_group(0)


# ---- the cases
def cases() -> Iterator[Case]:
    """All of this module."""
    group = "im2col"
    for i, g in enumerate(_GEOMETRIES):
        rank = len(g.extents) + 2
        for swizzle in SWIZZLES:
            yield Case(name=f"load {rank}-D {i} {swizzle.__name__}", group=group, make=partial(_load, ox.f16, g, swizzle, "zero"))
        yield Case(name=f"load {rank}-D {i} NaN fill", group=group, make=partial(_load, ox.f32, g, ox.Swizzle128B, "nan"))
        yield Case(name=f"multicast {rank}-D {i}", group=group, make=partial(_spread, ox.f32, g))
        inner = g._replace(padding=(0,) * len(g.extents), taps=(1,) * len(g.extents))
        yield Case(name=f"store {rank}-D {i}", group=group, make=partial(_store, ox.f16, inner, ""))
        yield Case(name=f"reduce {rank}-D {i}", group=group, make=partial(_store, ox.u32, inner, "bit_xor"))
        yield Case(name=f"reduce add {rank}-D {i}", group=group, make=partial(_store, ox.f16, inner, "add"))
    for nbytes, rank, start in product((16, 32), (3, 4), (-3, 0, 5)):
        for swizzle in (ox.SwizzleNone, ox.Swizzle128B):
            name = f"interleaved {nbytes} bytes {rank}-D from {start} {swizzle.__name__}"
            yield Case(name=name, group="interleaved", make=partial(_sliced, nbytes, rank, start, swizzle))
    for dtype, g in product(DTYPES, (_GEOMETRIES[2], _GEOMETRIES[4])):
        name = f"load {dtype.info.name} {len(g.extents) + 2}-D"
        yield Case(name=name, group=group, make=partial(_load, dtype, g, ox.Swizzle32B, "zero"))


def _sliced(nbytes: int, rank: int, start: int, swizzle: type[Any], dev: Device) -> Made:
    shape = (2, 3, *(() if rank == 3 else (5,)), 21, nbytes // 2)
    src = dev.array(random_bits(ox.u16, shape, rank), ox.u16)
    out = dev.zeros(shape, ox.u16)
    maps: Any = ox.TmaDescriptor.interleaved
    box = (1, 1, *(() if rank == 3 else (2,)), 16)
    source, target = (maps(a, box=box, swizzle=swizzle) for a in (src, out))
    return Made(launch=sliced[3, 2].bind(source, target, start), outputs={"out": out})


def _map(array: Any, g: Geometry, channels: int, swizzle: type[Any], fill: Any) -> Any:
    maps: Any = ox.TmaDescriptor.im2col
    steps = (1, *g.stride, 1)
    return maps(
        array, lower=g.lower, upper=g.upper, channels=channels, pixels=g.pixels, swizzle=swizzle, element_strides=steps, oob_fill=fill
    )


def _channels(dtype: type[DType], swizzle: type[Any]) -> int:
    nbytes = {ox.SwizzleNone: 48, ox.Swizzle32B: 32, ox.Swizzle64B: 64, ox.Swizzle128B: 128}[swizzle]
    return nbytes // dtype.info.nbytes


def _load(dtype: type[DType], g: Geometry, swizzle: type[Any], fill: str, dev: Device) -> Made:
    channels = _channels(dtype, swizzle)
    src = dev.array(random_bits(dtype, (g.images, *g.extents, _CHANNELS + 3), 1), dtype, pad=True)
    grid = (blocks(g), -(-(_CHANNELS + 3) // channels), prod(g.taps))
    out = dev.zeros((prod(grid) * g.pixels, channels), dtype)
    maps: Any = ox.TmaDescriptor.tiled
    target = maps(out, box=(g.pixels, channels), swizzle=swizzle)
    return Made(launch=loader(g, channels)[grid].bind(_map(src, g, channels, swizzle, fill), target), outputs={"out": out})


def _spread(dtype: type[DType], g: Geometry, dev: Device) -> Made:
    channels = _channels(dtype, ox.Swizzle64B)
    src = dev.array(random_bits(dtype, (g.images, *g.extents, _CHANNELS), 1), dtype, pad=True)
    grid = (2 * g.images, 1, prod(g.taps))
    out = dev.zeros((prod(grid) * g.pixels, channels), dtype)
    maps: Any = ox.TmaDescriptor.tiled
    target = maps(out, box=(g.pixels, channels), swizzle=ox.Swizzle64B)
    return Made(launch=spreader(g, channels)[grid].bind(_map(src, g, channels, ox.Swizzle64B, "zero"), target), outputs={"out": out})


def _store(dtype: type[DType], g: Geometry, op: str, dev: Device) -> Made:
    """Blocks write pixels of their own, so that no order of theirs shows."""
    channels = _channels(dtype, ox.SwizzleNone)
    grid = (blocks(g), -(-(_CHANNELS + 3) // channels), 1)
    make = small_integers if op == "add" else random_bits
    src = dev.array(make(dtype, (prod(grid) * g.pixels, channels), 1), dtype, pad=True)
    dst = dev.array(make(dtype, (g.images, *g.extents, _CHANNELS + 3), 2), dtype, pad=True)
    maps: Any = ox.TmaDescriptor.tiled
    source = maps(src, box=(g.pixels, channels))
    return Made(launch=storer(g, channels, op)[grid].bind(source, _map(dst, g, channels, ox.SwizzleNone, "zero")), outputs={"dst": dst})
