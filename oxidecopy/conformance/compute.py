"""Work by threads: fills, iotas, and maps with every operation, type and cast, on every bit pattern."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import oxidecopy as ox
from oxidecopy.conformance.case import Case, Made, random_bits
from oxidecopy.conformance.copies import DTYPES, Map, Pipe
from oxidecopy.isa.elem import FLOATS, INTEGERS

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


def cases() -> Iterator[Case]:
    """All of this module."""
    for dtype in DTYPES:
        name = dtype.info.name
        for kind in ("fill", "0", "1", *(("scalar",) if dtype is ox.f32 else ())):
            yield Case(name=f"{name} {kind}", group="fill and iota", make=partial(_filled, dtype, kind))
        if name in FLOATS | INTEGERS:
            for word, fn in (_BINARY | (_FLOAT_ONLY if name in FLOATS else {})).items():
                yield Case(name=f"map {name} {word}", group="maps", make=partial(_mapped, fn, dtype, 2, dtype))
        for target in DTYPES:
            cast = partial(_cast, target)
            yield Case(name=f"cast {name} to {target.info.name}", group="casts", make=partial(_mapped, cast, dtype, 1, target))
    scaled: Fn = lambda v, alpha: (v * alpha).cast(ox.bf16)  # noqa: E731  # a lambda is what users write here
    yield Case(name="map by a scalar parameter", group="maps", make=partial(_mapped, scaled, ox.f32, 1, ox.bf16))


def _cast(target: type[DType], v: Any, _: Any) -> Any:
    return v.cast(target)


def _mapped(fn: Fn, dtype: type[DType], inputs: int, out: type[DType], dev: Device) -> Made:
    maps: Any = ox.TmaDescriptor.tiled
    a, b = (dev.array(random_bits(dtype, SHAPE, seed), dtype) for seed in (1, 2))
    made = dev.zeros(SHAPE, out)
    row = BOX[1] * dtype.info.nbytes
    swizzle = {32: ox.Swizzle32B, 64: ox.Swizzle64B, 128: ox.Swizzle128B}.get(row, ox.SwizzleNone)
    launch = mapped(fn, inputs, out)[5].bind(maps(a, box=BOX, swizzle=swizzle), maps(b, box=BOX), maps(made, box=BOX), 1.7)
    return Made(launch=launch, outputs={"out": made})


def _filled(dtype: type[DType], kind: str, dev: Device) -> Made:
    maps: Any = ox.TmaDescriptor.tiled
    made = dev.zeros((40, 80), dtype)
    row = BOX[1] * dtype.info.nbytes
    swizzle = {32: ox.Swizzle32B, 64: ox.Swizzle64B, 128: ox.Swizzle128B}.get(row, ox.SwizzleNone)
    return Made(launch=filled(dtype, kind)[3, 3].bind(maps(made, box=BOX, swizzle=swizzle), -2.75), outputs={"out": made})
