"""Work by threads: fills, iotas, and maps with every operation, type and cast, on every bit pattern."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import oxidecopy as ox
from oxidecopy.conformance.case import Case, Made, random_bits
from oxidecopy.conformance.copies import DTYPES, Map, Pipe
from oxidecopy.isa.elem import FLOATS, IN_F32, INTEGERS, SIGNED, ULP
from oxidecopy.isa.elem import Fn as ElemFn

if TYPE_CHECKING:
    from oxidecopy.host.device import Device
    from oxidecopy.typed.dtypes import DType

BOX: Final = (16, 32)
SHAPE: Final = (64, 96)
Fn = Callable[..., Any]

_BINARY: Final[dict[str, Fn]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "fma unfused": lambda a, b: a * b + a,
    "neg": lambda a, b: -a + b * -b,
    "constants": lambda a, b: (a + 3) * 2 - b,
}
_ORDER: Final[dict[str, Fn]] = {
    "minimum": lambda a, b: a.minimum(b),
    "maximum": lambda a, b: (-b).maximum(a).relu(),
    "comparisons": lambda a, b: (a < b).select((a <= 1).select(a, 3), (a != b).select(b, a)),
    "truth": lambda a, b: (((a > b) & ~(b >= 2)) | (a == b) ^ (a < 1)).select(a + b, b),
    "kept": lambda a, b: (a - b) * (a - b) + (a - b).maximum(b) * (a + b).minimum((a - b) * b),
}
_SIGNED_ONLY: Final[dict[str, Fn]] = {"abs": lambda a, b: abs(a) - abs(b - a)}
_BITS: Final[dict[str, Fn]] = {
    "and or xor": lambda a, b: (a & b) | (a ^ ~b),
    "constant bits": lambda a, b: (a & 12) + (b | 3) - (a ^ 5),
    "shifts": lambda a, b: (a << (b & 7)) ^ (b >> 3) ^ (a >> (b & 15)) ^ (a >> b),
}
_FUNCTIONS: Final[dict[str, tuple[Fn, int]]] = {
    "sqrt": (lambda a: a.sqrt(), 0),
    "rsqrt": (lambda a: a.rsqrt(), ULP[ElemFn.RSQRT]),
    "exp": (lambda a: a.exp(), ULP[ElemFn.EXP]),
    "log": (lambda a: a.log(), ULP[ElemFn.LOG]),
    "tanh": (lambda a: a.tanh(), ULP[ElemFn.TANH]),
    "sigmoid": (lambda a: a.sigmoid(), ULP[ElemFn.SIGMOID]),
    "gelu": (lambda a: a.gelu(), ULP[ElemFn.GELU]),
}
_FLOAT_ONLY: Final[dict[str, Fn]] = {"div": lambda a, b: a / b, "reciprocal": lambda a, b: 1 / a + 0.3 * b}


def mapped(fn: Fn, inputs: int, out: type[DType]) -> Pipe:
    """Loads one or two tiles, maps them, stores the result; a swizzle each, so that places differ."""

    @ox.pipeline(warps=ox.roles(producer=1, consumers=3))
    def compute(cta: ox.Cta, a: Map, b: Map, dst: Map, alpha: ox.Scalar[ox.f32]) -> None:
        sources: Any = (a, b)[:inputs]
        ring: ox.Ring[Any, Any] = cta.ring(stages=2, tiles=sources)
        outs = cta.store_ring(dst, stages=2)
        with cta.producer() as leader:
            for at in cta.tiles(dst):
                with ring.produce(leader) as slots:
                    for slot, src in zip(slots, sources, strict=True):
                        slot.load(src, at)
        with cta.consumers() as group:
            for at in cta.tiles(dst):
                with ring.consume(group) as tiles, outs.put(group, at) as made:
                    group.map(lambda *v: fn(*v, alpha) if inputs == 1 else fn(*v), *tiles, out=made)

    return compute


def _scaled(v: Any, r: Any, c: Any) -> Any:
    return (v * r.cast(ox.f32) + c).cast(ox.bf16)


@ox.pipeline(warps=ox.roles(producer=1, consumers=2))
def spread(cta: ox.Cta, a: Map, rows: Map, columns: Map, dst: Map) -> None:
    """A tile with a vector along each of its sides."""
    ring: ox.Ring[Any, Any] = cta.ring(stages=2, tiles=(a, rows, columns))
    outs = cta.store_ring(dst, stages=2)
    with cta.producer() as leader:
        for at in cta.tiles(dst):
            with ring.produce(leader) as (x, r, c):
                x.load(a, at)
                r.load(rows, (0, at[0]))
                c.load(columns, (0, at[1]))
    with cta.consumers() as group:
        for at in cta.tiles(dst):
            with ring.consume(group) as (x, r, c), outs.put(group, at) as made:
                group.map(_scaled, x, ox.per_row(r), ox.per_column(c), out=made)


def filled(dtype: type[DType], kind: str) -> Pipe:
    """Fills, iotas and an in-place map by all threads of an odd number of them."""

    @ox.pipeline(threads=77)
    def make(cta: ox.Cta, dst: Map, value: ox.Scalar[ox.f32]) -> None:
        tile = cta.shared(dst)
        if kind == "fill":
            cta.fill(tile, 3)
        elif kind == "scalar":
            cta.fill(tile, value)
        else:
            cta.iota(tile, axis=int(kind))
        cta.fence_proxy_async()
        cta.sync()
        with cta.thread(40) as leader:
            dst.s2g(leader, tile, (cta.block_idx.y * BOX[0], cta.block_idx.x * BOX[1]))
            leader.commit_group()
            leader.wait_group(0)

    return make


def counted(dtype: type[DType], axis: int) -> Pipe:
    """Tiles of indices, again and again: their rows by 16 bytes."""

    @ox.pipeline(threads=96)
    def make(cta: ox.Cta, dst: Map) -> None:
        tile = cta.shared(dst)
        for i in cta.range(3):
            cta.fill(tile, 1)
            cta.sync()
            cta.iota(tile, axis=axis)
            cta.fence_proxy_async()
            cta.sync()
            with cta.elect() as leader:
                dst.s2g(leader, tile, (i * 2, cta.block_idx.x * 8, 0))
                leader.commit_group()
                leader.wait_group(0)
            cta.sync()

    return make


def cases() -> Iterator[Case]:
    """All of this module."""
    for dtype in DTYPES:
        name = dtype.info.name
        for kind in ("fill", "0", "1", *(("scalar",) if dtype is ox.f32 else ())):
            yield Case(name=f"{name} {kind}", group="fill and iota", make=partial(_filled, dtype, kind))
        for axis in range(3):
            yield Case(name=f"{name} {axis} in a loop", group="fill and iota", make=partial(_counted, dtype, axis))
        if name in FLOATS | INTEGERS:
            more = (_FLOAT_ONLY if name in FLOATS else _BITS) | (_SIGNED_ONLY if name in FLOATS | SIGNED else {})
            for word, fn in (_BINARY | _ORDER | more).items():
                yield Case(name=f"map {name} {word}", group="maps", make=partial(_mapped, fn, dtype, 2, dtype))
        if name in IN_F32:
            yield from _functions(dtype)
        for target in DTYPES:
            cast = partial(_cast, target)
            yield Case(name=f"cast {name} to {target.info.name}", group="casts", make=partial(_mapped, cast, dtype, 1, target))
    yield Case(name="map with vectors along rows and columns", group="maps", make=_vectors)
    scaled: Fn = lambda v, alpha: (v * alpha).cast(ox.bf16)  # noqa: E731  # a lambda is what users write here
    yield Case(name="map by a scalar parameter", group="maps", make=partial(_mapped, scaled, ox.f32, 1, ox.bf16))


def _functions(dtype: type[DType]) -> Iterator[Case]:
    for (word, (fn, ulp)), kind in product(_FUNCTIONS.items(), ("bits", "numbers")):
        make = partial(_function, fn, dtype, kind, word == "gelu")
        yield Case(name=f"{word} of {dtype.info.name} {kind}", group="functions", make=make, ulp=ulp)


def _cast(target: type[DType], v: Any, _: Any) -> Any:
    return v.cast(target)


def _function(fn: Fn, dtype: type[DType], kind: str, sized: bool, dev: Device) -> Made:  # noqa: FBT001 - a case's own
    """A function of one value, in f32 at the end: of every sort of bits, or of numbers around 0."""
    values = random_bits(dtype, SHAPE, 3)
    if kind == "numbers":
        values = np.random.default_rng(4).normal(0, 6, SHAPE).astype(values.dtype)
    maps: Any = ox.TmaDescriptor.tiled
    a, made = dev.array(values, dtype), dev.zeros(SHAPE, ox.f32)
    pipe = mapped(lambda v, _: fn(v.cast(ox.f32)), 1, ox.f32)
    launch = pipe[5].bind(maps(a, box=BOX), maps(a, box=BOX), maps(made, box=BOX), 1.0)
    return Made(launch=launch, outputs={"out": made}, sizes=values.astype(np.float32) if sized else None)


def _vectors(dev: Device) -> Made:
    """A scale for each row and an offset for each column."""
    maps: Any = ox.TmaDescriptor.tiled
    a = dev.array(random_bits(ox.f32, SHAPE, 1), ox.f32)
    rows, columns = dev.array(random_bits(ox.f16, (1, SHAPE[0]), 2), ox.f16), dev.array(random_bits(ox.f32, (1, SHAPE[1]), 3), ox.f32)
    made = dev.zeros(SHAPE, ox.bf16)
    boxes = (maps(a, box=BOX, swizzle=ox.Swizzle128B), maps(rows, box=(1, BOX[0])), maps(columns, box=(1, BOX[1])), maps(made, box=BOX))
    return Made(launch=spread[3].bind(*boxes), outputs={"out": made})


def _mapped(fn: Fn, dtype: type[DType], inputs: int, out: type[DType], dev: Device) -> Made:
    maps: Any = ox.TmaDescriptor.tiled
    a, b = (dev.array(random_bits(dtype, SHAPE, seed), dtype) for seed in (1, 2))
    made = dev.zeros(SHAPE, out)
    row = BOX[1] * dtype.info.nbytes
    swizzle = {32: ox.Swizzle32B, 64: ox.Swizzle64B, 128: ox.Swizzle128B}.get(row, ox.SwizzleNone)
    launch = mapped(fn, inputs, out)[5].bind(maps(a, box=BOX, swizzle=swizzle), maps(b, box=BOX), maps(made, box=BOX), 1.7)
    return Made(launch=launch, outputs={"out": made})


def _counted(dtype: type[DType], axis: int, dev: Device) -> Made:
    maps: Any = ox.TmaDescriptor.tiled
    box, made = (2, 8, 128 // dtype.info.nbytes), dev.zeros((6, 16, 128 // dtype.info.nbytes), dtype)
    return Made(launch=counted(dtype, axis)[2].bind(maps(made, box=box, swizzle=ox.Swizzle128B)), outputs={"out": made})


def _filled(dtype: type[DType], kind: str, dev: Device) -> Made:
    maps: Any = ox.TmaDescriptor.tiled
    made = dev.zeros((40, 80), dtype)
    row = BOX[1] * dtype.info.nbytes
    swizzle = {32: ox.Swizzle32B, 64: ox.Swizzle64B, 128: ox.Swizzle128B}.get(row, ox.SwizzleNone)
    return Made(launch=filled(dtype, kind)[3, 3].bind(maps(made, box=BOX, swizzle=swizzle), -2.75), outputs={"out": made})
