"""Scenes of im2col copies: loads at the taps of a filter with padding, strides and dilation; stores of the pixels; and interleaved maps."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from random import Random
from typing import Any, final

import numpy as np

from oxidecopy.fuzz.case import Data, clip
from oxidecopy.fuzz.drafts import DTYPE_NAMES, Draft, Handles
from oxidecopy.isa.dtypes import DTYPES
from oxidecopy.program.tensor_map import IM2COL, TensorMap


@final
@dataclass(frozen=True, slots=True)
class Geometry:
    """A small convolution, per spatial dimension, outermost first."""

    images: int
    extents: tuple[int, ...]
    taps: tuple[int, ...]
    padding: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]

    @property
    def lower(self) -> tuple[int, ...]:
        """Corner of the box of filter bases."""
        return tuple(-p for p in self.padding)

    @property
    def upper(self) -> tuple[int, ...]:
        """The other one, counted from the last element."""
        return tuple(p - (r - 1) * s for p, r, s in zip(self.padding, self.taps, self.dilation, strict=True))

    @property
    def bases(self) -> tuple[int, ...]:
        """How many there are along each dimension."""
        around = zip(self.extents, self.lower, self.upper, self.stride, strict=True)
        return tuple((n + up - low - 1) // s + 1 for n, low, up, s in around)

    def base(self, number: Any) -> tuple[Any, ...]:
        """Image and coordinates of base `number`, along the walk of a copy."""
        at: list[Any] = []
        for n, s, low in reversed(list(zip(self.bases, self.stride, self.lower, strict=True))):
            at.append(number % n * s + low)
            number = number // n
        return (number, *reversed(at))


def drawn(rng: Random, *, inner: bool) -> Geometry:
    """`inner`: one tap and no padding, as stores need it."""
    dims = rng.randrange(1, 4)

    def each(*choices: int) -> tuple[int, ...]:
        return tuple(rng.choice(choices) for _ in range(dims))

    while True:
        taps, padding = ((1,) * dims, (0,) * dims) if inner else (each(1, 2, 3), each(0, 0, 1))
        made = Geometry(rng.randrange(1, 3), each(2, 3, 4, 5), taps, padding, each(1, 1, 2), each(1, 1, 2))
        if all(n > 0 for n in made.bases) and prod(made.bases) * made.images <= 60:
            return made


class Im2col:
    """A ring of one stage: pixels of an image tensor, tap by tap, to a matrix."""

    def __init__(self, d: Draft) -> None:
        self.d, self.g = d, drawn(d.rng, inner=False)
        self.dtype = d.rng.choice(DTYPE_NAMES)
        item = DTYPES[self.dtype].nbytes
        self.channels, self.pixels = d.pick(16, 32) // item, d.pick(2, 4, 7)
        self.tap = tuple(d.rng.randrange(r) * s for r, s in zip(self.g.taps, self.g.dilation, strict=True))
        self.trips = d.trips(4, 0.0)
        self.src = image(d, self.g, self.dtype, self.channels, self.pixels, swizzle := d.pick("none", "32B"))
        self.dst = d.target(d.blocks * self.trips.n, (self.dtype, (self.pixels, self.channels), swizzle))
        self.ahead, self.bulk, self.hint = d.chance(0.3), d.chance(0.5), d.hint()
        for t in range(d.blocks * self.trips.n):
            d.stores(self.dst, t, lambda t=t: self.loaded(t))  # type: ignore[misc]  # a default binds t

    def loaded(self, t: int) -> Data:
        """The pixels of copy `t`: those that are no element are zeros."""
        data = self.d.memory[self.src].data
        out = np.zeros((self.pixels, self.channels), data.dtype)
        for p in range(self.pixels):
            image_, *base = self.g.base(t * self.pixels + p)
            at = [c + o for c, o in zip(base, self.tap, strict=True)]
            if image_ < self.g.images and all(0 <= c < n for c, n in zip(at, self.g.extents, strict=True)):
                row = data[(image_, *at)][: self.channels]
                out[p, : len(row)] = row
        return out

    def __call__(self, cta: Any, h: Handles) -> None:
        src, tile, full = h[self.src], cta.shared(h[self.src]), cta.barrier().init(1)
        for i in cta.range(self.trips.of(h)):
            t = self.d.block(cta) * self.trips.n + i
            at = (*self.g.base(t * self.pixels), 0)
            with cta.elect() as leader:
                if self.ahead:
                    src.prefetch(leader, at, offsets=self.tap, **self.hint)
                token = full.arrive_expect_tx(leader, tile)
                src.g2s(leader, tile, at, token, offsets=self.tap, **self.hint)
            full.wait(token)
            if self.bulk:
                with cta.elect() as leader:
                    h[self.dst.name].s2g(leader, tile, self.dst.at(t))
                    leader.commit_group()
                    leader.wait_group_read(0)
            else:
                cta.store(h[self.dst.plain], tile, self.dst.at(t))
            cta.sync()


class Pixels:
    """A matrix to the pixels of an image tensor, each block to its own."""

    def __init__(self, d: Draft) -> None:
        self.d, self.g = d, drawn(d.rng, inner=True)
        self.dtype = d.rng.choice(DTYPE_NAMES)
        self.channels, self.pixels = d.pick(16, 32) // DTYPES[self.dtype].nbytes, d.pick(2, 4, 7)
        swizzle = d.pick("none", "32B")
        self.src = d.source(d.blocks, (self.dtype, (self.pixels, self.channels), swizzle))
        self.dst = image(d, self.g, self.dtype, self.channels, self.pixels, swizzle)
        d.unknown.add(self.dst)  # pixels between the bases of a stride stay as they are, and so do those of no block

    def __call__(self, cta: Any, h: Handles) -> None:
        tile, full, block = cta.shared(h[self.src.name]), cta.barrier().init(1), self.d.block(cta)
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile)
            h[self.src.name].g2s(leader, tile, self.src.at(block), token)
            full.wait(token)
            h[self.dst].s2g(leader, tile, (*self.g.base(block * self.pixels), 0))
            leader.commit_group()
            leader.wait_group(0)


def image(d: Draft, g: Geometry, dtype: str, channels: int, pixels: int, swizzle: str) -> str:
    """A map over a fresh tensor of images, whose channels may end before those of a copy."""
    name = f"c{len(d.memory)}"
    dims = (g.images, *g.extents, max(1, channels + d.pick(0, 0, 1, -1)))
    strides = d.fresh(name, dtype, dims)
    tensor = TensorMap(
        dtype=dtype,
        global_dim=dims,
        global_strides=strides,
        box_dim=(pixels, channels),
        element_strides=(1, *g.stride, 1),
        swizzle=swizzle,
        mode=IM2COL,
        lower=g.lower,
        upper=g.upper,
    )
    d.bind(name, name, tensor)
    return name


class Sliced:
    """Slices of channels in an interleaved layout, from a pixel on that may lie before the first, to another array's."""

    def __init__(self, d: Draft) -> None:
        self.d, self.kind = d, d.pick("16B", "32B")
        self.elements = {"16B": 16, "32B": 32}[self.kind] // 2
        self.start, self.box = d.rng.randrange(-3, 4), d.pick(8, 16)  # 16 bytes at least, as the driver counts them
        dims = (d.blocks, 2, self.box + d.rng.randrange(6))
        swizzle = "32B" if self.kind == "32B" and d.chance(0.5) else "none"
        self.src, self.dst = (self.slices(stem, dims, swizzle) for stem in "ab")
        d.effects.append(self.land)

    def slices(self, stem: str, dims: tuple[int, int, int], swizzle: str) -> str:
        """A map over (images, slices, pixels) of u16 slice pixels."""
        d, name = self.d, f"{stem}{len(self.d.memory)}"
        slice_bytes = self.elements * 2
        d.fresh(name, "u16", (*dims, self.elements))
        strides = (dims[1] * dims[2] * slice_bytes, dims[2] * slice_bytes)
        tensor = TensorMap(
            dtype="u16",
            global_dim=dims,
            global_strides=strides,
            box_dim=(1, 1, self.box),
            element_strides=(1, 1, 1),
            interleave=self.kind,
            swizzle=swizzle,
        )
        d.bind(name, name, tensor)
        return name

    def land(self, now: dict[str, Data]) -> None:
        """Slice 1 of each image, shifted."""
        src, dst = now[self.src], now[self.dst]
        for b in range(self.d.blocks):
            made = np.zeros((self.box, self.elements), src.dtype)
            for p in range(self.box):
                if 0 <= p + self.start < src.shape[2]:
                    made[p] = src[b, 1, p + self.start]
            to, part = clip(dst[b, 0], (1, 0), made)
            to[...] = part

    def __call__(self, cta: Any, h: Handles) -> None:
        tile, full, block = cta.shared(h[self.src]), cta.barrier().init(1), self.d.block(cta)
        with cta.elect() as leader:
            token = full.arrive_expect_tx(leader, tile)
            h[self.src].g2s(leader, tile, (block, 1, self.start), token)
            full.wait(token)
            h[self.dst].s2g(leader, tile, (block, 0, 1))
            leader.commit_group()
            leader.wait_group(0)
